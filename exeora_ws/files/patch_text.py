r"""The two patch texts that agents write, read into operations: a unified diff, and the `*** Begin Patch` envelope.

Pure. What a patch text can say and an operation cannot (a changed mode, a link, binary data) is refused, not dropped.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from exeora_ws.errors import InvalidArguments
from exeora_ws.files.hunks import LineHunk
from exeora_ws.files.operation import Operation

if TYPE_CHECKING:
    from unidiff.patch import Hunk as DiffHunk
    from unidiff.patch import PatchedFile

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "
_END_OF_FILE = "*** End of File"
# What git puts before the two names of a file, also with diff.mnemonicPrefix: index, worktree, commit, object.
_PAIRS = (("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("1/", "2/"))
_PREFIXES = frozenset(_PAIRS) | {(other, one) for one, other in _PAIRS}
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\"}
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")


def parse_patch_text(text: str) -> tuple[Operation, ...]:
    """Read a patch text of either kind.

    Raises:
        InvalidArguments: `invalid_patch`, naming the line; `unsupported_patch`.
    """
    if text.lstrip().startswith(_BEGIN):
        return tuple(_Envelope(text).read())
    return tuple(_read_diff(text))


def _invalid(why: str) -> InvalidArguments:
    return InvalidArguments(
        f"patch: {why}", reason="invalid_patch", hint="a unified diff, or *** Begin Patch … *** End Patch"
    )


class _Envelope:
    """Reads the envelope line by line."""

    def __init__(self, text: str) -> None:
        self._lines = text.strip("\n").split("\n")
        self._at = next(number for number, line in enumerate(self._lines) if line.strip() == _BEGIN) + 1

    def _peek(self) -> str:
        if self._at >= len(self._lines):
            raise _invalid(f"ends without {_END}")
        return self._lines[self._at]

    def _next(self) -> str:
        line = self._peek()
        self._at += 1
        return line

    def read(self) -> Iterator[Operation]:
        while (line := self._next()).strip() != _END:
            if line.startswith(_ADD):
                yield Operation("create", _path(line, _ADD), content=self._read_added())
            elif line.startswith(_DELETE):
                yield Operation("delete", _path(line, _DELETE))
            elif line.startswith(_UPDATE):
                yield from self._read_update(_path(line, _UPDATE))
            elif line.strip():
                raise _invalid(f"line {self._at} is neither a file's header nor the end")

    def _read_added(self) -> str:
        lines: list[str] = []
        while self._peek().startswith("+"):
            lines.append(self._next()[1:] + "\n")
        return "".join(lines)

    def _read_update(self, path: str) -> Iterator[Operation]:
        to = _path(self._next(), _MOVE) if self._peek().startswith(_MOVE) else None
        hunks: list[LineHunk] = []
        while not self._peek().startswith("*** ") or self._peek().strip() == _END_OF_FILE:
            hunks.append(self._read_hunk())
        if hunks:
            yield Operation("update", path, hunks=tuple(hunks))
        if to is not None:
            yield Operation("move", path, to=to)
        if not hunks and to is None:
            raise _invalid(f"line {self._at}: nothing is said about what to change")

    def _read_hunk(self) -> LineHunk:
        anchors: list[str] = []
        while self._peek().startswith("@@"):
            anchor = self._next()[2:].strip()
            anchors += [anchor] if anchor else []
        old: list[str] = []
        new: list[str] = []
        start = self._at
        while not self._peek().startswith(("@@", "*** ")):
            line = self._next()
            mark, text = line[:1] or " ", line[1:] + "\n"
            if mark not in " +-":
                raise _invalid(f"line {self._at} starts with none of space, + and -")
            if mark != "+":
                old.append(text)
            if mark != "-":
                new.append(text)
        at_end = self._peek().strip() == _END_OF_FILE
        if at_end:
            self._next()
        if self._at == start:
            raise _invalid(f"line {self._at + 1}: a hunk without lines")
        return LineHunk("".join(old), "".join(new), anchors=tuple(anchors), at_end=at_end)


def _path(line: str, head: str) -> str:
    return line.removeprefix(head).strip()


def _read_diff(text: str) -> Iterator[Operation]:
    from unidiff.errors import UnidiffParseError  # noqa: PLC0415 - slow to import, seldom needed
    from unidiff.patch import PatchSet  # noqa: PLC0415 - same

    try:
        files = PatchSet(text if text.endswith("\n") else text + "\n")
    except UnidiffParseError as error:
        raise _invalid(f"not a unified diff: {error}") from None
    if not files:
        raise _invalid("holds no change")
    for file in files:
        yield from _read_file(file)


def _read_file(file: "PatchedFile") -> Iterator[Operation]:
    source, target = _read_names(file)
    _refuse_what_operations_cannot_say(file, target or source or "")
    hunks = tuple(map(_read_hunk, file))
    if source is None and target is not None:
        yield Operation("create", target, content="".join(hunk.new for hunk in hunks))
    elif target is None and source is not None:
        yield Operation("delete", source, content="".join(hunk.old for hunk in hunks))
    elif source is not None and target is not None:
        if hunks:
            yield Operation("update", source, hunks=hunks)
        if source != target:
            _require_rename(file, source, target)
            yield Operation("move", source, to=target)


def _read_names(file: "PatchedFile") -> tuple[str | None, str | None]:
    """Give old and new path; what stands before them is taken off only where git has put it before both."""
    source, target = _unquote_name(file.source_file), _unquote_name(file.target_file)
    heads = (source[:2], target[:2]) if source and target else _read_heads(file, source, target)
    if heads not in _PREFIXES:
        return source, target
    return source and source[2:], target and target[2:]


def _read_heads(file: "PatchedFile", source: str | None, target: str | None) -> tuple[str, str]:
    """Give what stands before the two names where one is /dev/null: git's first line has both, of one length."""
    header = re.search(r"^diff --git (.*)$", "".join(file.patch_info or ()), re.MULTILINE)
    if header is None:
        return source[:2] if source else "a/", target[:2] if target else "b/"
    half = len(header[1]) // 2
    return header[1][:half].lstrip('"')[:2], header[1][half + 1 :].lstrip('"')[:2]


