"""Which of the files that define servers have changed since somebody last looked. One `stat` each, no waiting."""

import threading
from collections.abc import Iterable
from pathlib import Path

from exeora_ws.upstream.config_file import Signature, sign_file


class Watch:
    """Remembers the state of files. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[Path, Signature] = {}

    def take_changed(self, paths: Iterable[Path]) -> set[Path]:
        """Give those that are not as they were at the last look; a first look finds every one changed.

        Ask before reading a file, not after: what is written in between is then found the next time.
        """
        changed = set()
        with self._lock:
            for path in paths:
                signature = sign_file(path)
                if path not in self._seen or self._seen[path] != signature:
                    self._seen[path] = signature
                    changed.add(path)
        return changed

    def forget(self, path: Path) -> None:
        """Look at a file afresh the next time."""
        with self._lock:
            self._seen.pop(path, None)
