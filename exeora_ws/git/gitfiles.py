"""The few files Git keeps a repository's shape in, read with nothing but `os`: this is on the way of the hot commands.

Nothing here walks up, obeys `GIT_*` or raises for what is merely absent. Paths are text, undecodable bytes kept as
surrogates.
"""

import os

_LONGEST = 65_536


def read_text(path: str) -> "str | None":
    """Read a small regular file; None when it is not there, cannot be read or is no regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.fsdecode(os.read(descriptor, _LONGEST))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def read_path(path: str) -> "str | None":
    """Read a file that holds one path, less its line ending; None when absent or empty."""
    text = read_text(path)
    return (text.rstrip("\r\n") or None) if text is not None else None


def read_git_link(dot_git: str) -> "str | None":
    """Give the Git folder that a `.git` file names, normal but not resolved; None when it is no such file."""
    text = read_path(dot_git)
    if text is None or not text.startswith("gitdir: "):
        return None
    return os.path.normpath(os.path.join(os.path.dirname(dot_git), text[len("gitdir: ") :]))


def read_common_dir(git_dir: str) -> str:
    """Give the shared Git folder of a worktree's own one: what `commondir` names, else the same."""
    text = read_path(git_dir + "/commondir")
    return git_dir if text is None else os.path.normpath(os.path.join(git_dir, text))


def read_back_link(admin: str) -> "str | None":
    """Give the `.git` file that an admin folder says is its worktree's; None when it says nothing."""
    text = read_path(admin + "/gitdir")
    return None if text is None else os.path.normpath(os.path.join(admin, text))


def is_git_dir(folder: str) -> bool:
    """Whether Git would take this folder as a Git folder: `HEAD`, and `objects` and `refs` in its shared folder."""
    if not os.path.lexists(folder + "/HEAD"):
        return False
    common = read_common_dir(folder)
    return os.path.isdir(common + "/objects") and os.path.isdir(common + "/refs")


class Core:
    """What a repository's own configuration says about its shape; None where it says nothing."""

    __slots__ = ("bare", "ref_storage", "worktree")

    def __init__(self, *, bare: bool | None, worktree: str | None, ref_storage: str) -> None:
        self.bare = bare
        self.worktree = worktree
        self.ref_storage = ref_storage


def read_core(common_dir: str) -> "Core":
    """Read `core.bare`, `core.worktree` and `extensions.refStorage` from the repository's own files."""
    values = parse_config(read_text(common_dir + "/config") or "")
    if _is_true(values.get("extensions.worktreeconfig")):
        values.update(parse_config(read_text(common_dir + "/config.worktree") or ""))
    bare = values.get("core.bare")
    return Core(
        bare=None if bare is None else _is_true(bare),
        worktree=values.get("core.worktree") or None,
        ref_storage=values.get("extensions.refstorage", "files"),
    )


def _is_true(value: str | None) -> bool:
    return value is not None and value.lower() not in ("", "false", "no", "off", "0")


def parse_config(text: str) -> dict[str, str]:
    """Parse Git configuration into `section.key` (lower case, sections with a subsection left out); the last wins.

    A key without a value is `true`. Included files are not followed: Git's own shape keys are never in one.
    """
    values: dict[str, str] = {}
    section = ""
    for line in text.replace("\\\r\n", "").replace("\\\n", "").splitlines():
        rest = line.strip()
        if rest.startswith("["):
            head, _, rest = rest[1:].partition("]")
            section = "" if '"' in head else head.strip().lower()
            rest = rest.strip()
        if section and rest and rest[0] not in "#;":
            name, equals, value = rest.partition("=")
            values[f"{section}.{name.strip().lower()}"] = _parse_value(value) if equals else "true"
    return values


def _parse_value(text: str) -> str:
    found: list[str] = []
    quoted = escaped = False
    for character in text.strip():
        if escaped:
            found.append({"n": "\n", "t": "\t", "b": "\b"}.get(character, character))
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            return "".join(found).rstrip()
        else:
            found.append(character)
    return "".join(found)


def list_branches(common_dir: str, *, remotes: bool) -> list[str] | None:
    """List local branches, and with `remotes` after them those of remotes as `REMOTE/BRANCH`, each sorted.

    None where references are in no files. As good as completion needs it: whether each is whole is not looked at.
    """
    if read_core(common_dir).ref_storage != "files":
        return None
    packed = _read_packed(common_dir)
    kinds = ("refs/heads/", "refs/remotes/") if remotes else ("refs/heads/",)
    return [name for kind in kinds for name in sorted(_list_refs(common_dir, packed, kind))]


def _read_packed(common_dir: str) -> list[str]:
    try:
        with open(common_dir + "/packed-refs", "rb") as stream:
            lines = os.fsdecode(stream.read()).split("\n")
    except OSError:
        return []
    return [line.partition(" ")[2] for line in lines if line and line[0] not in "#^"]


def _list_refs(common_dir: str, packed: list[str], kind: str) -> set[str]:
    found = {name[len(kind) :] for name in packed if name.startswith(kind)}
    top = common_dir + "/" + kind
    for folder, _, files in os.walk(top):
        found |= {os.path.join(folder, name)[len(top) :] for name in files if not name.endswith(".lock")}
    return {name for name in found if not (kind == "refs/remotes/" and name.endswith("/HEAD"))}
