"""read_logs: the last lines of a container's, a service's or a file's log."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from shlex import join
from typing import Annotated

from msgspec import Meta

from exeora_ws.errors import ExeoraError, InvalidArguments, ToolFailed
from exeora_ws.files.reading import decode_shown
from exeora_ws.files.ripgrep import Patience, find_ripgrep, read_chunks
from exeora_ws.files.sizes import keep_newest
from exeora_ws.files.spot import Spot
from exeora_ws.limits import RESULT_TEXT_BYTES
from exeora_ws.tools.file_reasons import NOT_A_FILE, PATHS, SEARCHES
from exeora_ws.tools.files import make_reach
from exeora_ws.tools.processes import make_place_environment
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Call, Hints, Needs, Routing, Tool
from exeora_ws.toolsets.engine.words import Said, place_path, rename, render_failure, render_said
from exeora_ws.toolsets.wording import SnakeArguments

_LINES = 100
_MOST_LINES = 2_000
_FILE_BYTES = 50_000_000
_READ_BYTES = 20_000_000
_SHOWN_BYTES = 400_000
_SECONDS = 30.0
_NAME = re.compile(r"[A-Za-z0-9@_.:][A-Za-z0-9@_.:\\-]*\Z")


class LogArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of read_logs."""

    source: Annotated[str, Meta(description="`docker`, `systemd` or `file`.")]
    target: Annotated[str, Meta(description="Name of the container or service, or path of the log file.")]
    lines: Annotated[int, Meta(description=f"How many of the last lines, 1 to {_MOST_LINES}.")] = _LINES
    filter: Annotated[str, Meta(description="Only lines that match this pattern (Rust regular expression).")] = ""


def _read_logs(call: Call[LogArguments, Services]) -> Said:
    asked = call.arguments
    if asked.source not in _SOURCES:
        raise InvalidArguments(f"source: {asked.source!r} is none of docker, systemd and file", reason="unknown_source")
    if not asked.target.strip():
        raise InvalidArguments("target: name the container, the service or the file", reason="missing_target")
    title, load = _SOURCES[asked.source]
    return Said(text=_show(f"{title}: {asked.target.strip()}", load(call), call))


