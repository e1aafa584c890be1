"""Arguments and results of the file tools: from these derive their schemas and what `exeora call` checks."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from exeora_ws.files.operation import OperationType
from exeora_ws.files.spot import Kind
from exeora_ws.limits import GREP_MATCHES, PATCH_OPERATIONS
from exeora_ws.tools.spec import Arguments, Result

ReadPath = Annotated[
    str,
    Meta(description="Relative to the workspace, or `~/.agents/AGENTS.md`, or something under `~/.agents/skills/`."),
]
WritePath = Annotated[str, Meta(description="Relative to the workspace.")]
GlobText = Annotated[
    str,
    Meta(
        min_length=1,
        description=(
            "Only paths that match, as in .gitignore: `*.ts` at any depth, `src/**/*.ts` counted from `path`, `docs/` "
            "for all in such a folder, `{a,b}` for either, a leading `!` for all others. Brings nothing ignored back."
        ),
    ),
]


class ReadArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of read_file."""

    path: ReadPath
    offset: Annotated[int, Meta(ge=1, description="First line to read, from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, description="How many lines at most; to the end by default.")] | UnsetType = UNSET
    column: Annotated[
        int, Meta(ge=1, description="Byte of line `offset` to go on from: the `nextColumn` of an answer that cut it.")
    ] = 1


class ListArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of list_files."""

    path: ReadPath = "."
    recursive: Annotated[bool, Meta(description="All levels below, instead of one.")] = False
    glob: GlobText | UnsetType = UNSET


class GrepArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of grep."""

    pattern: Annotated[str, Meta(description="Regular expression in the Rust syntax, matched within single lines.")]
    path: ReadPath = "."
    glob: GlobText | UnsetType = UNSET
    case_insensitive: Annotated[bool, Meta(description="Ignore case.")] = False
    max_results: Annotated[int, Meta(ge=1, le=GREP_MATCHES, description="Most matching lines to give.")] = GREP_MATCHES


class EditArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of edit_file."""

    path: WritePath
    old_string: Annotated[
        str, Meta(description="The text to replace, exactly as it stands in the file, where it must stand once.")
    ]
    new_string: Annotated[str, Meta(description="What shall stand there instead, taken literally.")]


class WriteArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of write_file."""

    path: WritePath
    content: Annotated[str, Meta(description="Everything the file shall hold.")]


class PatchOperation(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One operation of apply_patch."""

    type: Annotated[
        OperationType,
        Meta(
            description=(
                "create: a new file with `content`. update: replace `oldString`, which stands there once, by "
                "`newString`. replace: the whole file by `content`. delete. move: to the path `to`, which is free."
            )
        ),
    ]
    path: WritePath
    content: Annotated[str, Meta(description="For create and replace.")] | UnsetType = UNSET
    old_string: Annotated[str, Meta(description="For update.")] | UnsetType = UNSET
    new_string: Annotated[str, Meta(description="For update.")] | UnsetType = UNSET
    to: Annotated[str, Meta(description="For move.")] | UnsetType = UNSET


class PatchArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of apply_patch."""

    operations: Annotated[
        list[PatchOperation],
        Meta(
            min_length=1,
            max_length=PATCH_OPERATIONS,
            description="In order: a later one sees what the earlier ones did. Their texts: 1,000,000 bytes together.",
        ),
    ]


class ReadText(Result, frozen=True, kw_only=True):
    """Result of read_file."""

    path: str
    content: str
    truncated: bool
    total_lines: int
    next_offset: int | UnsetType = UNSET
    next_column: int | UnsetType = UNSET
    replaced: int | UnsetType = UNSET


class ListedEntry(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """One thing in a folder."""

    path: str
    type: Kind
    size: int | UnsetType = UNSET


class ListedFiles(Result, frozen=True, kw_only=True):
    """Result of list_files."""

    path: str
    entries: list[ListedEntry]
    truncated: bool
    skipped_unreadable: int | UnsetType = UNSET


class FoundLine(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """One matching line; `cut` when only the part around the match is shown."""

    path: str
    line: int
    text: str
    cut: Literal[True] | UnsetType = UNSET


class FoundLines(Result, frozen=True, kw_only=True):
    """Result of grep."""

    matches: list[FoundLine]
    truncated: bool
    skipped_binary: int
    skipped_unreadable: int | UnsetType = UNSET


class EditedFile(Result, frozen=True, kw_only=True):
    """Result of edit_file."""

    path: str
    replacements: int
    diff: str
    diff_truncated: Literal[True] | UnsetType = UNSET


class WrittenFile(Result, frozen=True, kw_only=True):
    """Result of write_file."""

    path: str
    bytes_written: int
    created: bool


class PatchedFile(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """One operation that was done."""

    type: OperationType
    path: str
    to: str | UnsetType = UNSET


class AppliedPatch(Result, frozen=True, kw_only=True):
    """Result of apply_patch."""

    operations: list[PatchedFile]
    diff: str
    diff_truncated: Literal[True] | UnsetType = UNSET
