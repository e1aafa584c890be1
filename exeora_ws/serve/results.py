"""The answer to `tools/call`: structured content and the same JSON as text, within the size that a client takes."""

import json
from typing import Any

import msgspec

from exeora_ws.errors import ExeoraError, ToolFailed
from exeora_ws.limits import RESULT_BYTES
from exeora_ws.tools.call import Outcome

HTTP_WIRE_BYTES = 1_040_000
"""A whole answer over HTTP: the SDK's client refuses a server-sent event of more than 1,048,576 bytes."""

_ROOMY = 250_000
"""Structured content below this fits any wire twice over, however it is escaped; it is not measured."""


def show_outcome(outcome: Outcome, *, wire_bytes: int | None = None, embed: bool = False) -> dict[str, Any]:
    """Give an outcome as a `CallToolResult`.

    Args:
        outcome: what the call came to; an `InternalError` is not for here.
        wire_bytes: how much the transport carries in one message, None for any amount. A result that is too large to
            be sent twice keeps its structured content, and the text says so.
        embed: whether structured content may stand in the answer as JSON already, for whoever writes it with msgspec.
    """
    if outcome.error is not None:
        return show_error(outcome.error, outcome.text)
    if outcome.verbatim is not None:
        return _pass_on(outcome.tool, outcome.verbatim, wire_bytes)
    structured: Any = outcome.result if embed else outcome.to_dict()
    text = msgspec.json.encode(structured)
    if len(text) > RESULT_BYTES:
        return show_error(_too_large(outcome.tool, len(text)))
    shown = text.decode() if outcome.text is None else outcome.text
    answer = _answer(msgspec.Raw(text) if embed else structured, shown, failed=False)
    if wire_bytes is None or len(text) <= _ROOMY or _wire_size(answer) <= wire_bytes:
        return answer
    answer["content"] = [_text(_left_out(len(text)))]
    return answer if _wire_size(answer) <= wire_bytes else show_error(_too_large(outcome.tool, len(text)))


def _pass_on(tool: str, answer: dict[str, Any], wire_bytes: int | None) -> dict[str, Any]:
    """Another server's answer leaves as it came, or, where the transport cannot carry it, not at all."""
    size = 0 if wire_bytes is None else _wire_size(answer)
    return answer if wire_bytes is None or size <= wire_bytes else show_error(_too_large(tool, size))


def show_error(error: ExeoraError, text: str | None = None) -> dict[str, Any]:
    """Give a failure: text that starts with the code, unless the tool words its own, and the `error` object."""
    if text is not None:
        return _answer({"error": error.to_dict()}, text, failed=True)
    reason = f" ({error.reason})" if error.reason else ""
    hint = f"\n{error.hint}" if error.hint else ""
    return _answer({"error": error.to_dict()}, f"{error.code}{reason}: {error.message}{hint}", failed=True)


def _answer(structured: Any, text: str, *, failed: bool) -> dict[str, Any]:
    return {"content": [_text(text)], "structuredContent": structured, "isError": failed}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _left_out(size: int) -> str:
    return (
        f"The result is in structuredContent only: its {size} bytes are too many to be sent a second time as text. "
        "Ask for a part (offset, limit, a narrower path) to get both."
    )


def _too_large(tool: str, size: int) -> ToolFailed:
    return ToolFailed(
        f"the result of {tool} has {size} bytes; one result holds at most {RESULT_BYTES}",
        reason="result_too_large",
        hint="The call was made; only its answer is missing. Ask for less of it.",
    )


def _wire_size(answer: dict[str, Any]) -> int:
    """The longer of the two ways the SDK writes JSON: with everything beyond ASCII escaped."""
    return len(json.dumps(answer, separators=(",", ":")))
