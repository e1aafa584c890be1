"""How the results of the file commands read for a person."""

from collections.abc import Mapping
from typing import Any

from exeora_cli.plain import align, show_text
from exeora_cli.session import Shown

Facts = Mapping[str, Any]


def tell_rest(result: Facts) -> list[str]:
    """Say how to go on where a file was not read to its end."""
    if not result["truncated"]:
        return []
    more = f" --column {result['nextColumn']}" if "nextColumn" in result else ""
    where = f"exeora read {result['path']} --offset {result['nextOffset']}{more}"
    return [f"there is more, of {result['totalLines']} lines in all: {where}"]


def show_listing(result: Facts, *, long: bool) -> Shown:
    """One path a line, folders with a slash behind; in the long form the kind and the size in front."""
    entries = result["entries"]
    if long:
        rows = [(e["type"], str(e.get("size", "-")), show_text(e["path"]) + _mark(e)) for e in entries]
        lines = align(rows)
    else:
        lines = [show_text(e["path"]) + _mark(e) for e in entries]
    more = [f"there are more than these {len(entries)}: narrow PATH or --glob"] if result["truncated"] else []
    return Shown(lines, more)


def _mark(entry: Facts) -> str:
    return "/" if entry["type"] == "directory" else ""


def show_matches(result: Facts) -> Shown:
    """`path:line:text`, as ripgrep prints it, and what was not looked at or not shown."""
    matches = result["matches"]
    lines = [f"{show_text(m['path'])}:{m['line']}:{m['text']}" for m in matches]
    notes = [] if matches else ["no match"]
    if result["truncated"]:
        notes.append(f"there are more than these {len(matches)}: narrow PATTERN, PATH or --glob")
    cut = sum(1 for match in matches if match.get("cut"))
    if cut:
        notes.append(f"lines shown only around the match: {cut}")
    if result["skippedBinary"]:
        notes.append(f"binary files that match and are not shown: {result['skippedBinary']}")
    if "skippedUnreadable" in result:
        notes.append(f"files that could not be read: {result['skippedUnreadable']}")
    return Shown(lines, notes)


def show_edit(result: Facts) -> Shown:
    """The diff."""
    notes = ["the diff is longer than is shown"] if result.get("diffTruncated") else []
    return Shown(result["diff"].removesuffix("\n").split("\n"), notes)


def show_written(result: Facts) -> Shown:
    """What was written, and whether it was there before."""
    how = "created" if result["created"] else "wrote"
    return Shown([f"{how} {show_text(result['path'])} ({result['bytesWritten']} bytes)"])


def show_patched(result: Facts) -> Shown:
    """One operation a line."""
    lines = [
        f"{one['type']} {show_text(one['path'])}" + (f" -> {show_text(one['to'])}" if "to" in one else "")
        for one in result["operations"]
    ]
    return Shown(lines)


def show_reverted(result: Facts) -> Shown:
    """What was put back."""
    return Shown([f"reverted {show_text(result['path'])}"])
