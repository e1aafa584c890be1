"""A project's policy at a shell: the file that no tool may write."""

from exeora_ws.cancellation import Cancellation
from exeora_ws.files.reach import Reach
from exeora_ws.policy.document import PolicyDraft
from exeora_ws.policy.writing import PolicyWritten, write_policy
from exeora_ws.tools.files import make_session_keeping
from exeora_ws.tools.services import Services
from exeora_ws.workspaces.place import Place


def write_place_policy(
    services: Services, place: Place, draft: PolicyDraft, session: str, cancellation: Cancellation, *, force: bool
) -> PolicyWritten:
    """Write a place's `exeora.toml`; see `write_policy`."""
    reach = Reach(place.root, services.home, policy_writable=True)
    return write_policy(reach, draft, make_session_keeping(services, session, cancellation), force=force)
