"""The sandbox toolset: edit, write and run in a project, named as an app builder's agents know them."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from exeora_ws.errors import Forbidden, PathEscape
from exeora_ws.files.editing import edit_file, write_file
from exeora_ws.files.paths import is_git_name, parse_path
from exeora_ws.files.replacing import Replacement
from exeora_ws.files.spot import Spot
from exeora_ws.limits import (
    SANDBOX_OUTPUT_BYTES,
    SANDBOX_TIMEOUT_DEFAULT_SECONDS,
    SANDBOX_TIMEOUT_MAX_SECONDS,
)
from exeora_ws.processes.output import HeadAndTail, Stream
from exeora_ws.processes.run import run
from exeora_ws.tools.file_reasons import EDITS, NOT_A_FILE, PATHS, WRITES
from exeora_ws.tools.files import make_keeping, make_reach
from exeora_ws.tools.processes import START_REASONS, find_owner, open_command
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import Arguments, Call, Hints, Needs, Result, Routing, Tool
from exeora_ws.toolsets.denylist import find_denied

NEVER_WRITTEN = ("node_modules", ".git")
"""Names under which nothing is written, at any depth."""
PROTECTED_PATHS = ("src/brand", "src/onchain")
"""Folders under which nothing is written unless the user's settings say otherwise (`sandbox-protected-paths`)."""
DENYLIST = ("sudo", "su", "doas", "shutdown", "reboot", "halt", "poweroff", "mkfs", "rm -rf /", "rm -rf /*", "rm -rf ~")
"""What is not run unless the user's settings say otherwise (`sandbox-denylist`)."""
_HALF_BYTES = SANDBOX_OUTPUT_BYTES // 2

WritePath = Annotated[str, Meta(description="Relative to the workspace.")]


class EditArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of project_fs_edit."""

    path: WritePath
    old_string: Annotated[str, Meta(description="Text to replace, exactly as it stands in the file.")]
    new_string: Annotated[str, Meta(description="Text to put there, as it is.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence instead of the only one.")] = False


class WriteArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of project_fs_write."""

    path: WritePath
    content: Annotated[str, Meta(description="Everything that the file shall hold.")]


class ExecArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of project_exec."""

    command: Annotated[str, Meta(min_length=1, description="Shell command line, for `/bin/sh -c`.")]
    timeout_sec: Annotated[
        int,
        Meta(
            ge=1,
            description=f"Seconds it may take; more than {SANDBOX_TIMEOUT_MAX_SECONDS} counts as that many.",
        ),
    ] = SANDBOX_TIMEOUT_DEFAULT_SECONDS


class Edited(Result, frozen=True, kw_only=True):
    """Result of project_fs_edit."""

    path: str
    replacements: int
    bytes: int
    """Size of the file afterwards."""


class Written(Result, frozen=True, kw_only=True):
    """Result of project_fs_write."""

    path: str
    bytes: int
    created: bool


class Executed(Result, frozen=True, kw_only=True):
    """Result of project_exec."""

    exit_code: int | None
    stdout: str
    stderr: str
    duration_ms: int
    timed_out: bool
    truncated: bool


def _edit(call: Call[EditArguments, Services]) -> Edited:
    asked, rules = call.arguments, _load_rules(call)
    _judge_text(asked.path, rules)
    replacement = Replacement(asked.old_string, asked.new_string, every=asked.replace_all)
    done = edit_file(
        make_reach(call), asked.path, replacement, make_keeping(call), judge=lambda spot: _judge_spot(spot, rules)
    )
    return Edited(path=done.path, replacements=done.replacements, bytes=done.size)


def _write(call: Call[WriteArguments, Services]) -> Written:
    asked, rules = call.arguments, _load_rules(call)
    _judge_text(asked.path, rules)
    done = write_file(
        make_reach(call), asked.path, asked.content, make_keeping(call), judge=lambda spot: _judge_spot(spot, rules)
    )
    return Written(path=done.path, bytes=done.bytes_written, created=done.created)


def _load_rules(call: Call[Any, Services]) -> tuple[str, ...]:
    chosen = call.services.settings().sandbox_protected_paths
    return PROTECTED_PATHS if chosen is None else chosen


def _judge_text(path: str, rules: tuple[str, ...]) -> None:
    """Judge the path as written, so that the rule is named even where confinement would refuse it anyway."""
    _judge_parts(parse_path(path).parts, path, rules)


def _judge_spot(spot: Spot, rules: tuple[str, ...]) -> None:
    """Judge where the path really leads: a link is no way around a rule."""
    _judge_parts(spot.real, spot.shown, rules)


def _judge_parts(parts: tuple[str, ...], shown: str, rules: tuple[str, ...]) -> None:
    rule = _find_rule(tuple(part.casefold() for part in parts), rules)
    if rule is not None:
        raise PathEscape(
            f"{shown}: the sandbox path rule {rule!r} refuses writes there",
            reason="path_rule",
            data={"rule": rule},
        )


def _find_rule(parts: tuple[str, ...], rules: tuple[str, ...]) -> str | None:
    """Find the rule that forbids a path. Letter case is no way around it: some file systems do not tell it apart."""
    if any(map(is_git_name, parts)):
        return ".git"
    named = next((name for name in NEVER_WRITTEN if name in parts), None)
    if named is not None:
        return named
    for rule in rules:
        folder = tuple(part.casefold() for part in rule.split("/") if part not in ("", "."))
        if folder and parts[: len(folder)] == folder:
            return rule
    return None


def _exec(call: Call[ExecArguments, Services]) -> Executed:
    asked, kept = call.arguments, HeadAndTail(_HALF_BYTES, _HALF_BYTES)
    _judge_command(call, asked.command)
    with open_command(call, asked.command) as command:
        finish = run(
            call.services.supervisor,
            command,
            find_owner(call),
            capture=kept,
            timeout=min(asked.timeout_sec, SANDBOX_TIMEOUT_MAX_SECONDS),
            cancellation=call.cancellation,
        )
    texts = [_join(*kept.parts(stream)) for stream in (Stream.STDOUT, Stream.STDERR)]
    return Executed(
        exit_code=finish.code,
        stdout=texts[0][0],
        stderr=texts[1][0],
        duration_ms=round(finish.seconds * 1000),
        timed_out=finish.timed_out,
        truncated=any(cut for _, cut in texts),
    )


def _judge_command(call: Call[Any, Services], line: str) -> None:
    chosen = call.services.settings().sandbox_denylist
    pattern = find_denied(line, DENYLIST if chosen is None else chosen)
    if pattern is not None:
        raise Forbidden(
            f"the sandbox does not run commands that match {pattern!r}",
            reason="denylisted",
            hint="do it another way; a refusal is an answer, not something to work around",
            data={"pattern": pattern},
        )


def _join(head: str, left_out: int, tail: str) -> tuple[str, bool]:
    """Put head and tail together, with what was left out between them; gives also whether anything was."""
    return (f"{head}\n…[{left_out} bytes truncated]…\n{tail}", True) if left_out else (head + tail, False)


_RULE: Mapping[str, str] = {"path_rule": "a path rule of the sandbox refuses it; `data.rule` is the rule"}
_CONFIG: Mapping[str, str] = {"config_invalid": "the user's settings cannot be understood"}

PROJECT_FS_EDIT = Tool(
    name="project_fs_edit",
    title="Edit a project file",
    description=(
        "Change part of a file: the safe way, since it can never overwrite the rest. `oldString` is literal, is not "
        "trimmed, and must stand in the file exactly once: when it does not stand there the answer says so, and when "
        "it stands there more than once it lists the lines, so that you can include more around the one you mean. "
        "`replaceAll` replaces all of them on purpose. Gives the number of replacements and the new size in bytes."
    ),
    arguments=EditArguments,
    result=Edited,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=False),
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_edit,
    reasons={**PATHS, **NOT_A_FILE, **WRITES, **EDITS, **_RULE, **_CONFIG},
)

PROJECT_FS_WRITE = Tool(
    name="project_fs_write",
    title="Write a project file",
    description=(
        "Write a whole file, new or over everything an old one holds: `created` is false when there was one, so read "
        "it first. For a change to part of a file use project_fs_edit. Nothing is written under node_modules, .git or "
        "the project's protected folders (src/brand and src/onchain unless set otherwise); a refusal names the rule."
    ),
    arguments=WriteArguments,
    result=Written,
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_write,
    reasons={**PATHS, **{k: v for k, v in NOT_A_FILE.items() if k != "binary"}, **WRITES, **_RULE, **_CONFIG},
)

PROJECT_EXEC = Tool(
    name="project_exec",
    title="Run in the project",
    description=(
        "Run a shell command in the workspace's root and wait for its end: tests, builds, scripts, git. A command that "
        "fails is an answer: read `stderr`, correct the first error, run it again. Of each output at most 16 KB are "
        "kept, the beginning and the end, with the number of bytes left out between them (`truncated`). "
        "`timeoutSec` is 120 unless given, at most 300; then the command is ended with all it started (`timedOut`, "
        "`exitCode` null). Some commands are denied; the error names the pattern."
    ),
    arguments=ExecArguments,
    result=Executed,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=True),
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_exec,
    reasons={**START_REASONS, "denylisted": "the denylist refuses it; `data.pattern` is the pattern", **_CONFIG},
    command=lambda arguments: arguments.command,
)

SANDBOX_TOOLS = (PROJECT_FS_EDIT, PROJECT_FS_WRITE, PROJECT_EXEC)
