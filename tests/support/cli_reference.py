"""Writes docs/cli.md out of the commands themselves: `make docs`. A test holds the two equal."""

import os
import sys
from pathlib import Path
from typing import Any

import typer

TARGET = Path(__file__).parents[2] / "docs" / "cli.md"

_HEAD = """\
# The command line

<!-- Written by `make docs` out of the commands. -->

    exeora [--project PROJECT] [-w WORKSPACE] [--json] COMMAND

The three global options stand before the command or after it.

## Where a command acts

- `-w` names a workspace: by slug, id or exact branch, `-` for the one that was left last, `@` for the one around the
  current directory. A name that does not resolve is an error; no command falls back to main.
- Without `-w` it is the workspace around the current directory. A worktree that is not connected, a submodule, or
  another clone inside main is not main: there, and outside any project, say `-w` or `--project`.
- `--project` names a project by slug or id. Without it, it is the one around the current directory, also from a
  worktree that is not connected. In a repository that is no project yet, a command that acts makes it one and says so;
  one that only lists answers with nothing and a hint.
- `remove` and `detach` never mean the current directory by themselves: their workspace must be named.

## What is printed

stdout is the answer, stderr is narration: `cd "$(exeora create fix)"` works. With `--json` stdout is one JSON document
on one line. Its `schema` is 1, and grows when a document changes in a way that a reader could trip over; new keys may
come at any time. A key that is absent does not apply; one that is null applies and has no value. `serve` prints one
such document for each event.

An error is one line on stderr and, where there is something to do about it, a second one that begins with `hint:`.
With `--json` it is `{"schema": 1, "error": {"code", "reason"?, "message", "hint"?, "data"?}}`, on stderr too. The one
thing that may stand on the line before it is `{"schema": 1, "note"}`: the repository was made a project.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed: the message says why, and nothing was changed unless it says so |
| 2 | usage: the command line or a tool's arguments are wrong |
| 3 | a bug: the traceback is in the log, and the message says where that is |
| 4 | refused by policy or by a person |
| 128 + n | ended by signal n (130: Ctrl-C); what was under way is taken back. A server told to end has done: 0 |
"""


def write_reference() -> str:
    """Give the text of docs/cli.md."""
    os.environ["COLUMNS"] = "80"
    from exeora_cli.commands import GROUPS
    from exeora_cli.program import NAME, build

    program = build()
    root = typer.Context(program, info_name=NAME)
    parts = [_HEAD]
    for title in dict.fromkeys(group.title for group in GROUPS):
        parts.append(f"## {title}\n")
        for group in GROUPS:
            if group.title == title:
                parts += [_describe(program, root, path, document) for path, document in group.documents.items()]
    return "\n".join(parts)


def _describe(program: Any, root: Any, path: str, document: str) -> str:
    command, context = program, root
    for word in path.split():
        command = command.commands[word]
        context = typer.Context(command, info_name=word, parent=context)
    # What every command takes is said once, above.
    command.params = [parameter for parameter in command.params if not parameter.name.startswith("global_")]
    command.add_help_option = False
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    return f"### {path}\n\n```text\n{text.strip()}\n```\n\nJSON: {document}\n"


if __name__ == "__main__":
    TARGET.write_text(write_reference())
    sys.stdout.write(f"wrote {TARGET.name}\n")
