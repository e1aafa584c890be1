"""Several operations on files as one: all of them happen, or none does (contract, section 3, `apply_patch`)."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import ExeoraError, ToolFailed
from exeora_ws.files.difference import Diff
from exeora_ws.files.editing import Keeping, find_lock, keep_first
from exeora_ws.files.faults import translated
from exeora_ws.files.journal import (
    Change,
    Entry,
    Journal,
    Undone,
    decode_key,
    decode_path,
    encode_path,
    list_dead_entries,
    open_entry,
    undo,
)
from exeora_ws.files.operation import Operation
from exeora_ws.files.overlay import After, Before, Key, Overlay, lay_over
from exeora_ws.files.patch_diff import diff_patch
from exeora_ws.files.paths import show
from exeora_ws.files.reach import Reach
from exeora_ws.files.root import Root
from exeora_ws.files.spot import Spot
from exeora_ws.files.writer import make_parents, move_entry, remove_file, same_state, write_content
from exeora_ws.limits import FILE_LOCK_SECONDS
from exeora_ws.locks import hold_lock


@dataclass(frozen=True, slots=True)
class Patched:
    """What a patch did."""

    operations: tuple[Operation, ...]
    diff: Diff


@dataclass(frozen=True, slots=True)
class Recovered:
    """A patch that a killed process had left half done, undone now."""

    root: str
    left: tuple[str, ...]
    """Paths below the root that somebody had written since, left as they are."""
    pending: tuple[str, ...] = ()
    """Paths that could not be put back now; the next recovery tries again."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What becomes of one path on disk."""

    before: Before
    after: After
    number: int
    moved_to: Key | None


def apply_patch(reach: Reach, operations: Sequence[Operation], keeping: Keeping, patches: Path) -> Patched:
    """Apply all operations or none.

    Everything is worked out first; then what was there is written down outside the repository, so that a failure, or a
    kill followed by `recover_patches`, leaves the tree as it was.

    Args:
        reach: what the paths mean.
        operations: in order; later ones see what earlier ones did.
        keeping: locks, snapshots, session.
        patches: folder of the journals.

    Raises:
        InvalidArguments, PathEscape, PathNotFound, ToolFailed: nothing was changed; `data.operation` says which one.
    """
    recover_patches(patches, keeping.locks)
    wanted = tuple(operations)
    with reach.open_project() as root:
        overlay = lay_over(root, reach.protection, wanted)
        with _hold_all(root, overlay.before, keeping.locks, keeping.cancellation):
            again = lay_over(root, reach.protection, wanted)
            if again.before.keys() != overlay.before.keys():
                raise ToolFailed("the files changed while the patch was prepared", reason="stale", hint="try again")
            diff = diff_patch(root, again)
            _carry_out(root, again, keeping, patches)
    return Patched(wanted, diff)


@contextmanager
def _hold_all(root: Root, keys: Iterable[Key], locks: Path, cancellation: Cancellation) -> Iterator[None]:
    """Hold the lock of every path, in one order for everybody."""
    files: set[Path] = set()
    for key in keys:
        with _locate(root, key) as spot:
            files.add(find_lock(locks, spot))
    with ExitStack() as held:
        for file in sorted(files):
            held.enter_context(hold_lock(file, seconds=FILE_LOCK_SECONDS, what="a file", cancellation=cancellation))
        yield


def _carry_out(root: Root, overlay: Overlay, keeping: Keeping, patches: Path) -> None:
    steps = _find_steps(overlay)
    with open_entry(patches) as entry:
        journal = _write_journal(root, entry, steps, keeping)
        try:
            for step in steps:
                _move(root, step)
            for step, change in zip(steps, journal.changes, strict=True):
                _write(root, step, change)
            for step in steps:
                _remove(root, step)
        except BaseException as error:
            undone = undo(root, entry, journal)
            if not undone.pending:
                entry.commit()
            if undone.left or undone.pending:
                raise _incomplete(undone) from error
            raise
        entry.commit()


def _find_steps(overlay: Overlay) -> list[_Step]:
    """Give the paths that change, each with where its file goes, if it goes somewhere new as it is."""
    homes = {
        after.source: key
        for key, after in overlay.after.items()
        if after.source not in (None, key) and overlay.before[key].stat is None
    }
    for key, after in overlay.after.items():
        if after.source not in (None, key) and overlay.before[key].stat is not None:
            raise ToolFailed(
                f"{overlay.before[key].shown}: a file cannot go where the same patch takes another away",
                reason="unsupported",
                hint="use two patches",
            )
    changed = [key for key, after in overlay.after.items() if _is_changed(overlay.before[key], after)]
    return [
        _Step(overlay.before[key], overlay.after[key], number, homes.get(key)) for number, key in enumerate(changed)
    ]


