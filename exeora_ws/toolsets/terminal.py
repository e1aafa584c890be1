"""The two terminal tools of agentexec: a command that may outlast the call, and typing into it."""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.limits import (
    EXEC_KEPT_BYTES,
    EXEC_OUTPUT_TOKENS,
    EXEC_POLL_MIN_MS,
    EXEC_TOKEN_CHARACTERS,
    EXEC_YIELD_DEFAULT_MS,
    EXEC_YIELD_MAX_MS,
    EXEC_YIELD_MIN_MS,
    LIVE_PROCESSES_AGENTEXEC,
)
from exeora_ws.processes.output import Fresh
from exeora_ws.processes.run import CANCEL_GRACE_SECONDS
from exeora_ws.processes.running import Running
from exeora_ws.tools.processes import START_REASONS, find_owner, open_command
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Call, Hints, Needs, Routing, Tool
from exeora_ws.toolsets.login_shell import load_login_shell
from exeora_ws.toolsets.terminal_answer import NONE, Answer, cut_to_fit, find_exit_code, render_answer, show_leftovers
from exeora_ws.toolsets.wording import SnakeArguments, make_relative

_INTERRUPT, _END_OF_INPUT = "\x03", "\x04"
_KEYS = re.compile("[\x03\x04]|[^\x03\x04]+")

Tokens = Annotated[
    int,
    Meta(
        description=(
            f"Most of the output to give, in tokens of {EXEC_TOKEN_CHARACTERS} characters; more is cut in the middle."
        )
    ),
]


class ExecArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of exec_command."""

    cmd: Annotated[str, Meta(min_length=1, description="Shell command line.")]
    workdir: (
        Annotated[str, Meta(min_length=1, description="Folder to start in; the workspace by default.")] | UnsetType
    ) = UNSET
    yield_time_ms: Annotated[
        int,
        Meta(
            description=(
                f"How long to wait for its end before answering, {EXEC_YIELD_MIN_MS} to {EXEC_YIELD_MAX_MS}; less or "
                "more counts as the nearest of these."
            )
        ),
    ] = EXEC_YIELD_DEFAULT_MS
    max_output_tokens: Tokens = EXEC_OUTPUT_TOKENS


class TypeArguments(SnakeArguments, frozen=True, kw_only=True):
    """Arguments of write_stdin."""

    session_id: Annotated[str, Meta(description="As exec_command gave it.")]
    chars: Annotated[
        str,
        Meta(
            max_length=1_000_000,
            description="What to type; `\\u0003` interrupts the command, `\\u0004` ends its input. Nothing: only wait.",
        ),
    ] = ""
    yield_time_ms: (
        Annotated[
            int,
            Meta(
                description=(
                    f"How long to wait: after typing {EXEC_YIELD_MIN_MS} to {EXEC_YIELD_MAX_MS}, without typing "
                    f"{EXEC_POLL_MIN_MS} to {EXEC_YIELD_MAX_MS}; the least by default."
                )
            ),
        ]
        | UnsetType
    ) = UNSET
    max_output_tokens: Tokens = EXEC_OUTPUT_TOKENS


@dataclass(frozen=True)
class Sessions:
    """What each running command of a conversation wrote since the last answer, by session id."""

    fresh: dict[str, Fresh] = field(default_factory=dict)


def _exec_command(call: Call[ExecArguments, Services]) -> Answer:
    asked, started_at = call.arguments, time.monotonic()
    supervisor, owner = call.services.supervisor, find_owner(call)
    fresh = Fresh(EXEC_KEPT_BYTES // 2)
    shell = load_login_shell(call.services.spawn)
    cwd = (
        asked.workdir
        if isinstance(asked.workdir, UnsetType)
        else make_relative(asked.workdir, call.require_place().root)
    )
    with _explaining_room(), open_command(call, asked.cmd, cwd, shell=shell.argv, user=shell.environ) as command:
        started = supervisor.start(command, owner, private=True, limit=LIVE_PROCESSES_AGENTEXEC, tap=fresh.append)
    running = supervisor.require(started.id, owner)
    _recall(call).fresh[started.id] = fresh
    try:
        running.wait_end(_clamp(asked.yield_time_ms, EXEC_YIELD_MIN_MS), call.cancellation)
    except BaseException:
        # Nobody has its id, so nobody could ever end it.
        running.end(CANCEL_GRACE_SECONDS)
        _let_go(call, running)
        raise
    return _answer(call, running, fresh, started_at)


def _write_stdin(call: Call[TypeArguments, Services]) -> Answer:
    asked, started_at = call.arguments, time.monotonic()
    running, fresh = _require_running(call, asked.session_id)
    _type(call, running, asked.chars)
    least = EXEC_YIELD_MIN_MS if asked.chars else EXEC_POLL_MIN_MS
    wanted = least if isinstance(asked.yield_time_ms, UnsetType) else asked.yield_time_ms
    running.wait_end(_clamp(wanted, least), call.cancellation)
    return _answer(call, running, fresh, started_at)


def _require_running(call: Call[Any, Services], session_id: str) -> tuple[Running, Fresh]:
    """Find a command of this conversation; any other is as unknown as one that never was."""
    fresh = _recall(call).fresh.get(session_id)
    if fresh is not None:
        with suppress(ToolFailed):
            return call.services.supervisor.require(session_id, find_owner(call)), fresh
    raise ToolFailed(
        "there is no such session here: it never was, has ended and been answered, or runs in another workspace",
        reason="unknown_session",
        hint="pass session_id as exec_command gave it, with the same workspace",
    )


def _type(call: Call[Any, Services], running: Running, chars: str) -> None:
    """Deliver what is typed, in order.

    Raises:
        ToolFailed: `not_running`, `input_closed`, `input_full`; `data.bytesWritten` says how much of it went in.
    """
    written = 0
    for piece in _KEYS.findall(chars):
        if piece == _INTERRUPT:
            running.signal(signal.SIGINT)
        elif piece == _END_OF_INPUT:
            running.end_input()
        else:
            data = _encode(piece)
            accepted = running.send(data, cancellation=call.cancellation)
            written += accepted
            if accepted < len(data):
                raise ToolFailed(
                    f"the command does not read its input: only {written} bytes of it went in",
                    reason="input_full",
                    hint="wait with empty chars for it to read, then type the rest",
                    data={"bytesWritten": written},
                )


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArguments("chars: holds half a character (a lone surrogate)", reason="invalid_text") from None


def _answer(call: Call[Any, Services], running: Running, fresh: Fresh, started_at: float) -> Answer:
    """Say what it wrote since the last answer, and how it ended if it has; then it is forgotten."""
    finish = running.process.finish
    piece = fresh.take(final=finish is not None)
    text = cut_to_fit(piece, max(1, call.arguments.max_output_tokens) * EXEC_TOKEN_CHARACTERS)
    if finish is not None:
        text += show_leftovers(finish)
        _let_go(call, running)
    return Answer(
        exit_code="running" if finish is None else find_exit_code(finish),
        seconds=round(time.monotonic() - started_at, 3),
        session_id=running.id if finish is None else NONE,
        text=text,
    )


@contextmanager
def _explaining_room() -> Iterator[None]:
    """Say in this toolset's words that no more commands may run."""
    try:
        yield
    except ToolFailed as error:
        if error.reason != "too_many_processes":
            raise
        raise ToolFailed(
            f"{LIVE_PROCESSES_AGENTEXEC} commands run already, as many as may; this one was not started",
            reason="too_many_processes",
            hint="wait for one to end, or interrupt one: write_stdin with chars \\u0003",
        ) from error


