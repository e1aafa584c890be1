"""Where a fleet is run from: its keys, its servers' addresses, and a nats-server of its own where it has one.

Everything stands in `fleet/` of the data folder.
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from exeora_ws.errors import ExecutorOffline, InvalidArguments, ToolFailed
from exeora_ws.fleet.buckets import ensure_buckets
from exeora_ws.fleet.credentials import Credential, Keys, find_keys, make_keys, store_keys
from exeora_ws.fleet.line import Line
from exeora_ws.fleet.permissions import name_inbox
from exeora_ws.fleet.roster import Roster
from exeora_ws.fleet.server import NatsServer, check_tls, start_server
from exeora_ws.fleet.server_config import ServerOptions
from exeora_ws.fleet.wire import new_gateway_id
from exeora_ws.locks import hold_lock
from exeora_ws.settings import Places
from exeora_ws.storage import make_private_folder, replace_file

PORT = 7374
"""Of an embedded nats-server, unless another is chosen; kept, since machines' credentials name it."""
_LOCK_SECONDS = 30.0
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class FleetAddress:
    """Where the servers of a fleet are.

    Args:
        urls: of servers that somebody else runs; empty for one of our own.
        host: that our own listens on.
        port: likewise; 0 takes a free one the first time.
        certificate: and `key`, PEM files, where our own speaks TLS.
        key: see `certificate`.
    """

    urls: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = PORT
    certificate: str | None = None
    key: str | None = None

    @property
    def embedded(self) -> bool:
        """Whether the server is our own."""
        return not self.urls

    @property
    def local_url(self) -> str:
        """Where our own is reached on this host."""
        return f"{'nats' if self.certificate is None else 'tls'}://127.0.0.1:{self.port}"


class FleetHome:
    """The folder `fleet/`, on the host where the keys are.

    Args:
        places: the user's.
    """

    def __init__(self, places: Places) -> None:
        self.folder = places.data / "fleet"

    def ensure_keys(self) -> Keys:
        """Give the keys; made when there are none yet.

        Raises:
            ToolFailed: reason `keys_unusable`, `not_written`, `busy`.
        """
        make_private_folder(self.folder)
        with hold_lock(self.folder / "keys.lock", seconds=_LOCK_SECONDS, what="the fleet's folder"):
            found = find_keys(self.folder / "keys.json")
            if found is None:
                found = make_keys()
                store_keys(self.folder / "keys.json", found)
            return found

    def require_keys(self) -> Keys:
        """Give the keys.

        Raises:
            ToolFailed: reason `no_fleet`.
        """
        found = find_keys(self.folder / "keys.json")
        if found is None:
            raise ToolFailed(
                "this data folder has no keys of a fleet",
                reason="no_fleet",
                hint="exeora gateway --embedded begins one; or run this where the gateway runs",
            )
        return found

    def load_address(self) -> FleetAddress | None:
        """Give where the servers are; None when nobody has said yet.

        Raises:
            ToolFailed: reason `config_invalid`.
        """
        try:
            found = json.loads((self.folder / "address.json").read_bytes())
            return FleetAddress(**{**found, "urls": tuple(found.get("urls", ()))})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise ToolFailed("fleet/address.json cannot be read", reason="config_invalid") from error

    def store_address(self, address: FleetAddress) -> None:
        """Keep where the servers are.

        Raises:
            InvalidArguments: one file of TLS without the other.
            ToolFailed: reason `not_written`.
        """
        check_tls(_path(address.certificate), _path(address.key))
        try:
            make_private_folder(self.folder)
            replace_file(self.folder / "address.json", json.dumps(asdict(address), indent=2).encode())
        except OSError as error:
            raise ToolFailed(f"it cannot be written: {os.strerror(error.errno or 0)}", reason="not_written") from error

    def start_embedded(self, keys: Keys, address: FleetAddress) -> NatsServer:
        """Start a nats-server of our own; its port is kept.

        Raises:
            ToolFailed: as `start_server`.
        """
        options = ServerOptions(
            self.folder / "nats",
            host=address.host,
            port=address.port,
            certificate=_path(address.certificate),
            key=_path(address.key),
        )
        server = start_server(keys, options)
        if address.port != server.port:
            self.store_address(FleetAddress(**{**asdict(address), "port": server.port}))
        return server

    @contextmanager
    def reach_servers(self, keys: Keys) -> Iterator[tuple[str, ...]]:
        """Have servers to speak to: those of somebody else, our own that runs, or our own for as long as this is held.

        Gives their urls, as this host reaches them.
        """
        address = self.load_address() or FleetAddress()
        if not address.embedded:
            yield address.urls
            return
        with ExitStack() as leaving:
            server = self._start_unless_running(keys, address)
            if server is not None:
                leaving.callback(server.close)
            yield (address.local_url if server is None else server.url,)

    def _start_unless_running(self, keys: Keys, address: FleetAddress) -> NatsServer | None:
        try:
            return self.start_embedded(keys, address)
        except ToolFailed as error:
            if error.reason != "server_running":
                raise
            return None

    def make_gateway(self, keys: Keys, name: str, urls: tuple[str, ...]) -> Credential:
        """Make the credential of a gateway on this host; one that takes our own server's certificate for what it is."""
        credential = keys.make_gateway(name, urls)
        address = self.load_address() or FleetAddress()
        if not address.embedded or address.certificate is None:
            return credential
        return replace(credential, authority=read_certificates(Path(address.certificate)), pinned=True)

    def find_public_urls(self, chosen: tuple[str, ...]) -> tuple[str, ...]:
        """Give where machines reach the servers: what was chosen, else what is known.

        Raises:
            InvalidArguments: reason `wrong_value`: no url of NATS.
        """
        for url in chosen:
            if not url.startswith(("nats://", "tls://")):
                raise InvalidArguments(f"{url!r} is no url of a NATS server: nats://HOST:PORT", reason="wrong_value")
        if chosen:
            return chosen
        address = self.load_address() or FleetAddress()
        return address.urls or (address.local_url,)


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operator works with."""

    keys: Keys
    urls: tuple[str, ...]
    roster: Roster
    state: Line
    line: Line


@contextmanager
def operate(home: FleetHome, keys: Keys) -> Iterator[Operation]:
    """Be connected as the operator's own gateway, for a moment.

    Raises:
        ExecutorOffline: reason `fleet_unreachable`.
        ToolFailed: a server of our own does not start.
    """
    with home.reach_servers(keys) as urls, ExitStack() as leaving:
        credential = home.make_gateway(keys, "operator", urls)
        if credential.state is None:
            raise AssertionError("a gateway has two users")
        identity = new_gateway_id()
        state, line = (
            Line(urls, user, name_inbox(identity), name="exeora operator", trust=credential.trust)
            for user in (credential.state, credential.line)
        )
        for each in (state, line):
            each.open(_CONNECT_SECONDS)
            leaving.callback(each.close)
        ensure_buckets(state)
        roster = Roster(keys, state)
        roster.settle()
        yield Operation(keys, urls, roster, state, line)


def read_certificates(path: Path) -> str:
    """Read certificates.

    Raises:
        InvalidArguments: reason `wrong_value`: the file holds none.
    """
    try:
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        text = ""
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise InvalidArguments(f"{path.name} holds no certificates (PEM)", reason="wrong_value")
    return text


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


__all__ = ["ExecutorOffline", "FleetAddress", "FleetHome", "Operation", "operate"]
