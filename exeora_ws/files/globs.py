"""Globs as `.gitignore` writes them, matched in time linear in each name, whatever the pattern.

`*.ts` matches at any depth, `src/**/*.ts` and `/top` from the listed folder, `docs/` only a folder and all in it; a
leading `!` turns the choice round; `{a,b}` means either.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from exeora_ws.errors import InvalidArguments

_MOST_CHARACTERS = 1_000
_MOST_ALTERNATIVES = 100
_ANY_DEPTH = None
Segment = re.Pattern[str] | None
"""What one part of a path must match; None for `**`, any number of parts."""


@dataclass(frozen=True, slots=True)
class _Alternative:
    """One pattern without braces."""

    wide: str
    """The same with only stars for wildcards: matches at least as much, in whatever way a name is encoded."""
    segments: tuple[Segment, ...]
    name_only: bool
    """Whether it holds no slash and so looks at every part of a path alone."""
    folder_only: bool
    literal: bytes
    """The longest text that stands in every path it matches."""

    def matches(self, parts: list[str], *, folder: bool) -> bool:
        """Whether it matches the path, or a folder above it and so everything in there."""
        if self.name_only:
            wanted = self.segments[0]
            *above, last = parts
            return wanted is _ANY_DEPTH or (
                ((folder or not self.folder_only) and wanted.fullmatch(last) is not None)
                or any(wanted.fullmatch(part) for part in above)
            )
        if (folder or not self.folder_only) and _match(self.segments, parts):
            return True
        return len(parts) > 1 and _match((*self.segments, _ANY_DEPTH), parts, below=True)


@dataclass(frozen=True, slots=True)
class Glob:
    """A parsed glob."""

    text: str
    negated: bool
    alternatives: tuple[_Alternative, ...]

    @property
    def everything(self) -> bool:
        """Whether it chooses every file, as `**` does."""
        anything = (one for one in self.alternatives if not any(one.segments) and not one.folder_only)
        return not self.negated and next(anything, None) is not None

    @property
    def needles(self) -> tuple[bytes, ...]:
        """Texts of which one at least stands in every path it chooses; none where nothing can be said."""
        found = {one.literal for one in self.alternatives}
        return () if self.negated or b"" in found else tuple(sorted(found))

    def matches(self, path: str, *, folder: bool = False) -> bool:
        """Whether a path relative to the listed folder is chosen."""
        parts = path.split("/")
        return self.negated != any(one.matches(parts, folder=folder) for one in self.alternatives)

    def to_ignore_file(self, folder: str) -> bytes:
        """Write it as the lines of an ignore file at the root that leave only what is chosen under `folder`.

        As ignore rules of the lowest rank they choose without overruling any `.gitignore`. They let through what such
        a file takes back with a negation of its own, and some more: results are matched once more. Empty when negated.
        """
        if self.negated:
            return b""
        lines = ["*", "!*/"]
        top = f"/{_widen(folder)}/" if folder else "/"
        for one in self.alternatives:
            if not one.folder_only:
                lines.append(f"!{'' if one.name_only else top}{one.wide}")
            lines.append(f"!{'**/' if one.name_only else top}{one.wide}/**")
        return "\n".join(lines).encode() + b"\n"


def parse_glob(text: str) -> Glob:
    """Parse a caller's glob.

    Raises:
        InvalidArguments: `invalid_glob`.
    """
    body = text.removeprefix("!")
    if not body.strip("/ ") or len(text) > _MOST_CHARACTERS or any(char in text for char in "\n\r\0"):
        raise _invalid("is empty, too long or more than one line")
    try:
        body.encode()
        alternatives = tuple(_parse_alternative(one) for one in _expand_braces(body))
    except (re.error, UnicodeEncodeError):
        raise _invalid("has a character class that means nothing") from None
    return Glob(text, text.startswith("!"), alternatives)


def _invalid(why: str) -> InvalidArguments:
    return InvalidArguments(f"glob: {why}", reason="invalid_glob", hint="for example *.ts or src/**/*.ts")


def _parse_alternative(text: str) -> _Alternative:
    text = text.removeprefix("./")
    parts = [part for part in text.split("/") if part]
    if not parts:
        raise _invalid("has an empty alternative")
    return _Alternative(
        wide="/".join(part if part == "**" else _widen_pattern(part) for part in parts),
        segments=tuple(_ANY_DEPTH if part == "**" else _compile(part) for part in parts),
        name_only="/" not in text.rstrip("/"),
        folder_only=text.endswith("/"),
        literal=max((run for part in parts if part != "**" for run in _list_literals(part)), key=len, default=b""),
    )


def _expand_braces(text: str) -> list[str]:
    """Write out `{a,b}`, nested ones too; a brace that is escaped or has no partner stands for itself."""
    done: list[str] = []
    waiting = [text]
    while waiting:
        one = waiting.pop(0)
        group = _find_group(one)
        if group is None:
            done.append(one)
        else:
            start, end, choices = group
            waiting += [one[:start] + choice + one[end:] for choice in choices]
        if len(done) + len(waiting) > _MOST_ALTERNATIVES:
            raise _invalid(f"means more than {_MOST_ALTERNATIVES} patterns")
    return done


def _find_group(text: str) -> tuple[int, int, list[str]] | None:
    """Find the first innermost `{…,…}`: where it starts and ends, and its choices."""
    for match in re.finditer(r"(?<!\\)\{([^{}]*)\}", text):
        if "," in match[1]:
            return match.start(), match.end(), match[1].split(",")
    return None


def _compile(part: str) -> re.Pattern[str]:
    """Translate one part. Each star but the last is settled at its first fit, so nothing is ever tried again."""
    pieces: list[str] = [""]
    for kind, text in _tokens(part):
        if kind == "star":
            pieces.append("")
        else:
            pieces[-1] += re.escape(text) if kind == "literal" else text
    first, *others = pieces
    if not others:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in others[:-1])
    return re.compile(f"{first}{middle}.*{others[-1]}", re.DOTALL)


def _tokens(part: str) -> Iterator[tuple[str, str]]:
    """Give each piece of one part: a `literal` character, or `star`, `any`, `class` with what they are as regex."""
    index = 0
    while index < len(part):
        char = part[index]
        index += 1
        if char == "*":
            yield "star", ""
        elif char == "?":
            yield "any", "."
        elif char == "\\" and index < len(part):
            yield "literal", part[index]
            index += 1
        elif char == "[":
            end = part.find("]", index + 1 + part.startswith(("!", "^"), index))
            if end < 0:
                raise _invalid("has a [ without its ]")
            inner = part[index:end].replace("\\", "\\\\").replace("[", "\\[").replace("&", "\\&").replace("~", "\\~")
            negated = inner.startswith(("!", "^"))
            inner = inner[negated:].replace("]", "\\]").replace("^", "\\^").replace("|", "\\|")
            yield "class", f"[{'^' if negated else ''}{inner}]"
            index = end + 1
        else:
            yield "literal", char


def _list_literals(part: str) -> Iterator[bytes]:
    """Give the runs of plain characters of one part."""
    run = ""
    for kind, text in _tokens(part):
        if kind == "literal":
            run += text
        else:
            yield run.encode()
            run = ""
    yield run.encode()


def _match(segments: tuple[Segment, ...], parts: list[str], *, below: bool = False) -> bool:
    """Match parts to segments, going back only to the last `**`. With `below`, the final `**` takes at least one."""
    if below:
        segments, parts = segments[:-1], parts[:-1]
        return any(_match(segments, parts[:end]) for end in range(len(parts), 0, -1))
    index = part = 0
    star, resume = -1, 0
    while part < len(parts):
        wanted = segments[index] if index < len(segments) else ""
        if wanted is _ANY_DEPTH:
            star, resume = index, part
            index += 1
        elif isinstance(wanted, re.Pattern) and wanted.fullmatch(parts[part]):
            index += 1
            part += 1
        elif star >= 0:
            resume += 1
            index, part = star + 1, resume
        else:
            return False
    return index == len(segments)


def _widen_pattern(part: str) -> str:
    return re.sub(r"\*+", "*", "".join(_widen(text) if kind == "literal" else "*" for kind, text in _tokens(part)))


def _widen(text: str) -> str:
    """Write a literal text for an ignore file: what has a meaning there escaped, what cannot stand there a star."""
    return "".join(
        char if char.isalnum() or char in "/._-" else f"\\{char}" if " " < char <= "~" else "*" for char in text
    )
