"""How much of a text survives in another, by characters. Pure, and bounded in time whatever the texts."""

import re
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_COMPARED = 4_000_000
"""Pairs of words that are compared in order; above, words are only counted."""


def measure_retention(old: str, new: str) -> float:
    """Give the share of `old` that survives in `new`, 0 to 1.

    What both begin and end with survives, then lines that stand in both wherever they went, then words in order
    within the rest.
    """
    if not old:
        return 1.0
    head = _count_common(old, new)
    tail = _count_common(old[head:][::-1], new[head:][::-1])
    survived = head + tail
    middle, other = old[head : len(old) - tail], new[head : len(new) - tail]
    if middle and other:
        survived += _count_lines(middle, other)
    return survived / len(old)


def find_lost_lines(old: str, new: str) -> list[int]:
    """Give the numbers, from 1, of the lines of `old` that stand nowhere in `new`; blank ones do not count."""
    there = Counter(line.strip() for line in new.split("\n"))
    lost = []
    for number, line in enumerate(old.split("\n"), 1):
        bare = line.strip()
        if not bare:
            continue
        if there[bare] > 0:
            there[bare] -= 1
        else:
            lost.append(number)
    return lost


def _count_common(one: str, other: str) -> int:
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _count_lines(old: str, new: str) -> int:
    olds, news = old.split("\n"), new.split("\n")
    shared = Counter(olds) & Counter(news)
    survived = sum((len(line) + 1) * times for line, times in shared.items())
    return min(len(old), survived + _count_words(_without(olds, shared), _without(news, shared)))


def _without(lines: Iterable[str], shared: "Counter[str]") -> list[str]:
    left = Counter(shared)
    kept = []
    for line in lines:
        if left[line] > 0:
            left[line] -= 1
        else:
            kept.append(line)
    return _WORD.findall("\n".join(kept))


def _count_words(olds: list[str], news: list[str]) -> int:
    if len(olds) * len(news) <= _COMPARED:
        blocks = SequenceMatcher(None, olds, news, autojunk=False).get_matching_blocks()
        return sum(len(word) for block in blocks for word in olds[block.a : block.a + block.size])
    shared = Counter(olds) & Counter(news)
    return sum(len(word) * times for word, times in shared.items() if not word.isspace())
