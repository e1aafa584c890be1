"""One program that a command line would start, taken apart."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from exeora_ws.policy.shell_words import Word


@dataclass(frozen=True, slots=True)
class Invocation:
    """One program that would be started, and what it would start in turn.

    Args:
        words: its words; the first is the base name. None at all: it only sets variables.
        variables: the variables set for it.
        inner: the invocations it wraps.
        reach: how many of its words stand before the inner command; a rule that says more than these has said which
            inner command it means.
        transparent: whether its own name need not be on an `allow` list.
        opaque: why what it starts in turn cannot be told, if so.
    """

    words: tuple[Word, ...]
    variables: tuple[str, ...] = ()
    inner: tuple["Invocation", ...] = ()
    reach: int = 0
    transparent: bool = False
    opaque: str | None = None

    @property
    def program(self) -> str:
        """Its base name; empty when it has none that is known."""
        return (self.words[0] if self.words else None) or ""

    def walk(self) -> Iterator["Invocation"]:
        """Give this one and everything inside it."""
        yield self
        for each in self.inner:
            yield from each.walk()


class Nested(Protocol):
    """Takes apart what stands inside a command; knows how deep it is."""

    def open(self, words: tuple[Word, ...]) -> Invocation:
        """Take apart a command given as words. Raises `Unclear`."""
        ...

    def read(self, text: Word, whose: str) -> tuple[Invocation, ...]:
        """Take apart a command given as shell text. Raises `Unclear`, also when only the shell knows the text."""
        ...


Opener = Callable[[Invocation, Nested], Invocation]
"""Adds to an invocation what one particular program would start. Raises `Unclear`."""


def walk_all(invocations: Iterable[Invocation]) -> Iterator[Invocation]:
    """Give every invocation, outer ones first."""
    for invocation in invocations:
        yield from invocation.walk()
