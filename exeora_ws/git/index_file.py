"""Git's index file as bytes: where each entry stands in it, so that stat data can be put in place.

What is read here was written by git a moment ago, without stat data (`git read-tree`). Putting some in changes no
size: every extension stays true, and only the trailing hash has to be made again. Imports nothing but `hashlib`: the
program that copies files (`copier.py`) waits for it.
"""

from __future__ import annotations

import hashlib

STAT_BYTES = 40
"""What an entry begins with: times of inode and content, device, inode, mode, user, group, size; 32 bits each."""
MODE = slice(24, 28)

_HEADER_BYTES = 12
_VERSIONS = (2, 3, 4)
_PREFIXED = 4
_NAME_MASK = 0x0FFF
_SPECIAL_MASK = 0xF000
"""Assume-unchanged, extended (skip-worktree, intent-to-add), and the stages of a conflict: none in a fresh index."""
_HARMLESS = (b"TREE", b"UNTR", b"EOIE", b"IEOT")
"""Trees, untracked folders, and offsets: none says anything of an entry's stat data. A split or a sparse index, and a
file system monitor's, do."""


class Unsuited(Exception):
    """An index that is not a plain one with every file of a commit in it."""


def hash_name(object_id: str) -> str:
    """Name the hash function by the length of what it gives in hexadecimal."""
    return "sha256" if len(object_id) == hashlib.sha256().digest_size * 2 else "sha1"


def parse_entries(data: bytes, hash_bytes: int) -> list[tuple[int, bytes]]:
    """Give the offset and the path of each entry, in order. An entry is stat data, object id, flags, path.

    Raises:
        Unsuited: another version, an entry that is not plain, an extension that may speak of stat data.
    """
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in _VERSIONS:
        raise Unsuited(f"version {version}")
    count = int.from_bytes(data[8:_HEADER_BYTES], "big")
    walk = _walk_prefixed if version == _PREFIXED else _walk_padded
    entries, end = walk(data, count, STAT_BYTES + hash_bytes)
    _require_harmless(data, end, len(data) - hash_bytes)
    return entries


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


def _require_harmless(data: bytes, at: int, end: int) -> None:
    while at < end:
        if data[at : at + 4] not in _HARMLESS:
            raise Unsuited(f"extension {data[at : at + 4]!r}")
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")


def make_trailer(data: memoryview, algorithm: str, before: bytes) -> bytes:
    """Give the hash that ends an index, over what is before it; zeros where git left it out (`index.skipHash`)."""
    return hashlib.new(algorithm, data, usedforsecurity=False).digest() if any(before) else before
