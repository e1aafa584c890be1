"""read, ls, grep, edit, write, patch, revert."""

from typing import Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli import answer, render_files
from exeora_cli.group import Group
from exeora_cli.session import Session, session_of
from exeora_cli.stdin import decode_text, parse_object, read_file, read_stdin

group = Group("Files")

Path = Annotated[str, typer.Argument(metavar="PATH", help="Relative to the workspace's root, wherever you stand.")]
MaybePath = Annotated[str, typer.Argument(metavar="PATH", help="Relative to the workspace's root.")]
Glob = Annotated[
    str | None, typer.Option("--glob", "-g", metavar="GLOB", help="Only paths that match, as in .gitignore.")
]


@group.command(
    "read",
    """
    exeora read src/app.py
    exeora read src/app.py --offset 100 --limit 20
    exeora -w feature/login read README.md > README.login
    """,
    (
        "The result of the tool `read_file`: `path`, `content`, `truncated`, `totalLines`; where they apply "
        "`nextOffset`, `nextColumn`, and `replaced`, the number of bytes that are not UTF-8 and shown as U+FFFD."
    ),
)
def read(
    ctx: typer.Context,
    path: Path,
    offset: Annotated[int | None, typer.Option("--offset", metavar="LINE", help="First line, from 1.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="LINES", help="How many lines at most.")] = None,
    column: Annotated[
        int | None, typer.Option("--column", metavar="BYTE", help="Where in that line to go on, from 1.")
    ] = None,
) -> None:
    """Print a text file, or lines of it: the very bytes, at most 500,000 of them.

    When there is more, the way to go on is told on stderr.
    """
    session = session_of(ctx)
    arguments = _given({"path": path, "offset": offset, "limit": limit, "column": column})
    if session.options.json:
        answer.print_document(_make(session, "read_file", arguments))
        return
    from exeora_ws.tools.shell.files import read_raw

    pieces: list[bytes] = []
    result = _make(session, read_raw(pieces.append), arguments)
    answer.print_bytes(b"".join(pieces))
    answer.narrate(render_files.tell_rest(result))


@group.command(
    "ls",
    """
    exeora ls
    exeora ls src -l
    exeora ls -r -g '*.ts'
    """,
    "The result of `list_files`: `path`, `entries[{path, type, size?}]`, `truncated`. Only files have a `size`.",
)
def ls(
    ctx: typer.Context,
    path: MaybePath = ".",
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="All levels, without what Git ignores; files only.")
    ] = False,
    glob: Glob = None,
    long: Annotated[bool, typer.Option("--long", "-l", help="Show kinds and sizes too.")] = False,
) -> None:
    """List a folder, one path a line; folders end in /. At most 1,000 entries."""
    session = session_of(ctx)
    arguments = _given({"path": path, "glob": glob}) | ({"recursive": True} if recursive else {})
    session.show(_make(session, "list_files", arguments), lambda found: render_files.show_listing(found, long=long))


@group.command(
    "grep",
    """
    exeora grep 'def main'
    exeora grep -i todo src -g '*.py'
    exeora grep -m 20 'fn \\w+' --json
    """,
    (
        "The result of `grep`: `matches[{path, line, text, cut?}]`, `truncated`, `skippedBinary`, and "
        "`skippedUnreadable` where there is any. `cut` says that only the part around the match is shown."
    ),
)
def grep(
    ctx: typer.Context,
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Regular expression, as ripgrep has them.")],
    path: MaybePath = ".",
    glob: Glob = None,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Ignore case.")] = False,
    most: Annotated[
        int | None, typer.Option("--max-results", "-m", metavar="N", help="Most lines to show; 200.")
    ] = None,
) -> None:
    """Search a file or everything below a folder that Git does not ignore; prints path:line:text.

    Finding nothing is an answer too: the exit code is 0.
    """
    session = session_of(ctx)
    arguments = _given({"pattern": pattern, "path": path, "glob": glob, "maxResults": most})
    if ignore_case:
        arguments["caseInsensitive"] = True
    session.show(_make(session, "grep", arguments), render_files.show_matches)


