"""What a person does to workspaces beside the tools, as calls: judged, confirmed and recorded like every other.

A deed has no place in a catalog: no client is offered one. What it does stays where it is (`workspaces/upkeep.py`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from exeora_ws.cancellation import Cancellation
from exeora_ws.tools.proxied import VerbatimArguments
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import READS, Call, Hints, Needs, Result, Routing, Tool

_CHANGES = Hints(read_only=False, destructive=True, idempotent=False, open_world=False)


class Done(Result, frozen=True, kw_only=True):
    """Result of a deed: what came of it, the action has kept."""


def make_deed(
    name: str,
    action: Callable[[Cancellation], object],
    needs: Needs,
    *,
    changes: bool = True,
    listed_as: tuple[str, ...] = (),
) -> Tool[VerbatimArguments, Done, Services]:
    """Make the tool value of a deed.

    Args:
        name: in the record and in questions, snake_case as tools have it.
        action: does it.
        needs: `RECORD` for one that names a workspace, `PROJECT` for one of the whole project, `NOTHING` for neither.
        changes: whether it changes the project or a workspace, so that mode `read_only` refuses it and `approve` asks.
        listed_as: the tools that do what it does: where a project's list of tools lacks one, it is refused.
    """

    def act(call: Call[VerbatimArguments, Services]) -> Done:
        action(call.cancellation)
        return Done()

    def keep(given: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"values": dict(given)}

    return Tool(
        name=name,
        title=name,
        description="",
        arguments=VerbatimArguments,
        result=Done,
        hints=_CHANGES if changes else READS,
        routing=Routing.REQUIRED if needs is Needs.RECORD else Routing.NONE,
        needs=needs,
        function=act,
        reasons={},
        listed_as=listed_as,
        prepare=keep,
    )
