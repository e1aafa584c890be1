"""Tells the client that the list of tools is another now."""

import logging
import threading
import time

from exeora_ws.serve.dialogue import Dialogue
from exeora_ws.serve.library import Library
from exeora_ws.serve.offers import OFFERS_SECONDS, Offers

log = logging.getLogger("exeora")

_QUIET_SECONDS = 0.1
"""How long changes are collected before anybody is told."""


class Announcing:
    """Watches for one connection what is offered.

    Args:
        offers: what was offered to it.
        dialogue: tells it, in the handshake era.
        library: tells it, in the later one; and looks itself, for those who subscribed there.
    """

    def __init__(self, offers: Offers, dialogue: Dialogue, library: Library) -> None:
        self._offers = offers
        self._dialogue = dialogue
        self._library = library
        self._changed = threading.Event()

    def tell(self) -> None:
        """Have it told; several calls before the turn comes are one. For any thread."""
        self._changed.set()
        self._library.notify_tools_changed()

    def run(self) -> None:
        """Tell what there is to tell, for ever."""
        while True:
            try:
                self._look()
            except Exception:
                log.exception("telling a client that tools have changed")

    def _look(self) -> None:
        if not self._changed.wait(OFFERS_SECONDS) and not (self._dialogue.is_told and self._offers.have_changed()):
            return
        time.sleep(_QUIET_SECONDS)
        self._changed.clear()
        self._dialogue.tell_tools_changed()
