r"""The registry as plain text, for commands that must answer before SQLite, JSON or Git could be loaded.

One line a project (`P`) or workspace (`W`), fields set off by tabs, `\`, tab, newline and carriage return escaped.
A reader that finds no file, or another version, takes the slow way. This module imports nothing but `os`, so that a
hot command may import it.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

HEADER = "exeora-inventory 1"
PROJECT_FIELDS = ("id", "slug", "root", "common_dir", "subdirectory", "bare")
WORKSPACE_FIELDS = ("id", "project_id", "slug", "name", "branch", "worktree", "path", "managed")
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def publish(path: "os.PathLike[str] | str", projects: "Iterable[object]", workspaces: "Iterable[object]") -> None:
    """Write the copy whole, or leave none. Call it while holding the registry's write lock.

    It is not flushed to the disk: after a power cut an older or half file could stand there, so a half one is told by
    its missing last line, and the boot id in the header makes one from before the cut no file at all.
    """
    lines = [HEADER + "\t" + boot_id()]
    lines += ["P\t" + _line(project, PROJECT_FIELDS) for project in projects]
    lines += ["W\t" + _line(workspace, WORKSPACE_FIELDS) for workspace in workspaces]
    lines.append("END\n")
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write("\n".join(lines).encode("utf-8", "surrogateescape"))
        os.replace(temporary, path)
    except OSError:
        withdraw(temporary)
        withdraw(path)


def withdraw(path: "os.PathLike[str] | str") -> None:
    """Take the copy away, so that nobody reads it while the registry changes."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def read(path: str) -> "tuple[list[dict[str, str]], list[dict[str, str]]] | None":
    """Read projects and workspaces as dictionaries of strings; None when there is no usable copy."""
    try:
        with open(path, "rb") as stream:
            text = stream.read().decode("utf-8", "surrogateescape")
    except OSError:
        return None
    lines = text.split("\n")
    if lines[0] != HEADER + "\t" + boot_id() or lines[-2:] != ["END", ""]:
        return None
    projects: list[dict[str, str]] = []
    workspaces: list[dict[str, str]] = []
    for line in lines[1:-2]:
        kind, *fields = line.split("\t")
        values = [_unescape(f) if "\\" in f else f for f in fields]
        if kind == "P":
            projects.append(dict(zip(PROJECT_FIELDS, values, strict=True)))
        else:
            workspaces.append(dict(zip(WORKSPACE_FIELDS, values, strict=True)))
    return projects, workspaces


def is_current(path: str) -> bool:
    """Whether a copy of this boot is there; a reader judges the rest of it."""
    try:
        with open(path, "rb") as stream:
            return stream.readline().decode("utf-8", "replace").rstrip("\n") == HEADER + "\t" + boot_id()
    except OSError:
        return False


def boot_id() -> str:
    """Name this boot of the machine; empty where the kernel does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def _line(value: object, fields: "tuple[str, ...]") -> str:
    return "\t".join(_escape(getattr(value, field)) for field in fields)


def _escape(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else ""
    return "".join(_ESCAPES.get(c, c) for c in str(value))


def _unescape(text: str) -> str:
    pieces = text.split("\\\\")
    for plain, escaped in (("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        pieces = [piece.replace(escaped, plain) for piece in pieces]
    return "\\".join(pieces)
