"""How results read for a person: the answer for stdout, and what is only told."""

from collections.abc import Mapping
from typing import Any

from exeora_cli.plain import align, list_lines, show_text
from exeora_cli.session import Shown

Facts = Mapping[str, Any]
_SHORT = 10


def show_created(result: Facts) -> Shown:
    """The path on stdout; what it was made from beside it."""
    workspace, base = result["workspace"], result["base"]
    commit = base["commit"][:_SHORT]
    if result["created"]:
        note = (
            f"created workspace {workspace['slug']!r} on branch {workspace['branch']!r}, from {base['ref']} ({commit})"
        )
    else:
        note = f"workspace {workspace['slug']!r} was there already, on branch {workspace['branch']!r}"
    return Shown([workspace["path"]], [note])


def show_attached(result: Facts) -> Shown:
    """The path on stdout, as create has it."""
    workspace = result["workspace"]
    return Shown([workspace["path"]], [f"connected workspace {workspace['slug']!r}"])


def show_detached(result: Facts) -> Shown:
    """What was disconnected, and what was ended for it."""
    workspace = result["workspace"]
    notes = [f"its folder stays at {workspace['path']}", *_stopped(result)]
    return Shown([f"detached {workspace['slug']}"], notes)


def show_removed(result: Facts) -> Shown:
    """What was removed, what went with it, and until when it can be brought back."""
    notes = _stopped(result)
    ignored = result.get("ignoredFiles")
    if ignored:
        total = result["ignoredFilesTotal"]
        more = f" and {total - len(ignored)} more" if total > len(ignored) else ""
        notes.append(f"ignored files that went with it: {', '.join(ignored)}{more}")
    if result["branchDeleted"]:
        notes.append(f"branch {result['workspace']['branch']!r} was deleted")
    if "branchKept" in result:
        kept = result["branchKept"]
        notes.append(f"the branch was kept ({kept['reason']}): {kept['message']}")
    if "note" in result:
        notes.append(result["note"])
    if "restorableUntil" in result:
        notes.append(f"it can be brought back until {result['restorableUntil']}")
    return Shown([f"removed {result['workspace']['slug']}"], notes)


def _stopped(result: Facts) -> list[str]:
    stopped = result.get("stoppedProcesses")
    return [f"ended in it: {', '.join(stopped)}"] if stopped else []


def show_list(result: Facts, here: str | None) -> Shown:
    """One line a workspace; the hot way prints the same lines."""
    return Shown(list_lines(result["workspaces"], here))


def show_git_list(result: Facts) -> Shown:
    """One line a worktree: slug, what is checked out, path, and what is the matter with it."""
    return Shown(align([_git_row(worktree) for worktree in result["workspaces"]]))


def _git_row(worktree: Facts) -> tuple[str, ...]:
    head = worktree["branch"]
    if head is None:
        head = f"({worktree['head'][:_SHORT]})" if worktree["head"] else "-"
    remarks = [
        f"{kind}: {worktree[kind]}" if worktree[kind] else kind for kind in ("locked", "prunable") if kind in worktree
    ]
    connected = worktree["connected"] or "(not connected)"
    return connected, show_text(head), show_text(worktree["path"]), show_text("; ".join(remarks))


def show_tools(result: Facts) -> Shown:
    """One line a tool: its name and what it is for."""
    return Shown(align([(tool["name"], tool["title"]) for tool in result["tools"]]))
