"""What Git takes as a branch's name, as a pure rule (git-check-ref-format(1), with what `git branch` adds)."""

_FORBIDDEN = frozenset(" ~^:?*[\\\x7f") | {chr(code) for code in range(32)}
_HEX = frozenset("0123456789abcdef")
BRANCHES = "refs/heads/"


def is_branch_name(name: str) -> bool:
    """Whether a new branch may have this short name."""
    if not name or name in ("@", "HEAD") or name.startswith("-") or name.endswith("."):
        return False
    if ".." in name or "@{" in name or _FORBIDDEN & set(name):
        return False
    return all(part and not part.startswith(".") and not part.endswith(".lock") for part in name.split("/"))


def is_commit_id(text: str) -> bool:
    """Whether this is a full object id, SHA-1 or SHA-256, in lower case."""
    return len(text) in (40, 64) and set(text) <= _HEX


def short_branch(ref: str | None) -> str | None:
    """Give the branch's short name of a full reference; None when it is no branch."""
    return ref.removeprefix(BRANCHES) if ref is not None and ref.startswith(BRANCHES) else None


def find_conflict(name: str, branches: list[str]) -> str | None:
    """Find an existing branch that cannot stand beside `name`: `feat` is a file where `feat/x` needs a folder."""
    parts = name.split("/")
    above = {"/".join(parts[:count]) for count in range(1, len(parts))}
    return next((b for b in branches if b in above or b.startswith(name + "/")), None)
