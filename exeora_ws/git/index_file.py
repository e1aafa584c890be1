"""Git's index file as bytes: where each entry stands in it, so that stat data can be put in place.

Putting some in changes no size: every extension that is let through here stays true, and only the trailing hash has to
be made again. Imports nothing before that: the program that copies files (`copier.py`) waits for it.
"""

from __future__ import annotations

STAT_BYTES = 40
"""What an entry begins with: times of inode and content, device, inode, mode, user, group, size; 32 bits each."""
MODE_AT = 24
MODE_BYTES = 4

_HEADER_BYTES = 12
_VERSIONS = (2, 3, 4)
PLAIN = 2
_PREFIXED = 4
_NAME_MASK = 0x0FFF
_SPECIAL_MASK = 0xF000
"""Assume-unchanged, extended (skip-worktree, intent-to-add), and the stages of a conflict: none in a fresh index."""
TREES = b"TREE"
OFFSETS = (b"EOIE", b"IEOT")
RESOLVED = b"REUC"
_UNTRACKED = b"UNTR"
_SHA256_DIGITS = 64


class Unsuited(Exception):
    """An index that is not a plain one with every file of a commit in it."""


def hash_name(object_id: str) -> str:
    """Name the hash function by the length of what it gives in hexadecimal."""
    return "sha256" if len(object_id) == _SHA256_DIGITS else "sha1"


class Index:
    """An index as it was read.

    Args:
        data: the whole file.
        hash_bytes: length of an object id.

    Raises:
        Unsuited: another version, or an entry that is not plain.
    """

    __slots__ = ("data", "end", "entries", "hash_bytes", "version")

    def __init__(self, data: bytes, hash_bytes: int) -> None:
        self.data = data
        self.hash_bytes = hash_bytes
        self.version = int.from_bytes(data[4:8], "big")
        if data[:4] != b"DIRC" or self.version not in _VERSIONS:
            raise Unsuited(f"version {self.version}")
        count = int.from_bytes(data[8:_HEADER_BYTES], "big")
        walk = _walk_prefixed if self.version == _PREFIXED else _walk_padded
        self.entries, self.end = walk(data, count, STAT_BYTES + hash_bytes)

    def find_extensions(self) -> dict[bytes, bytes]:
        """Find what follows the entries, by its four letters."""
        found = {}
        at = self.end
        while at < len(self.data) - self.hash_bytes:
            size = int.from_bytes(self.data[at + 4 : at + 8], "big")
            found[self.data[at : at + 4]] = self.data[at + 8 : at + 8 + size]
            at += 8 + size
        return found

    def require_fresh(self) -> None:
        """See that it is one that git has just made of a tree: nothing in it speaks of an entry's stat data.

        A split or a sparse index does, and a file system monitor's.

        Raises:
            Unsuited: it is not.
        """
        if self.find_extensions().keys() - {TREES, _UNTRACKED, *OFFSETS}:
            raise Unsuited("an extension that may speak of stat data")

    def is_of(self, tree: bytes) -> bool:
        """Whether all entries of it together are this tree, and it says nothing that is not true of another checkout.

        Git itself commits that tree then, and looks no further.
        """
        extensions = self.find_extensions()
        if self.version != PLAIN or extensions.keys() - {TREES, *OFFSETS}:
            return False
        path, _, rest = extensions.get(TREES, b"").partition(b"\0")
        counts, _, rest = rest.partition(b"\n")
        return not path and counts.split(b" ")[0] == b"%d" % len(self.entries) and rest[: self.hash_bytes] == tree


def _walk_padded(data: bytes, count: int, flags_at: int) -> tuple[list[tuple[int, bytes]], int]:
    entries = []
    offset = _HEADER_BYTES
    for _ in range(count):
        at = offset + flags_at
        flags = data[at] << 8 | data[at + 1]
        if flags & _SPECIAL_MASK:
            raise Unsuited("an entry that is not plain")
        start = at + 2
        length = flags & _NAME_MASK
        end = start + length if length < _NAME_MASK else data.index(b"\0", start)
        entries.append((offset, data[start:end]))
        offset += (end - offset + 8) & ~7
    return entries, offset


def _walk_prefixed(data: bytes, count: int, flags_at: int) -> tuple[list[tuple[int, bytes]], int]:
    """Version 4: each path says how much of the one before is cut off, and what then follows."""
    entries = []
    offset = _HEADER_BYTES
    path = b""
    for _ in range(count):
        at = offset + flags_at
        if data[at] << 8 & _SPECIAL_MASK:
            raise Unsuited("an entry that is not plain")
        cut, start = _parse_offset(data, at + 2)
        end = data.index(b"\0", start)
        path = path[: len(path) - cut] + data[start:end]
        entries.append((offset, path))
        offset = end + 1
    return entries, offset


def _parse_offset(data: bytes, at: int) -> tuple[int, int]:
    """Parse a number as packs write offsets; gives it and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | data[at] & 0x7F
    return value, at + 1


def make_trailer(data: memoryview, algorithm: str, before: bytes) -> bytes:
    """Give the hash that ends an index, over what is before it; zeros where git left it out (`index.skipHash`)."""
    import hashlib  # noqa: PLC0415  10 ms, which pass while git is at work

    return hashlib.new(algorithm, data, usedforsecurity=False).digest() if any(before) else before
