"""Where the log goes: the file that holds the tracebacks of bugs, never a client or the terminal."""

import logging
import os
from pathlib import Path

from exeora_ws.settings import Places
from exeora_ws.storage import make_private_folder

_FORMAT = "%(asctime)s %(process)d %(name)s %(levelname)s %(message)s"


def keep_log(places: Places) -> None:
    """Have warnings of the core and of the libraries written to `exeora.log` (0600), and to nothing else."""
    root = logging.getLogger()
    if any(isinstance(h, _PrivateFile) for h in root.handlers):
        return
    handler = _PrivateFile(places.log, encoding="utf-8", delay=True)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(handler)


class _PrivateFile(logging.FileHandler):
    """A log file that only its owner reads, made with its folder when there is something to write."""

    def _open(self):  # type: ignore[no-untyped-def] # noqa: ANN202 - the library's own type is private
        make_private_folder(Path(self.baseFilename).parent)
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding)