def _is_changed(before: Before, after: After) -> bool:
    if after.absent:
        return before.stat is not None
    return after.content is not None or after.source != before.key


def _write_journal(root: Root, entry: Entry, steps: list[_Step], keeping: Keeping) -> Journal:
    changes: list[Change] = []
    folders: dict[Key, None] = {}
    moved = {step.moved_to for step in steps if step.moved_to is not None}
    for step in steps:
        with _locate(root, step.before.key) as spot:
            if not same_state(spot.stat, step.before.stat):
                raise ToolFailed(f"{spot.shown}: changed while the patch was prepared", reason="stale")
            if not spot.is_link:
                keep_first(spot, keeping)
            edited_on_the_way = step.moved_to is not None and _is_rewritten(steps, step.moved_to)
            copied = step.moved_to is None or edited_on_the_way
            changes.append(
                Change(
                    path=encode_path("/".join(step.before.key)),
                    before=entry.back_up(spot, step.number, copy=copied),
                    after=_digest(step.after),
                    moved_to=encode_path("/".join(step.moved_to)) if step.moved_to else None,
                    draft=f".exeora-{entry.folder.name}-{step.number}.tmp",
                )
            )
        if not step.after.absent or step.before.key in moved:
            folders.update(dict.fromkeys(step.before.missing))
    journal = Journal(
        root=encode_path(str(root.path)),
        changes=tuple(changes),
        folders=tuple(encode_path("/".join(folder)) for folder in sorted(folders, key=len)),
    )
    entry.begin(journal)
    return journal


def _is_rewritten(steps: list[_Step], key: Key) -> bool:
    return any(step.before.key == key and step.after.content is not None for step in steps)


def _digest(after: After) -> str | None:
    return None if after.content is None else hashlib.sha256(after.content).hexdigest()


def _move(root: Root, step: _Step) -> None:
    if step.moved_to is None:
        return
    with (
        _locate(root, step.before.key) as source,
        _locate(root, step.moved_to) as target,
        translated(target.shown),
        make_parents(target) as folder,
    ):
        move_entry(source, target, folder)


def _write(root: Root, step: _Step, change: Change) -> None:
    if step.after.content is not None:
        with _locate(root, step.before.key) as spot:
            write_content(spot, step.after.content, draft_name=change.draft)


def _remove(root: Root, step: _Step) -> None:
    if step.after.absent and step.moved_to is None:
        with _locate(root, step.before.key) as spot:
            remove_file(spot)


@contextmanager
def _locate(root: Root, key: Key) -> Iterator[Spot]:
    with root.locate_real(key) as spot:
        yield spot


def _incomplete(undone: Undone) -> ToolFailed:
    if undone.pending:
        return ToolFailed(
            "the patch failed, and not all of it could be taken back yet; what the files held is kept",
            reason="undo_incomplete",
            hint="see to room and permissions: the next patch in any project, or the next start, takes the rest back",
            data={"left": list(map(show, undone.left)), "pending": list(map(show, undone.pending))},
        )
    return ToolFailed(
        "the patch failed and was taken back, but for files that somebody else wrote meanwhile",
        reason="undo_incomplete",
        data={"left": list(map(show, undone.left))},
    )


def recover_patches(patches: Path, locks: Path) -> list[Recovered]:
    """Undo every patch whose process was killed in the middle. Cheap when there is none; any process may call it.

    A root that is not there now, or has a file in use, keeps its journal until the next time.

    Args:
        patches: folder of the journals.
        locks: folder of lock files.
    """
    done: list[Recovered] = []
    for entry in list_dead_entries(patches):
        journal = entry.load()
        if journal is None:
            entry.remove()
            continue
        with suppress(ExeoraError):
            done.append(_recover(entry, journal, locks))
    return done


def _recover(entry: Entry, journal: Journal, locks: Path) -> Recovered:
    where = decode_path(journal.root)
    names = [name for change in journal.changes for name in (change.path, change.moved_to) if name is not None]
    keys = [decode_key(name) for name in names]
    with Root(Path(where)) as root, _hold_all(root, keys, locks, Cancellation()):
        undone = undo(root, entry, journal)
    if not undone.pending:
        entry.commit()
        entry.remove()
    return Recovered(where, undone.left, undone.pending)
