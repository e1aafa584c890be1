"""Published names: `mcp__server__tool`, in [A-Za-z0-9_-], within a budget of characters (contract, section 9).

A name depends on the names of the configured servers and on the names of its own server's tools, and on nothing else:
not on their order, on which servers happen to run, or on what was published before. Where two would be the same, *all*
of them get the hash of what they stand for, so that none can take another's place.
"""

import hashlib
import json
import re
from base64 import b32encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

Identity = tuple[str, str]
"""The server's name and the tool's, as they call themselves."""

MIN_BUDGET = 24
"""Below this a name would be little more than its hash."""

_PREFIX = "mcp__"
_HASH_CHARACTERS = 10
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_WORD = re.compile(r"[A-Za-z0-9]")

K = TypeVar("K")


def publish_names(tools: Mapping[str, Iterable[str]], *, servers: Iterable[str], budget: int) -> dict[Identity, str]:
    """Give every tool its published name.

    Args:
        tools: the tools' names by server, those left out of the catalog too.
        servers: every configured server's name, running or not.
        budget: longest name, in characters; at least `MIN_BUDGET` is taken.
    """
    room = max(budget, MIN_BUDGET)
    segments = _name_servers({*servers, *tools})
    plain = {
        (server, tool): f"{_PREFIX}{segments[server]}__{sanitize(tool)}"
        for server, names in tools.items()
        for tool in names
    }
    marked = {identity for identity, name in plain.items() if len(name) > room or not _WORD.search(identity[1])}
    taken = set(segments.values())
    marked |= {identity for identity, name in plain.items() if _reads_as_another(segments[identity[0]], name, taken)}
    return _tell_apart(plain, marked, lambda identity: _shorten(plain[identity], identity, room))


def sanitize(name: str) -> str:
    """Put an underscore for every character that a name may not have."""
    return _OTHER.sub("_", name)


def _name_servers(names: Iterable[str]) -> dict[str, str]:
    plain = {name: sanitize(name) for name in names}
    marked = {name for name in plain if not _WORD.search(name)}
    return _tell_apart(plain, marked, lambda name: f"{plain[name]}_{_hash(name)}")


def _reads_as_another(segment: str, name: str, taken: Iterable[str]) -> bool:
    """Whether a name could be one of another server: `a` with tool `b__c`, beside a server `a__b`."""
    return any(len(other) > len(segment) and name.startswith(f"{_PREFIX}{other}__") for other in taken)


def _tell_apart(plain: Mapping[K, str], marked: set[K], shorten: Callable[[K], str]) -> dict[K, str]:
    """Mark whatever shares its name, until no two are the same."""
    marked = set(marked)
    while True:
        names = {key: shorten(key) if key in marked else name for key, name in plain.items()}
        count = Counter(names.values())
        fresh = {key for key, name in names.items() if count[name] > 1} - marked
        if not fresh:
            return names
        marked |= fresh


def _shorten(name: str, identity: Identity, room: int) -> str:
    head = name[len(_PREFIX) : room - _HASH_CHARACTERS - 1].rstrip("_-")
    return f"{_PREFIX}{head}_{_hash(identity)}" if head else f"{_PREFIX}{_hash(identity)}"


def _hash(value: str | Identity) -> str:
    digest = hashlib.sha256(json.dumps(value).encode()).digest()
    return b32encode(digest).decode().lower()[:_HASH_CHARACTERS]
