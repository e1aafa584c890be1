"""Answers `list`, `path`, `switch`, `remove`, `mcp` and completion before anything heavy is imported.

Measured: Python alone starts in 16 ms, a command of the slow way in 200. Only what is plain is answered here;
everything else, every error included, gives None and takes the slow way, which answers the same.
"""

import os
import sys

from exeora_cli.output import write_all
from exeora_cli.plain import SCHEMA, list_lines, render_json
from exeora_cli.snapshot import Snapshot, Unusual

COMPLETION_VARIABLE = "_EXEORA_COMPLETE"
_VALUED = {"--project": "project", "-w": "workspace", "--workspace": "workspace"}


class Asked:
    """A command line that is plain enough."""

    __slots__ = ("command", "fast", "json", "positional", "project", "status", "workspace")

    def __init__(self, words: "list[str]") -> None:
        self.command = ""
        self.json = False
        self.fast = False
        self.status = False
        self.project: str | None = None
        self.workspace: str | None = None
        self.positional: list[str] = []
        rest = iter(words)
        for word in rest:
            if word == "--json":
                self.json = True
            elif word == "--fast" and self.command == "list":
                self.fast = True
            elif word == "--status" and self.command == "list":
                self.status = True
            elif word in _VALUED:
                self._set(_VALUED[word], next(rest, None))
            elif word.startswith("-") and word != "-":
                raise Unusual
            elif not self.command:
                self.command = word
            else:
                self.positional.append(word)

    def _set(self, name: str, value: "str | None") -> None:
        if value is None or value.startswith("-") or getattr(self, name) is not None:
            raise Unusual
        setattr(self, name, value)


def answer(words: "list[str]") -> "int | None":
    """Answer the command line, if it is one of the hot ones and nothing about it is unusual.

    Args:
        words: the arguments, without the program's name.

    Returns:
        The exit code; None when nothing was done and the slow way has to answer.
    """
    try:
        if COMPLETION_VARIABLE in os.environ:
            from exeora_cli.hot_completion import complete

            data = complete(os.environ).encode()
        else:
            asked = Asked(words)
            if asked.command == "remove":
                return _remove(asked)
            if asked.command == "mcp":
                return _serve(asked)
            data = _answer(asked)
    except (Unusual, OSError, UnicodeEncodeError):
        return None
    # An error while writing (a closed pipe, a full disk) is the caller's to report: the answer was right.
    write_all(sys.stdout, data)
    return 0


def _answer(asked: Asked) -> bytes:
    if asked.status:
        return _list_states(asked)
    # At a terminal a list shows the state of each workspace too, which takes asking Git.
    plain_list = asked.command == "list" and (asked.fast or asked.json or not sys.stdout.isatty())
    if plain_list and not asked.positional and asked.workspace is None:
        return _list(asked).encode()
    if asked.command == "path" and len(asked.positional) + (asked.workspace is not None) <= 1:
        return _path(asked).encode()
    plain_switch = asked.command == "switch" and len(asked.positional) == 1 and asked.positional[0] != "@"
    if plain_switch and asked.project is asked.workspace is None and not asked.json:
        from exeora_cli.hot_switch import switch

        switch(asked.positional[0])
        return b""
    raise Unusual


def _remove(asked: Asked) -> int:
    if len(asked.positional) + (asked.workspace is not None) != 1:
        raise Unusual
    from exeora_cli.hot_remove import remove

    return remove(asked)


def _serve(asked: Asked) -> int:
    if asked.positional or asked.json or asked.workspace is not None:
        raise Unusual
    from exeora_cli.hot_mcp import serve

    return serve(asked.project)


def _list(asked: Asked) -> str:
    snapshot = Snapshot(os.environ)
    here = None
    if asked.project is None or not asked.json:
        try:
            project, workspace = snapshot.find_around()
            here = workspace["id"]
        except Unusual:
            if asked.project is None:
                raise
    if asked.project is not None:
        project = snapshot.require_project(asked.project)
    workspaces = snapshot.list_workspaces(project)
    if asked.json:
        return render_json({"schema": SCHEMA, "workspaces": workspaces}) + "\n"
    return "".join(line + "\n" for line in list_lines(workspaces, here))


def _list_states(asked: Asked) -> bytes:
    if not asked.json or asked.fast or asked.positional or asked.workspace is not None:
        raise Unusual
    snapshot = Snapshot(os.environ)
    project = snapshot.find_around()[0] if asked.project is None else snapshot.require_project(asked.project)
    from exeora_cli.hot_states import render_states

    return render_states(project["id"])


def _path(asked: Asked) -> str:
    snapshot = Snapshot(os.environ)
    selector = asked.positional[0] if asked.positional else asked.workspace
    if asked.project is None or selector in (None, "@"):
        project, around = snapshot.find_around()
        if asked.project is not None and asked.project not in (project["slug"], project["id"]):
            raise Unusual
    else:
        project = snapshot.require_project(asked.project)
    if selector in (None, "@"):
        workspace = around
    else:
        named = snapshot.find_workspace(project, str(selector))
        workspace = snapshot.require_on_branch(project, str(selector)) if named is None else named
    if snapshot.find_fault(project, workspace) is not None:
        raise Unusual
    if asked.json:
        shown = {"schema": SCHEMA, "workspace": workspace["slug"], "path": workspace["path"]}
        return render_json(shown) + "\n"
    return workspace["path"] + "\n"
