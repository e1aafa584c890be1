"""One command in every workspace of a project, several at once, each line of output with its workspace in front."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from exeora_ws.errors import ExeoraError

from exeora_cli import answer
from exeora_cli.progress import Narrator
from exeora_cli.wording import for_shell

if TYPE_CHECKING:
    from exeora_ws.cancellation import Cancellation
    from exeora_ws.workspaces.place import Project

    from exeora_cli.session import Session

_OUT = 1


class SideBySide:
    """Runs `words` in every workspace that has files.

    Args:
        session: the command line's.
        project: whose workspaces.
        words: the command, as `run` takes it.
        options: further arguments of run_command; None for one that is not given.
    """

    def __init__(self, session: "Session", project: "Project", words: list[str], options: Mapping[str, Any]) -> None:
        from exeora_ws.tools.shell.commands import join_words

        self._session = session
        self._project = project
        line, self._direct = join_words(words)
        self._arguments = {"command": line, **{name: each for name, each in options.items() if each is not None}}
        workspaces = session.app.inventory.list_workspaces(project)
        self._slugs = [str(each.slug) for each in workspaces if not (project.bare and each.main)]
        self._width = max(map(len, self._slugs), default=0)
        self._writing = threading.Lock()

    def run(self, jobs: int) -> list[dict[str, Any]]:
        """Run in all, and wait for all; gives for each workspace the result, or the `error` that it met.

        Raises:
            Exit: interrupted; what ran has been ended.
        """
        with self._session.interruptible() as cancellation, ThreadPoolExecutor(jobs) as pool:
            try:
                pending = [pool.submit(self._run_in, slug, cancellation) for slug in self._slugs]
                results = [each.result() for each in pending]
            except BaseException:
                cancellation.cancel()
                raise
            cancellation.raise_if_cancelled()
        return results

    def _run_in(self, slug: str, cancellation: "Cancellation") -> dict[str, Any]:
        from exeora_ws.tools.shell.commands import run_captured

        lines = _Lines(f"{slug:{self._width}} | ".encode(), self._writing)
        shown = None if self._session.options.json else lines.take
        caller = self._session.introduce(self._project, cancellation, Narrator())
        try:
            cancellation.raise_if_cancelled()
            tool = run_captured(direct=self._direct, on_output=shown)
            outcome = self._session.make_call(tool, {**self._arguments, "workspace": slug}, caller)
        except ExeoraError as refused:
            error = for_shell(refused)
            lines.finish()
            self._tell(slug, error, cancellation)
            return {"workspace": slug, "error": error.to_dict()}
        finally:
            self._session.app.services.database.close()
        lines.finish()
        return {"workspace": slug, **outcome.to_dict()}

    def _tell(self, slug: str, error: ExeoraError, cancellation: "Cancellation") -> None:
        if not self._session.options.json and not cancellation.cancelled:
            with self._writing:
                answer.narrate([f"{slug}: {error.message}"], hint=error.hint)


class _Lines:
    """Whole lines with a prefix, from the two outputs of a command to ours."""

    def __init__(self, prefix: bytes, writing: threading.Lock) -> None:
        self._prefix = prefix
        self._writing = writing
        self._rest: dict[int, bytes] = {}

    def take(self, stream: int, data: bytes) -> None:
        """Print what is whole of it, and keep the rest."""
        *whole, rest = (self._rest.get(stream, b"") + data).split(b"\n")
        self._rest[stream] = rest
        self._print(stream, whole)

    def finish(self) -> None:
        """Print what did not end in a newline."""
        for stream, rest in self._rest.items():
            if rest:
                self._print(stream, [rest])

    def _print(self, stream: int, lines: list[bytes]) -> None:
        if lines:
            with self._writing:
                text = b"".join(self._prefix + line + b"\n" for line in lines)
                (answer.print_bytes if stream == _OUT else answer.narrate_bytes)(text)
