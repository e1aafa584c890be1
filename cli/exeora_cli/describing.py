"""Facts as every document has them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exeora_ws.workspaces.place import Workspace


def describe_workspace(workspace: "Workspace") -> dict[str, Any]:
    """Give a workspace."""
    return {
        "id": workspace.id,
        "slug": workspace.slug,
        "name": workspace.name,
        "branch": workspace.branch,
        "path": str(workspace.path),
        "managed": workspace.managed,
    }
