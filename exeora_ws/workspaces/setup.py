"""Make a workspace ready to run, and give every command in it its ports and variables.

Set-up commands come from the repository, so they run only when a person has trusted their exact content; else they
are skipped and that is said. Nothing here waits for an answer, and nothing here undoes a workspace that exists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, ExeoraError, ToolFailed
from exeora_ws.git.opening import open_repository
from exeora_ws.limits import SETUP_SECONDS, TEARDOWN_SECONDS
from exeora_ws.workspaces import trust
from exeora_ws.workspaces.copying import Copied, Copier, Patterns, choose
from exeora_ws.workspaces.place import Place, Project
from exeora_ws.workspaces.ports import reserve_ports
from exeora_ws.workspaces.recipe import Recipe, load_recipe
from exeora_ws.workspaces.registry import Registry, record_state

PREPARED = "prepared"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended. `output` is the end of what it wrote."""

    code: int | None
    timed_out: bool
    output: str


RunLine = Callable[[Place, str, Mapping[str, str], float, Cancellation], Ran]
"""Runs a shell line in a place with further variables, for at most so many seconds, and waits for its end."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The command that failed; the ones after it did not run."""

    command: str
    ran: Ran


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done. `status`: `none`, `done`, `failed`, `skipped_untrusted`, `invalid`."""

    status: str
    copied: Copied = field(default_factory=Copied)
    ports: Mapping[str, int] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    """Those that ran, or were skipped."""
    failure: Failure | None = None
    message: str | None = None
    """Why it is `invalid`."""


class Setup:
    """Making workspaces ready.

    Args:
        registry: where ports, trust and history are.
        run: how a command runs.
    """

    def __init__(self, registry: Registry, run: RunLine) -> None:
        self._registry = registry
        self._run = run

    def prepare(self, place: Place, cancellation: Cancellation) -> Prepared:
        """Copy, link, reserve ports, run the set-up commands. Repeated, it does what is missing, and runs again."""
        try:
            recipe = load_recipe(_source_of(place))
            if recipe.empty:
                return Prepared("none")
            copied = self._bring_files(place, recipe)
            ports = reserve_ports(self._registry, place.workspace, recipe.ports or {})
        except ToolFailed as error:
            return Prepared("invalid", message=error.message)
        prepared = self._run_all(place, recipe, recipe.setup, SETUP_SECONDS, cancellation)
        if prepared.status != "failed":
            with self._registry.database.write() as connection:
                record_state(connection, place.workspace, PREPARED, prepared.status)
        return Prepared(prepared.status, copied, ports, prepared.commands, prepared.failure)

    def is_prepared(self, place: Place) -> bool:
        """Whether it was once made ready, to the end."""
        return any(state.state == PREPARED for state in self._registry.list_history(place.workspace.id))

    def tear_down(self, place: Place, cancellation: Cancellation) -> Prepared:
        """Run the teardown commands, before a removal. Their failure stops nothing."""
        try:
            recipe = load_recipe(_source_of(place))
        except ToolFailed as error:
            return Prepared("invalid", message=error.message)
        if not recipe.teardown:
            return Prepared("none")
        return self._run_all(place, recipe, recipe.teardown, TEARDOWN_SECONDS, cancellation)

    def make_environment(self, place: Place) -> dict[str, str]:
        """Give the variables of every command in a workspace: `EXEORA_PORT_<NAME>`, and `env` when it is trusted.

        A recipe that cannot be read gives none: that is said where it is prepared.
        """
        try:
            recipe = load_recipe(_source_of(place))
            return self._environment(place, recipe)
        except ToolFailed:
            return {}

    def load_recipe(self, project: Project) -> Recipe:
        """Give what a person is asked to trust. Raises `ToolFailed` `setup_invalid`."""
        return load_recipe(project.root)

    def is_trusted(self, project: Project, recipe: Recipe) -> bool:
        """Whether its commands may run."""
        return not recipe.needs_trust or trust.is_trusted(self._registry, project.id, recipe.digest)

    def trust(self, project: Project, digest: str) -> None:
        """Agree to the recipe with this digest, which the caller has shown. Raises as `trust.trust`."""
        trust.trust(self._registry, project.id, digest)

    def revoke_trust(self, project: Project) -> int:
        """Take back every agreement; see `trust.revoke`."""
        return trust.revoke(self._registry, project.id)

    def _environment(self, place: Place, recipe: Recipe) -> dict[str, str]:
        ports = reserve_ports(self._registry, place.workspace, recipe.ports or {})
        named = {f"EXEORA_PORT_{name.upper()}": str(port) for name, port in ports.items()}
        trusted = bool(recipe.env) and self.is_trusted(place.project, recipe)
        return dict(recipe.env or {}) | named if trusted else named

    def _bring_files(self, place: Place, recipe: Recipe) -> Copied:
        copied = Copied()
        source = _source_of(place)
        if place.workspace.main or source == place.root or not (recipe.include or recipe.copy or recipe.link):
            return copied
        include, copy = Patterns(recipe.include), Patterns(recipe.copy)
        copier = Copier(source, place.root, copied)
        for path in recipe.link:
            copier.link(path)
        if recipe.include or recipe.copy:
            ignored, untracked = _list_untracked(place.project)
            for patterns, entries in ((include, ignored), (copy, [*ignored, *untracked])):
                if patterns.any:
                    for path in list(choose(source, entries, patterns, copied)):
                        copier.copy(path)
        return copied

    def _run_all(
        self, place: Place, recipe: Recipe, lines: tuple[str, ...], seconds: float, cancellation: Cancellation
    ) -> Prepared:
        if not self.is_trusted(place.project, recipe):
            return Prepared("skipped_untrusted", commands=lines)
        environment = self._environment(place, recipe)
        for number, line in enumerate(lines):
            try:
                ran = self._run(place, line, environment, seconds, cancellation)
            except Cancelled:
                raise Cancelled("the workspace is there, but making it ready was interrupted") from None
            except ExeoraError as error:
                ran = Ran(None, timed_out=False, output=error.message)
            if ran.code != 0:
                return Prepared("failed", commands=lines[: number + 1], failure=Failure(line, ran))
        return Prepared("done", commands=lines)


def _source_of(place: Place) -> Path:
    """Where the recipe and the files come from: the project root, or in a bare repository the workspace itself."""
    return place.root if place.project.bare else place.project.root


def _list_untracked(project: Project) -> tuple[list[str], list[str]]:
    """List ignored and other untracked entries of the project root, relative to it."""
    depth = len(project.subdirectory.parts)
    top = project.root.parents[depth - 1] if depth else project.root
    status = open_repository(top).status(ignored=True)
    prefix = "" if not depth else f"{project.subdirectory}/"
    ignored, untracked = (
        [path.removeprefix(prefix) for path in paths if path.startswith(prefix) and path != prefix]
        for paths in (status.ignored, status.untracked)
    )
    return ignored, untracked
