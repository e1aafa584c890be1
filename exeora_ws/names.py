"""Slugs and ids: how projects and workspaces are named, with no I/O (contract, section 2)."""

import base64
import hashlib
import re
import secrets
import unicodedata
from typing import NewType

from exeora_ws.errors import InvalidArguments
from exeora_ws.limits import SLUG_CHARACTERS

ProjectId = NewType("ProjectId", str)
WorkspaceId = NewType("WorkspaceId", str)
Slug = NewType("Slug", str)

MAIN = Slug("main")

_SLUG = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{SLUG_CHARACTERS - 1}}}\Z")
_HASH_CHARACTERS = 8


def is_text(name: str) -> bool:
    """Whether a name can be written down as UTF-8; one that the kernel or Git gave as other bytes cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def show_bytes(name: str) -> str:
    """Give a name that is not UTF-8 with its odd bytes escaped, for where only text will do; others as they are."""
    return name if is_text(name) else "".join(f"\\x{ord(c) - 0xDC00:02x}" if _is_byte(c) else c for c in name)


def _is_byte(character: str) -> bool:
    """Whether it stands for a byte that is no UTF-8, as `os.fsdecode` has it."""
    return "\udc80" <= character <= "\udcff"


def new_project_id() -> ProjectId:
    """Make a random project id: `prj_` and 20 letters and digits (100 bits)."""
    return ProjectId("prj_" + _random_token())


def new_workspace_id() -> WorkspaceId:
    """Make a random workspace id: `wsp_` and 20 letters and digits (100 bits)."""
    return WorkspaceId("wsp_" + _random_token())


def _random_token() -> str:
    return base64.b32encode(secrets.token_bytes(13)).decode().lower().rstrip("=")[:20]


def parse_slug(text: str) -> Slug:
    """Take an explicit slug as it is.

    Raises:
        InvalidArguments: `invalid_slug` when malformed, `reserved_slug` for `main`.
    """
    if not _SLUG.match(text):
        raise InvalidArguments(
            f"slug: {text[:80]!r} is not a slug: use lower-case letters, digits and hyphens, start with a letter "
            f"or digit, at most {SLUG_CHARACTERS} characters",
            reason="invalid_slug",
        )
    if text == MAIN:
        raise InvalidArguments("slug: 'main' is reserved for the project root", reason="reserved_slug")
    return Slug(text)


def derive_slug(name: str) -> Slug:
    """Derive a slug from a branch or folder name: fold case, strip accents, every other run to one hyphen.

    A name with nothing left (a CJK branch), one that would be `main`, and one that is too long get the stable
    hash of the name. Two names may derive the same slug; `derive_distinct_slug` tells them apart.
    """
    plain = _fold(name)
    if not plain or plain == MAIN or len(plain) > SLUG_CHARACTERS:
        return derive_distinct_slug(name)
    return Slug(plain)


def derive_distinct_slug(name: str, *, identity: str | None = None) -> Slug:
    """Derive the slug with a short stable hash, for when the plain one belongs to another.

    Args:
        name: what the slug is to resemble.
        identity: what tells it apart, hashed by its exact bytes; the name itself when None.
    """
    digest = hashlib.sha256((identity or name).encode("utf-8", "surrogateescape")).hexdigest()[:_HASH_CHARACTERS]
    head = _fold(name)[: SLUG_CHARACTERS - _HASH_CHARACTERS - 1].rstrip("-")
    return Slug(f"{head}-{digest}" if head else digest)


def _fold(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    bare = "".join(c for c in decomposed if not unicodedata.combining(c))
    return re.sub(r"[^a-z0-9]+", "-", bare.lower()).strip("-")
