"""How results read for a person: the answer for stdout, and what is only told."""

from collections.abc import Mapping
from typing import Any

from exeora_cli.plain import align, list_lines, show_text
from exeora_cli.session import Shown

Facts = Mapping[str, Any]
_SHORT = 10
_SKIPPED = 5
_OUTPUT_LINES = 10


def show_created(result: Facts) -> Shown:
    """The path on stdout; what it was made from beside it."""
    workspace, base = result["workspace"], result["base"]
    where = "on no branch" if workspace["branch"] is None else f"on branch {workspace['branch']!r}"
    origin = f"from {base['ref']} ({base['commit'][:_SHORT]})"
    if result.get("dryRun"):
        note = f"would create workspace {workspace['slug']!r} {where}, {origin}"
    elif result["created"]:
        note = f"created workspace {workspace['slug']!r} {where}, {origin}"
    else:
        note = f"workspace {workspace['slug']!r} was there already, {where}"
    return Shown([workspace["path"]], [note, *_base_notes(result), *show_setup(result["setup"])])


def _base_notes(result: Facts) -> list[str]:
    """What the further ways of creating add: how far behind the base is, and what moved along."""
    notes = []
    behind = result.get("behind")
    if behind:
        notes.append(f"{result['base']['ref']} is {behind['commits']} commits behind {behind['ref']}, as last fetched")
    moved = result.get("moved")
    if moved:
        counts = f"{moved['staged']} staged, {moved['unstaged']} unstaged, {moved['untracked']} untracked"
        notes.append(f"moved along: {counts}")
        if moved["sourceKept"]:
            notes.append(f"the source still has them: {moved['sourceKept']}")
    return notes


def show_setup(setup: Facts) -> list[str]:
    """What was done to make it ready, or why not, and what to type then."""
    notes = []
    if "copiedFiles" in setup or "linked" in setup:
        notes.append(f"copied {setup.get('copiedFiles', 0)} files, linked {len(setup.get('linked', []))}")
    notes += [f"not copied: {each['path']} ({each['reason']})" for each in setup.get("skipped", [])[:_SKIPPED]]
    more = setup.get("skippedTotal", 0) - _SKIPPED
    if more > 0:
        notes.append(f"not copied: {more} more")
    if setup.get("ports"):
        notes.append("ports: " + ", ".join(f"{name} {port}" for name, port in setup["ports"].items()))
    if setup["status"] == "skipped_untrusted":
        notes.append("its set-up commands did not run: exeora trust shows them and asks you")
    elif setup["status"] == "failed":
        notes.append(f"set-up failed at: {setup['failedCommand']} (exit code {setup['exitCode']})")
        notes += setup.get("output", "").splitlines()[-_OUTPUT_LINES:]
    elif setup["status"] == "invalid":
        notes.append(f"it was not set up: {setup['message']}")
    return notes


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
        notes.append(f"it can be brought back until {result['restorableUntil']}: exeora restore")
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
    return Shown(align([(show_text(tool["name"]), show_text(tool["title"])) for tool in result["tools"]]))
