"""Which Host and Origin headers are ours: a page in a browser must not reach a server on loopback (DNS rebinding)."""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from exeora_ws.errors import InvalidArguments

LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))


def is_loopback(host: str) -> bool:
    """Whether a name or address to listen on is reached from this machine only."""
    if host.lower() in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def choose_hosts(host: str, *, behind_proxy: bool, allowed: Collection[str]) -> frozenset[str]:
    """Give the names under which a server that listens on `host` answers.

    Raises:
        InvalidArguments: reason `host_not_loopback`, `missing_field`, `conflicting_fields`.
    """
    if not behind_proxy:
        if allowed:
            raise InvalidArguments("allowed hosts: only together with behind-proxy", reason="conflicting_fields")
        if not is_loopback(host):
            raise InvalidArguments(
                f"host: {host!r} is not loopback, and this server speaks no TLS",
                reason="host_not_loopback",
                hint="put a TLS proxy in front and pass --behind-proxy with the names it is reached by",
            )
        return LOOPBACK | {host.lower()}
    if not allowed:
        raise InvalidArguments("allowed hosts: required with behind-proxy: name each", reason="missing_field")
    return frozenset(name.lower() for name in allowed)


def is_host_allowed(header: str | None, allowed: Collection[str]) -> bool:
    """Judge a Host header: a name of ours, with any port or none."""
    return header is not None and _name_of(f"//{header}") in allowed


def is_origin_allowed(header: str | None, allowed: Collection[str]) -> bool:
    """Judge an Origin header; programs send none."""
    return header is None or (header.lower().startswith(("http://", "https://")) and _name_of(header) in allowed)


def _name_of(url: str) -> str | None:
    """Give the host of a URL that has nothing but a host and a port."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for what is no port
    except ValueError:
        return None
    bare = not (parts.username or parts.password or parts.path or parts.query or parts.fragment or "@" in url)
    return parts.hostname if bare else None
