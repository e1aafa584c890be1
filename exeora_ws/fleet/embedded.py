"""A nats-server of a gateway's own, kept running as long as the gateway does."""

import logging
import threading
from collections.abc import Callable

from exeora_ws.errors import ExeoraError
from exeora_ws.fleet.credentials import Keys
from exeora_ws.fleet.home import FleetAddress, FleetHome
from exeora_ws.fleet.server import NatsServer

log = logging.getLogger("exeora")

_LOOK_SECONDS = 0.5
_AGAIN_SECONDS = 2.0


class EmbeddedServer:
    """Starts a server, and starts it again when it ends by itself.

    Args:
        home: where its store is.
        keys: the fleet's.
        address: where it listens.
        warn: told when it had to be started again; one sentence, in any thread.

    Raises:
        ToolFailed: as `start_server`.
    """

    def __init__(self, home: FleetHome, keys: Keys, address: FleetAddress, warn: Callable[[str], None]) -> None:
        self._home = home
        self._keys = keys
        self._warn = warn
        self._server: NatsServer = home.start_embedded(keys, address)
        self._address = home.load_address() or address
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="nats-keeper", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is reached on this host."""
        return self._server.url

    def close(self) -> None:
        """End it."""
        self._closing.set()
        self._thread.join()
        self._server.close()

    def _keep(self) -> None:
        while not self._closing.is_set():
            if self._server.wait_for_end(_LOOK_SECONDS) and not self._closing.is_set():
                self._start_again()

    def _start_again(self) -> None:
        self._server.close()
        try:
            self._server = self._home.start_embedded(self._keys, self._address)
        except ExeoraError as error:
            log.warning("the nats-server could not be started again: %s", error.message)
            self._warn(f"the nats-server has ended and does not start: {error.message}")
            self._closing.wait(_AGAIN_SECONDS)
        else:
            self._warn("the nats-server had ended by itself and was started again")
