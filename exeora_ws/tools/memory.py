"""What tools remember of a conversation from one call to the next, until it ends."""

import threading
from typing import Any, TypeVar

T = TypeVar("T")


class SessionMemory:
    """One value of each kind for each conversation. Thread-safe; what it holds has to be so itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, dict[type[Any], Any]] = {}

    def recall(self, session: str, kind: type[T]) -> T:
        """Give what the conversation has of a kind; the first time it is made."""
        with self._lock:
            kept = self._sessions.setdefault(session, {})
            if kind not in kept:
                kept[kind] = kind()
            found: T = kept[kind]
            return found

    def keep(self, session: str, value: object) -> None:
        """Have the conversation remember a value, in place of what it had of that kind."""
        with self._lock:
            self._sessions.setdefault(session, {})[type(value)] = value

    def forget(self, session: str) -> None:
        """Let go of all that belongs to a conversation that has ended."""
        with self._lock:
            self._sessions.pop(session, None)
