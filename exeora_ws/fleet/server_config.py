"""The configuration of a nats-server, for one of our own and for those that somebody else runs. No I/O."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exeora_ws.fleet.credentials import Keys

PING_SECONDS = 5
_PINGS_UNANSWERED = 2
_SYNC_SECONDS = 10
_ANY_PORT = -1


@dataclass(frozen=True, slots=True)
class Cluster:
    """Several servers as one.

    Args:
        name: the same on each.
        port: where this one listens for the others.
        routes: `host:port` of each.
    """

    name: str
    port: int
    routes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """One server.

    Args:
        folder: its own: configuration, accounts, JetStream's store, log.
        host: address to listen on.
        port: 0 takes a free one.
        name: of the server; what JetStream's store belongs to in a cluster.
        certificate: and `key`, PEM files, for TLS.
        key: see `certificate`.
        cluster: the others, if there are others.
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    name: str = "exeora"
    certificate: Path | None = None
    key: Path | None = None
    cluster: Cluster | None = None

    @property
    def scheme(self) -> str:
        """What URLs of it begin with."""
        return "nats" if self.certificate is None else "tls"


def describe_trust(keys: Keys) -> dict[str, Any]:
    """Give what makes any nats-server one of the fleet's: whom it trusts, and the accounts as they are at first."""
    return {
        "operator": keys.sign_operator(),
        "system_account": keys.system_account,
        "resolver_preload": keys.sign_accounts(),
    }


def describe_server(keys: Keys, options: ServerOptions) -> dict[str, Any]:
    """Give the configuration of a server of our own."""
    config: dict[str, Any] = {
        **describe_trust(keys),
        "server_name": options.name,
        "host": options.host,
        "port": options.port or _ANY_PORT,
        "resolver": {"type": "full", "dir": str(options.folder / "accounts"), "allow_delete": False},
        "jetstream": {"store_dir": str(options.folder / "store"), "sync_interval": f"{_SYNC_SECONDS}s"},
        "ping_interval": f"{PING_SECONDS}s",
        "ping_max": _PINGS_UNANSWERED,
        "write_deadline": "5s",
    }
    if options.certificate is not None:
        config["tls"] = {"cert_file": str(options.certificate), "key_file": str(options.key)}
    if options.cluster is not None:
        cluster = options.cluster
        config["cluster"] = {
            "name": cluster.name,
            "listen": f"{options.host}:{cluster.port}",
            "routes": [f"nats-route://{route}" for route in cluster.routes],
        }
    return config


def write_config(config: Mapping[str, Any]) -> str:
    """Give it as a nats-server reads it; JSON is a part of that language."""
    return json.dumps(config, indent=2) + "\n"
