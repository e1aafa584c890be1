"""The error tree. A foreign exception becomes one of these once, where it enters, and is never wrapped again.

```
ExeoraError                       anything the caller can be told
├── InvalidArguments              INVALID_ARGUMENTS      the call itself is wrong
├── UnknownTool                   UNKNOWN_TOOL
├── UnknownProject                UNKNOWN_PROJECT        unknown, or not granted: the same answer
├── UnknownWorkspace              UNKNOWN_WORKSPACE      no such slug or id in this project
├── WorkspaceUnavailable          WORKSPACE_UNAVAILABLE  registered, but not usable now
├── PathEscape                    PATH_ESCAPE            outside the root, or protected
├── PathNotFound                  PATH_NOT_FOUND
├── ToolFailed                    TOOL_FAILED            the reason says how
├── ToolTimeout                   TOOL_TIMEOUT
├── Cancelled                     CANCELLED
├── Forbidden                     FORBIDDEN              refused by policy
├── ApprovalDeclined              APPROVAL_DECLINED
├── ApprovalTimeout               APPROVAL_TIMEOUT
├── ExecutorOffline               LOCAL_EXECUTOR_OFFLINE
└── InternalError                 INTERNAL_ERROR         a bug; carries an id that stands in the log, nothing else
```

Messages name no absolute host path unless returning one is the tool's job, no token and no environment value
(contract, section 3).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar


class Code(StrEnum):
    """The machine-readable codes of the contract, section 3."""

    LOCAL_EXECUTOR_OFFLINE = "LOCAL_EXECUTOR_OFFLINE"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    CANCELLED = "CANCELLED"
    PATH_ESCAPE = "PATH_ESCAPE"
    PATH_NOT_FOUND = "PATH_NOT_FOUND"
    TOOL_FAILED = "TOOL_FAILED"
    INVALID_ARGUMENTS = "INVALID_ARGUMENTS"
    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    UNKNOWN_PROJECT = "UNKNOWN_PROJECT"
    UNKNOWN_WORKSPACE = "UNKNOWN_WORKSPACE"
    WORKSPACE_UNAVAILABLE = "WORKSPACE_UNAVAILABLE"
    FORBIDDEN = "FORBIDDEN"
    APPROVAL_DECLINED = "APPROVAL_DECLINED"
    APPROVAL_TIMEOUT = "APPROVAL_TIMEOUT"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class ExeoraError(Exception):
    """An answer that is a refusal or a failure.

    Args:
        message: one sentence for the caller.
        reason: a finer machine-readable reason beside the code, snake_case (listed in docs/tools.md).
        hint: what to do next, as something that can be typed or called.
        data: further facts, JSON values only.
    """

    code: ClassVar[Code]

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        hint: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.hint = hint
        self.data = data

    def to_dict(self) -> dict[str, Any]:
        """Give the `error` object of the contract: absent keys are absent, never null."""
        error: dict[str, Any] = {"code": str(self.code), "message": self.message}
        if self.reason is not None:
            error["reason"] = self.reason
        if self.hint is not None:
            error["hint"] = self.hint
        if self.data is not None:
            error["data"] = dict(self.data)
        return error


class InvalidArguments(ExeoraError):
    """The call's own arguments are wrong; the message names the field."""

    code = Code.INVALID_ARGUMENTS


class UnknownTool(ExeoraError):
    """No such tool on this face."""

    code = Code.UNKNOWN_TOOL


class UnknownProject(ExeoraError):
    """No such project, or one that this caller may not reach: the two are told apart to nobody."""

    code = Code.UNKNOWN_PROJECT


class UnknownWorkspace(ExeoraError):
    """No such slug or id in this project. Never answered with main instead."""

    code = Code.UNKNOWN_WORKSPACE


class WorkspaceUnavailable(ExeoraError):
    """Registered, but its folder is gone, is another repository's, or sits behind a broken link."""

    code = Code.WORKSPACE_UNAVAILABLE


class PathEscape(ExeoraError):
    """The path leads outside the root, or to something no tool may write."""

    code = Code.PATH_ESCAPE


class PathNotFound(ExeoraError):
    """Nothing is at that path."""

    code = Code.PATH_NOT_FOUND


class ToolFailed(ExeoraError):
    """The tool ran and could not do it; the reason says why. Nothing was changed unless the message says so."""

    code = Code.TOOL_FAILED


class ToolTimeout(ExeoraError):
    """The tool's own time limit passed."""

    code = Code.TOOL_TIMEOUT


class Cancelled(ExeoraError):
    """The caller withdrew the call."""

    code = Code.CANCELLED


class Forbidden(ExeoraError):
    """Refused by the project's or the user's policy, or by the token's rights."""

    code = Code.FORBIDDEN


class ApprovalDeclined(ExeoraError):
    """A person said no."""

    code = Code.APPROVAL_DECLINED


class ApprovalTimeout(ExeoraError):
    """Nobody answered in time."""

    code = Code.APPROVAL_TIMEOUT


class ExecutorOffline(ExeoraError):
    """The machine that holds the project is not connected."""

    code = Code.LOCAL_EXECUTOR_OFFLINE


class InternalError(ExeoraError):
    """A bug. `data.id` stands in the log beside the traceback; nothing else is told."""

    code = Code.INTERNAL_ERROR
