"""One run of the command line: the global options, the core, and which project and workspace are meant."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exeora_ws.errors import Cancelled, ExeoraError, InvalidArguments, ToolFailed, UnknownTool

from exeora_cli import answer, selectors

if TYPE_CHECKING:
    import typer
    from exeora_ws.app import App
    from exeora_ws.cancellation import Cancellation
    from exeora_ws.tools.call import AnyTool, Caller, Calls, Outcome, Scope
    from exeora_ws.workspaces.place import Place, Project

    from exeora_cli.progress import Display

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
        self.name = f"cli-{secrets.token_hex(8)}"
        """Each command is a conversation of its own: what it wrote first is what `revert` goes back to."""
        self.toolsets: tuple[str, ...] = ()
        """The toolsets that were asked for; none is the default one."""
        self.speaks_tools = False
        """Whether its caller wrote a tool's own fields, and is answered in them."""

    @property
    def offers_default(self) -> bool:
        """Whether the default toolset is among those asked for."""
        return not self.toolsets or "exeora" in self.toolsets

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

    def close(self) -> None:
        """End what this command has started and leave nothing of it on record."""
        if "app" in self.__dict__:
            self.app.close()

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

    def require_known_project(self) -> "Project":
        """The project that is named or around, for a command that only looks.

        Raises:
            InvalidArguments: there is none.
        """
        project = self.find_project()
        if project is None:
            raise explain_no_project()
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

    def require_selected(self, project: "Project", workspace: str) -> None:
        """See that a place, which something else has settled, is the one that the command line names, if it names one.

        Args:
            project: the place's project.
            workspace: the id of its workspace.

        Raises:
            InvalidArguments: another one is named; reason `other_place`.
        """
        named, selector = self.options.project, self.options.workspace
        if (named is not None and named not in (project.slug, project.id)) or (
            selector is not None
            and self.app.inventory.require_place(project, self.resolve(project, selector)).workspace.id != workspace
        ):
            raise InvalidArguments(
                "what is named runs in another place than -w or --project say", reason="other_place", hint="exeora ps"
            )

    def name_place(self, project: str, workspace: str) -> tuple[str, str]:
        """Give the slugs of a project and a workspace by their ids; the ids themselves where they are gone."""
        found = next((each for each in self.app.inventory.list_projects() if each.id == project), None)
        if found is None:
            return project, workspace
        slugs = {each.id: each.slug for each in self.app.inventory.list_workspaces(found)}
        return found.slug, {str(key): str(slug) for key, slug in slugs.items()}.get(workspace, workspace)

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

    def require_tool(self, name: str, project: "Project | None" = None) -> "AnyTool":
        """A tool of the catalog; with a project also one of its upstream servers, which is started for it.

        Raises:
            UnknownTool: there is none of that name.
            Exit: interrupted while the server was awaited.
        """
        from exeora_ws.tools.call import PROXIED_PREFIX

        calls = self.find_calls(name)
        if name in calls.catalog:
            return calls.catalog[name]
        if project is None or not name.startswith(PROXIED_PREFIX):
            raise UnknownTool(f"there is no tool {name!r}", hint="exeora tools names those there are")
        with self.interruptible() as cancellation:
            found = calls.require_tool(name, self.bind(project), cancellation)
        return found  # noqa: RET504  inside the block mypy holds that it might not be reached

    def bind(self, project: "Project | None") -> "Scope":
        """Give the scope of a call: one project, or none for a tool that needs none."""
        from exeora_ws.tools.call import Scope

        return Scope(bound=None if project is None else project.id)

    def make(
        self,
        tool: "str | AnyTool",
        arguments: Mapping[str, Any],
        project: "Project | None",
        *,
        shows_itself: bool = False,
    ) -> Result:
        """Take a call the way of every call.

        Args:
            tool: a tool of the catalog by its name, or a way of our own to do one.
            arguments: as an MCP client would pass them.
            project: what the call is bound to.
            shows_itself: it writes to the terminal itself, so that no progress may be shown there.

        Raises:
            ExeoraError: what the call came to, when that is no result.
            Exit: interrupted, with the signal's code.
        """
        from exeora_cli.progress import Narrator, showing_progress

        name = tool if isinstance(tool, str) else tool.name
        showing = nullcontext(Narrator()) if shows_itself else showing_progress(name)
        with self.interruptible() as cancellation, showing as display:
            outcome = self.make_call(tool, arguments, self.introduce(project, cancellation, display))
        return outcome.to_dict()

    def make_call(self, tool: "str | AnyTool", arguments: Mapping[str, Any], caller: "Caller") -> "Outcome":
        """Take a call the way of every call, in any thread, for a caller that was introduced.

        Raises:
            ExeoraError: what it came to, when that is no result.
        """
        from exeora_ws.tools.call import RawCall

        calls, name = (
            (self.find_calls(tool), tool) if isinstance(tool, str) else (self.app.calls.with_only(tool), tool.name)
        )
        outcome = calls.make(RawCall(name, arguments), caller)
        if outcome.error is not None:
            raise outcome.error
        return outcome

    @contextmanager
    def interruptible(self, what: str = "the call") -> Iterator["Cancellation"]:
        """Have a signal take back what runs in the block, which is told as `what`.

        What was done before it noticed is done, and its answer is given.

        Raises:
            Exit: interrupted, with the signal's code.
        """
        from exeora_ws.cancellation import Cancellation

        from exeora_cli.interrupt import cancel_on_signals

        cancellation = Cancellation()
        with cancel_on_signals(cancellation) as interruption:
            try:
                yield cancellation
            except (ExeoraError, KeyboardInterrupt):
                if interruption.signal is None:
                    raise
                answer.print_error(Cancelled(f"interrupted: {what} was cancelled"), json=self.options.json)
                import typer

                raise typer.Exit(answer.SIGNALLED + interruption.signal) from None

    def introduce(self, project: "Project | None", cancellation: "Cancellation", display: "Display") -> "Caller":
        """Say who calls: this command, and the person at its terminal where there is one."""
        from exeora_ws import __version__
        from exeora_ws.tools.call import Asking, Caller, Face

        from exeora_cli.asking import TerminalAsker, has_person

        asking = Asking(TerminalAsker(display.hiding)) if has_person() else Asking()
        client = f"exeora-cli/{__version__}"
        return Caller(Face.CLI, client, self.name, self.bind(project), cancellation, display.say, asking)

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


def session_of(context: "typer.Context") -> Session:
    """Give the session that a command runs in."""
    session: Session = context.obj
    return session
