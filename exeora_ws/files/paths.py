"""Paths as callers write them: parsed and shown, with no I/O (contract, section 5)."""

import os
import re
import unicodedata
from dataclasses import dataclass

from exeora_ws.errors import InvalidArguments, PathEscape

_NAME_BYTES = 255
_PATH_BYTES = 4_096
# What HFS+ leaves out when it compares names, so that ".g\u200cit" is ".git" there.
_IGNORED_ON_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_SHOWN_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")


@dataclass(frozen=True, slots=True)
class RelativePath:
    """A path below some root: its parts in order, `..` still among them but never leading out as written."""

    parts: tuple[str, ...]
    names_folder: bool
    """Whether it ended in a slash, so that only a folder will do."""

    @property
    def shown(self) -> str:
        """How messages and results name it."""
        return join_shown(".", "/".join(self.parts))


def parse_path(text: str) -> RelativePath:
    """Read a path as given by a caller.

    Raises:
        InvalidArguments: `empty_path`, `invalid_path` (a NUL or half a character in it), `name_too_long`.
        PathEscape: `absolute_path`, or `outside_root` when it climbs out as written.
    """
    if not text:
        raise InvalidArguments("path: is empty", reason="empty_path", hint="`.` is the project root")
    if text.startswith("/"):
        raise PathEscape(
            "absolute paths are refused", reason="absolute_path", hint="give the path relative to the project root"
        )
    if text == "~" or text.startswith("~/"):
        raise PathEscape(
            "below the home folder only ~/.agents/AGENTS.md and ~/.agents/skills/ can be read", reason="outside_root"
        )
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    _check_bytes(text, parts)
    _check_depth(parts)
    return RelativePath(parts, names_folder=text.endswith(("/", "/.")))


def _check_bytes(text: str, parts: tuple[str, ...]) -> None:
    if "\0" in text:
        raise InvalidArguments("path: holds a NUL character", reason="invalid_path")
    try:
        sizes = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError:
        raise InvalidArguments("path: holds half a surrogate pair", reason="invalid_path") from None
    if max(sizes, default=0) > _NAME_BYTES or sum(sizes) + len(sizes) > _PATH_BYTES:
        raise InvalidArguments(
            f"path: a name may have {_NAME_BYTES} bytes, a path {_PATH_BYTES}", reason="name_too_long"
        )


def _check_depth(parts: tuple[str, ...]) -> None:
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            raise PathEscape("the path leads out of the project root", reason="outside_root")


def show(name: str) -> str:
    r"""Give a name that JSON can carry: bytes that are not UTF-8 stand as `\xNN`."""
    if name.isascii():
        return name
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name).decode("utf-8", "backslashreplace")
    return name


def join_shown(folder: str, path: str) -> str:
    """Name a path below a shown folder so that it can be given back: a project's own `~` folder as `./~`."""
    if not path:
        return folder
    if folder != ".":
        return f"{folder}/{show(path)}"
    return show(f"./{path}" if path == "~" or path.startswith("~/") else path)


def split_path(path: str) -> tuple[str, ...]:
    """Give the parts of a real path below a root; none for an empty one."""
    return tuple(path.split("/")) if path else ()


def find_bytes_shown(text: str) -> str | None:
    r"""Give the name that `show` would show as `text` because of bytes outside UTF-8; None when it holds no `\xNN`."""
    if not _SHOWN_BYTE.search(text):
        return None
    return _SHOWN_BYTE.sub(lambda match: chr(0xDC00 + int(match[1], 16)), text)


def is_git_name(name: str) -> bool:
    """Whether git, on any file system it guards against, takes this name for its own folder."""
    return means_one_of(name, (".git", "git~1"))


def means_one_of(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether some file system takes this name for one of those (lower case).

    Covers case, trailing dots and spaces, streams (`.git:x`) and backslashes of NTFS, and what HFS+ ignores; short
    names (`git~1`) are for the caller to name.
    """
    return any(_reduce(piece) in wanted for piece in name.split("\\"))


def _reduce(name: str) -> str:
    bare = _IGNORED_ON_HFS.sub("", unicodedata.normalize("NFC", name)).casefold()
    return bare.split(":")[0].rstrip(". ")
