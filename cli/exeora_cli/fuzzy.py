"""Which rows fit what was typed, the best first: one rule for the picker and for the numbered list."""

from collections.abc import Sequence

Row = tuple[str, ...]
_WORD, _INSIDE, _SCATTERED = range(3)


def rank(rows: Sequence[Row], typed: str, *, cells: int = 2) -> list[tuple[int, Row]]:
    """Give the rows in whose first `cells` every typed word is found, the best first, each with how it was found.

    0 is at the start of a word, 1 inside of one, 2 with its letters in order but scattered. Letter case is nothing.
    """
    words = typed.casefold().split()
    found = [(_judge([cell.casefold() for cell in row[:cells]], words), row) for row in rows]
    fitting = [(score, row) for score, row in found if score is not None]
    return [(score[0], row) for score, row in sorted(fitting, key=lambda pair: pair[0])]


def narrow(rows: Sequence[Row], typed: str) -> list[Row]:
    """Give the rows that hold what was typed as it is, if any do; else those that fit at all."""
    ranked = rank(rows, typed)
    return [row for how, row in ranked if how < _SCATTERED] or [row for _, row in ranked]


def _judge(cells: Sequence[str], words: Sequence[str]) -> tuple[int, int] | None:
    """Give how badly the worst word fits, and how many letters are skipped in all; None where one does not fit."""
    worst, skipped = _WORD, 0
    for word in words:
        fits = [fit for cell in cells if (fit := _fit(word, cell)) is not None]
        if not fits:
            return None
        how, gap = min(fits)
        worst, skipped = max(worst, how), skipped + gap
    return worst, skipped


def _fit(word: str, cell: str) -> tuple[int, int] | None:
    at = cell.find(word)
    while at > 0 and cell[at - 1].isalnum() and (later := cell.find(word, at + 1)) > 0:
        at = later
    if at >= 0:
        return (_INSIDE if at > 0 and cell[at - 1].isalnum() else _WORD), 0
    first = end = -1
    for character in word:
        end = cell.find(character, end + 1)
        if end < 0:
            return None
        first = end if first < 0 else first
    return _SCATTERED, end - first + 1 - len(word)
