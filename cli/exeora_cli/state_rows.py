"""The state of workspaces as rows for a person and as facts for `--json`."""

import time
from typing import Any

from exeora_cli.plain import show_text

_UNITS = ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400, "d"), (3_600, "h"), (60, "min"))
HEADING = ("", "WORKSPACE", "BRANCH", "CHANGES", "BASE", "UPSTREAM", "AGE", "STATE")


def describe_overview(seen: Any) -> dict[str, Any]:
    """Give a workspace's state as the document has it; what cannot be told is null."""
    workspace, changes = seen.workspace, seen.changes
    return {
        "id": workspace.id,
        "slug": workspace.slug,
        "name": workspace.name,
        "branch": workspace.branch,
        "managed": workspace.managed,
        "available": seen.fault is None,
        "path": str(workspace.path),
        "fault": seen.fault,
        "locked": seen.locked,
        "processes": seen.processes,
        "staged": None if changes is None else len(changes.staged),
        "modified": None if changes is None else len(changes.unstaged) + len(changes.submodules),
        "untracked": None if changes is None else len(changes.untracked),
        "conflicted": None if changes is None else len(changes.conflicted),
        "operation": None if seen.operation is None else str(seen.operation),
        "head": seen.head,
        "committedAt": seen.committed_at,
        "base": _describe_distance(seen.base),
        "upstream": _describe_distance(seen.upstream),
        "problem": seen.problem,
    }


def _describe_distance(distance: Any) -> dict[str, Any] | None:
    if distance is None:
        return None
    return {"ref": distance.against, "ahead": distance.ahead, "behind": distance.behind}


def make_row(facts: dict[str, Any], here: str | None, *, now: float | None = None) -> tuple[str, ...]:
    """Give one line of the list: `+` staged, `!` modified, `?` untracked, `x` conflicted files, and distances."""
    age = "" if facts["committedAt"] is None else show_age((now or time.time()) - facts["committedAt"])
    return (
        "*" if facts["id"] == here else " ",
        facts["slug"],
        "-" if facts["branch"] is None else show_text(facts["branch"]),
        _show_changes(facts),
        _show_distance(facts["base"]),
        _show_distance(facts["upstream"]),
        age,
        _show_state(facts),
    )


def make_waiting_row(workspace: Any, here: str | None) -> tuple[str, ...]:
    """Give the line of a workspace whose state is not known yet."""
    branch = "-" if workspace.branch is None else show_text(workspace.branch)
    return ("*" if workspace.id == here else " ", workspace.slug, branch, "…", "", "", "", "")


def choose_styles(facts: dict[str, Any], here: str | None) -> tuple[str | None, ...]:
    """Give a colour for each cell of the row: what asks for attention has one."""
    changed = any(facts[kind] for kind in ("staged", "modified", "untracked", "conflicted"))
    behind = [side for side in (facts["base"], facts["upstream"]) if side is not None and side["behind"]]
    state = "red" if facts["fault"] or facts["problem"] else "yellow" if facts["locked"] is not None else "cyan"
    return (
        "green",
        "bold" if facts["id"] == here else None,
        "dim" if facts["branch"] is None else None,
        "red" if facts["conflicted"] else "yellow" if changed else "dim",
        "yellow" if facts["base"] in behind else None,
        "yellow" if facts["upstream"] in behind else None,
        "dim",
        state,
    )


def summarise(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Give what a row says as lines, each after the name of its colour."""
    changes, state = _show_changes(facts), _show_state(facts)
    lines = [("", "on no branch" if facts["branch"] is None else f"on {show_text(facts['branch'])}")]
    lines.append(("dim" if changes in ("clean", "-") else "yellow", changes))
    lines += [
        ("", f"{name}: {_show_distance(facts[name])}") for name in ("base", "upstream") if facts[name] is not None
    ]
    return [*lines, ("red", state)] if state else lines


def _show_changes(facts: dict[str, Any]) -> str:
    kinds = (("+", "staged"), ("!", "modified"), ("?", "untracked"), ("x", "conflicted"))
    return " ".join(f"{sign}{facts[kind]}" for sign, kind in kinds if facts[kind]) or (
        "clean" if facts["staged"] is not None else "-"
    )


def _show_distance(distance: dict[str, Any] | None) -> str:
    if distance is None:
        return "-"
    return f"{show_text(distance['ref'])} +{distance['ahead']} -{distance['behind']}"


def _show_state(facts: dict[str, Any]) -> str:
    words = []
    if facts["fault"] is not None:
        words.append(facts["fault"])
    if facts["locked"] is not None:
        words.append(f"locked{': ' + show_text(facts['locked']) if facts['locked'] else ''}")
    if facts["operation"] is not None:
        words.append(facts["operation"])
    if facts["processes"]:
        words.append(f"{facts['processes']} running")
    if facts["problem"] is not None:
        words.append(show_text(facts["problem"]))
    return ", ".join(words)


def show_age(seconds: float) -> str:
    """Show how long ago something was, in its largest unit."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"
