"""The guards in front of a write: what a damaging rewrite would lose, and a format that no text can be.

A rewrite that damages a file looks like any other afterwards, so it is questioned before. The shrink and reference
guards question once and let a second ask through; the escaped-fence guard questions twice and then repairs.
"""

import logging
import os
import threading
from dataclasses import dataclass, field

from exeora_ws.errors import Cancelled, ExeoraError, ToolFailed
from exeora_ws.files.spot import Spot
from exeora_ws.toolsets.engine.fences import find_escaped_fence, repair_fences
from exeora_ws.toolsets.engine.formats import find_binary_kind, is_markdown, is_markup, is_scene
from exeora_ws.toolsets.engine.references import find_broken, find_gone_ids
from exeora_ws.toolsets.engine.retention import find_lost_lines, measure_retention
from exeora_ws.toolsets.engine.words import count, folder_of

log = logging.getLogger("exeora.engine")

PROTECTED_BYTES = 400
"""A smaller file is not protected from shrinking."""
LEAST_RETAINED = 0.5
_FENCE_REFUSALS = 2
_LARGEST_BYTES = 5_000_000
_SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx")
_MOST_SCRIPTS = 100


@dataclass
class Asked:
    """What a conversation was already asked to think over. Thread-safe."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _rewrites: set[tuple[str, str]] = field(default_factory=set)
    _fences: dict[tuple[str, str], int] = field(default_factory=dict)

    def has_asked(self, key: tuple[str, str]) -> bool:
        """Whether a rewrite of this file was questioned and may now pass; it may pass once."""
        with self._lock:
            if key in self._rewrites:
                self._rewrites.discard(key)
                return True
            return False

    def note_asked(self, key: tuple[str, str]) -> None:
        """Note that a rewrite of this file was questioned."""
        with self._lock:
            self._rewrites.add(key)

    def count_fence(self, key: tuple[str, str]) -> int:
        """Count an escaped fence for this file; gives how many there were, and begins anew after the third."""
        with self._lock:
            number = self._fences.get(key, 0) + 1
            self._fences[key] = 0 if number > _FENCE_REFUSALS else number
            return number


def refuse_binary_path(path: str) -> None:
    """Refuse text for a format that is not text. There is no second ask.

    Raises:
        ToolFailed: reason `binary_path`.
    """
    kind = find_binary_kind(path)
    if kind is None:
        return
    if is_scene(path):
        hint = "nothing here makes such a file, and a stand-in under its name is not the file: say that it is missing"
    else:
        hint = "make it with a program, by run_shell, or ask for it: a text under its name is not the file"
    raise ToolFailed(f"{path}: its name promises {kind}, which no text is", reason="binary_path", hint=hint)


def settle_fences(asked: Asked, key: tuple[str, str], path: str, text: str) -> tuple[str, bool]:
    r"""Question a Markdown text in which a line opens with an escaped code fence; gives it repaired the third time.

    Raises:
        ToolFailed: reason `escaped_fence`, the first two times for a file.
    """
    found = find_escaped_fence(text) if is_markdown(path) else None
    if found is None:
        return text, False
    number = asked.count_fence(key)
    log.warning("[ESCAPED-FENCE] an escaped code fence", extra={"tag": "ESCAPED-FENCE", "path": path, "n": number})
    if number > _FENCE_REFUSALS:
        return repair_fences(text), True
    line, shown = found
    raise ToolFailed(
        f"{path}: line {line} opens with an escaped code fence ({shown[:80]!r}), which would show as backslashes",
        reason="escaped_fence",
        hint="write the three backticks without backslashes, with write_file or edit_file",
        data={"line": line},
    )


def question_rewrite(asked: Asked, key: tuple[str, str], spot: Spot, new: str, *, words_owed: bool) -> None:
    """Question a write that would throw most of a file away, or leave a script looking for what is not there.

    Args:
        asked: what was questioned before.
        key: names the file among all workspaces.
        spot: the file, its lock held.
        new: what it shall hold.
        words_owed: whether the stage owes it at a range of words: every draft of it is new prose.

    Raises:
        ToolFailed: `shrink_guard`, `reference_guard`; `guard_failed` when the check itself failed, which counts as no
            question.
    """
    if spot.stat is None:
        return
    try:
        refusal = _find_refusal(spot, new, words_owed=words_owed)
    except Cancelled:
        raise
    except ExeoraError as error:
        raise _fail_closed(spot, error.message) from error
    except Exception as error:
        raise _fail_closed(spot, type(error).__name__) from error
    if refusal is None or asked.has_asked(key):
        return
    asked.note_asked(key)
    raise refusal


def _find_refusal(spot: Spot, new: str, *, words_owed: bool) -> ToolFailed | None:
    old = _read(spot)
    shrinking, broken = _find_shrinking(spot, old, new, words_owed=words_owed), _find_broken(spot, old, new)
    if shrinking is None or broken is None:
        return shrinking or broken
    # One question for both: the second ask passes both.
    return ToolFailed(
        f"{shrinking.message}; also, {broken.message}",
        reason=shrinking.reason,
        hint=shrinking.hint,
        data={**(shrinking.data or {}), **(broken.data or {})},
    )


def _find_shrinking(spot: Spot, old: str, new: str, *, words_owed: bool) -> ToolFailed | None:
    if spot.stat is None or spot.stat.st_size < PROTECTED_BYTES:
        return None
    if words_owed:
        log.info("[SHRINK-GUARD] stood aside", extra={"tag": "SHRINK-GUARD", "path": spot.shown, "skipped": True})
        return None
    kept = measure_retention(old, new)
    if kept >= LEAST_RETAINED:
        return None
    log.warning(
        "[SHRINK-GUARD] a rewrite was questioned", extra={"tag": "SHRINK-GUARD", "path": spot.shown, "kept": kept}
    )
    return ToolFailed(
        f"{spot.shown}: this would keep {kept:.0%} of what is there and lose {_name_lost(old, new)}",
        reason="shrink_guard",
        hint="change only what is to change with edit_file; if the rewrite is meant, make the same call again",
        data={"kept": round(kept, 3)},
    )


def _name_lost(old: str, new: str) -> str:
    lost = find_lost_lines(old, new)
    if not lost:
        return f"{count(len(old), 'character')}"
    first = old.split("\n")[lost[0] - 1].strip()
    return f"{count(len(lost), 'line')}, the first of them line {lost[0]}: {first[:80]!r}"


def _find_broken(spot: Spot, old: str, new: str) -> ToolFailed | None:
    if not is_markup(spot.name):
        return None
    gone = find_gone_ids(old, new)
    broken = find_broken(gone, _read_scripts(spot)) if gone else {}
    if not broken:
        return None
    log.warning("[REF-GUARD] a rewrite was questioned", extra={"tag": "REF-GUARD", "path": spot.shown, "ids": broken})
    told = "; ".join(f"{name} looks up {', '.join(f'#{i}' for i in ids)}" for name, ids in broken.items())
    return ToolFailed(
        f"{spot.shown}: the new markup has no element any more for what a script beside it needs: {told}",
        reason="reference_guard",
        hint="keep the ids, or change the page with edit_file; if it is meant, make the same call again",
        data={"missing": broken},
    )


def _read(spot: Spot) -> str:
    with os.fdopen(spot.open_file(), "rb") as stream:
        return _decode(stream.read(_LARGEST_BYTES + 1), spot.shown)


def _decode(raw: bytes, shown: str) -> str:
    if len(raw) > _LARGEST_BYTES:
        raise ToolFailed(f"{shown} is larger than {_LARGEST_BYTES} bytes", reason="too_large")
    return raw.decode("utf-8", "replace")


def _read_scripts(spot: Spot) -> dict[str, str]:
    """Read the scripts in the page's own folder."""
    folder = folder_of("/".join(spot.real))
    with spot.root.locate(folder) as here:
        descriptor = here.open_folder()
    try:
        with os.scandir(descriptor) as scan:
            names = sorted(entry.name for entry in scan if entry.name.endswith(_SCRIPTS) and entry.is_file())
    finally:
        os.close(descriptor)
    return {name: _read_script(spot, f"{folder}/{name}") for name in names[:_MOST_SCRIPTS]}


def _read_script(spot: Spot, path: str) -> str:
    with spot.root.locate(path) as script:
        return _read(script)


def _fail_closed(spot: Spot, why: str) -> ToolFailed:
    log.warning("[SHRINK-GUARD] a check failed", extra={"tag": "SHRINK-GUARD", "path": spot.shown, "why": why})
    return ToolFailed(
        f"{spot.shown}: was not written, because it could not be checked what would be lost: {why}",
        reason="guard_failed",
        hint="change it with edit_file",
    )
