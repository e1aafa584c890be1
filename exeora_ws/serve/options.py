"""How to serve over HTTP, and what whoever started the server is told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exeora_ws.limits import CALLS_AT_ONCE
from exeora_ws.serve.manual import HOUSE_MANUAL, Manual
from exeora_ws.tools.core import CallMaker

DEFAULT_PORT = 7373


@dataclass(frozen=True, slots=True)
class HttpEvent:
    """Something to tell whoever started the server.

    `ready` has url, account, projects (slug and url each) and toolsets (slug, toolset and url each); `refused` a
    status; `session_opened` and `session_closed` a session, and the former the token's name and client; `stopping` and
    `stopped` nothing.
    """

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def _ignore(_event: HttpEvent) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much one server takes at once: calls that run, sessions of the handshake era, connections."""

    calls: int = CALLS_AT_ONCE
    sessions: int = 256
    connections: int = 512


CAPACITY = Capacity()
"""That of a machine of one's own."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How to serve.

    Args:
        host, port: where to listen; port 0 takes a free one.
        behind_proxy: whether a TLS proxy is in front; any host may then be listened on.
        allowed_hosts: the names that the proxy is reached by.
        on_event: told what happens, on the event loop: it must be quick.
        calls: the way of a call with the toolset to offer; the core's own when None.
        toolsets: further ways, by toolset, each at endpoints of its own: `/p/PROJECT/TOOLSET/mcp`.
        manual: instructions and prompts.
        capacity: how much at once.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    behind_proxy: bool = False
    allowed_hosts: tuple[str, ...] = ()
    on_event: Callable[[HttpEvent], None] = _ignore
    calls: CallMaker | None = None
    toolsets: Mapping[str, CallMaker] = field(default_factory=dict)
    manual: Manual = HOUSE_MANUAL
    capacity: Capacity = CAPACITY

    @property
    def public_url(self) -> str | None:
        """Where clients reach the proxy; None without one."""
        return f"https://{self.allowed_hosts[0]}" if self.allowed_hosts else None
