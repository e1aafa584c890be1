"""What is known of the client at the other end of a connection. The first request decides its era, for good."""

from exeora_ws.serve.messages import Unusual, is_well_formed_joining
from exeora_ws.serve.protocol import HANDSHAKE_VERSIONS, LATEST_HANDSHAKE_VERSION
from exeora_ws.serve.shapes import has_envelope, read_envelope, read_handshake, refuse_reserved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from exeora_ws.serve.messages import Request
    from exeora_ws.serve.shapes import Introduction


class Peer:
    """A client, while it does nothing unusual. Changed by the thread that reads; any other may look."""

    def __init__(self) -> None:
        self.opened = False
        self.modern = False
        self.version = LATEST_HANDSHAKE_VERSION
        self.opening: dict[str, Any] | None = None
        """The parameters of the request that decided; for whoever joins the conversation later."""
        self.joined = False
        """Whether it has said, in the handshake era, that it is ready to be told things."""
        self._known: Introduction | None = None

    def introduce(self, request: "Request") -> "Introduction":
        """Give who sends a request.

        Raises:
            Unusual: it does not fit what the connection was opened with.
        """
        if not self.opened:
            return self._open(request)
        if request.method == "initialize":
            raise Unusual
        if self.modern:
            return read_envelope(request.params)
        refuse_reserved(request.params)
        if self._known is None:
            raise AssertionError("a handshake without an introduction")
        return self._known

    def _open(self, request: "Request") -> "Introduction":
        if request.method == "initialize":
            refuse_reserved(request.params)
            known = read_handshake(request.params)
            self.version = known.version if known.version in HANDSHAKE_VERSIONS else LATEST_HANDSHAKE_VERSION
        elif has_envelope(request.params):
            known = read_envelope(request.params)
            self.modern, self.version = True, known.version
        else:
            raise Unusual
        self.opened, self.opening, self._known = True, request.params, known
        return known

    def note_ready(self, params: "dict[str, Any] | None") -> None:
        """Take note of `notifications/initialized`."""
        if not self.modern and is_well_formed_joining(params):
            self.joined = True
