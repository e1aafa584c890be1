"""Whose sessions live on this machine: each lives as long as its gateway is heard, and no longer.

No threads, no I/O: it is told what happens and when, and says what is over.
"""

import secrets
import threading
from dataclasses import dataclass, field

from exeora_ws.limits import FLEET_SILENT_GATEWAY_SECONDS


@dataclass(slots=True)
class _Tenant:
    heard: float
    sessions: dict[str, str] = field(default_factory=dict)
    """What the core calls each, by what the gateway calls it."""


class Tenants:
    """The gateways that have something here. Thread-safe. Times are seconds of a clock that only grows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tenants: dict[str, _Tenant] = {}

    def name_session(self, gateway: str, session: str, now: float) -> str:
        """Give the name that the core knows a session by; another one after the session was ended.

        The core takes nothing more from a session that has ended, and a gateway that was away may still hold it open.
        """
        with self._lock:
            tenant = self._tenants.setdefault(gateway, _Tenant(now))
            tenant.heard = now
            return tenant.sessions.setdefault(session, f"fleet-{secrets.token_hex(8)}")

    def hear(self, gateway: str, now: float) -> None:
        """Note that a gateway is there."""
        with self._lock:
            tenant = self._tenants.get(gateway)
            if tenant is not None:
                tenant.heard = now

    def end_session(self, gateway: str, session: str) -> list[str]:
        """Take a session off; gives its name in the core, if it had one."""
        with self._lock:
            tenant = self._tenants.get(gateway)
            name = None if tenant is None else tenant.sessions.pop(session, None)
            if tenant is not None and not tenant.sessions:
                del self._tenants[gateway]
            return [] if name is None else [name]

    def end_silent(self, now: float, connected_since: float) -> dict[str, list[str]]:
        """Take off the gateways that were not heard for too long; gives the names of their sessions, by gateway.

        Args:
            now: the time.
            connected_since: since when anybody could have been heard.
        """
        limit = now - FLEET_SILENT_GATEWAY_SECONDS
        with self._lock:
            silent = [g for g, tenant in self._tenants.items() if max(tenant.heard, connected_since) < limit]
            return {gateway: list(self._tenants.pop(gateway).sessions.values()) for gateway in silent}

    def end_all(self) -> list[str]:
        """Take everything off; gives the names of all sessions."""
        with self._lock:
            names = [name for tenant in self._tenants.values() for name in tenant.sessions.values()]
            self._tenants.clear()
            return names
