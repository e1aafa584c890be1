"""How a client and the host talk: length and JSON on a private Unix socket, one answer for each request.

Versions may differ: either side ignores fields it does not know, a request that the host does not know is answered
with a sentence that names both versions, and `PROTOCOL` only rises when an old field changes its meaning.
"""

import os
import socket
import struct
from pathlib import Path
from typing import Any

import msgspec

from exeora_ws import __version__
from exeora_ws.errors import Code, ExeoraError, ToolFailed
from exeora_ws.processes.table import LINUX

PROTOCOL = 1
FRAME_BYTES = 32_000_000

_LENGTH = struct.Struct(">I")
_PEER = struct.Struct("3i")
_MACOS_PEER = struct.Struct("2I")
_MACOS_LOCAL_PEERCRED = 1


class Start(msgspec.Struct, tag="start", frozen=True, kw_only=True):
    """Start a command. Words are bytes: names of files need not be text."""

    argv: list[bytes]
    line: str
    cwd: bytes
    environ: list[bytes]
    """`NAME=value`."""
    umask: int
    project: str
    workspace: str


class List(msgspec.Struct, tag="list", frozen=True, kw_only=True):
    """List what the host runs, and what has ended and can still be read."""

    project: str | None = None


class Read(msgspec.Struct, tag="read", frozen=True, kw_only=True):
    """Read a command's output; `wait` in seconds."""

    id: str
    cursor: int = 0
    limit: int = 100_000
    wait: float = 0.0


class Send(msgspec.Struct, tag="send", frozen=True, kw_only=True):
    """Write to a command's input, and close it after that with `end`."""

    id: str
    data: bytes
    end: bool = False


class Kill(msgspec.Struct, tag="kill", frozen=True, kw_only=True):
    """End a command with everything it started."""

    id: str


Body = Start | List | Read | Send | Kill


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a client sends."""

    protocol: int
    version: str
    body: Body


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a request that every version can read."""

    protocol: int = 0
    version: str = "?"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the host answers: a result or an error."""

    version: str
    pid: int
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] | None = None


def parse_reply(frame: bytes) -> Reply:
    """Read an answer.

    Raises:
        ToolFailed: reason `version_mismatch`.
        ExeoraError: the one that the host met.
    """
    try:
        reply = msgspec.json.decode(frame, type=Reply)
    except msgspec.MsgspecError as error:
        raise _mismatch(frame) from error
    if reply.error is not None:
        raise parse_error(reply.error)
    return reply


def parse_request(frame: bytes) -> Request:
    """Read a request.

    Raises:
        ToolFailed: reason `version_mismatch`, when it is of a version that this one does not understand.
    """
    try:
        request = msgspec.json.decode(frame, type=Request)
    except msgspec.MsgspecError as error:
        raise _mismatch(frame) from error
    if request.protocol != PROTOCOL:
        raise _mismatch(frame)
    return request


def _mismatch(frame: bytes) -> ToolFailed:
    try:
        theirs = msgspec.json.decode(frame, type=Header).version
    except msgspec.MsgspecError:
        theirs = "?"
    return ToolFailed(
        f"exeora {__version__} and exeora {theirs} do not understand each other about started commands",
        reason="version_mismatch",
        hint="use the version they were started with, or end them: the next start then uses the new one",
    )


_CLASSES = {each.code: each for each in ExeoraError.__subclasses__()}


def parse_error(error: dict[str, Any]) -> ExeoraError:
    """Make the error that the host met, again."""
    try:
        kind = _CLASSES[Code(str(error.get("code")))]
    except (ValueError, KeyError):
        kind = ToolFailed
    return kind(
        str(error.get("message", "")), reason=error.get("reason"), hint=error.get("hint"), data=error.get("data")
    )


def send_frame(connection: socket.socket, frame: bytes) -> None:
    """Send one frame."""
    connection.sendall(_LENGTH.pack(len(frame)) + frame)


def receive_frame(connection: socket.socket) -> bytes | None:
    """Receive one frame; None when the other side has closed.

    Raises:
        OSError: the connection broke, or what came is no frame.
    """
    head = _receive(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > FRAME_BYTES:
        raise ConnectionAbortedError("not a frame")
    return _receive(connection, length)


def _receive(connection: socket.socket, length: int) -> bytes | None:
    blocks: list[bytes] = []
    missing = length
    while missing:
        block = connection.recv(min(missing, 1_000_000))
        if not block:
            return None
        blocks.append(block)
        missing -= len(block)
    return b"".join(blocks)


def require_same_user(connection: socket.socket) -> None:
    """Talk to nobody but ourselves: the folder is private, and this says so once more.

    Raises:
        ToolFailed: reason `foreign_host`.
    """
    if LINUX:
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        uid = _PEER.unpack(data)[1]
    else:
        uid = _MACOS_PEER.unpack(connection.getsockopt(0, _MACOS_LOCAL_PEERCRED, _MACOS_PEER.size))[1]
    if uid != os.geteuid():
        raise ToolFailed("the other end of the socket belongs to another user", reason="foreign_host")


def make_address(folder: int, name: str, path: Path) -> str:
    """Give the address of a socket in an open folder: short enough for any path (the kernel takes 108 bytes)."""
    return f"/proc/self/fd/{folder}/{name}" if LINUX else str(path / name)
