"""Facts as every document has them."""

from typing import TYPE_CHECKING, Any

from exeora_cli.times import write_time

if TYPE_CHECKING:
    from exeora_ws.policy.approvals import Pending
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


def describe_question(pending: "Pending") -> dict[str, Any]:
    """Give a question that waits for a person."""
    return {
        "id": pending.id,
        "project": pending.project,
        "workspace": pending.workspace,
        "tool": pending.tool,
        "client": pending.client,
        "text": pending.text,
        "expires": write_time(pending.expires_ms / 1000),
    }
