"""Every running command of this process: started, read, written to, ended. One loop decides, callers wait.

A command ends with its session, with its workspace, or with the supervisor. A started one that has ended stays
readable for ten minutes (contract, section 7).
"""

import secrets
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from exeora_ws.errors import ExeoraError, ToolFailed, UnknownWorkspace
from exeora_ws.limits import FINISHED_PROCESS_SECONDS, LIVE_PROCESSES, PROCESS_RING_BYTES
from exeora_ws.processes.command import Command, Killed, Listing, Owner, Started
from exeora_ws.processes.ending import FORCE_SECONDS, GRACE_SECONDS
from exeora_ws.processes.loop import Clock, Loop
from exeora_ws.processes.orphans import Orphans, is_stray
from exeora_ws.processes.output import Ring, Stream
from exeora_ws.processes.process import Process, Sink
from exeora_ws.processes.records import Records
from exeora_ws.processes.running import Running
from exeora_ws.processes.spawn import DEVNULL, PIPE, STDOUT, spawn
from exeora_ws.processes.table import Entry

_SWEEP_SECONDS = 2.0
_END_SECONDS = GRACE_SECONDS + FORCE_SECONDS + 1


class Supervisor:
    """All commands of this process. Thread-safe; the loop's thread begins with the first command.

    Args:
        records: where live commands are written down; None keeps no record.
        is_there: whether a workspace is still one; asked once a command is on record.
        live_limit: started commands that may run at once in a project.
        clock: monotonic seconds.
        loop: a loop that the caller turns by hand (tests); None has one in a thread.
    """

    def __init__(
        self,
        *,
        records: Records | None = None,
        is_there: Callable[[str], bool] = lambda _workspace: True,
        live_limit: int = LIVE_PROCESSES,
        clock: Clock = time.monotonic,
        loop: Loop | None = None,
    ) -> None:
        self._records = records
        self._is_there = is_there
        self._live_limit = live_limit
        self._clock = clock
        self._loop = loop
        self._threaded = loop is None
        self._orphans = Orphans(clock)
        self._lock = threading.RLock()
        self._running: dict[str, Running] = {}
        self._closed_sessions: set[str] = set()
        self._closed = False
        self._sweeping = False

    def start(
        self,
        command: Command,
        owner: Owner,
        *,
        private: bool = False,
        limit: int | None = None,
        tap: Callable[[bytes], None] | None = None,
    ) -> Started:
        """Start a command that runs on its own; both outputs in one stream, in the order they were written.

        Args:
            command: what to run.
            owner: for whom.
            private: only its session can see it; otherwise every caller in its workspace can.
            limit: how many of its kind, private or not, may run at once in the project; None for the usual number.
            tap: also given all that it writes; called in the loop, under the process's lock.

        Raises:
            ToolFailed: reason `too_many_processes`, `shutting_down`, or as `spawn`.
            PathNotFound: the folder is gone.
            UnknownWorkspace: the workspace was removed meanwhile; nothing of the command is left.
        """
        ring = Ring(PROCESS_RING_BYTES)

        def keep(_stream: Stream, data: bytes) -> bool:
            ring.append(data)
            if tap is not None:
                tap(data)
            return True

        self._announce()
        with self._lock:
            self._require_room(owner.project, private=private, limit=limit or self._live_limit)
            running = self._launch(command, owner, keep, ring=ring, private=private, timeout=None)
        self._record(running, "start")
        return Started(running.id, command.line, running.process.child.pid)

    def launch(self, command: Command, owner: Owner, sink: Sink, *, timeout: float | None) -> Running:
        """Start a command that somebody waits for: input empty, outputs apart. See `run`."""
        self._announce()
        with self._lock:
            running = self._launch(command, owner, sink, ring=None, private=True, timeout=timeout)
        self._record(running, "run")
        return running

    def require(self, process_id: str, owner: Owner) -> Running:
        """Find a started command; one of another place is as unknown as one that never was.

        Raises:
            ToolFailed: reason `unknown_process`.
        """
        with self._lock:
            running = self._running.get(process_id)
        if running is None or not running.is_visible_to(owner):
            raise ToolFailed("there is no such process in this workspace", reason="unknown_process")
        return running

    def kill(self, process_id: str, owner: Owner) -> Killed:
        """End a started command with everything it started; returns when nothing is left of it.

        Raises:
            ToolFailed: reason `unknown_process`; `not_killed` when something could not be ended.
        """
        running = self.require(process_id, owner)
        if not running.live:
            return Killed(killed=False, code=running.process.require_finish().code)
        self._end([running.process])
        finish = running.process.require_finish()
        if finish.killed and finish.leftovers:
            raise ToolFailed(
                "some of what the command started could not be ended",
                reason="not_killed",
                data={"pids": [leftover.pid for leftover in finish.leftovers]},
            )
        return Killed(killed=finish.killed, code=finish.code)

    def forget(self, process_id: str, owner: Owner) -> None:
        """Let go of a command that has ended and been read; it is unknown from now on.

        Raises:
            ToolFailed: reason `unknown_process`.
        """
        running = self.require(process_id, owner)
        with self._lock:
            running.ring = None
            if running.process.gone:
                self._running.pop(process_id, None)

    def list_started(self, project: str | None = None) -> list[Listing]:
        """Every started command that runs or can still be read, oldest first; of one project, or of all."""
        with self._lock:
            every = [r for r in self._running.values() if r.ring is not None]
        return [r.show() for r in every if project is None or r.owner.project == project]

    def stop_workspace(self, workspace: str) -> list[Listing]:
        """End whatever runs in a workspace, also what somebody waits for; gives what was ended."""
        return self._stop(lambda running: running.owner.workspace == workspace)

    def close_session(self, session: str) -> list[Listing]:
        """End whatever a session started, and take nothing more from it."""
        with self._lock:
            self._closed_sessions.add(session)
        return self._stop(lambda running: running.owner.session == session)

    def close(self) -> None:
        """End everything and take nothing more. Returns when nothing is left, after at most 8 s."""
        with self._lock:
            self._closed = True
            loop = self._loop
        self._stop(lambda _running: True)
        with self._lock:
            self._loop = None
        if loop is not None and self._threaded:
            loop.stop()
        self._orphans.sweep()
        if self._records is not None:
            with suppress(ExeoraError):
                self._records.close()

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing that has ended can still be read."""
        with self._lock:
            return not self._running

    def _launch(
        self, command: Command, owner: Owner, sink: Sink, *, ring: Ring | None, private: bool, timeout: float | None
    ) -> Running:
        if self._closed or owner.session in self._closed_sessions:
            raise ToolFailed("the connection is being closed", reason="shutting_down")
        loop = self._require_loop()
        process_id = new_process_id()
        child = spawn(
            command.argv,
            cwd=command.cwd,
            environ=command.environ,
            folder=command.folder,
            stdin=DEVNULL if ring is None else PIPE,
            stderr=PIPE if ring is None else STDOUT,
            umask=command.umask,
            stray=partial(self._is_stray, process_id),
        )
        process = Process(loop, child, sink, on_gone=partial(self._forget_later, process_id))
        running = Running(process_id, owner, command.line, process, ring, private, time.time())
        self._running[process_id] = running
        loop.post(partial(process.attach, timeout))
        if not self._sweeping:
            self._sweeping = True
            loop.post(self._sweep)
        return running

    def _require_loop(self) -> Loop:
        if self._loop is None:
            self._loop = Loop(self._clock)
            self._loop.start()
        return self._loop

    def _require_room(self, project: str, *, private: bool, limit: int) -> None:
        kind = [r for r in self._running.values() if r.ring and r.private is private and r.owner.project == project]
        live = [r for r in kind if not r.process.finish]
        if len(live) >= limit:
            raise ToolFailed(
                f"{len(live)} commands run in this project already, as many as may",
                reason="too_many_processes",
                hint="end one with kill_command",
                data={"processIds": [r.id for r in live if not r.private]},
            )

    def _announce(self) -> None:
        if self._records is not None:
            self._records.announce()

    def _record(self, running: Running, kind: str) -> None:
        """Write a command down; one that cannot be written down does not run on.

        Nor does one whose workspace went while it was started: whoever removes a workspace ends what is on record
        after it has gone, and what comes on record later is seen here.
        """
        if self._records is None:
            return
        try:
            self._records.add(running.id, kind, running.owner, running.line, running.process.child.tree)
            if not self._is_there(running.owner.workspace):
                raise UnknownWorkspace("the workspace was removed while the command was started")
        except BaseException:
            self._end([running.process])
            raise
        if running.process.gone:
            self._records.mark_done(running.id)

    def _stop(self, chosen: Callable[[Running], bool]) -> list[Listing]:
        with self._lock:
            every = [r for r in self._running.values() if chosen(r) and not r.process.gone]
        stopped = [r for r in every if r.process.finish is None]
        self._end(r.process for r in every)
        return [r.show() for r in stopped]

    def _end(self, processes: Iterable[Process]) -> None:
        chosen = list(processes)
        for process in chosen:
            process.loop.post(process.end)
        deadline = time.monotonic() + _END_SECONDS
        for process in chosen:
            process.wait_gone(deadline - time.monotonic())

    def _is_stray(self, process_id: str, entry: Entry) -> bool:
        with self._lock:
            others = [r.process for r in self._running.values() if r.id != process_id and not r.process.gone]
        return is_stray(entry, [process.child.tree.root.started for process in others])

    def _forget_later(self, process_id: str) -> None:
        """In the loop, once a command has gone."""
        if self._records is not None:
            self._records.mark_done(process_id)
        with self._lock:
            running = self._running.get(process_id)
            if running is None:
                return
            if running.ring is None:
                del self._running[process_id]
            elif self._loop is not None:
                self._loop.after(FINISHED_PROCESS_SECONDS, partial(self._forget, process_id))

    def _forget(self, process_id: str) -> None:
        with self._lock:
            self._running.pop(process_id, None)

    def _sweep(self) -> None:
        """In the loop, every two seconds while anything runs: collect orphans that have ended."""
        self._orphans.sweep()
        with self._lock:
            self._sweeping = any(not r.process.gone for r in self._running.values())
            if self._sweeping and self._loop is not None:
                self._loop.after(_SWEEP_SECONDS, self._sweep)


def new_process_id() -> str:
    """Make a random process id: `prc_` and 24 hexadecimal digits (96 bits)."""
    return "prc_" + secrets.token_hex(12)
