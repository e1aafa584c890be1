"""Tools that stand in one folder: calls that name no workspace act there."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.tools.call import AnyTool, Caller, Calls, Outcome, RawCall
from exeora_ws.tools.gate import CallGate
from exeora_ws.tools.services import Services
from exeora_ws.workspaces.connect import Candidate
from exeora_ws.workspaces.inventory import Inventory
from exeora_ws.workspaces.place import Place


class AnchoredCalls(Calls):
    """The way of a call whose omitted `workspace` is that of one place, also where that is not main.

    Args:
        catalog, services, gate: as for any.
        place: where calls act that name no workspace.
    """

    def __init__(self, catalog: Mapping[str, AnyTool], services: Services, gate: CallGate, *, place: Place) -> None:
        super().__init__({name: _describe(tool, place) for name, tool in catalog.items()}, services, gate)
        self._slug = place.workspace.slug

    def make(self, raw: RawCall, caller: Caller) -> Outcome:
        """Take a call the whole way."""
        tool = self.catalog.get(raw.tool)
        if tool is None:
            return super().make(raw, caller)
        return super().make(RawCall(raw.tool, {tool.workspace_field: self._slug, **raw.arguments}), caller)


def _describe(tool: AnyTool, place: Place) -> AnyTool:
    return replace(
        tool,
        workspace_text=(
            f"Slug or id of another workspace to act in. Omitted: {place.workspace.slug!r}, where this server stands."
        ),
    )


def find_anchor(inventory: Inventory, folder: Path) -> Place:
    """Find the workspace whose root a folder is, or make it one: a project's main, or an attached worktree.

    Raises:
        InvalidArguments: reason `missing_folder`.
        ToolFailed: reason `not_a_root`, or why a worktree cannot be attached.
    """
    real = folder.resolve()
    if not real.is_dir():
        raise InvalidArguments("workspace: there is no such folder", reason="missing_folder")
    around = inventory.find_around(real)
    if around is not None and around.root == real:
        return around
    project, _ = inventory.register_project(real, exact=True)
    if project.root != real:
        _attach_around(inventory, project.slug, real)
    found = inventory.find_around(real)
    if found is None or found.root != real:
        raise ToolFailed("that folder is no workspace's root and cannot be made one", reason="not_a_root")
    return found


def _attach_around(inventory: Inventory, slug: str, folder: Path) -> None:
    """Attach the worktree that a folder is in."""
    project = inventory.require_project(slug)
    for listed in inventory.list_git_workspaces(project):
        if folder.is_relative_to(listed.worktree.path) and listed.connected is None and not listed.worktree.main:
            candidate = Candidate(path=str(listed.worktree.path), branch=None, name=None, slug=None)
            inventory.attach(project, candidate, Cancellation())
            return
