"""Status and checkout by libgit2 alone, for a machine without git: only where it provably does what git would.

libgit2 runs no filter drivers, knows no `working-tree-encoding` and no sparse cone, and runs no hooks; in such a
repository its checkout is wrong and its status says clean. There, each function refuses in one sentence.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pygit2
from pygit2.enums import CheckoutStrategy, FileMode, FileStatus, ObjectType, RepositoryOpenFlag

from exeora_ws.errors import ToolFailed
from exeora_ws.git import admin, gitfiles
from exeora_ws.git.engine import Engine
from exeora_ws.git.populating import prepare
from exeora_ws.git.port import Addition, Checkout, Status

_BEYOND = (b"filter", b"working-tree-encoding", b"ident", b"[attr]", b"crlf", b"eol", b"text")
_STAGED = (
    FileStatus.INDEX_NEW
    | FileStatus.INDEX_MODIFIED
    | FileStatus.INDEX_DELETED
    | FileStatus.INDEX_RENAMED
    | FileStatus.INDEX_TYPECHANGE
)
_UNSTAGED = FileStatus.WT_MODIFIED | FileStatus.WT_DELETED | FileStatus.WT_TYPECHANGE | FileStatus.WT_RENAMED


def populate(engine: Engine, repository: pygit2.Repository, addition: Addition) -> None:
    """Add a worktree: the record made by hand as git makes it, the files written by libgit2."""
    commit = repository[addition.commit].peel(pygit2.Commit)
    refuse_beyond(*_at_source(engine, repository, addition), commit.tree)
    with ExitStack() as undo:
        prepare(engine, addition, undo)
        addition.path.mkdir(exist_ok=True)
        branch = addition.branch or addition.new_branch
        head = addition.commit if branch is None else f"ref: refs/heads/{branch}"
        admin.make(engine.common_dir, addition.path, head)
        made = pygit2.Repository(os.fsdecode(addition.path), RepositoryOpenFlag.NO_SEARCH)
        tree = made[addition.commit].peel(pygit2.Commit).tree
        strategy = CheckoutStrategy.FORCE | CheckoutStrategy.RECREATE_MISSING
        made.checkout_tree(tree, strategy=strategy)  # type: ignore[no-untyped-call]  # pygit2 leaves it untyped
        made.index.read_tree(tree)
        made.index.write()
        undo.pop_all()


def _at_source(engine: Engine, repository: pygit2.Repository, addition: Addition) -> tuple[pygit2.Repository, Checkout]:
    """Give the source's own configuration: a sparse cone is one worktree's, not the repository's."""
    if addition.source is None or addition.source == engine.checkout:
        return repository, engine.place
    place = engine.require_source(addition.source)
    return pygit2.Repository(os.fsdecode(addition.source), RepositoryOpenFlag.NO_SEARCH), place


def load_status(repository: pygit2.Repository, place: Checkout, *, ignored: bool) -> Status:
    """Give the state of the checkout as libgit2 sees it."""
    if place.top is None:
        raise ToolFailed("this is a bare Git folder, without files", reason="bare")
    head = None if repository.head_is_unborn else repository.head.peel(pygit2.Commit)
    if head is not None:
        refuse_beyond(repository, place, head.tree)
    if any(entry.mode == FileMode.COMMIT for entry in repository.index):
        raise _refusal("a submodule")
    found = repository.status(untracked_files="normal", ignored=ignored)
    flags = {path: FileStatus(value) for path, value in found.items()}

    def matching(wanted: FileStatus) -> tuple[str, ...]:
        return tuple(sorted(path for path, value in flags.items() if value & wanted))

    return Status(
        staged=matching(_STAGED),
        unstaged=matching(_UNSTAGED),
        untracked=_with_nested(place.top, matching(FileStatus.WT_NEW), matching(FileStatus.IGNORED)),
        ignored=matching(FileStatus.IGNORED),
        conflicted=matching(FileStatus.CONFLICTED),
        submodules=(),
    )


def _with_nested(top: Path, untracked: tuple[str, ...], ignored: tuple[str, ...]) -> tuple[str, ...]:
    """Add the nested repositories without commits, which libgit2 passes over."""
    known = tuple(path for path in (*untracked, *ignored) if path.endswith("/"))
    more: list[str] = []
    for folder, folders, files in os.walk(top):
        path = os.path.relpath(folder, top) + "/"
        if path.startswith(known):
            folders.clear()
        elif path != "./" and (".git" in folders or ".git" in files):
            folders.clear()
            more.append(path)
        elif ".git" in folders:
            folders.remove(".git")
    return tuple(sorted((*untracked, *more)))


def refuse_beyond(repository: pygit2.Repository, place: Checkout, tree: pygit2.Tree) -> None:
    """Refuse a repository in which libgit2 would do less than git.

    Raises:
        ToolFailed: reason `unsupported`, naming what needs git.
    """
    need = next(_list_needs(repository, place, tree), None)
    if need is not None:
        raise _refusal(need)


def _refusal(need: str) -> ToolFailed:
    return ToolFailed(f"{need} needs the git executable, and there is none on PATH", reason="unsupported")


def _list_needs(repository: pygit2.Repository, place: Checkout, tree: pygit2.Tree) -> Iterator[str]:
    config = repository.config
    if "core.sparsecheckout" in config and config.get_bool("core.sparsecheckout"):
        yield "a sparse checkout"
    if _setting(repository, "core.autocrlf").lower() not in ("", "false", "0", "no", "off"):
        yield "core.autocrlf"
    if os.path.exists(place.git_dir / "config.worktree") or os.path.exists(place.common_dir / "config.worktree"):
        yield "configuration of single worktrees"
    if _has_hook(repository, place):
        yield "a post-checkout hook"
    for content in _list_outer_attributes(repository, place):
        if _converts(content):
            yield "an attributes file that converts content"
    yield from _list_tree_needs(repository, tree)


def _setting(repository: pygit2.Repository, name: str) -> str:
    config = repository.config
    return (config[name] or "") if name in config else ""


def _has_hook(repository: pygit2.Repository, place: Checkout) -> bool:
    hooks = _setting(repository, "core.hookspath") or str(place.common_dir / "hooks")
    return os.access(os.path.join(place.main, os.path.expanduser(hooks), "post-checkout"), os.X_OK)


def _list_outer_attributes(repository: pygit2.Repository, place: Checkout) -> Iterator[bytes]:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    usual = _setting(repository, "core.attributesfile") or home + "/git/attributes"
    for path in (f"{place.common_dir}/info/attributes", os.path.expanduser(usual), "/etc/gitattributes"):
        yield os.fsencode(gitfiles.read_text(path) or "")


def _list_tree_needs(repository: pygit2.Repository, tree: pygit2.Tree) -> Iterator[str]:
    for entry in tree:
        if entry.type == ObjectType.COMMIT:
            yield "a submodule"
        elif isinstance(entry, pygit2.Tree):
            yield from _list_tree_needs(repository, entry)
        elif entry.name == ".gitattributes" and _converts(getattr(entry, "data", b"")):
            yield "a .gitattributes file that converts content"


def _converts(attributes: bytes) -> bool:
    return any(word in attributes for word in _BEYOND)
