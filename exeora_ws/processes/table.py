"""The machine's process table: who exists, who started whom, what a process carries.

On Linux `/proc` is read directly (about 10 µs a process); elsewhere psutil gives what it can. A process is its pid
*and* its start time: the number alone may belong to another one a moment later.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

LINUX = sys.platform == "linux"
TAG_VARIABLE = "EXEORA_TAG"

_STAT_BYTES = 4096
_BLOCK_BYTES = 65_536
_LISTINGS = 6


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """One process, for good. `started` is in the kernel's clock ticks since boot (Linux) or 10 ms of the epoch."""

    pid: int
    started: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the process table."""

    identity: Identity
    parent: int
    group: int
    session: int
    zombie: bool
    """Ended, and waiting for its parent to ask; it runs nothing any more."""

    @property
    def pid(self) -> int:
        """The process id."""
        return self.identity.pid


def find_entry(pid: int) -> Entry | None:
    """Look one process up; None when there is none."""
    return _find_in_proc(pid) if LINUX else _find_with_psutil(pid)


def is_running(identity: Identity) -> bool:
    """Whether this very process exists and has not ended."""
    entry = find_entry(identity.pid)
    return entry is not None and entry.identity == identity and not entry.zombie


def require_entry(pid: int) -> Entry:
    """Look up a process that must exist (ourselves, a child nobody has reaped)."""
    entry = find_entry(pid)
    if entry is None:
        raise ProcessLookupError(pid)
    return entry


def load_table() -> dict[int, Entry]:
    """Read every process that can be seen, by pid.

    A process may end while the others are read, and its child be born too late to have been listed: so what was
    listed is compared, until nothing new is there.
    """
    table: dict[int, Entry] = {}
    seen: set[int] = set()
    for _ in range(_LISTINGS):
        fresh = set(_pids()) - seen
        if not fresh:
            break
        seen |= fresh
        table.update((pid, entry) for pid in fresh if (entry := find_entry(pid)) is not None)
    return table


def find_variable(pid: int, name: str) -> str | None:
    """Give a variable a process was started with: "" when it has none, None when it cannot be told.

    A process that is just becoming another program has no environment for a moment: that cannot be told either, and
    looks the same as an environment that is empty for good.
    """
    if not LINUX:
        return _find_variable_with_psutil(pid, name)
    data = _read_proc(pid, "environ")
    if not data:
        return None
    _, _, rest = (b"\0" + data).partition(b"\0" + name.encode() + b"=")
    return rest.partition(b"\0")[0].decode("utf-8", "replace")


def find_program(pid: int) -> str:
    """Give the base name of the program a process runs, "?" when it cannot be told. Arguments may hold secrets."""
    if LINUX:
        words = (_read_proc(pid, "cmdline") or b"").split(b"\0")
        name = os.path.basename(words[0]) or (_read_proc(pid, "comm") or b"").strip()
        return name.decode("utf-8", "replace") or "?"
    import psutil  # noqa: PLC0415 - only where /proc is not: 25 ms

    with suppress(psutil.Error):
        return str(psutil.Process(pid).name())
    return "?"


@cache
def load_boot_id() -> str:
    """Name this boot of the machine: start times of different boots do not compare."""
    if LINUX:
        with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.read().strip()
    import psutil  # noqa: PLC0415 - only where /proc is not

    return str(int(psutil.boot_time()))


@cache
def load_pid_namespace() -> str:
    """Name the set of pids that this process sees: those of a container mean other processes than ours."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def _pids() -> Iterator[int]:
    if LINUX:
        return (int(name) for name in os.listdir("/proc") if name.isdigit())
    import psutil  # noqa: PLC0415 - only where /proc is not

    return iter(psutil.pids())


def _find_in_proc(pid: int) -> Entry | None:
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        line = os.read(descriptor, _STAT_BYTES)
    except ProcessLookupError:
        return None
    finally:
        os.close(descriptor)
    # The name stands in brackets and may itself hold brackets and blanks: the fields start after the last one.
    fields = line[line.rindex(b")") + 2 :].split()
    return Entry(
        identity=Identity(pid, int(fields[19])),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        zombie=fields[0] in (b"Z", b"X", b"x"),
    )


def _read_proc(pid: int, name: str) -> bytes | None:
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as stream:
            blocks = []
            while block := stream.read(_BLOCK_BYTES):
                blocks.append(block)
            return b"".join(blocks)
    except OSError:
        return None


def _find_with_psutil(pid: int) -> Entry | None:
    import psutil  # noqa: PLC0415 - only where /proc is not

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            return Entry(
                identity=Identity(pid, int(process.create_time() * 100)),
                parent=process.ppid(),
                group=os.getpgid(pid),
                session=os.getsid(pid),
                zombie=process.status() == psutil.STATUS_ZOMBIE,
            )
    except (psutil.Error, OSError):
        return None


def _find_variable_with_psutil(pid: int, name: str) -> str | None:
    import psutil  # noqa: PLC0415 - only where /proc is not

    try:
        return str(psutil.Process(pid).environ().get(name, ""))
    except (psutil.Error, OSError):
        return None
