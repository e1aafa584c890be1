"""What a gateway keeps, within reach of a command for a moment."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from exeora_ws.fleet import require_extra

if TYPE_CHECKING:
    from exeora_ws.fleet.gateway import Lines

CredentialFile = Annotated[
    Path | None,
    typer.Option("--credential", metavar="FILE", help="A gateway's credential; not needed where the fleet's keys are."),
]


@contextmanager
def reach_state(credential: Path | None) -> "Iterator[Lines]":
    """Be connected for a moment: with a credential, or as whoever has the keys."""
    require_extra()
    from exeora_ws.fleet.credentials import load_credential
    from exeora_ws.fleet.gateway import Lines, connect_lines
    from exeora_ws.fleet.home import FleetHome, operate
    from exeora_ws.fleet.wire import new_gateway_id
    from exeora_ws.settings import find_places

    if credential is not None:
        lines = connect_lines(load_credential(credential, "gateway"), new_gateway_id())
        try:
            yield lines
        finally:
            lines.close()
        return
    home = FleetHome(find_places())
    with operate(home, home.require_keys()) as operation:
        yield Lines(operation.line, operation.state)
