r"""The registry as plain text, for commands that must answer before SQLite, JSON or Git could be loaded.

One line a project (`P`) or workspace (`W`), fields set off by tabs, `\`, tab, newline and carriage return escaped.
A reader that finds no file, or another version, takes the slow way. This module imports nothing but `os`, so that a
hot command may import it.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEADER = "exeora-inventory 1"
PROJECT_FIELDS = ("id", "slug", "root", "common_dir", "subdirectory", "bare")
WORKSPACE_FIELDS = ("id", "project_id", "slug", "name", "branch", "worktree", "path", "managed")
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def publish(
    path: "os.PathLike[str] | str", projects: "Iterable[Iterable[object]]", workspaces: "Iterable[Iterable[object]]"
) -> None:
    """Write the copy whole, or leave none. Call it while holding the registry's write lock.

    Both come as rows of the registry, with their fields in order.

    It is not flushed to the disk: after a power cut an older or half file could stand there, so a half one is told by
    its missing last line, and the boot id in the header makes one from before the cut no file at all.
    """
    lines = [HEADER + "\t" + boot_id()]
    lines += ["P\t" + _line(project) for project in projects]
    lines += ["W\t" + _line(workspace) for workspace in workspaces]
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


class Copy:
    """What a copy says, each line parsed when it is asked for: most of a long one concerns no one question."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def list_projects(self) -> "list[dict[str, str]]":
        """Give every project, by slug."""
        end = self._text.find("\nW\t")
        lines = self._text[: None if end < 0 else end].split("\n")
        return [_parse(line, PROJECT_FIELDS) for line in lines if line.startswith("P\t")]

    def find_project(self, selector: str) -> "dict[str, str] | None":
        """Give the project with this id or slug."""
        found = (_parse(line, PROJECT_FIELDS) for line in self._find("P\t", selector))
        return next((project for project in found if selector in (project["id"], project["slug"])), None)

    def list_workspaces(self, project_id: str) -> "list[dict[str, str]]":
        """Give a project's workspaces, main first, then by slug."""
        found = [_parse(line, WORKSPACE_FIELDS) for line in self._find("W\t", project_id)]
        return [workspace for workspace in found if workspace["project_id"] == project_id]

    def find_workspace(self, project_id: str, selector: str) -> "dict[str, str] | None":
        """Give the workspace of a project with this id or slug."""
        for line in self._find("W\t", selector):
            workspace = _parse(line, WORKSPACE_FIELDS)
            if workspace["project_id"] == project_id and selector in (workspace["id"], workspace["slug"]):
                return workspace
        return None

    def list_workspaces_at(self, folders: "Iterable[str]") -> "list[dict[str, str]]":
        """Give the workspaces whose worktree or path is one of these folders, each once."""
        lines = {line: None for folder in folders for line in self._find("W\t", folder)}
        return [_parse(line, WORKSPACE_FIELDS) for line in lines]

    def _find(self, kind: str, value: str) -> "Iterator[str]":
        """Give the lines of a kind that have this value in a field that is neither the first nor the last."""
        needle = "\t" + _escape(value) + "\t"
        at = self._text.find(needle)
        while at >= 0:
            end = self._text.find("\n", at + 1)
            line = self._text[self._text.rfind("\n", 0, at) + 1 : end]
            if line.startswith(kind):
                yield line
            at = self._text.find(needle, end)


def read(path: str) -> "Copy | None":
    """Read the copy; None when there is no usable one."""
    try:
        with open(path, "rb", buffering=0) as stream:
            text = stream.read().decode("utf-8", "surrogateescape")
    except OSError:
        return None
    whole = text.startswith(HEADER + "\t" + boot_id() + "\n") and text.endswith("\nEND\n")
    return Copy(text) if whole else None


def _parse(line: str, fields: "tuple[str, ...]") -> "dict[str, str]":
    values = line.split("\t")[1:]
    if "\\" in line:
        values = [_unescape(value) for value in values]
    return dict(zip(fields, values, strict=True))


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
        with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as stream:
            return stream.read().decode("latin-1").strip()  # for ASCII Python would have to load a codec
    except OSError:
        return ""


def _line(row: "Iterable[object]") -> str:
    values = ["" if value is None or value == 0 else str(value) for value in row]
    line = "\t".join(values)
    plain = "\\" not in line and "\n" not in line and "\r" not in line and line.count("\t") < len(values)
    return line if plain else "\t".join(map(_escape, values))


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(c, c) for c in text)


def _unescape(text: str) -> str:
    pieces = text.split("\\\\")
    for plain, escaped in (("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        pieces = [piece.replace(escaped, plain) for piece in pieces]
    return "\\".join(pieces)