def _show(title: str, raw: bytes, call: Call[LogArguments, Services]) -> str:
    asked = call.arguments
    total = raw.count(b"\n") + (raw[-1:] not in (b"", b"\n"))
    chosen = _filter(call, raw, asked.filter) if asked.filter else raw
    rows = chosen.split(b"\n")
    rows = rows[:-1] if rows[-1] == b"" else rows
    shown, cut = _take_last(rows, min(max(asked.lines, 1), _MOST_LINES))
    whole, _ = decode_shown(b"\n".join(shown))
    text, _, shortened = keep_newest(whole, "", RESULT_TEXT_BYTES)
    about = f"last {len(shown)} of {total} lines" if not asked.filter else (
        f"last {len(shown)} of {len(rows)} lines that match, of {total}"
    )  # fmt: skip
    if cut:
        about += "; longer ones are cut"
    if shortened:
        about += "; the oldest of these are left out"
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`{3,}", text)), default=0))
    return f"## {title} ({about})\n{fence}\n{text}\n{fence}"


def _take_last(rows: Sequence[bytes], wanted: int) -> tuple[list[bytes], bool]:
    """Take the last lines, each no longer than its share of one answer."""
    last = list(rows[-wanted:])
    share = max(200, _SHOWN_BYTES // max(1, len(last)))
    return [row[:share] for row in last], any(len(row) > share for row in last)


def _load_file(call: Call[LogArguments, Services]) -> bytes:
    target = call.arguments.target.strip()
    path = place_path(call, target)
    hint = f"run_shell with: tail -n {_LINES} {join([target])}"
    try:
        with make_reach(call).locate_for_reading(path) as spot:
            return _read_all(spot)
    except ExeoraError as error:
        outside = error.reason == "absolute_path"
        message = f"{target}: lies outside the workspace, and only files in it are read" if outside else error.message
        raise type(error)(message, reason=error.reason, hint=hint, data=error.data) from error


def _read_all(spot: Spot) -> bytes:
    with os.fdopen(spot.open_file(), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > _FILE_BYTES:
            raise ToolFailed(f"{spot.shown}: has {size} bytes, too many to be read whole", reason="too_large")
        return stream.read(_FILE_BYTES)


def _load_docker(call: Call[LogArguments, Services]) -> bytes:
    return _run(call, ["docker", "logs", "--tail", _number(call), _name(call)])


def _load_systemd(call: Call[LogArguments, Services]) -> bytes:
    return _run(call, ["journalctl", "--no-pager", "-n", _number(call), "-u", _name(call)])


def _number(call: Call[LogArguments, Services]) -> str:
    """How many lines to ask for: with a filter more, since it chooses among them."""
    return str(_MOST_LINES * 10 if call.arguments.filter else min(max(call.arguments.lines, 1), _MOST_LINES))


def _name(call: Call[LogArguments, Services]) -> str:
    name = call.arguments.target.strip()
    if not _NAME.match(name):
        raise InvalidArguments(f"target: {name!r} is no name of a container or service", reason="wrong_value")
    return name


def _run(call: Call[LogArguments, Services], argv: Sequence[str]) -> bytes:
    """Run a log program; what it says on either output is the log.

    Raises:
        ToolFailed: `source_missing` where there is no such program, `log_failed` where it fails.
    """
    place = call.require_place()
    environ = make_place_environment(place)
    if shutil.which(argv[0], path=environ.get("PATH")) is None:
        raise ToolFailed(f"there is no {argv[0]} on this machine", reason="source_missing")
    shell = ["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *argv]
    with call.services.spawn(shell, cwd=str(place.root), environ=environ) as child:
        patience = Patience(call.cancellation, call.progress, seconds=_SECONDS)
        output = b"".join(read_chunks(child, patience))[-_READ_BYTES:]
        code = child.wait(_SECONDS)
    if code:
        said = decode_shown(output[-500:])[0].strip()
        raise ToolFailed(f"{argv[0]} failed: {said}", reason="log_failed", data={"exitCode": code})
    return output


def _filter(call: Call[LogArguments, Services], raw: bytes, pattern: str) -> bytes:
    """Choose lines with ripgrep, whose patterns take time in proportion to the text."""
    argv = [find_ripgrep(os.environ), "--no-config", "--color=never", "--text", f"--regexp={pattern}", "-"]
    environ = {"PATH": os.environ.get("PATH", "")}
    with call.services.spawn(argv, cwd=str(call.require_place().root), environ=environ, stdin=raw) as child:
        found = b"".join(read_chunks(child, Patience(call.cancellation, call.progress, seconds=_SECONDS)))
        code, said = child.wait(_SECONDS), child.stderr_tail()
    if code > 1:
        why = said.decode("utf-8", "replace").strip().removeprefix("rg: ")
        raise InvalidArguments(f"filter: {why}", reason="invalid_pattern")
    return found


_SOURCES: dict[str, tuple[str, Callable[[Call[LogArguments, Services]], bytes]]] = {
    "docker": ("Docker logs", _load_docker),
    "systemd": ("Systemd logs", _load_systemd),
    "file": ("File log", _load_file),
}


def _find_command(arguments: LogArguments) -> str | None:
    """Give the program that the source is read with, for policy to judge."""
    if arguments.source == "docker":
        return join(["docker", "logs", arguments.target])
    return join(["journalctl", "-u", arguments.target]) if arguments.source == "systemd" else None


READ_LOGS = Tool(
    name="read_logs",
    title="Read logs",
    description=(
        "Read the last lines of a log, as a fenced block under a header that says how much is shown: of a Docker "
        "container, a systemd service, or a file of the workspace (source `file`), such as .server.log. `filter` keeps "
        "only the lines that match."
    ),
    arguments=LogArguments,
    result=Said,
    hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=True),
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_read_logs,
    reasons={
        **PATHS,
        **{key: text for key, text in NOT_A_FILE.items() if key != "binary"},
        **SEARCHES,
        "unknown_source": "not docker, systemd or file",
        "missing_target": "nothing is named",
        "source_missing": "the program that reads it is not there",
        "log_failed": "the program that reads it failed; the message has its words",
        "too_large": "more than 50,000,000 bytes",
        "invalid_pattern": "the filter does not compile",
    },
    command=_find_command,
    prepare=rename(),
    render=render_said,
    render_error=render_failure,
)
