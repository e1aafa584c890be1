"""The library's errors become ours here, and nowhere else."""

from collections.abc import Iterator
from contextlib import contextmanager

import nats.errors
import nats.js.errors

from exeora_ws.errors import ExecutorOffline, ExeoraError, ToolFailed, ToolTimeout


@contextmanager
def translated() -> Iterator[None]:
    """Translate what a block raises.

    Raises:
        ExecutorOffline: reason `nobody_there`, `not_connected`; `fleet_unreachable` where JetStream has no leader.
        ToolTimeout: reason `no_answer`.
        ToolFailed: reason `message_too_large`; `fleet_failed` where JetStream refuses.
    """
    try:
        yield
    except nats.errors.NoRespondersError:
        raise ExecutorOffline("nobody is there to take it", reason="nobody_there") from None
    except nats.errors.TimeoutError:
        raise ToolTimeout("no answer in time", reason="no_answer") from None
    except nats.errors.MaxPayloadError:
        raise ToolFailed("a message is larger than the servers take", reason="message_too_large") from None
    except nats.js.errors.APIError as error:
        raise _explain_refusal(error) from error
    except (nats.errors.Error, OSError) as error:
        raise not_connected() from error


def not_connected() -> ExecutorOffline:
    """Make the error of whoever wants to send without a connection."""
    return ExecutorOffline("there is no connection to the fleet", reason="not_connected")


def connection_lost() -> ExecutorOffline:
    """Make the error of whoever waited when the connection was lost."""
    return ExecutorOffline("the connection to the fleet was lost", reason="connection_lost")


def _explain_refusal(error: nats.js.errors.APIError) -> ExeoraError:
    if isinstance(error, nats.js.errors.ServiceUnavailableError):
        return ExecutorOffline("the store of the fleet has no leader just now", reason="fleet_unreachable")
    return ToolFailed(f"the store of the fleet refused: {error.description}", reason="fleet_failed")
