"""Put a policy into the `exeora.toml` of a workspace: the one writer of that file, for a person."""

from dataclasses import dataclass

from exeora_ws.errors import ToolFailed
from exeora_ws.files.editing import Keeping, hold_spot, keep_first, load_text
from exeora_ws.files.reach import Reach
from exeora_ws.files.writer import write_content
from exeora_ws.policy.document import PolicyDraft, compose_document
from exeora_ws.policy.sources import POLICY_FILE


@dataclass(frozen=True, slots=True)
class PolicyWritten:
    """What became of the file; both False: it said all this already."""

    created: bool
    changed: bool


def write_policy(reach: Reach, draft: PolicyDraft, keeping: Keeping, *, force: bool) -> PolicyWritten:
    """Write a policy into a new file, or into the one that is there, whose comments and other keys stay.

    Args:
        reach: of the workspace, with `policy_writable`.
        draft: what the file shall say.
        keeping: locks and snapshots.
        force: whether keys that say something else are overwritten.

    Raises:
        InvalidArguments, ToolFailed: as `compose_document`; `policy_invalid` for a file that is a link, which no
            policy is read from.
    """
    if (reach.folder / POLICY_FILE).is_symlink():
        raise ToolFailed(f"{POLICY_FILE} is a symbolic link, and no policy is read from one", reason="policy_invalid")
    with hold_spot(reach, POLICY_FILE, keeping) as spot:
        before = None if spot.stat is None else load_text(spot)
        text = compose_document(None if before is None else before.decode("utf-8-sig"), draft, force=force)
        after = text.encode()
        if before is not None and text == before.decode("utf-8-sig"):
            return PolicyWritten(created=False, changed=False)
        keep_first(spot, keeping)
        write_content(spot, after, read_as=before)
    return PolicyWritten(created=before is None, changed=True)