def _require_rename(file: "PatchedFile", source: str, target: str) -> None:
    if not re.search(r"^rename from ", "".join(file.patch_info or ()), re.MULTILINE):
        raise _invalid(f"{source} and {target}: two names, and no line says that the file is renamed")


def _refuse_what_operations_cannot_say(file: "PatchedFile", path: str) -> None:
    info = "".join(file.patch_info or ())
    if file.is_binary_file or "GIT binary patch" in info:
        raise InvalidArguments(f"patch: {path} is binary", reason="unsupported_patch")
    if re.search(r"^copy from ", info, re.MULTILINE):
        raise InvalidArguments(
            f"patch: {path} would be a copy", reason="unsupported_patch", hint="git diff --no-renames says it in full"
        )
    if re.search(r"^(old|new) mode |^new file mode (?!100644)", info, re.MULTILINE):
        raise InvalidArguments(
            f"patch: {path}: its mode would change", reason="unsupported_patch", hint="change modes with a command"
        )


def _unquote_name(raw: str) -> str | None:
    """Give the path out of a header; None for /dev/null."""
    name = raw.strip()
    if name.startswith('"'):
        name = _unquote(name.strip('"'))
    return None if name == "/dev/null" else name


def _unquote(text: str) -> str:
    raw = _ESCAPE.sub(lambda match: chr(int(match[1], 8)) if match[1].isdigit() else _ESCAPES.get(match[1], ""), text)
    try:
        return raw.encode("latin-1").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return raw  # written unescaped, as with core.quotePath off


def _read_hunk(hunk: "DiffHunk") -> LineHunk:
    old: list[str] = []
    new: list[str] = []
    last: tuple[list[str], ...] = ()
    for line in hunk:
        if line.line_type == "\\":
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
            continue
        last = {"-": (old,), "+": (new,)}.get(line.line_type, (old, new))
        for side in last:
            side.append(line.value if line.value.endswith("\n") else line.value + "\n")
    return LineHunk("".join(old), "".join(new), line=hunk.source_start)
