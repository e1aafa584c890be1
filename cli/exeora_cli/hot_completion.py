"""Completes workspaces, branches and projects at the shell without importing anything, as typer's scripts expect it.

A key press waits for this. Names of commands and options, and words in quotes, are completed the slow way.
"""

import os

from exeora_cli.snapshot import Snapshot, Unusual

WORKSPACE_COMMANDS = frozenset(
    {"detach", "diff", "lock", "merge", "open", "path", "remove", "rename", "setup", "switch", "unlock"}
)
"""Commands whose first argument names a workspace (a test holds this equal to the commands themselves)."""

BRANCH_OPTIONS = {"--from": True, "--against": True, "--into": False}
"""Options whose value is a branch, and whether it may be one of a remote (the same test)."""

_CREATE_FLAGS = frozenset({"--reuse", "--with-changes", "--fetch", "--dry-run", "-n", "--switch", "-s"})
_WORKSPACE_OPTIONS = ("-w", "--workspace")
_PROJECT_OPTION = "--project"
_QUOTING = "\"'\\$`=\0"


def complete(environ: "os._Environ[str] | dict[str, str]") -> str:
    """Give the answer to the shell's question that stands in the environment.

    Raises:
        Unusual: for the slow way.
    """
    shell = environ.get("_EXEORA_COMPLETE", "").removeprefix("complete_")
    before, incomplete = _read_line(shell, environ)
    found = [word for word in _list_words(before, incomplete) if word.startswith(incomplete)]
    if any(c in word for word in found for c in _QUOTING + ":") or not found:
        raise Unusual
    if shell == "zsh":
        return "_arguments '*: :((" + "\n".join(f'"{word}"' for word in found) + "))'\n"
    if shell == "fish" and environ.get("_TYPER_COMPLETE_FISH_ACTION", "") != "get-args":
        raise Unusual
    return "\n".join(found) + "\n"


def _read_line(shell: str, environ: "os._Environ[str] | dict[str, str]") -> "tuple[list[str], str]":
    """Give the words in front of the one to complete, and what of that one is there."""
    if shell == "bash":
        words = _split(environ.get("COMP_WORDS", ""))
        number = environ.get("COMP_CWORD", "")
        if not number.isdecimal():
            raise Unusual
        position = int(number)
        return words[1:position], words[position] if position < len(words) else ""
    if shell in ("zsh", "fish"):
        line = environ.get("_TYPER_COMPLETE_ARGS", "")
        words = _split(line)[1:]
        if words and not line.endswith(" "):
            return words[:-1], words[-1]
        return words, ""
    raise Unusual


def _split(line: str) -> "list[str]":
    if any(c in line for c in _QUOTING):
        raise Unusual
    return line.split()


def _list_words(before: "list[str]", incomplete: str) -> "list[str]":
    from exeora_cli.fast import Asked

    if incomplete.startswith("-") and incomplete != "-":
        raise Unusual
    option = before[-1] if before else ""
    if option in BRANCH_OPTIONS:
        return _list_branches(before[:-1], remotes=BRANCH_OPTIONS[option])
    if before[:1] == ["create"] and _CREATE_FLAGS.issuperset(before[1:]):
        return _list_branches([], remotes=True)
    takes_value = option in (*_WORKSPACE_OPTIONS, _PROJECT_OPTION)
    asked = Asked(before[:-1] if takes_value else before)
    if not takes_value and (asked.command not in WORKSPACE_COMMANDS or asked.positional):
        raise Unusual
    snapshot = Snapshot(os.environ)
    if option == _PROJECT_OPTION:
        return [project["slug"] for project in snapshot.list_projects()]
    project = snapshot.require_project(asked.project) if asked.project else snapshot.find_around()[0]
    workspaces = snapshot.list_workspaces(project)
    slugs = [str(w["slug"]) for w in workspaces]
    branches = [str(w["branch"]) for w in workspaces if w["branch"] is not None]
    return slugs + sorted(set(branches) - set(slugs))


def _list_branches(before: "list[str]", *, remotes: bool) -> "list[str]":
    from exeora_ws.git.gitfiles import list_branches

    snapshot = Snapshot(os.environ)
    named = before[before.index(_PROJECT_OPTION) + 1 :][:1] if _PROJECT_OPTION in before else []
    project = snapshot.require_project(named[0]) if named else snapshot.find_around()[0]
    found = list_branches(project["common_dir"], remotes=remotes) if project["common_dir"] else None
    if found is None:
        raise Unusual
    return found
