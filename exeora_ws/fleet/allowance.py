"""How much of a gateway's memory each machine may fill with what it publishes. No I/O."""

from exeora_ws.limits import FLEET_MACHINE_BYTES

_RECORD_BYTES = 2_000
"""What a record counts for beside its own bytes: many small ones fill memory too."""


class Allowance:
    """Keeps count, by machine, of what stands under the keys `MACHINE.…`. For one thread."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, int]] = {}
        self._used: dict[str, int] = {}

    def take(self, key: str, size: int) -> bool:
        """Count a record in place of what stood there; False, and it does not count, where it is too much."""
        self.give_back(key)
        machine = _find_machine(key)
        cost, used = size + _RECORD_BYTES, self._used.get(machine, 0)
        if used + cost > FLEET_MACHINE_BYTES:
            return False
        self._held.setdefault(machine, {})[key] = cost
        self._used[machine] = used + cost
        return True

    def give_back(self, key: str) -> None:
        """Count what stood under a key no longer."""
        machine = _find_machine(key)
        cost = self._held.get(machine, {}).pop(key, 0)
        if cost:
            self._used[machine] -= cost

    def keep_only(self, keys: set[str]) -> None:
        """Count nothing but what stands under these keys."""
        for key in [key for held in self._held.values() for key in held if key not in keys]:
            self.give_back(key)


def _find_machine(key: str) -> str:
    return key.partition(".")[0]
