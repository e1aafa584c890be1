"""One turn of a planned stage: its rounds, its lane, its write phases. Decides, and does no I/O of its own.

```
OPEN ──eight rounds left, files owed──> WRITING ──cap, eight reads, repeats──> FINAL ──two calls──> OVER
  └────────────────────────cap, eight reads, repeats (files owed, or a repair)──^                    ^
  └──cap, nothing owed────────────────────────────────────────────────────────────────────────────────┘
```
A round is one call. A turn without a plan stays OPEN and has no lane.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from exeora_ws.errors import Forbidden, ToolFailed
from exeora_ws.toolsets.engine.plan import OwedFile, Plan, Stage

log = logging.getLogger("exeora.engine")

WRITE_TOOLS = frozenset({"write_file", "edit_file"})
RESEARCH_TOOLS = frozenset({"read_file", "search_files", "list_files", "read_logs"})

_ROUNDS_LEFT = 8
_EARLIEST_ROUND = 5
_FINAL_CALLS = 2
_READS_IN_A_ROW = 8
_SAME_TOOL_IN_A_ROW = 12
_SAME_CALL_IN_A_ROW = 3
_LANE_REFUSALS = 3
"""How many times a turn is told to keep to its lane; the attempt after that ends it."""


TURN_REASONS: Mapping[str, str] = {
    "turn_over": "the turn has ended: its rounds are used up, or it left its lane once too often",
    "final_write_phase": "two calls are left, for write_file and edit_file alone",
    "research_withdrawn": "the write phase has begun: the tools that look around are withdrawn",
}
"""What any tool may be refused for in a planned turn."""


class Phase(StrEnum):
    """Where a turn stands."""

    OPEN = "open"
    WRITING = "writing"
    FINAL = "final"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Owed:
    """An owed file as it is: whether anything is there, and whether it is as it should be."""

    file: OwedFile
    there: bool
    done: bool


Inspect = Callable[[OwedFile], Owed]
"""Looks at an owed file in the workspace of the call."""


@dataclass
class Turn:
    """The state. Thread-safe.

    Args:
        plan: whose turn it is and what everybody owes; None for a conversation without one.
    """

    plan: Plan | None = None
    phase: Phase = Phase.OPEN
    rounds: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _inspect: Inspect | None = None
    _final_left: int = _FINAL_CALLS
    _lane_refusals: int = 0
    _reads: int = 0
    _tools: list[str] = field(default_factory=list)
    _calls: list[str] = field(default_factory=list)
    _complete_repair: bool | None = None

    @property
    def stage(self) -> Stage | None:
        """Whose turn it is."""
        return None if self.plan is None else self.plan.current

    @property
    def withdrawn(self) -> frozenset[str]:
        """The tools that are not offered in this phase."""
        return RESEARCH_TOOLS if self.phase in (Phase.WRITING, Phase.FINAL) else frozenset()

    def owes_words(self, path: str) -> bool:
        """Whether the stage owes this file at a range of words."""
        return any(file.path == path and file.words is not None for file in self._own())

    def admit(self, tool: str, inspect: Inspect) -> None:
        """Let a call through, or refuse it by the phase.

        Args:
            tool: which tool.
            inspect: looks at owed files where the call acts.

        Raises:
            ToolFailed: `turn_over`, `final_write_phase`, `research_withdrawn`.
        """
        if self.plan is None:
            return
        with self._lock:
            self._inspect = inspect
            if self._complete_repair is None:
                self._complete_repair = self.plan.repair is not None and not self._list_owed()
            if self.phase is Phase.OVER:
                raise ToolFailed("this turn is over: nothing more is done in it", reason="turn_over")
            if self.phase is Phase.FINAL and tool not in WRITE_TOOLS:
                raise ToolFailed(f"only {_tools()} are left to use; {self._tell_owed()}", reason="final_write_phase")
            if self.phase is Phase.WRITING and tool in RESEARCH_TOOLS:
                raise ToolFailed(
                    f"the time to look around is over; {self._tell_owed()}",
                    reason="research_withdrawn",
                    hint=f"write them now, with {_tools()}",
                )

    def judge_write(self, path: str) -> None:
        """Judge a write to a path (real, from the workspace root) by the lane and the phase.

        Raises:
            Forbidden: `another_stage`, `report_only`.
            ToolFailed: `not_owed`, `turn_over`.
        """
        if self.plan is None:
            return
        with self._lock:
            own = any(file.path == path for file in self._own())
            if not own:
                self._judge_lane(path)
            if not own and self.phase in (Phase.WRITING, Phase.FINAL) and not self._any_there():
                raise ToolFailed(
                    f"{path}: is not a file that this stage owes; {self._tell_owed()}",
                    reason="not_owed",
                    hint="write one of those first",
                )

    def _judge_lane(self, path: str) -> None:
        if self.plan is None:
            return
        stage = self.plan.current
        owner = next((s.name for s in self.plan.stages if s is not stage and _owes(s, path)), None)
        if owner is None and not stage.checks:
            return
        self._lane_refusals += 1
        log.warning(
            "[STAGE-LANE] a write outside the lane was refused",
            extra={"tag": "STAGE-LANE", "stage": stage.name, "owner": owner, "path": path, "n": self._lane_refusals},
        )
        over = self._lane_refusals > _LANE_REFUSALS
        if over:
            self.phase = Phase.OVER
        raise _refuse_lane(stage, owner, path, over=over)

    def finish_round(self, tool: str, arguments: Mapping[str, Any], *, read_only: bool) -> str | None:
        """Count a call that was answered, move on to the phase that is due; gives what is to be told, if anything."""
        if self.plan is None:
            return None
        with self._lock:
            self.rounds += 1
            self._note(tool, arguments, read_only=read_only)
            before = self.phase
            if self.phase is Phase.OVER:
                return None
            if self.phase is Phase.FINAL:
                return self._count_final()
            self._move_on(self.plan)
            return self._announce(self.plan) if self.phase is not before else None

    def _note(self, tool: str, arguments: Mapping[str, Any], *, read_only: bool) -> None:
        self._reads = self._reads + 1 if read_only else 0
        self._tools = [*self._tools[-_SAME_TOOL_IN_A_ROW + 1 :], tool]
        called = json.dumps([tool, dict(arguments)], sort_keys=True, default=str)
        self._calls = [*self._calls[-_SAME_CALL_IN_A_ROW + 1 :], called]

    def _move_on(self, plan: Plan) -> None:
        capped = self.rounds >= plan.rounds
        if (capped or self._goes_in_circles()) and self._has_final_phase(plan):
            self.phase = Phase.FINAL
        elif capped:
            self.phase = Phase.OVER
        elif self.phase is Phase.OPEN and self._is_time_to_write(plan):
            self.phase = Phase.WRITING

    def _is_time_to_write(self, plan: Plan) -> bool:
        following = self.rounds + 1
        due = following >= max(_EARLIEST_ROUND, plan.rounds - _ROUNDS_LEFT + 1)
        return due and not self._complete_repair and bool(self._list_owed())

    def _goes_in_circles(self) -> bool:
        same_tool = len(self._tools) == _SAME_TOOL_IN_A_ROW and len(set(self._tools)) == 1
        same_call = len(self._calls) == _SAME_CALL_IN_A_ROW and len(set(self._calls)) == 1
        return self._reads >= _READS_IN_A_ROW or same_call or (same_tool and self._tools[-1] not in WRITE_TOOLS)

    def _has_final_phase(self, plan: Plan) -> bool:
        stage = plan.current
        return bool(stage.owes) and not stage.checks and (bool(self._list_owed()) or plan.repair is not None)

    def _count_final(self) -> str | None:
        self._final_left -= 1
        if self._final_left > 0:
            return None
        self.phase = Phase.OVER
        return "the turn is over"

    def _announce(self, plan: Plan) -> str:
        if self.phase is Phase.OVER:
            return "the turn is over: its rounds are used up"
        if self.phase is Phase.WRITING:
            left = plan.rounds - self.rounds
            return f"{left} calls are left, and it is time to write; {self._tell_owed()}. No more looking around"
        opened = f" This turn was opened because: {plan.repair}." if plan.repair is not None else ""
        return f"{_FINAL_CALLS} calls are left, for {_tools()} alone; {self._tell_owed()}.{opened}"

    def _own(self) -> tuple[OwedFile, ...]:
        return () if self.plan is None else self.plan.current.files

    def _look(self) -> list[Owed]:
        inspect = self._inspect or (lambda file: Owed(file, there=False, done=False))
        return [inspect(file) for file in self._own()]

    def _list_owed(self) -> list[OwedFile]:
        return [owed.file for owed in self._look() if not owed.done]

    def _any_there(self) -> bool:
        looked = self._look()
        return not looked or any(owed.there for owed in looked)

    def _tell_owed(self) -> str:
        owed = self._list_owed()
        return "still owed: " + ", ".join(map(_show, owed)) if owed else "nothing is owed any more"


def _owes(stage: Stage, path: str) -> bool:
    return any(file.path == path for file in stage.files)


def _refuse_lane(stage: Stage, owner: str | None, path: str, *, over: bool) -> Forbidden:
    owes = ", ".join(map(_show, stage.files)) or "no file"
    message = (
        f"{path}: belongs to stage {owner!r}; stage {stage.name!r} owes {owes}"
        if owner is not None
        else f"{path}: a checking stage writes its report and nothing else; stage {stage.name!r} owes {owes}"
    )
    return Forbidden(
        message + ("; this was one attempt too many, and the turn is over" if over else ""),
        reason="another_stage" if owner is not None else "report_only",
    )


def _show(file: OwedFile) -> str:
    return file.path if file.words is None else f"{file.path} ({file.words[0]} to {file.words[1]} words)"


def _tools() -> str:
    return " and ".join(sorted(WRITE_TOOLS))