@group.command(
    "edit",
    """
    exeora edit src/app.py --old 'debug = True' --new 'debug = False'
    exeora edit src/app.py --old-file old.txt < new.txt
    echo '{"oldString": "a", "newString": "b"}' | exeora edit src/app.py
    """,
    "The result of `edit_file`: `path`, `replacements`, `diff`, and `diffTruncated` where it applies.",
)
def edit(
    ctx: typer.Context,
    path: Path,
    old: Annotated[
        str | None, typer.Option("--old", metavar="TEXT", help="What to replace: it stands there once.")
    ] = None,
    old_file: Annotated[str | None, typer.Option("--old-file", metavar="FILE", help="Or a file that holds it.")] = None,
    new: Annotated[
        str | None, typer.Option("--new", metavar="TEXT", help="What stands there instead; stdin by default.")
    ] = None,
) -> None:
    """Replace one piece of text in a file and print the diff. Nothing else in the file is touched.

    Without --old, stdin is a JSON object with the tool's oldString and newString.
    """
    session = session_of(ctx)
    if old is not None and old_file is not None:
        raise InvalidArguments("--old and --old-file: give one of them", reason="conflicting_fields")
    if old is None and old_file is None:
        if new is not None:
            raise InvalidArguments("--old: say what is to be replaced", reason="missing_field")
        arguments = {**parse_object(read_stdin("a JSON object with oldString and newString")), "path": path}
    else:
        wanted = old if old is not None else decode_text(read_file(session.folder, str(old_file)), "the old text")
        arguments = {
            "path": path,
            "oldString": wanted,
            "newString": new if new is not None else decode_text(read_stdin("the new text"), "the new text"),
        }
    session.show(_make(session, "edit_file", arguments), render_files.show_edit)


@group.command(
    "write",
    """
    exeora write notes.md --content 'first line'
    generate | exeora write src/generated.py
    exeora -w feature/login write config.json < config.json
    """,
    "The result of `write_file`: `path`, `bytesWritten`, `created`.",
)
def write(
    ctx: typer.Context,
    path: Path,
    content: Annotated[
        str | None, typer.Option("--content", metavar="TEXT", help="All it shall hold; stdin by default.")
    ] = None,
) -> None:
    """Write a whole file, with the folders on the way to it. The bytes written are the bytes given, and UTF-8."""
    session = session_of(ctx)
    text = content if content is not None else decode_text(read_stdin("the content"), "the content")
    session.show(_make(session, "write_file", {"path": path, "content": text}), render_files.show_written)


@group.command(
    "patch",
    """
    git diff main | exeora -w feature/login patch
    exeora patch < change.patch
    exeora patch --json < operations.json
    """,
    "The result of `apply_patch`: `operations[{type, path, to?}]`, `diff`, and `diffTruncated` where it applies.",
)
def patch(ctx: typer.Context) -> None:
    """Apply a patch from stdin: every change of it, or none.

    It reads a unified diff, the envelope *** Begin Patch … *** End Patch, or the arguments of the tool apply_patch as a
    JSON object.
    """
    session = session_of(ctx)
    data = read_stdin("a patch")
    if data.lstrip().startswith(b"{"):
        session.show(_make(session, "apply_patch", parse_object(data)), render_files.show_patched)
        return
    from exeora_ws.tools.shell.files import APPLY_PATCH_TEXT

    result = _make(session, APPLY_PATCH_TEXT, {"patch": decode_text(data, "the patch")})
    session.show(result, render_files.show_patched)


@group.command(
    "revert",
    """
    exeora revert src/app.py
    exeora -w feature/login revert README.md
    """,
    "`path`, `bytesWritten`, `created` (the file was not there); `bytesWritten` is 0 for a file that was deleted.",
)
def revert(ctx: typer.Context, path: Path) -> None:
    """Give a file the content it had before it was last written through exeora, by a person or an agent.

    What a client writes in one conversation is one step. Reverting again brings back what was there.
    """
    from exeora_ws.tools.shell.files import REVERT_FILE

    session = session_of(ctx)
    session.show(_make(session, REVERT_FILE, {"path": path}), render_files.show_reverted)


def _make(session: Session, tool: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    project = session.require_project()
    return session.make(tool, {**arguments, "workspace": session.choose_workspace(project)}, project)


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}
