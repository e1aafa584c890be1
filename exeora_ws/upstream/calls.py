"""One call of a published tool: asked again whether it may, passed on, its result given back as it came."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError, Forbidden, InvalidArguments, ToolTimeout
from exeora_ws.limits import UPSTREAM_CALL_MS
from exeora_ws.upstream.catalog import PublishedTool, is_read_only
from exeora_ws.upstream.instance import Instance, Phase
from exeora_ws.upstream.messages import Message, format_message, is_deeper
from exeora_ws.upstream.peer import ConnectionLost, OnProgress, ProtocolError, RemoteError
from exeora_ws.upstream.pool import Pool
from exeora_ws.upstream.server import Server

Admit = Callable[[bool], None]
"""Told, right before the call goes out, whether the tool still changes nothing; raises to refuse it."""


def admit_all(_read_only: bool) -> None:
    """Refuse nothing: for callers whose own gate has judged the call."""


@dataclass(frozen=True)
class UpstreamCall:
    """A call with everything that belongs to it.

    Args:
        tool: what is called, as it was published when the call was judged.
        directory: root of the workspace that the call named.
        arguments: the upstream's own, without routing fields.
        cancellation: takes the call back.
        on_progress: told the parameters of each progress notification, less the token.
        admit: see `Admit`.
        seconds: how long the call itself may take.
    """

    tool: PublishedTool
    directory: Path
    arguments: Mapping[str, Any]
    cancellation: Cancellation | None = None
    on_progress: OnProgress | None = None
    admit: Admit = admit_all
    seconds: float = UPSTREAM_CALL_MS / 1000


MAX_LEVELS = 190
"""Levels of a result: the reader of the MCP library takes no message of more than 200, its writer none of 255."""


def make_call(pool: Pool, server: Server, call: UpstreamCall) -> Message:
    """Call a tool; gives the server's raw result, `isError` or not.

    A result is not touched, but for one thing: an error result loses every value that came out of the environment into
    the server's configuration, since such a value appears in no error.

    Raises:
        ToolFailed: reason `upstream_failed` (it does not start), `upstream_lost` (it ended meanwhile: what the call did
            is unknown), `upstream_error` (it answered with an error), `upstream_protocol` (with nonsense).
        Forbidden: reason `tool_changed`, it was judged as reading only and is not marked so any more.
        InvalidArguments: they hold what JSON cannot.
        ToolTimeout, Cancelled: nobody waits any more; the server has been told.
    """
    _require_json(call.arguments)
    try:
        return _attempt(pool, server, call)
    except _Unseen:
        # It had ended, or its session was over, before it saw the call: a fresh one may be asked.
        return _attempt(pool, server, call, last=True)


class _Unseen(Exception):
    """The server is gone and certainly did nothing."""


def _attempt(pool: Pool, server: Server, call: UpstreamCall, *, last: bool = False) -> Message:
    with pool.use(server, call.directory, call.cancellation) as instance:
        phase = Phase.LIST
        try:
            _admit_again(instance, call)
            phase = Phase.CALL
            result = instance.call(
                call.tool.tool,
                call.arguments,
                seconds=call.seconds,
                cancellation=call.cancellation,
                on_progress=call.on_progress,
            )
            if is_deeper(result, MAX_LEVELS):
                raise ProtocolError(f"its answer is nested deeper than {MAX_LEVELS} levels, more than clients read")
        except ConnectionLost as error:
            if error.unseen and not last:
                raise _Unseen from error
            raise instance.explain(phase, error) from error
        except (RemoteError, ProtocolError) as error:
            raise instance.explain(phase, error) from error
        except ToolTimeout as error:
            raise _name_timeout(error, call.tool) from error
        return instance.scrub(result) if result.get("isError") is True else result


def _admit_again(instance: Instance, call: UpstreamCall) -> None:
    """Judge once more by what this very instance says of the tool now; its list may have changed since."""
    found = instance.list_tools().find(call.tool.tool)
    read_only = call.tool.read_only and found is not None and is_read_only(found)
    if call.tool.read_only and not read_only:
        raise Forbidden(
            f"{call.tool.name}: its server no longer marks it as read only",
            reason="tool_changed",
            hint="list the tools again",
        )
    if call.cancellation is not None:
        call.cancellation.raise_if_cancelled()
    call.admit(read_only)


def _name_timeout(error: ExeoraError, tool: PublishedTool) -> ToolTimeout:
    return ToolTimeout(f"{tool.name}: {error.message}", reason="upstream_timeout", data={"server": tool.server})


def _require_json(arguments: Mapping[str, Any]) -> None:
    try:
        format_message(dict(arguments))
    except (ValueError, RecursionError):
        raise InvalidArguments("the arguments hold a value that JSON does not have", reason="wrong_value") from None
