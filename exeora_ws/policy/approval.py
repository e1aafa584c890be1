"""The proof that one call may run. Only the gate makes one."""

from dataclasses import InitVar, dataclass, field
from typing import Final

from exeora_ws.errors import Forbidden
from exeora_ws.policy.request import Request

_SEAL: Final = object()


@dataclass(frozen=True)
class Approval:
    """One call, allowed. Made by `Gate` alone: anything else that tries gets an AssertionError.

    Args:
        project_id: the project it is for.
        workspace_id: the workspace it is for.
        tool: the tool it is for.
        fingerprint: hash over these and every argument.
        way: `policy` when nobody had to be asked, else how the person answered.
    """

    project_id: str
    workspace_id: str
    tool: str
    fingerprint: str
    way: str
    seal: InitVar[object] = field(repr=False)

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise AssertionError("only the gate makes approvals")

    def require_for(self, request: Request) -> None:
        """Stop unless this is the very call that was approved.

        Raises:
            Forbidden: reason `approval_mismatch`.
        """
        if self.fingerprint != request.fingerprint:
            raise Forbidden("what was approved is not what would run", reason="approval_mismatch")


def seal_approval(request: Request, way: str) -> Approval:
    """Make the approval of a call; for `gate.py` and nobody else (tests/policy/test_gate.py looks at the imports)."""
    return Approval(request.project_id, request.workspace_id, request.tool, request.fingerprint, way, seal=_SEAL)