def _recall(call: Call[Any, Services]) -> Sessions:
    return call.services.memory.recall(call.session, Sessions)


def _let_go(call: Call[Any, Services], running: Running) -> None:
    _recall(call).fresh.pop(running.id, None)
    with suppress(ToolFailed):  # somebody who waited for it too was told at the same moment
        call.services.supervisor.forget(running.id, find_owner(call))


def _clamp(milliseconds: int, least: int) -> float:
    return min(max(milliseconds, least), EXEC_YIELD_MAX_MS) / 1000


_ACTS = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)

EXEC_COMMAND = Tool(
    name="exec_command",
    title="Run a command",
    description=(
        "Run a command line with the environment of a login shell, in `workdir` or the workspace. Waits "
        "`yield_time_ms` for it to end, then answers with exit_code, seconds, session_id and text (what it wrote). A "
        "command that still runs then goes on: exit_code is `running`, and session_id is for write_stdin. Its input is "
        "a pipe, not a terminal. A command that fails is an answer; one ended by a signal has 128 plus the signal's "
        "number. At most 64 run at once, and all end with the connection."
    ),
    arguments=ExecArguments,
    result=Answer,
    hints=_ACTS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_exec_command,
    reasons={**START_REASONS, "too_many_processes": "64 run already"},
    command=lambda arguments: arguments.cmd,
    render=render_answer,
)

WRITE_STDIN = Tool(
    name="write_stdin",
    title="Type into a command",
    description=(
        "Type `chars` into a running command, wait, and get what it wrote since the last answer, in the same four "
        "fields. `\\u0003` interrupts it, `\\u0004` ends its input. With no `chars` it only waits for more, at least "
        "five seconds unless the command ends. session_id is `none` once it has ended."
    ),
    arguments=TypeArguments,
    result=Answer,
    hints=_ACTS,
    routing=Routing.OPTIONAL,
    needs=Needs.RECORD,
    function=_write_stdin,
    reasons={
        "unknown_session": "no such command of this conversation in this workspace",
        "not_running": "it has ended; wait with empty chars to read how",
        "input_closed": "it does not read its input any more",
        "input_full": "it does not read its input now; `data.bytesWritten` went in",
        "invalid_text": "chars holds half a character",
    },
    render=render_answer,
)
