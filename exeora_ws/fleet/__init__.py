"""More than one machine, on NATS (docs/decisions/0017): the only room that imports `nats` and `nkeys`."""

from importlib.util import find_spec

from exeora_ws.errors import ToolFailed

INSTALL = "pip install 'exeora-ws[fleet]'"


def require_extra() -> None:
    """See that what this room needs is installed; whoever imports one of its modules asks first.

    Raises:
        ToolFailed: reason `missing_extra`; the hint is the line that installs it.
    """
    missing = [name for name in ("nats", "nkeys") if find_spec(name) is None]
    if missing:
        raise ToolFailed(
            f"several machines need more than is installed here ({', '.join(missing)})",
            reason="missing_extra",
            hint=INSTALL,
        )
