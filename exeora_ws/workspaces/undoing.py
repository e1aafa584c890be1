"""What an operation does when it fails: taken back while it is on record, and the failure that led there is told."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from exeora_ws.errors import ExeoraError
from exeora_ws.git.messages import translated_os_errors
from exeora_ws.workspaces.registry import Registry, Unfinished

_LOG = logging.getLogger("exeora")


@contextmanager
def all_or_nothing(registry: Registry, operation: Unfinished, undo: Callable[[], object]) -> Iterator[None]:
    """Take an operation back if what is done under this fails.

    Once it is struck off it has happened, whatever fails after the commit: undoing it then would leave a registered
    workspace without its folder. What cannot be undone now stays on record for the next command (`recover.py`).

    Raises:
        ToolFailed: what the kernel refused: `disk_full`, `permission_denied`, `io_failed`.
    """
    try:
        with translated_os_errors("this"):
            yield
    except BaseException:
        try:
            if registry.is_unfinished(operation.id):
                undo()
        except (ExeoraError, OSError) as error:
            _LOG.warning("a %s that failed could not be taken back yet: %s", operation.kind, error)
        raise
