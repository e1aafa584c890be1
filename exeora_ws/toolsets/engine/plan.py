"""A plan: which stages a sequential piece of work has, which files each owes, and how many rounds a turn may take.

```toml
rounds = 24                 # calls that one turn may make
stage = "draft"             # whose turn this is; --stage says otherwise
repair = "the build fails"  # only where the turn was opened to repair what is there: why

[[stages]]
name = "draft"
owes = ["index.html", { path = "show/episode-01.md", words = [400, 520] }]

[[stages]]
name = "review"
owes = ["report.md"]
checks = true               # writes its report and nothing else
```
"""

import json
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from exeora_ws.errors import ExeoraError, InvalidArguments
from exeora_ws.files.paths import parse_path


class OwedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that a stage owes; `words` is the least and the most it may have."""

    path: str
    words: tuple[int, int] | None = None


class Stage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stage. One that `checks` writes only what it owes."""

    name: str
    owes: tuple[OwedFile | str, ...] = ()
    checks: bool = False

    @property
    def files(self) -> tuple[OwedFile, ...]:
        """What it owes, each path in its plain form."""
        return tuple(_plain(OwedFile(entry) if isinstance(entry, str) else entry) for entry in self.owes)


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole plan, and whose turn it is."""

    rounds: int
    stages: tuple[Stage, ...]
    stage: str | None = None
    repair: str | None = None

    @property
    def current(self) -> Stage:
        """The stage whose turn it is."""
        return next(stage for stage in self.stages if stage.name == self.stage)


def load_plan(file: Path, stage: str | None) -> Plan:
    """Read a plan, TOML or (by its name) JSON.

    Args:
        file: where it is.
        stage: whose turn it is; None takes what the plan says, or its only stage.

    Raises:
        InvalidArguments: reason `plan_invalid`, with what is wrong.
    """
    try:
        raw = file.read_bytes()
        document: Any = json.loads(raw) if file.suffix == ".json" else tomllib.loads(raw.decode())
        plan = msgspec.convert(document, Plan)
    except OSError as error:
        raise _refuse(f"cannot be read: {error.strerror}") from None
    except (ValueError, msgspec.ValidationError) as error:
        raise _refuse(str(error)) from None
    return choose_stage(plan, stage)


def choose_stage(plan: Plan, stage: str | None) -> Plan:
    """Check a plan, and settle whose turn it is.

    Raises:
        InvalidArguments: reason `plan_invalid`.
    """
    names = [each.name for each in plan.stages]
    if not names or len(set(names)) < len(names):
        raise _refuse("it needs stages, each with a name of its own")
    if plan.rounds < 1:
        raise _refuse("rounds: counts from 1")
    for each in plan.stages:
        _check_files(each)
    chosen = stage or plan.stage or (names[0] if len(names) == 1 else None)
    if chosen not in names:
        said = "it does not say whose turn it is" if chosen is None else f"it has no stage {chosen!r}"
        raise _refuse(f"{said}: its stages are {', '.join(names)}")
    return msgspec.structs.replace(plan, stage=chosen)


def _check_files(stage: Stage) -> None:
    for file in stage.files:
        if file.words is not None and not 0 <= file.words[0] <= file.words[1]:
            raise _refuse(f"{file.path}: words are the least and the most")


def _plain(file: OwedFile) -> OwedFile:
    try:
        parts = parse_path(file.path).parts
    except ExeoraError as error:
        raise _refuse(f"{file.path!r}: {error.message}") from None
    if not parts or ".." in parts:
        raise _refuse(f"{file.path!r}: owed files are named from the workspace root, without ..")
    return msgspec.structs.replace(file, path=str(PurePosixPath(*parts)))


def _refuse(why: str) -> InvalidArguments:
    return InvalidArguments(f"the plan: {why}", reason="plan_invalid")
