"""What travels between gateways and machines: subjects, envelopes, kinds of messages. No I/O.

JSON is written with everything beyond ASCII escaped: what another server answered comes out as it went in, half a
character (a lone surrogate) and numbers of any length included.
"""

import json
import secrets
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NewType, TypeVar

import msgspec

from exeora_ws.errors import (
    ApprovalDeclined,
    ApprovalTimeout,
    Cancelled,
    Code,
    ExecutorOffline,
    ExeoraError,
    Forbidden,
    InternalError,
    InvalidArguments,
    PathEscape,
    PathNotFound,
    ToolFailed,
    ToolTimeout,
    UnknownProject,
    UnknownTool,
    UnknownWorkspace,
    WorkspaceUnavailable,
)
from exeora_ws.names import new_project_id

MachineId = NewType("MachineId", str)

VERSION = 1
"""Of the envelope. A machine refuses one that is newer than it knows."""

GATEWAY_ALIVE = "exeora.g.alive"
AUDIT_STREAM = "exeora_audit"


def name_call(machine: str, instance: str) -> str:
    """Give the subject of the calls of one process that serves as a machine.

    Of two processes with one credential one gets a call, never both. And no other process gets it: neither one that
    came since the gateway last heard of the machine, nor a connection that the servers take for alive and is not.
    """
    return f"exeora.m.{machine}.call.{instance or 'none'}"


def name_part(machine: str, call: str) -> str:
    """Give the subject of further frames of a large envelope."""
    return f"exeora.m.{machine}.part.{call}"


def name_cancel(machine: str, call: str) -> str:
    """Give the subject that takes a call back."""
    return f"exeora.m.{machine}.cancel.{call}"


def name_answer(machine: str, call: str) -> str:
    """Give the subject of a person's answer to a question of a call."""
    return f"exeora.m.{machine}.answer.{call}"


def name_close(machine: str) -> str:
    """Give the subject that says that a session has ended."""
    return f"exeora.m.{machine}.close"


def name_ping(machine: str) -> str:
    """Give the subject that asks whether a machine is there."""
    return f"exeora.m.{machine}.ping"


def name_audit(machine: str) -> str:
    """Give the subject of audit entries about a machine."""
    return f"exeora.audit.{machine}"


def name_reply(gateway: str, machine: str, call: str) -> str:
    """Give where a machine answers a call. A machine may publish to subjects with its own id in this place alone."""
    return f"exeora.r.{gateway}.{machine}.{call}"


def name_replies(gateway: str) -> str:
    """Give what a gateway subscribes to once, for all its calls."""
    return f"exeora.r.{gateway}.>"


def split_reply(subject: str) -> tuple[str, str]:
    """Give machine and call of a reply's subject; two empty strings for anything else."""
    match subject.split("."):
        case ["exeora", "r", _, machine, call]:
            return machine, call
    return "", ""


def new_call_id() -> str:
    """Make a random id of a call (128 bits)."""
    return secrets.token_hex(16)


def new_gateway_id() -> str:
    """Make a random id of a gateway process."""
    return f"gtw_{secrets.token_hex(8)}"


class Kind(StrEnum):
    """What a machine says of a call. `done` is the last; each of the others may come any number of times."""

    TAKEN = "taken"
    WORKING = "working"
    PROGRESS = "progress"
    QUESTION = "question"
    DONE = "done"


class Asks(StrEnum):
    """How the person behind a caller can be asked, as `Asking` has it."""

    NOBODY = "nobody"
    WHILE_WAITING = "while_waiting"
    BY_RETURN = "by_return"


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call. Times are milliseconds of the fleet's clock."""

    version: int = VERSION
    call: str
    gateway: str
    start_by: int
    """What has not begun by then does not begin. A question to a person stops this clock, not the next."""
    deadline: int
    """What still runs then is taken back: the caller has been told."""
    project: str
    """The id of the one project it may reach."""
    tool: str
    arguments: dict[str, Any]
    toolset: str | None = None
    """None for the default one."""
    client: str = ""
    session: str
    """Names, together with the gateway, what started processes live as long as."""
    read_only: bool = False
    policy: str | None = None
    """The account's policy, as TOML."""
    asks: Asks = Asks.NOBODY
    answer: dict[str, str] | None = None
    """For `by_return`: the signed `state` and the `answer`, one of `policy.gate.Answer`."""


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway says of itself every two seconds."""

    gateway: str


class SessionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a gateway's is over."""

    gateway: str
    session: str


T = TypeVar("T")


def encode(value: Mapping[str, Any] | msgspec.Struct) -> bytes:
    """Write a message."""
    plain = msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
    return json.dumps(plain, separators=(",", ":")).encode()


def decode(data: bytes) -> dict[str, Any]:
    """Read a message.

    Raises:
        InvalidArguments: reason `bad_message`: it is no JSON object.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments("a message of the fleet is not JSON", reason="bad_message") from error
    if not isinstance(found, dict):
        raise InvalidArguments("a message of the fleet is not an object", reason="bad_message")
    return found


def decode_as(kind: type[T], data: bytes) -> T:
    """Read a message of one kind; fields that are not known are passed over.

    Raises:
        InvalidArguments: reason `bad_message`.
    """
    try:
        return msgspec.convert(decode(data), kind)
    except msgspec.ValidationError as error:
        raise InvalidArguments(f"a message of the fleet is malformed: {error}", reason="bad_message") from error


_ERRORS: dict[Code, type[ExeoraError]] = {
    kind.code: kind
    for kind in (
        InvalidArguments, UnknownTool, UnknownProject, UnknownWorkspace, WorkspaceUnavailable, PathEscape, PathNotFound,
        ToolFailed, ToolTimeout, Cancelled, Forbidden, ApprovalDeclined, ApprovalTimeout, ExecutorOffline,
        InternalError,
    )
}  # fmt: skip


def read_error(error: Mapping[str, Any]) -> ExeoraError:
    """Make the error again that `to_dict` described; one of an unknown code is a failed tool."""
    try:
        kind = _ERRORS[Code(error.get("code", ""))]
    except (ValueError, KeyError):
        kind = ToolFailed
    reason, hint, data = error.get("reason"), error.get("hint"), error.get("data")
    return kind(str(error.get("message", "")), reason=reason, hint=hint, data=data)


def new_machine_id() -> MachineId:
    """Make a random id of a machine: `mac_` and 20 letters and digits (100 bits)."""
    return MachineId("mac_" + new_project_id().removeprefix("prj_"))
