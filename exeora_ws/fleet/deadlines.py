"""How long a call may take, as its own tool limits it: when a gateway stops waiting for a machine."""

from collections.abc import Mapping
from typing import Any

from exeora_ws.limits import (
    APPROVAL_WAIT_SECONDS,
    GIT_POPULATE_SECONDS,
    KILL_GRACE_MS,
    REPOSITORY_LOCK_SECONDS,
    RUN_TIMEOUT_MAX_MS,
    SANDBOX_TIMEOUT_MAX_SECONDS,
    SEARCH_SECONDS,
    SETUP_SECONDS,
    TEARDOWN_SECONDS,
    UPSTREAM_CALL_MS,
)
from exeora_ws.tools.call import FIRST_ANSWER_SECONDS, AnyTool

SLACK_SECONDS = 5.0
"""For the way there and back."""

_PREPARING = REPOSITORY_LOCK_SECONDS + GIT_POPULATE_SECONDS + SETUP_SECONDS
_BY_NAME: Mapping[str, float] = {
    "create_workspace": _PREPARING,
    "attach_workspace": _PREPARING,
    "detach_workspace": REPOSITORY_LOCK_SECONDS + TEARDOWN_SECONDS,
    "remove_workspace": REPOSITORY_LOCK_SECONDS + TEARDOWN_SECONDS,
    "run_shell": RUN_TIMEOUT_MAX_MS / 1000,
}
_OTHERS = 2.0 * SEARCH_SECONDS
"""Of what has no limit of its own: a look at a file that others hold locked, a search of everything."""


def find_limit(tool: AnyTool, arguments: Any) -> float:
    """Give the seconds after which a call has failed, whatever is heard of it.

    Args:
        tool: the tool.
        arguments: its typed arguments; `timeout_ms` or `timeout_sec` are limits that the caller chose.
    """
    asking = 0.0 if tool.hints.read_only else float(APPROVAL_WAIT_SECONDS)
    return _find_own(tool, arguments) + asking + KILL_GRACE_MS / 1000 + SLACK_SECONDS


def _find_own(tool: AnyTool, arguments: Any) -> float:
    if tool.upstream is not None:
        return UPSTREAM_CALL_MS / 1000 + FIRST_ANSWER_SECONDS
    milliseconds, seconds = getattr(arguments, "timeout_ms", None), getattr(arguments, "timeout_sec", None)
    if isinstance(milliseconds, int | float):
        return milliseconds / 1000
    if isinstance(seconds, int | float):
        return float(min(seconds, SANDBOX_TIMEOUT_MAX_SECONDS))
    return _BY_NAME.get(tool.name, _OTHERS)
