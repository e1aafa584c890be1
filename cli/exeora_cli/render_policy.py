"""How policies, questions and the record read for a person."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from exeora_cli.plain import align, show_text
from exeora_cli.session import Shown

Facts = Mapping[str, Any]


def show_written(result: Facts) -> Shown:
    """Where the file is, and what became of it."""
    said = "created" if result["created"] else "changed" if result["changed"] else "says this already"
    notes = [f"exeora.toml {said}", *result["warnings"]]
    if result["workspace"] != "main":
        notes.append("it counts in this workspace alone until main has it")
    return Shown([show_text(result["path"])], notes)


def show_verdict(result: Facts) -> Shown:
    """The verdict, why, and where the rule stands."""
    verdict = "refused" if not result["allowed"] else "asks a person first" if result["asks"] else "allowed"
    rows = [("command", show_text(result["command"])), ("verdict", verdict), ("because", show_text(result["text"]))]
    if result["reason"] is not None:
        rows.append(("reason", result["reason"]))
    rows += [("rule", f"{show_text(rule['text'])}, of {rule['origin']}") for rule in result["rules"]]
    if not result["rules"]:
        rows.append(("decided by", result["origin"]))
    return Shown(align(rows), [*result["faults"], *result["warnings"]])


def show_policy(result: Facts) -> Shown:
    """Every key, what the layers come to, and where it stands."""
    origins = result["origins"]
    rows = [("mode", result["mode"], origins.get("mode", ""))]
    for name in ("allow", "deny"):
        rules = result[name] or ()
        rows += [(name, show_text(rule["text"]), rule["origin"]) for rule in rules]
        if result[name] is not None and not rules and name == "allow":
            rows.append((name, "(nothing)", origins.get(name, "")))
    rows += [(name, "yes" if result[name] else "no", origins.get(name, "")) for name in ("shell", "approve")]
    if result["tools"] is not None:
        rows.append(("tools", ", ".join(result["tools"]) or "(none)", origins.get("tools", "")))
    return Shown(align(rows), [*result["faults"], *result["warnings"]])


def show_questions(result: Facts) -> Shown:
    """Each question whole: a person must see what they say yes to."""
    lines: list[str] = []
    for each in result["approvals"]:
        seconds = max(0, int(datetime.fromisoformat(each["expires"]).timestamp() - time.time()))
        lines += [f"{each['id']}  ({seconds} s left)", *(f"  {line}" for line in each["text"].split("\n"))]
    return Shown(lines, [] if lines else ["no question waits"])


def show_answered(result: Facts) -> Shown:
    """What was said."""
    return Shown([f"{result['status']} {result['id']}"])


def show_log(result: Facts) -> Shown:
    """One line a call."""
    return Shown(align([_log_row(entry) for entry in result["entries"]]))


def show_entry(entry: Facts) -> str:
    """One call, in columns wide enough for most."""
    when, face, place, tool, outcome, took, client = _log_row(entry)
    return f"{when}  {face:5}  {place:24}  {tool:24}  {outcome:16}  {took:>9}  {client}".rstrip()


def _log_row(entry: Facts) -> tuple[str, ...]:
    place = f"{entry['project']}/{entry['workspace']}" if entry["workspace"] else entry["project"]
    return (
        datetime.fromisoformat(entry["time"]).astimezone().strftime("%Y-%m-%d %H:%M:%S"),
        show_text(entry["face"]),
        show_text(place) or "-",
        show_text(entry["tool"]),
        entry["outcome"] or "(unknown)",
        "-" if entry["durationMs"] is None else f"{entry['durationMs']} ms",
        show_text(entry["client"]),
    )


def show_skills(result: Facts) -> Shown:
    """One skill a line, and what is wrong with the others."""
    rows = [(s["name"], s["source"], show_text(s["description"])) for s in result["skills"]]
    problems = [f"{show_text(each['path'])}: {each['message']}" for each in result.get("problems", ())]
    return Shown(align(rows), problems or ([] if rows else ["there are no skills"]))
