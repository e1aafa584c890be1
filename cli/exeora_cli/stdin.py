"""What a command reads besides its options: stdin, files that an option names, JSON in either."""

import sys
from pathlib import Path
from typing import Any

from exeora_ws.errors import InvalidArguments


def read_stdin(what: str) -> bytes:
    """Read all of stdin; never from a terminal, where nobody knows that something is waited for.

    Raises:
        InvalidArguments: reason `missing_field`: it is a terminal; `what` says what was expected.
    """
    if sys.stdin.isatty():
        raise InvalidArguments(f"{what} is expected on stdin", reason="missing_field", hint="use < FILE or a pipe")
    return sys.stdin.buffer.read()


def read_file(folder: Path, name: str) -> bytes:
    """Read a file that the command line names, relative to `folder`.

    Raises:
        InvalidArguments: reason `unreadable_arguments`.
    """
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise InvalidArguments(
            f"the file {name!r} cannot be read: {error.strerror}", reason="unreadable_arguments"
        ) from None


def decode_text(data: bytes, what: str) -> str:
    """Decode what shall be text.

    Raises:
        InvalidArguments: reason `not_unicode`.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidArguments(f"{what} is not UTF-8 (byte {error.start + 1})", reason="not_unicode") from None


def parse_object(data: bytes) -> dict[str, Any]:
    """Read a tool's arguments.

    Raises:
        InvalidArguments: not a JSON object.
    """
    import msgspec

    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidArguments(f"the arguments are not valid JSON: {error}", reason="invalid_json") from None
    if not isinstance(found, dict):
        raise InvalidArguments("the arguments are not a JSON object", reason="invalid_json")
    return found
