"""How commands and processes read for a person."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from exeora_cli import answer
from exeora_cli.plain import align, show_text
from exeora_cli.session import Shown
from exeora_cli.state_rows import show_age

Facts = Mapping[str, Any]


def tell_leftovers(result: Facts) -> list[str]:
    """Name what a command left running."""
    left = [f"{each['command']} ({each['pid']})" for each in result.get("backgroundProcesses", ())]
    return [f"left running, and ended: {', '.join(left)}"] if left else []


def succeeded(result: Facts) -> bool:
    """Whether a command ran and gave 0."""
    return result.get("exitCode") == 0


def show_table(results: Sequence[Facts]) -> list[str]:
    """One line a workspace: what became of the command, and how long it took."""
    return align([("workspace", "result", "time"), *(_row(result) for result in results)])


def _row(result: Facts) -> tuple[str, str, str]:
    if "error" in result:
        return result["workspace"], result["error"]["code"], "-"
    return result["workspace"], _outcome(result), f"{result['durationMs'] / 1000:.1f} s"


def _outcome(result: Facts) -> str:
    if result["timedOut"]:
        return "timed out"
    if result["exitCode"] is None:
        return str(result.get("signal", "ended"))
    return "ok" if result["exitCode"] == 0 else f"exit {result['exitCode']}"


def show_started(result: Facts, workspace: str) -> Shown:
    """The id on stdout, and what to do with it."""
    identity = result["processId"]
    return Shown([identity], [f"started in workspace {workspace!r}; exeora output {identity} --follow shows it"])


def show_processes(result: Facts) -> Shown:
    """One line a process."""
    rows = [
        (
            each["processId"],
            f"{each['project']}/{each['workspace']}",
            _state(each),
            str(each["pid"]),
            show_text(each["command"]),
        )
        for each in result["processes"]
    ]
    return Shown(align(rows), [] if rows else ["nothing runs"])


def _state(facts: Facts) -> str:
    if facts["running"]:
        return f"{facts['kind']}, {show_age(time.time() - datetime.fromisoformat(facts['startedAt']).timestamp())}"
    return f"ended, {facts['signal']}" if "signal" in facts else f"ended, exit {facts['exitCode']}"


def print_chunk(chunk: Facts) -> None:
    """Print output as it comes."""
    if chunk["skipped"]:
        answer.narrate([f"{chunk['skipped']} bytes before this are no longer kept"])
    answer.print_bytes(chunk["chunk"].encode())


def print_chunk_document(chunk: Facts) -> None:
    """Print output as it comes, a document for each piece."""
    answer.print_document(chunk)


def tell_state(result: Facts) -> list[str]:
    """Say whether more can come."""
    if result["running"]:
        return [f"it runs on; --cursor {result['nextCursor']} gives what comes after this"]
    code = result["exitCode"]
    return ["it was ended by a signal" if code is None else f"it has ended with exit code {code}"]


def show_sent(result: Facts) -> Shown:
    """How much went in."""
    return Shown([f"wrote {result['bytesWritten']} bytes"])


def show_killed(result: Facts) -> Shown:
    """Whether there was anything to end."""
    identity = result["processId"]
    return Shown([f"killed {identity}" if result["killed"] else f"{identity} had ended already"])
