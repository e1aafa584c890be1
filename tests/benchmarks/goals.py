"""The goals: what shall be fast, and how fast. Each has its part of the page, measured or not."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """One of them; `text` says it in a sentence or two, the bounds of its benchmarks say it in numbers."""

    number: int
    title: str
    text: str


GOALS = (
    Goal(
        1,
        "Create",
        "`create_workspace` over a warm server against `git worktree add`: at most 0.55 at 20,000 files, 0.40 on the "
        "source package, 0.65 at 78,000 files, and never behind Git with `checkout.workers`. Stretch: 0.50 everywhere.",
    ),
    Goal(
        2,
        "Remove",
        "At 20,000 files against `git worktree remove`: answered in at most 0.20 over a warm server and 0.60 as a "
        "whole `exeora remove`, the dirty check and the clean-up of Git's administration included; the disk "
        "is given back in the background in at most 0.7.",
    ),
    Goal(
        3,
        "List, offline",
        "`exeora list --json` as a whole process: at most 1.7 of `python -I -c pass` and 0.15 of a hello world in "
        "typer; with 200 workspaces at most 1.5 of `git worktree list --porcelain`. `path`, `switch` and completion "
        "the same.",
    ),
    Goal(
        4,
        "List, with status",
        "The state of 20 workspaces: at most 1.2 of the bare `git status` calls, run in parallel.",
    ),
    Goal(
        5,
        "Search and list files",
        "Over a warm server on 20,000 files: `grep` at most `rg` plus 15 ms, `list_files` at most 1.3 of "
        "`rg --files --hidden`.",
    ),
    Goal(
        6,
        "One call over stdio",
        "By the same raw client: ahead of every public server in start to `tools/list`, reading 1 KB and 5 MB, "
        "listing, searching 20,000 files, editing, and running a command.",
    ),
    Goal(
        7,
        "Start, small reads, commands",
        "Start and small reads ahead of Node; `run true` at most 4 ms over `posix_spawn` of the same shell; killing a "
        "tree of 16 processes in at most 10 ms.",
    ),
    Goal(
        8,
        "Memory",
        "An idle server: at most 80 MB. Reading a range of a file of 2 GB, a command that floods its output, and a "
        "listing of 100,000 files: at most 20 MB more.",
    ),
    Goal(
        9,
        "Scale",
        "What list, resolving and creating a workspace cost stays flat while projects and workspaces grow to 1,000 "
        "each.",
    ),
    Goal(
        10,
        "A fleet",
        "1,000 machines and 200 calls a second for a minute: every call is answered with a result, a call costs its "
        "gateway at most 4 ms of processor time, and a gateway holds at most 120 MB.",
    ),
)
