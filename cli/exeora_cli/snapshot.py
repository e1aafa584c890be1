"""The offline inventory as the hot commands see it: plain text and a few small reads, nothing imported but `os`.

Whatever is not plain (no inventory file, an operation under way, a bare or broken repository, …) is `Unusual`: the
slow way then answers, and says what is wrong.
"""

import os

from exeora_ws.git import gitfiles, links
from exeora_ws.workspaces import inventory_file

from exeora_cli.data_folder import find_data_folder


class Unusual(Exception):
    """This is for the slow way to answer."""


class Snapshot:
    """Projects and workspaces as they were published last."""

    def __init__(self, environ: "os._Environ[str] | dict[str, str]") -> None:
        folder = find_data_folder(environ)
        read = inventory_file.read(folder + "/inventory.txt") if folder else None
        if read is None:
            raise Unusual
        self.projects, self.workspaces = read
        self._by_id = {project["id"]: project for project in self.projects}

    def require_project(self, selector: str) -> "dict[str, str]":
        """Give a project by slug or id."""
        for project in self.projects:
            if selector in (project["slug"], project["id"]):
                return project
        raise Unusual

    def find_around(self) -> "tuple[dict[str, str], dict[str, str]]":
        """Give the workspace around the current directory, and its project."""
        folder = _current_folder()
        top = _find_top(folder)
        best: dict[str, str] | None = None
        for workspace in self.workspaces:
            project = self._by_id[workspace["project_id"]]
            if not project["common_dir"] and _is_below(folder, workspace["path"]):
                raise Unusual
            if len(workspace["worktree"]) > len(top) and _is_below(folder, workspace["worktree"]):
                raise Unusual
            if workspace["worktree"] == top and _is_below(folder, workspace["path"]):
                if best is not None and len(best["path"]) == len(workspace["path"]):
                    raise Unusual
                if best is None or len(best["path"]) < len(workspace["path"]):
                    best = workspace
        if best is None:
            raise Unusual
        project = self._by_id[best["project_id"]]
        if self.find_fault(project, best) is not None:
            raise Unusual
        _refuse_odd_shape(project, best)
        return project, best

    def list_workspaces(self, project: "dict[str, str]") -> "list[dict[str, object]]":
        """Give a project's workspaces as `list_workspaces` does, main first."""
        mine = [w for w in self.workspaces if w["project_id"] == project["id"]]
        return [self._describe(project, workspace) for workspace in mine]

    def _describe(self, project: "dict[str, str]", workspace: "dict[str, str]") -> "dict[str, object]":
        fault = self.find_fault(project, workspace)
        return {
            "id": workspace["id"],
            "slug": workspace["slug"],
            "name": workspace["name"],
            "branch": _find_branch(workspace, fault),
            "managed": workspace["managed"] == "1",
            "available": fault is None,
            "path": workspace["path"],
        }

    def find_branch(self, project: "dict[str, str]", workspace: "dict[str, str]") -> "str | None":
        """Give the branch a workspace is on now, else the recorded one, as `resolve.refresh_branch` does."""
        return _find_branch(workspace, self.find_fault(project, workspace))

    def find_fault(self, project: "dict[str, str]", workspace: "dict[str, str]") -> "str | None":
        """Say why a workspace cannot be acted in, as `resolve.find_fault` does; None when it can."""
        common_dir = project["common_dir"]
        if not common_dir or project["bare"]:
            raise Unusual
        find = links.find_main_fault if workspace["slug"] == "main" else links.find_link_fault
        fault = find(workspace["worktree"], common_dir)
        if fault is None and not os.path.isdir(workspace["path"]):
            return "missing_subdirectory"
        return fault


def _find_branch(workspace: "dict[str, str]", fault: "str | None") -> "str | None":
    sound = fault in (None, "missing_subdirectory")
    branch = links.read_branch(workspace["worktree"]) if sound else None
    return (workspace["branch"] if branch is None else branch) or None


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise Unusual from None


def _find_top(folder: str) -> str:
    current = folder
    while not os.path.lexists(current + "/.git"):
        above = os.path.dirname(current)
        if above == current or gitfiles.is_git_dir(current):
            raise Unusual
        current = above
    return current


def _is_below(folder: str, root: str) -> bool:
    return folder == root or folder.startswith(root.rstrip("/") + "/")


def _refuse_odd_shape(project: "dict[str, str]", workspace: "dict[str, str]") -> None:
    """A main worktree whose repository calls itself bare, or names another folder, is not the checkout it seems."""
    if workspace["slug"] == "main":
        core = gitfiles.read_core(project["common_dir"])
        if core.bare or core.worktree is not None:
            raise Unusual
