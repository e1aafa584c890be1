"""Slugs of projects in the fleet: one for each, whichever machine it is on; the first to have one keeps it.

A slug is taken by writing it where nothing stands, so that of two gateways that give the same one away at once, one
does. The second project that would be called `app` is `app-MACHINE`. A slug whose project its machine has taken out of
the inventory is free again. The same is what binds a project's id to one machine: another that publishes a project of
that id is not listed, so that no machine can put itself in another's place.
"""

import logging
import threading
from collections.abc import Callable, Iterator

import msgspec

from exeora_ws.errors import ExeoraError, ToolFailed
from exeora_ws.fleet import wire
from exeora_ws.fleet.buckets import Bucket, Entry
from exeora_ws.fleet.documents import name_project_key
from exeora_ws.fleet.mirror import Mirror
from exeora_ws.fleet.records import Known
from exeora_ws.limits import SLUG_CHARACTERS
from exeora_ws.names import ProjectId, Slug, derive_distinct_slug, derive_slug

log = logging.getLogger("exeora")

_AGAIN_SECONDS = 2.0


class _Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose a slug is."""

    machine: str
    project: str


Unnamed = tuple[Known, str]
"""A project without a slug, and what its machine is called."""


class SlugBook:
    """Which slug is whose. Thread-safe.

    Args:
        bucket: where that stands.
        inventory: the projects of all machines.
    """

    def __init__(self, bucket: Bucket, inventory: Bucket) -> None:
        self._bucket = bucket
        self._inventory = inventory
        self._changed: Callable[[], None] = lambda: None
        self.mirror: Mirror[tuple[_Owner, int]] = Mirror(bucket, _read, self._take_change)
        self._by_project: dict[str, tuple[str, Slug]] = {}
        self._list_unnamed: Callable[[], list[Unnamed]] = list
        self._refused: set[ProjectId] = set()
        self._wake = threading.Event()
        self._closed = False

    def open(self, changed: Callable[[], None], list_unnamed: "Callable[[], list[Unnamed]]") -> None:
        """Begin to follow what is given away, and to give slugs to projects that have none.

        Args:
            changed: told after each change; in the line's thread.
            list_unnamed: gives the projects that have no slug; called in a thread of its own after `look`.
        """
        self._changed = changed
        self._list_unnamed = list_unnamed
        self.mirror.open()
        threading.Thread(target=self._work, name="fleet-slugs", daemon=True).start()

    def close(self) -> None:
        """Give no more away."""
        self._closed = True
        self._wake.set()

    def look(self) -> None:
        """See whether there are projects without a slug; gives at once."""
        self._wake.set()

    def find(self, known: Known) -> Slug | None:
        """Give the slug of a machine's project; None as long as it has none."""
        machine, slug = self._by_project.get(known.id, ("", None))
        return slug if machine == known.machine else None

    def _take_change(self, key: str | None) -> None:
        taken = None if key is None else self.mirror.values.get(key)
        if key is not None and taken is not None and taken[0].project not in self._by_project:
            self._by_project[taken[0].project] = (taken[0].machine, Slug(key))
        else:
            self._sort_out()
        self._changed()

    def _sort_out(self) -> None:
        # Of several slugs of one project, which only a mishap can bring, the oldest counts.
        owned = sorted(self.mirror.values.items(), key=lambda item: item[1][1], reverse=True)
        self._by_project = {owner.project: (owner.machine, Slug(slug)) for slug, (owner, _) in owned}

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closed:
                return
            try:
                for known, machine in self._list_unnamed():
                    self._give(known, machine)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next attempt follows
                log.warning("a project has no slug yet: %r", error)
                timer = threading.Timer(_AGAIN_SECONDS, self._wake.set)
                timer.daemon = True
                timer.start()

    def _give(self, known: Known, machine: str) -> None:
        if self.find(known) is not None:
            return
        if not self._is_own(known):
            return
        owner = _Owner(machine=known.machine, project=known.id)
        for slug in list_choices(known, machine):
            if self._take(slug, owner):
                return
        raise ToolFailed("every slug for it is taken", reason="slug_taken")

    def _is_own(self, known: Known) -> bool:
        """Whether the project is no other machine's; the slug of one that is gone is given up."""
        for slug, (owner, revision) in dict(self.mirror.values).items():
            if owner.project == known.id and owner.machine != known.machine:
                if not self._is_free(owner):
                    if known.id not in self._refused:
                        self._refused.add(known.id)
                        log.warning("machine %s publishes a project of machine %s", known.machine, owner.machine)
                    return False
                self._bucket.delete(slug, last=revision)
        return True

    def _take(self, slug: Slug, owner: _Owner) -> bool:
        """Take a slug; False when it is another's."""
        try:
            self._bucket.put(slug, wire.encode(owner), last=0)
        except ToolFailed:
            found = self._bucket.find(slug)
            held = None if found is None else _read(found)
            if found is None or held is None:
                return False
            if held[0] == owner:
                return True
            return self._is_free(held[0]) and self._take_over(slug, owner, found.revision)
        return True

    def _is_free(self, owner: _Owner) -> bool:
        """Whether a machine has taken the project out of the inventory; asked of the bucket, not of a copy of it."""
        return self._inventory.find(name_project_key(owner.machine, owner.project)) is None

    def _take_over(self, slug: Slug, owner: _Owner, revision: int) -> bool:
        try:
            self._bucket.put(slug, wire.encode(owner), last=revision)
        except ToolFailed:
            return False
        return True


def list_slugs(bucket: Bucket) -> dict[str, ProjectId]:
    """Give which project each slug names, as it stands in the bucket."""
    read = ((slug, _read(entry)) for slug, entry in bucket.list().items())
    return {slug: ProjectId(found[0].project) for slug, found in read if found is not None}


def list_choices(known: Known, machine: str) -> Iterator[Slug]:
    """Give the slugs that a project may have, the best first."""
    wanted = derive_slug(known.record.slug)
    yield wanted
    named = f"{wanted}-{derive_slug(machine)}"
    yield Slug(named) if len(named) <= SLUG_CHARACTERS else derive_distinct_slug(named, identity=known.id)
    yield derive_distinct_slug(wanted, identity=known.id)


def _read(entry: Entry) -> tuple[_Owner, int] | None:
    try:
        return wire.decode_as(_Owner, entry.value or b""), entry.revision
    except ExeoraError:
        return None
