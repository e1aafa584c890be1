"""The skills of the user and of a workspace, the workspace's over the user's of the same name."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from exeora_ws.skills.folder import SkillFolder, Unreadable
from exeora_ws.skills.front_matter import Malformed, parse_front_matter

HEAD_BYTES = 65_536
"""How much of a SKILL.md is read for its front matter, in bytes."""
SKILLS = 500
"""How many folders are looked at in each place."""

_PROJECT = ".agents/skills"
_USER = "~/.agents/skills"


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. `path` is what read_file takes."""

    name: str
    description: str
    source: str
    """`user` or `project`."""
    path: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A skill that was left out, or shown cut; `path` as `Skill` has it."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class SkillList:
    """What there is, sorted by name, and what is wrong with the rest."""

    skills: tuple[Skill, ...]
    problems: tuple[Problem, ...]


def list_skills(workspace_root: Path | None, home: Path) -> SkillList:
    """List the skills in `~/.agents/skills/` and in the workspace's `.agents/skills/`.

    Args:
        workspace_root: the workspace whose skills count; None for the user's alone.
        home: the user's home folder.
    """
    skills: dict[str, Skill] = {}
    problems: list[Problem] = []
    if workspace_root is not None:
        _collect(SkillFolder(workspace_root, _PROJECT), _PROJECT, "project", skills, problems)
    # The folder itself may be a link of the user's own making; what is in it stays in it.
    _collect(SkillFolder(home / ".agents" / "skills", "."), _USER, "user", skills, problems)
    return SkillList(tuple(sorted(skills.values(), key=lambda skill: skill.name)), tuple(problems))


def _collect(folder: SkillFolder, shown: str, source: str, skills: dict[str, Skill], problems: list[Problem]) -> None:
    try:
        names = folder.list_names()
    except Unreadable as error:
        problems.append(Problem(shown, str(error)))
        return
    for name in names[:SKILLS]:
        path = f"{shown}/{name}/SKILL.md".encode("utf-8", "replace").decode()
        for found in _read(folder, name, path, source, problems):
            known = skills.setdefault(found.name, found)
            if known is not found and known.source == source:
                problems.append(Problem(path, f"left out: {known.path} has the same name {found.name!r}"))
    if len(names) > SKILLS:
        problems.append(Problem(shown, f"{len(names) - SKILLS} more entries were not looked at"))


def _read(folder: SkillFolder, name: str, path: str, source: str, problems: list[Problem]) -> Iterator[Skill]:
    """Give the skill in a folder, if there is one; say what is wrong with a broken one."""
    try:
        head = folder.read_head(name, HEAD_BYTES)
        if head is None:
            return
        front = parse_front_matter(head.decode("utf-8", "replace" if len(head) == HEAD_BYTES else "strict"))
        name.encode()
    except (Unreadable, Malformed) as error:
        problems.append(Problem(path, f"left out: {error}"))
    except UnicodeError:
        problems.append(Problem(path, "left out: it is not UTF-8"))
    else:
        if front.cut:
            problems.append(Problem(path, "its description is shown cut"))
        yield Skill(front.name, front.description, source, path)
