"""What is printed: the answer on stdout, narration and errors on stderr, one JSON document with `--json`."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from exeora_ws.errors import Code, ExeoraError

from exeora_cli.output import drop_stdout, write_all
from exeora_cli.plain import SCHEMA, show_block, show_text

DONE, FAILED, USAGE, BUG, REFUSED = range(5)
"""Exit codes (contract, section 11)."""

SIGNALLED = 128
"""Plus the signal's number."""

_PIPE = 13
_EXIT = {
    Code.INVALID_ARGUMENTS: USAGE,
    Code.UNKNOWN_TOOL: USAGE,
    Code.INTERNAL_ERROR: BUG,
    Code.FORBIDDEN: REFUSED,
    Code.APPROVAL_DECLINED: REFUSED,
    Code.APPROVAL_TIMEOUT: REFUSED,
}


def exit_code(error: ExeoraError) -> int:
    """Give the exit code that an error stands for."""
    return _EXIT.get(error.code, FAILED)


def render_document(facts: Mapping[str, Any], *, version: bool = True) -> bytes:
    """Render one JSON document, with its schema version first. Names that are not UTF-8 show their bytes escaped."""
    document = {"schema": SCHEMA, **facts} if version else dict(facts)
    try:
        return msgspec.json.encode(document) + b"\n"
    except UnicodeEncodeError:
        document = _as_text(document)
    except OverflowError:
        # An integer of an upstream server that fits no machine word: this library alone writes it as it is.
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    return msgspec.json.encode(document) + b"\n"


def _as_text(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        return {key: _as_text(item) for key, item in value.items()}
    return [_as_text(item) for item in value] if isinstance(value, list) else value


def print_document(facts: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout."""
    _write(sys.stdout, render_document(facts))


def print_lines(lines: Iterable[str], *, styled: bool = False) -> None:
    """Print lines on stdout, as the bytes they are; at a terminal nothing in them acts on it.

    With `styled` they were made for a terminal, by us, with what is not ours escaped.
    """
    text = "".join(f"{line}\n" for line in lines)
    shown = show_block(text) if sys.stdout.isatty() and not styled else text
    _write(sys.stdout, shown.encode("utf-8", "surrogateescape"))


def print_bytes(data: bytes) -> None:
    """Print bytes on stdout as they are."""
    _write(sys.stdout, data)


def narrate(lines: Iterable[str], *, hint: str | None = None) -> None:
    """Print lines on stderr: what a person likes to know and a program does not read."""
    text = "".join(f"exeora: {show_text(line)}\n" for line in lines)
    _write(sys.stderr, (text if hint is None else f"{text}hint: {show_text(hint)}\n").encode())


def tell(line: str, *, json: bool) -> None:
    """Say on stderr what was done beside what was asked; with `json` as a document of its own."""
    if json:
        _write(sys.stderr, render_document({"note": line}))
    else:
        narrate([line])


def print_error(error: ExeoraError, *, json: bool) -> None:
    """Print an error on stderr: a line and a hint, or a JSON document."""
    if json:
        _write(sys.stderr, render_document({"error": error.to_dict()}))
        return
    narrate([error.message], hint=error.hint)


def narrate_bytes(data: bytes) -> None:
    """Print bytes on stderr as they are: what a command wrote there."""
    _write(sys.stderr, data)


def at_terminal() -> bool:
    """Whether a person's terminal is at the other end of stdin or stdout."""
    return sys.stdin.isatty() or sys.stdout.isatty()


class ReaderGone(BaseException):
    """Nobody reads the output any more, so this process ends; that is no bug of whatever wrote last.

    Its own class: typer makes an exit code 1 of a broken pipe.
    """


class Unwritten(Exception):
    """The answer could not be written; `__cause__` is the reason. That is no bug, and no failure of what was asked."""


def _write(stream: Any, data: bytes) -> None:
    try:
        write_all(stream, data)
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise Unwritten from error


def quiet_pipe() -> int:
    """Give up on a stdout whose reader has gone, without a word; gives the exit code of SIGPIPE."""
    drop_stdout()
    return SIGNALLED + _PIPE
