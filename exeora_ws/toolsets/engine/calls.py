"""The way of a call in a planned turn: the turn admits each call, and says beside its answer what is due."""

from collections.abc import Mapping
from typing import Any

import msgspec

from exeora_ws.errors import ExeoraError
from exeora_ws.files.editing import load_text
from exeora_ws.files.reach import Reach
from exeora_ws.tools.call import AnyTool, Caller, Calls, Outcome, RawCall, Scope
from exeora_ws.tools.gate import CallGate
from exeora_ws.tools.news import CatalogNews
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Result
from exeora_ws.tools.stations import ApprovedCall
from exeora_ws.toolsets.engine.plan import OwedFile, Plan
from exeora_ws.toolsets.engine.turn import Owed, Turn
from exeora_ws.toolsets.engine.words import Said, join_notice, render_said
from exeora_ws.workspaces.place import Place


class PlannedCalls(Calls):
    """The way, for one turn of one stage: for a server with one conversation.

    Args:
        catalog, services, gate: as for any.
        plan: whose turn it is.
        news: told when the turn withdraws tools.
    """

    def __init__(
        self, catalog: Mapping[str, AnyTool], services: Services, gate: CallGate, *, plan: Plan, news: CatalogNews
    ) -> None:
        super().__init__(catalog, services, gate)
        self.turn = Turn(plan)
        self._news = news

    def make(self, raw: RawCall, caller: Caller) -> Outcome:
        """Take a call the whole way, and count it as a round."""
        outcome = super().make(raw, caller)
        if outcome.question is not None:
            return outcome
        tool = self.catalog.get(raw.tool)
        before = self.turn.withdrawn
        read_only = tool is not None and tool.hints.read_only
        notice = self.turn.finish_round(raw.tool, raw.arguments, read_only=read_only)
        if self.turn.withdrawn != before:
            self._news.tell()
        return outcome if notice is None else _add_notice(outcome, notice)

    def offered(self, scope: Scope) -> list[AnyTool]:
        """List the tools that a caller is offered: without those that the turn has withdrawn."""
        return [tool for tool in super().offered(scope) if tool.name not in self.turn.withdrawn]

    def run(self, approved: ApprovedCall, caller: Caller) -> Result:
        """Run a call that the turn admits."""
        self.services.memory.keep(caller.session, self.turn)
        place = approved.parsed.place
        if place is not None:
            self.turn.admit(approved.parsed.tool.name, lambda file: self._inspect(place, file))
        return super().run(approved, caller)

    def _inspect(self, place: Place, file: OwedFile) -> Owed:
        try:
            with Reach(place.root, self.services.home).locate_for_reading(file.path) as spot:
                size = spot.require_file().st_size
                words = len(load_text(spot).decode().split()) if file.words is not None else 0
        except ExeoraError:
            return Owed(file, there=False, done=False)
        fits = file.words is None or file.words[0] <= words <= file.words[1]
        return Owed(file, there=True, done=size > 0 and fits)


def _add_notice(outcome: Outcome, notice: str) -> Outcome:
    """Put a notice after an answer, whatever it is."""
    if isinstance(outcome.result, Said):
        told = outcome.result.notice
        both: Any = f"{told}; {notice}" if isinstance(told, str) else notice
        result = msgspec.structs.replace(outcome.result, notice=both)
        return Outcome(outcome.tool, result=result, text=render_said(result))
    text = outcome.text if outcome.text is not None else msgspec.json.encode(outcome.to_dict()).decode()
    return Outcome(outcome.tool, outcome.result, outcome.error, text=join_notice(text, notice))
