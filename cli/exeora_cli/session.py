"""One run of the command line: the global options, the core, and which project and workspace are meant."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from exeora_ws.errors import Cancelled, ExeoraError, InvalidArguments, ToolFailed, UnknownTool

from exeora_cli import answer, selectors

if TYPE_CHECKING:
    from exeora_ws.app import App
    from exeora_ws.cancellation import Cancellation, Progress
    from exeora_ws.tools.call import AnyTool, Caller, Calls, Outcome, Scope
    from exeora_ws.workspaces.place import Place, Project

Result = dict[str, Any]


@dataclass(slots=True)
class Options:
    """The global options, wherever on the command line they stood."""

    project: str | None = None
    workspace: str | None = None
    json: bool = False

    def take(self, name: str, value: str | bool) -> None:
        """Take one over.

        Raises:
            InvalidArguments: given twice, and not the same.
        """
        before = getattr(self, name)
        if before not in (None, False, value):
            raise InvalidArguments(f"{name}: given twice, as {before!r} and {value!r}", reason="given_twice")
        setattr(self, name, value)


@dataclass(frozen=True, slots=True)
class Shown:
    """A result as a person reads it: what goes to stdout, and what is only told."""

    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Session:
    """What a command asks for. Nothing heavy is imported before it is needed."""

    def __init__(self) -> None:
        self.options = Options()
        self.toolsets: tuple[str, ...] = ()
        """The toolsets that were asked for; none is the default one."""

    @cached_property
    def calls(self) -> "Calls":
        """The way of a call, with the tools of the toolsets asked for.

        Raises:
            InvalidArguments: one does not exist, or two do not go together.
        """
        from exeora_ws.app import open_calls

        return open_calls(self.app, self.toolsets) if self.toolsets else self.app.calls

    def find_calls(self, tool: str) -> "Calls":
        """Give the way of a call to a tool: of the toolsets asked for, else of whichever toolset has it."""
        from exeora_ws.app import open_calls_with

        return self.calls if self.toolsets else open_calls_with(self.app, tool)

    @cached_property
    def app(self) -> "App":
        """The core, opened when it is first needed."""
        from exeora_ws.app import open_app

        return open_app()

    @cached_property
    def folder(self) -> Path:
        """The current directory.

        Raises:
            ToolFailed: reason `cwd_gone`.
        """
        try:
            return Path(os.getcwd())
        except FileNotFoundError:
            raise ToolFailed("the current directory is gone", reason="cwd_gone", hint="cd to one that exists") from None

    def find_around(self) -> "Place | None":
        """The workspace around the current directory, or None."""
        return self.app.inventory.find_around(self.folder)

    def find_around_quietly(self) -> "Place | None":
        """The workspace around the current directory, or None, also where that cannot be told."""
        try:
            return self.find_around()
        except ExeoraError:
            return None

    def find_project(self) -> "Project | None":
        """The project that is named, or the one around the current directory; None when that is in none.

        Raises:
            UnknownProject: the named one does not exist.
        """
        if self.options.project is not None:
            return self.app.inventory.require_project(self.options.project)
        around = self.find_around()
        return around.project if around is not None else self.app.inventory.find_project_of(self.folder)

    def require_project(self) -> "Project":
        """The project to act in; a repository that is none yet becomes one, and that is said.

        Raises:
            InvalidArguments: the current directory is in no repository, and none is named.
        """
        project = self.find_project()
        if project is not None:
            return project
        if not self.app.inventory.is_in_repository(self.folder):
            raise explain_no_project()
        project, _new = self.app.inventory.register_project(self.folder, exact=False)
        answer.tell(f"registered this repository as project {project.slug!r}", json=self.options.json)
        return project

    def choose_workspace(self, project: "Project") -> str:
        """Give the slug of the workspace to act in: the one named, else the one around the current directory.

        Raises:
            UnknownWorkspace: the one named does not resolve.
            InvalidArguments: none is named and none is around.
        """
        if self.options.workspace is not None:
            return self.resolve(project, self.options.workspace)
        around = self.find_around()
        if around is not None and around.project.id == project.id:
            return around.workspace.slug
        if self.options.project is not None and not self.app.inventory.is_in_other_worktree(project, self.folder):
            return "main"
        raise InvalidArguments(
            "the current directory is in no workspace of this project",
            reason="no_workspace",
            hint="pass -w WORKSPACE or --project PROJECT; exeora list names the workspaces, exeora attach connects one",
        )

    def resolve(self, project: "Project", selector: str) -> str:
        """Give the slug that a selector of the command line names; see `selectors.resolve_selector`."""
        return selectors.resolve_selector(self.app, project, selector, lambda: self.folder)

    def refuse_workspace(self, command: str) -> None:
        """See that no workspace is named where none is looked at.

        Raises:
            InvalidArguments: one is.
        """
        if self.options.workspace is not None:
            raise InvalidArguments(f"-w: {command} takes no workspace", reason="no_workspace_taken")

    def refuse_globals(self, command: str) -> None:
        """See that neither project nor workspace is named where neither is looked at.

        Raises:
            InvalidArguments: one is.
        """
        self.refuse_workspace(command)
        if self.options.project is not None:
            raise InvalidArguments(f"--project: {command} takes no such option", reason="no_project_taken")

    def require_tool(self, name: str) -> "AnyTool":
        """A tool of the catalog.

        Raises:
            UnknownTool: there is none of that name.
        """
        tool = self.find_calls(name).catalog.get(name)
        if tool is None:
            raise UnknownTool(f"there is no tool {name!r}", hint="exeora tools names those there are")
        return tool

    def bind(self, project: "Project | None") -> "Scope":
        """Give the scope of a call: one project, or none for a tool that needs none."""
        from exeora_ws.tools.call import Scope

        return Scope(bound=None if project is None else project.id)

    def make(self, tool: str, arguments: Mapping[str, Any], project: "Project | None") -> Result:
        """Take a call the way of every call.

        Raises:
            ExeoraError: what the call came to, when that is no result.
            Exit: interrupted, with the signal's code.
        """
        outcome = self._make(tool, arguments, project)
        if outcome.error is not None:
            raise outcome.error
        return outcome.to_dict()

    def _make(self, tool: str, arguments: Mapping[str, Any], project: "Project | None") -> "Outcome":
        from exeora_ws.cancellation import Cancellation
        from exeora_ws.tools.call import RawCall

        from exeora_cli.interrupt import cancel_on_signals
        from exeora_cli.progress import showing_progress

        cancellation, outcome = Cancellation(), None
        with cancel_on_signals(cancellation) as interruption, showing_progress(tool) as progress:
            caller = self._introduce(project, cancellation, progress)
            try:
                outcome = self.find_calls(tool).make(RawCall(tool, arguments), caller)
            except KeyboardInterrupt:
                if interruption.signal is None:
                    raise
        # A call that was done before it noticed is done, and its answer is given.
        if interruption.signal is not None and (outcome is None or outcome.error is not None):
            answer.print_error(Cancelled("interrupted: the call was cancelled"), json=self.options.json)
            raise typer.Exit(answer.SIGNALLED + interruption.signal)
        assert outcome is not None  # noqa: S101  told to the type checker: an exception has left by now
        return outcome

    def _introduce(self, project: "Project | None", cancellation: "Cancellation", progress: "Progress") -> "Caller":
        from exeora_ws import __version__
        from exeora_ws.tools.call import Caller, Face

        return Caller(Face.CLI, f"exeora-cli/{__version__}", "cli", self.bind(project), cancellation, progress)

    def show(self, result: Result, render: Callable[[Result], Shown]) -> None:
        """Print a result: as a document with `--json`, else as `render` words it."""
        if self.options.json:
            answer.print_document(result)
            return
        shown = render(result)
        answer.narrate(shown.notes)
        answer.print_lines(shown.lines)


def explain_no_project() -> InvalidArguments:
    """Give the refusal of a command that needs a project where there is none."""
    return InvalidArguments(
        "the current directory is in no project",
        reason="no_project",
        hint="pass --project PROJECT, or register a folder: exeora project add PATH",
    )


def session_of(context: typer.Context) -> Session:
    """Give the session that a command runs in."""
    session: Session = context.obj
    return session
