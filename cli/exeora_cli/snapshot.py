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
        self._copy = read

    def list_projects(self) -> "list[dict[str, str]]":
        """Give every project, by slug."""
        return self._copy.list_projects()

    def require_project(self, selector: str) -> "dict[str, str]":
        """Give a project by slug or id."""
        project = self._copy.find_project(selector)
        if project is None:
            raise Unusual
        return project

    def find_around(self) -> "tuple[dict[str, str], dict[str, str]]":
        """Give the workspace around the current directory, and its project."""
        folder = _current_folder()
        top = _find_top(folder)
        best: dict[str, str] | None = None
        for workspace in self._copy.list_workspaces_at(_list_above(folder)):
            if len(workspace["worktree"]) > len(top) and _is_below(folder, workspace["worktree"]):
                raise Unusual
            if not _is_below(folder, workspace["path"]):
                continue
            if not self.require_project(workspace["project_id"])["common_dir"]:
                raise Unusual
            if workspace["worktree"] == top:
                if best is not None and len(best["path"]) == len(workspace["path"]):
                    raise Unusual
                if best is None or len(best["path"]) < len(workspace["path"]):
                    best = workspace
        if best is None:
            raise Unusual
        project = self.require_project(best["project_id"])
        if self.find_fault(project, best) is not None:
            raise Unusual
        _refuse_odd_shape(project, best)
        return project, best

    def find_workspace(self, project: "dict[str, str]", selector: str) -> "dict[str, str] | None":
        """Give a project's workspace by slug or id."""
        return self._copy.find_workspace(project["id"], selector)

    def require_on_branch(self, project: "dict[str, str]", branch: str) -> "dict[str, str]":
        """Give the one workspace that is on a branch now."""
        found = [w for w in self.list_recorded(project) if self.find_branch(project, w) == branch]
        if len(found) != 1:
            raise Unusual
        return found[0]

    def list_recorded(self, project: "dict[str, str]") -> "list[dict[str, str]]":
        """Give a project's workspaces as recorded, main first."""
        return self._copy.list_workspaces(project["id"])

    def list_workspaces(self, project: "dict[str, str]") -> "list[dict[str, object]]":
        """Give a project's workspaces as `list_workspaces` does, main first."""
        return [self._describe(project, workspace) for workspace in self.list_recorded(project)]

    def _describe(self, project: "dict[str, str]", workspace: "dict[str, str]") -> "dict[str, object]":
        fault, branch = self._look(project, workspace)
        return {
            "id": workspace["id"],
            "slug": workspace["slug"],
            "name": workspace["name"],
            "branch": branch,
            "managed": workspace["managed"] == "1",
            "available": fault is None,
            "path": workspace["path"],
        }

    def find_branch(self, project: "dict[str, str]", workspace: "dict[str, str]") -> "str | None":
        """Give the branch a workspace is on now, else the recorded one, as `resolve.refresh_branch` does."""
        return self._look(project, workspace)[1]

    def _look(self, project: "dict[str, str]", workspace: "dict[str, str]") -> "tuple[str | None, str | None]":
        """Give a workspace's fault and branch; where nothing is odd by three small reads."""
        if project["common_dir"] and not project["bare"] and workspace["path"] == workspace["worktree"]:
            branch = links.read_plain_branch(workspace["worktree"], project["common_dir"])
            if branch is not None:
                return None, branch or None
        fault = self.find_fault(project, workspace)
        return fault, _find_branch(workspace, fault)

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


def _list_above(folder: str) -> "list[str]":
    """Give a folder and all above it, as paths are recorded."""
    found = [folder]
    while folder != "/" and folder:
        folder = os.path.dirname(folder)
        found.append(folder)
    return found


def _is_below(folder: str, root: str) -> bool:
    return folder == root or folder.startswith(root.rstrip("/") + "/")


def _refuse_odd_shape(project: "dict[str, str]", workspace: "dict[str, str]") -> None:
    """A main worktree whose repository calls itself bare, or names another folder, is not the checkout it seems."""
    if workspace["slug"] == "main":
        core = gitfiles.read_core(project["common_dir"])
        if core.bare or core.worktree is not None:
            raise Unusual
