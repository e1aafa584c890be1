"""What a file held before a session first wrote it: kept by content, outside every repository.

```
snapshots/objects/ab/cdef…      one content, named by its SHA-256
snapshots/taken/SESSION/FILE    one record: which file, and its object, or that it was not there, or was not kept
```
Bounded by age and by size; the oldest go first.
"""

import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from exeora_ws.files.faults import translated
from exeora_ws.limits import FILE_LOCK_SECONDS, SNAPSHOT_BYTES, SNAPSHOT_DAYS, SNAPSHOT_FILE_BYTES
from exeora_ws.locks import hold_lock
from exeora_ws.storage import make_private_folder, replace_file

_COPY_BYTES = 262_144
_PRUNE_SECONDS = 3_600


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One record. `object` names the content; `absent` says that nothing was there; neither: it was not kept."""

    file: str
    """Absolute real path, bytes outside UTF-8 as surrogates."""
    taken: float
    object: str | None = None
    absent: bool = False
    mode: int = 0o644
    why_not: str | None = None
    """Why the content was not kept: `unreadable` or `too_large`."""


class Snapshots:
    """The store. Any number of processes may share it.

    Args:
        folder: made 0700 when first needed.
        max_days: records older than this go.
        max_bytes: contents kept in all.
        max_file_bytes: a larger file is recorded as not kept.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_days: float = SNAPSHOT_DAYS,
        max_bytes: int = SNAPSHOT_BYTES,
        max_file_bytes: int = SNAPSHOT_FILE_BYTES,
    ) -> None:
        self._folder = folder
        self._max_seconds = max_days * 86_400
        self._max_bytes = max_bytes
        self._max_file_bytes = max_file_bytes

    def keep(self, session: str, file: str, descriptor: int | None, mode: int = 0o644) -> None:
        """Record what a file holds, unless this session has a record of it already.

        Args:
            session: whose first write it is.
            file: absolute real path.
            descriptor: the file, open for reading; None when nothing is there.
            mode: its permission bits.
        """
        if self._record(session, file).exists():
            return
        with translated("the snapshot store"), self._locked():
            if descriptor is None:
                self._write(session, Snapshot(file=file, taken=time.time(), absent=True))
            else:
                name = self._store(descriptor)
                why_not = None if name else "too_large"
                self._write(session, Snapshot(file=file, taken=time.time(), object=name, mode=mode, why_not=why_not))
        with translated("the snapshot store"):
            self._prune_sometimes()

    def keep_unreadable(self, session: str, file: str) -> None:
        """Record that a file was there and could not be read, so that no later content passes for the first."""
        if not self._record(session, file).exists():
            with translated("the snapshot store"), self._locked():
                self._write(session, Snapshot(file=file, taken=time.time(), why_not="unreadable"))

    def find(self, file: str, session: str | None = None) -> Snapshot | None:
        """Give the session's record of a file; without a session, the newest of any session."""
        if session is not None:
            return self._load(self._record(session, file))
        name = _digest(file)
        records = [self._load(folder / name) for folder in _list(self._folder / "taken")]
        return max((record for record in records if record), key=lambda record: record.taken, default=None)

    def load_content(self, snapshot: Snapshot) -> bytes | None:
        """Give the content kept; None when it was not, or has been pruned."""
        if snapshot.object is None:
            return None
        with suppress(FileNotFoundError):
            return self._object(snapshot.object).read_bytes()
        return None

    def prune(self) -> None:
        """Let go of records past their age, then of the oldest until the contents fit, then of contents unused."""
        with self._locked():
            records = sorted(self._records(), key=lambda pair: pair[1].taken)
            horizon = time.time() - self._max_seconds
            kept = [pair for pair in records if pair[1].taken >= horizon]
            sizes = {pair[1].object: self._size(pair[1].object) for pair in kept if pair[1].object}
            while kept and sum(sizes.values()) > self._max_bytes:
                kept.pop(0)
                used = {pair[1].object for pair in kept}
                sizes = {name: size for name, size in sizes.items() if name in used}
            staying = {path for path, _ in kept}
            for path, _ in records:
                if path not in staying:
                    path.unlink(missing_ok=True)
            self._drop_unused({name for name in sizes if name})

    def _drop_unused(self, used: set[str]) -> None:
        for folder in _list(self._folder / "objects"):
            for file in _list(folder):
                if folder.name + file.name not in used:
                    file.unlink(missing_ok=True)
        for folder in _list(self._folder / "taken"):
            with suppress(OSError):
                folder.rmdir()

    def _prune_sometimes(self) -> None:
        marker = self._folder / "pruned"
        try:
            due = time.time() - marker.stat().st_mtime > _PRUNE_SECONDS
        except FileNotFoundError:
            due = True
        if due:
            marker.touch(mode=0o600)
            self.prune()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_private_folder(self._folder)
        with hold_lock(self._folder / "lock", seconds=FILE_LOCK_SECONDS, what="the snapshot store"):
            yield

    def _record(self, session: str, file: str) -> Path:
        return self._folder / "taken" / _digest(session) / _digest(file)

    def _object(self, name: str) -> Path:
        return self._folder / "objects" / name[:2] / name[2:]

    def _size(self, name: str) -> int:
        try:
            return self._object(name).stat().st_size
        except FileNotFoundError:
            return 0

    def _write(self, session: str, snapshot: Snapshot) -> None:
        record = self._record(session, snapshot.file)
        make_private_folder(record.parent)
        raw = msgspec.json.encode(msgspec.structs.replace(snapshot, file=_escape(snapshot.file)))
        replace_file(record, raw, durable=False)

    @staticmethod
    def _load(record: Path) -> Snapshot | None:
        try:
            snapshot = msgspec.json.decode(record.read_bytes(), type=Snapshot)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        return msgspec.structs.replace(snapshot, file=_unescape(snapshot.file))

    def _records(self) -> Iterator[tuple[Path, Snapshot]]:
        for folder in _list(self._folder / "taken"):
            for path in _list(folder):
                snapshot = self._load(path)
                if snapshot is not None:
                    yield path, snapshot

    def _store(self, descriptor: int) -> str | None:
        """Copy a file into the store; gives its name there, None when it is too large to keep."""
        if os.fstat(descriptor).st_size > self._max_file_bytes:
            return None
        objects = make_private_folder(self._folder / "objects")
        draft = objects / f".{secrets.token_hex(8)}"
        digest = hashlib.sha256()
        target = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(target, "wb") as stream:
                position = 0
                while chunk := os.pread(descriptor, _COPY_BYTES, position):
                    digest.update(chunk)
                    stream.write(chunk)
                    position += len(chunk)
                    if position > self._max_file_bytes:  # it grows
                        draft.unlink()
                        return None
            name = digest.hexdigest()
            make_private_folder(self._object(name).parent)
            os.replace(draft, self._object(name))
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return name


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:40]


def _escape(text: str) -> str:
    return os.fsencode(text).decode("latin-1")


def _unescape(text: str) -> str:
    return os.fsdecode(text.encode("latin-1"))


def _list(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return []
