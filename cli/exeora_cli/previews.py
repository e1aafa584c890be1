"""Previews of workspaces, looked up in a thread: only ever the one that was asked for last."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from exeora_ws.errors import Cancelled, ExeoraError

from exeora_cli.bug_log import record_bug

if TYPE_CHECKING:
    from exeora_ws.cancellation import Cancellation

Lines = list[tuple[str, str]]
"""Lines, each after the name of its style (`""` for none)."""
Load = Callable[[str, "Cancellation"], Lines]

_END_SECONDS = 3.0


class Previews:
    """Looks up what is highlighted, and never holds up whoever asks.

    Args:
        load: gives the lines for a workspace, in a thread; ends soon when it is cancelled.
        on_news: called in that thread when there is something new to show.
    """

    def __init__(self, load: Load, on_news: Callable[[], object]) -> None:
        self._load = load
        self._on_news = on_news
        self._known: dict[str, Lines] = {}
        self._wanted: str | None = None
        self._looking: tuple[str, Cancellation] | None = None
        self._closed = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="previews", daemon=True)
        self._thread.start()

    def find(self, slug: str) -> Lines | None:
        """Give what is known of a workspace; None has it looked up, and nothing else any more."""
        with self._news:
            known = self._known.get(slug)
            if known is None and (self._looking is None or self._looking[0] != slug):
                self._wanted = slug
                self._drop()
        return known

    def close(self) -> None:
        """Look up nothing more; what is being looked up ends, with the git it may have started."""
        with self._news:
            self._closed = True
            self._drop()
        self._thread.join(_END_SECONDS)

    def _drop(self) -> None:
        if self._looking is not None:
            self._looking[1].cancel()
        self._news.notify()

    def _work(self) -> None:
        while (looking := self._next()) is not None:
            lines = self._look(*looking)
            with self._news:
                self._looking = None
                if lines is not None:
                    self._known[looking[0]] = lines
            if lines is not None:
                self._on_news()

    def _look(self, slug: str, cancellation: "Cancellation") -> Lines | None:
        try:
            return self._load(slug, cancellation)
        except Cancelled:
            return None
        except ExeoraError as error:
            return [("red", error.message)]
        except Exception as bug:  # noqa: BLE001  a preview that fails must not take the choice away
            return [("red", record_bug(bug).message)]

    def _next(self) -> "tuple[str, Cancellation] | None":
        from exeora_ws.cancellation import Cancellation

        with self._news:
            while not self._closed:
                slug, self._wanted = self._wanted, None
                if slug is not None and slug not in self._known:
                    self._looking = slug, Cancellation()
                    return self._looking
                self._news.wait()
            return None
