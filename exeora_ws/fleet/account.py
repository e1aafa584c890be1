"""The account's policy: one document in a bucket, in the language of `exeora.toml`, the outermost layer of all."""

import msgspec

from exeora_ws.errors import InvalidArguments
from exeora_ws.fleet.buckets import Bucket, Entry
from exeora_ws.fleet.mirror import Mirror
from exeora_ws.policy.layer import parse_policy_file
from exeora_ws.policy.rules import OPEN, Origin, Policy
from exeora_ws.policy.sources import POLICY_BYTES

KEY = "account"


class AccountPolicy(msgspec.Struct, frozen=True):
    """The policy, and the text that it was read from; None where there is none."""

    text: str | None
    policy: Policy
    warnings: tuple[str, ...] = ()


NONE = AccountPolicy(None, OPEN)


def parse_account_policy(text: str) -> AccountPolicy:
    """Read a document; one that cannot be understood closes everything to read only."""
    layer = parse_policy_file(text, Origin.ACCOUNT)
    return AccountPolicy(text, layer.policy, layer.warnings)


class AccountBook:
    """The account's policy as it is now. Thread-safe.

    Args:
        bucket: where it stands.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self.mirror: Mirror[AccountPolicy] = Mirror(bucket, _read)

    @property
    def now(self) -> AccountPolicy:
        """Give it, out of the warm copy."""
        return self.mirror.values.get(KEY, NONE)

    def load(self) -> AccountPolicy:
        """Give it, as it stands in the bucket."""
        entry = self._bucket.find(KEY)
        return NONE if entry is None else _read(entry) or NONE

    def store(self, text: str) -> AccountPolicy:
        """Set it.

        Raises:
            InvalidArguments: reason `policy_invalid`: it cannot be understood, and would close everything.
            ExeoraError: as `Bucket.put`.
        """
        if len(text.encode()) > POLICY_BYTES:
            raise InvalidArguments(f"a policy holds at most {POLICY_BYTES} bytes", reason="policy_invalid")
        parsed = parse_account_policy(text)
        if parsed.policy.faults:
            raise InvalidArguments("; ".join(parsed.policy.faults), reason="policy_invalid")
        self._bucket.put(KEY, text.encode())
        return parsed


def _read(entry: Entry) -> AccountPolicy | None:
    return None if entry.value is None else parse_account_policy(entry.value.decode("utf-8", "replace"))
