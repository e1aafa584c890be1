"""Answers a client before there is a core: opening it takes several times as long as starting Python.

Only what is sure is answered: the handshake, the prompts, and the list of tools of a project that nobody has set any
policy for, which is the same for all of them and is kept as text. The first line that needs more is left, with all that
follows. Imports little; a test says what.
"""

import os
import stat

from exeora_ws.serve import jsontext
from exeora_ws.serve.messages import Notification, Request, Unusual, read_message, write_error, write_result
from exeora_ws.serve.protocol import ProtocolError, complete
from exeora_ws.serve.shapes import read_cursor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from exeora_ws.serve.courtesies import Courtesies
    from exeora_ws.serve.peer import Peer
    from exeora_ws.serve.pipes import LineReader, LineWriter, TooLong

LISTING = os.path.join(os.path.dirname(__file__), "tools.json")
"""The default tools as a project's own endpoint lists them, written by `tests/support/tools_listing.py`."""
_POLICY_FILE = "exeora.toml"
_PATIENCE_SECONDS = 0.05
"""How long the next line is waited for before the core is opened all the same."""


class Arrival:
    """A client and its wire, on the way from the reception to the core."""

    def __init__(self, reader: "LineReader", writer: "LineWriter", peer: "Peer") -> None:
        self.reader = reader
        self.writer = writer
        self.peer = peer
        self.listed = False
        """Whether it was given the listing."""
        self._left: list[bytes | TooLong] = []

    def leave(self, line: "bytes | TooLong") -> None:
        """Put a line back that was read and not answered."""
        self._left.append(line)

    def take_ready(self) -> "list[bytes | TooLong]":
        """Give the lines that have been read and not been answered."""
        left, self._left = self._left, []
        return left + self.reader.take_ready()

    def read(self) -> "bytes | TooLong | None":
        """Wait for a line; None at the end of the input."""
        return self._left.pop(0) if self._left else self.reader.read()


class Reception:
    """Receives one client.

    Args:
        arrival: the client.
        courtesies: the answers that need no core.
        find_listing: gives what `LISTING` holds, or None where the core has to say which tools there are.
    """

    def __init__(self, arrival: Arrival, courtesies: "Courtesies", find_listing: "Callable[[], bytes | None]") -> None:
        self._arrival = arrival
        self._courtesies = courtesies
        self._find_listing = find_listing

    def receive(self) -> None:
        """Answer what is sure, until there is a line that is not, or none for a while.

        Raises:
            OSError: nobody reads the answers.
        """
        while self._arrival.reader.has_line(_PATIENCE_SECONDS):
            line = self._arrival.reader.read()
            if line is None:
                return
            if not self._answer(line):
                self._arrival.leave(line)
                return

    def _answer(self, line: "bytes | TooLong") -> bool:
        """Answer a line; False when that is not for here."""
        if not isinstance(line, bytes):
            return False
        try:
            message = read_message(line)
            if isinstance(message, Request):
                return self._answer_request(message)
            if isinstance(message, Notification) and message.method == "notifications/initialized":
                if not self._arrival.peer.opened:
                    return False
                self._arrival.peer.note_ready(message.params)
        except Unusual:
            return False
        return True  # nothing of ours waits for an answer, and nothing can be cancelled

    def _answer_request(self, request: Request) -> bool:
        peer = self._arrival.peer
        if request.method == "tools/call":
            return False
        peer.introduce(request)
        if request.method == "tools/list":
            answer = self._list(request)
        else:
            try:
                found = self._courtesies.find_answer(request, peer)
            except ProtocolError as error:
                answer = write_error(request.identity, error.code, error.message, error.data)
            else:
                answer = None if found is None else write_result(request.identity, found)
        if answer is None:
            return False
        self._arrival.writer.write(answer)
        return True

    def _list(self, request: Request) -> bytes | None:
        if read_cursor(request.params) is not None:
            return None
        listing = self._find_listing()
        if listing is None:
            return None
        self._arrival.listed = True
        around = complete({}, cacheable=True) if self._arrival.peer.modern else {}
        head = write_result(request.identity, around)[:-2]
        return head + (b"," if around else b"") + b'"tools":' + listing + b"}}"


def find_listing(root: str, config_file: str) -> "bytes | None":
    """Give the listing, if it is sure that a project offers just the default tools.

    Args:
        root: the project's.
        config_file: the user's, which need not exist.
    """
    try:
        if not _is_unruled(root) or not _sets_no_policy(config_file):
            return None
        with open(LISTING, "rb") as stream:
            return stream.read().rstrip()
    except (OSError, ValueError):
        return None


def _is_unruled(root: str) -> bool:
    """Whether a project's own folder can be read and says nothing of what is allowed."""
    inside = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.stat(_POLICY_FILE, dir_fd=inside, follow_symlinks=False)
    except FileNotFoundError:
        return True
    finally:
        os.close(inside)
    return False


def _sets_no_policy(config_file: str) -> bool:
    """Whether the user's settings can be read and say nothing of what is allowed in any project."""
    try:
        found = os.stat(config_file)
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(found.st_mode):
        return False
    with open(config_file, "rb") as stream:
        settings = jsontext.parse(stream.read())
    return isinstance(settings, dict) and "policies" not in settings
