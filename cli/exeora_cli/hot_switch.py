"""Answers `switch WORKSPACE` under a shell's wrapper, as `commands/switching.py` does, importing nothing but `os`."""

import os
import sys

from exeora_cli.data_folder import find_data_folder
from exeora_cli.directive import VARIABLE, direct_to
from exeora_cli.snapshot import Snapshot, Unusual


def switch(selector: str) -> None:
    """Take the shell to a workspace of the project around, and remember the one it leaves.

    Raises:
        Unusual: for the slow way; nothing was done then that it would not do again.
    """
    if VARIABLE not in os.environ:
        raise Unusual
    snapshot = Snapshot(os.environ)
    project, around = snapshot.find_around()
    target = _select(snapshot, project, selector)
    if snapshot.find_fault(project, target) is not None:
        raise Unusual
    if target["id"] != around["id"]:
        _remember(project, around)
    if not direct_to(target["path"]):
        raise Unusual
    sys.stderr.write(f"exeora: now in workspace {target['slug']!r}\n")
    sys.stderr.flush()


def _select(snapshot: Snapshot, project: "dict[str, str]", selector: str) -> "dict[str, str]":
    if selector == "-":
        previous = _read_previous(project)
        workspace = snapshot.find_workspace(project, previous)
        if workspace is None or workspace["id"] != previous:
            raise Unusual
        return workspace
    named = snapshot.find_workspace(project, selector)
    return snapshot.require_on_branch(project, selector) if named is None else named


def _find_previous(project: "dict[str, str]") -> str:
    folder = find_data_folder(os.environ)
    if folder is None:
        raise Unusual
    return f"{folder}/previous/{project['id']}"


def _read_previous(project: "dict[str, str]") -> str:
    with open(_find_previous(project), encoding="utf-8") as stream:
        return stream.read().strip()


def _remember(project: "dict[str, str]", workspace: "dict[str, str]") -> None:
    path = _find_previous(project)
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(workspace["id"] + "\n")
    os.replace(temporary, path)
