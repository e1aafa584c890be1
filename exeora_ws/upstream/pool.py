"""Every running server, one for each (configuration, directory): started on demand, ended when nobody needs it."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ToolFailed
from exeora_ws.upstream.instance import Instance, Surroundings
from exeora_ws.upstream.launcher import find_working_directory
from exeora_ws.upstream.server import Program, Server

IDLE_SECONDS = 600.0
"""A server that nobody has called for so long is ended; the next call starts it again."""


_CLOSE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Key:
    """What two calls must have in common to share an instance."""

    fingerprint: str
    directory: str | None
    """None for a remote server, which runs in no directory of ours."""
    identity: tuple[int, int] | None
    """Device and inode: a folder that was removed and made again is another one."""


@dataclass(eq=False)
class _Slot:
    key: Key
    server: Server
    directory: Path
    users: int = 0
    used_at: float = 0.0
    attempt: "Future[Instance] | None" = None
    instance: Instance | None = None
    closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class Pool:
    """Starts, shares and ends instances. Thread-safe.

    Args:
        surroundings: what servers are started with.
        on_list_changed: told that a server's tools in a directory are others now; must return at once.
        idle_seconds: see `IDLE_SECONDS`.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        on_list_changed: Callable[[Server, Path], None],
        *,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._surroundings = surroundings
        self._on_list_changed = on_list_changed
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._slots: dict[Key, _Slot] = {}
        self._leaving: list[_Slot] = []
        self._closed = False

    @contextmanager
    def use(self, server: Server, directory: Path, cancellation: Cancellation | None = None) -> Iterator[Instance]:
        """Give a running instance; it is not ended for idleness inside the `with` block.

        A start that somebody stops waiting for goes on: the next caller finds it done.

        Raises:
            ToolFailed: reason `upstream_failed`, it does not start; `upstream_stopped`, everything is being ended.
            Cancelled: while it started.
        """
        slot = self._enter(server, directory)
        try:
            yield self._require_running(slot, cancellation)
        finally:
            with self._lock:
                slot.users -= 1
                slot.used_at = time.monotonic()

    def find_running(self) -> list[Instance]:
        """The instances that are up."""
        with self._lock:
            slots = list(self._slots.values())
        return [slot.instance for slot in slots if slot.instance is not None and slot.instance.alive]

    def close_others(self, keep: Iterable[str]) -> None:
        """End every instance whose configuration's fingerprint is not among these."""
        kept = set(keep)
        self._close_where(lambda slot: slot.key.fingerprint not in kept)

    def close_directory(self, directory: Path) -> list[str]:
        """End what runs in a directory or below it; names the servers that were running."""
        return self._close_where(
            lambda slot: slot.key.directory is not None and _is_in(Path(slot.key.directory), directory)
        )

    def reap(self) -> list[str]:
        """End what is idle, and what runs in a directory that is not there any more."""
        now = time.monotonic()
        return self._close_where(
            lambda slot: self._is_idle(slot, now) or _identify(slot.key.directory) != slot.key.identity
        )

    def close(self) -> None:
        """End everything, for good; what somebody else is just ending has ended then too."""
        with self._lock:
            self._closed = True
            leaving = list(self._leaving)
        self._close_where(lambda _: True)
        _close_together(leaving)

    def _enter(self, server: Server, directory: Path) -> _Slot:
        key = _make_key(server, directory)
        with self._lock:
            if self._closed:
                raise ToolFailed("upstream servers are being stopped", reason="upstream_stopped")
            slot = self._slots.setdefault(key, _Slot(key, server, directory))
            slot.users += 1
            return slot

    def _require_running(self, slot: _Slot, cancellation: Cancellation | None) -> Instance:
        with slot.lock:
            if slot.attempt is None or (slot.attempt.done() and not _succeeded(slot.attempt)):
                slot.attempt = self._begin_start(slot)
            attempt = slot.attempt
        settled = threading.Event()
        attempt.add_done_callback(lambda _: settled.set())
        forget = cancellation.on_cancel(settled.set) if cancellation else lambda: None
        try:
            settled.wait()
        finally:
            forget()
        if cancellation is not None and not attempt.done():
            cancellation.raise_if_cancelled()
        return attempt.result()

    def _begin_start(self, slot: _Slot) -> "Future[Instance]":
        attempt: Future[Instance] = Future()
        before = slot.instance
        instance = Instance(
            slot.server,
            slot.directory,
            self._surroundings,
            lambda: self._on_list_changed(slot.server, slot.directory),
        )
        slot.instance = instance
        threading.Thread(
            target=_start, args=(slot, instance, before, attempt), name="upstream-start", daemon=True
        ).start()
        return attempt

    def _is_idle(self, slot: _Slot, now: float) -> bool:
        # A remote server is no process of ours; letting go of it would only lose what it announces.
        return slot.key.directory is not None and not slot.users and now - slot.used_at > self._idle_seconds

    def _close_where(self, condition: Callable[[_Slot], bool]) -> list[str]:
        with self._lock:
            doomed = [slot for slot in self._slots.values() if condition(slot)]
            for slot in doomed:
                del self._slots[slot.key]
            self._leaving += doomed
        names = [slot.server.name for slot in doomed if slot.instance is not None and slot.instance.alive]
        try:
            _close_together(doomed)
        finally:
            with self._lock:
                self._leaving = [slot for slot in self._leaving if slot not in doomed]
        return names


def _start(slot: _Slot, instance: Instance, before: Instance | None, attempt: "Future[Instance]") -> None:
    try:
        if before is not None:
            # It has died; what it left running goes before the next one comes.
            before.close()
        if slot.closed:
            instance.close()
        instance.start()
    except BaseException as error:  # noqa: BLE001 - handed on, whole, to whoever waits for the attempt
        attempt.set_exception(error)
    else:
        attempt.set_result(instance)


def _succeeded(attempt: "Future[Instance]") -> bool:
    return attempt.exception() is None and attempt.result().alive


def _close_together(slots: Iterable[_Slot]) -> None:
    threads = [threading.Thread(target=_close_slot, args=(slot,), daemon=True) for slot in slots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _close_slot(slot: _Slot) -> None:
    with slot.lock:
        slot.closed = True
        instance = slot.instance
        attempt = slot.attempt
    if instance is not None:
        instance.close()
    if attempt is not None:
        # A child that was being spawned just now is ended by the thread that spawns it.
        wait([attempt], timeout=_CLOSE_SECONDS)


def _make_key(server: Server, directory: Path) -> Key:
    if not isinstance(server.reach, Program):
        return Key(server.fingerprint, None, None)
    where = str(find_working_directory(server.reach, directory))
    return Key(server.fingerprint, where, _identify(where))


def _identify(directory: str | None) -> tuple[int, int] | None:
    if directory is not None:
        with suppress(OSError):
            state = os.stat(directory)
            return (state.st_dev, state.st_ino)
    return None


def _is_in(directory: Path, top: Path) -> bool:
    return directory == top or top in directory.parents
