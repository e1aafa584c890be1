"""create, list and remove from every layout and format a repository may have."""

from collections.abc import Callable
from pathlib import Path

import pytest
from exeora_ws.app import App
from exeora_ws.tools.call import Caller, Face, RawCall, Scope
from exeora_ws.workspaces.place import Project

from support.repositories import RepositoryMaker, commit_file, git
from support.trees import picture


def plain(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    return top, top


def subdirectory(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    return top / "src", top


def linked(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    git(top, "worktree", "add", "-q", "-b", "linked", str(top.with_name("linked")))
    return top.with_name("linked"), top


def bare(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    git(top.parent, "clone", "-q", "--bare", str(top), "bare.git")
    return top.with_name("bare.git"), top.with_name("bare.git")


def dot_bare(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    folder = top.with_name("layout")
    folder.mkdir()
    git(folder, "clone", "-q", "--bare", str(top), ".bare")
    (folder / ".git").write_text("gitdir: ./.bare\n")
    return folder, folder


def symlinked(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    link = top.with_name("link")
    link.symlink_to(top)
    return link, top


def submodule(make: RepositoryMaker) -> tuple[Path, Path]:
    module, top = make("module"), make("app")
    git(top, "submodule", "add", "-q", str(module), "lib")
    git(top, "commit", "-q", "-m", "lib")
    return top / "lib", top / "lib"


def sha256(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app", init=("--object-format=sha256",))
    return top, top


def partial(make: RepositoryMaker) -> tuple[Path, Path]:
    upstream = make("upstream", commits=3)
    git(upstream, "config", "uploadpack.allowFilter", "true")
    git(upstream.parent, "clone", "-q", "--filter=blob:none", f"file://{upstream}", "app")
    return upstream.with_name("app"), upstream.with_name("app")


def split_index(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    git(top, "config", "core.splitIndex", "true")
    git(top, "update-index", "--split-index")
    return top, top


def sparse(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    commit_file(top, "docs/deep/page.md", "page")
    git(top, "sparse-checkout", "set", "--cone", "docs")
    return top, top


def filtered(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    git(top, "config", "filter.loud.smudge", "tr a-z A-Z")
    git(top, "config", "filter.loud.clean", "tr A-Z a-z")
    (top / ".gitattributes").write_text("*.loud filter=loud\n")
    git(top, "add", ".gitattributes")
    commit_file(top, "word.loud", "WORD")
    return top, top


def encoded(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    commit_file(top, ".gitattributes", "*.u16 working-tree-encoding=UTF-16LE eol=crlf\n")
    commit_file(top, "word.u16", "wörd\r\n".encode("utf-16-le"))
    return top, top


def worktree_config(make: RepositoryMaker) -> tuple[Path, Path]:
    top = make("app")
    git(top, "config", "extensions.worktreeConfig", "true")
    git(top, "config", "--worktree", "user.name", "Only Main")
    return top, top


LAYOUTS = [
    plain,
    subdirectory,
    linked,
    bare,
    dot_bare,
    symlinked,
    submodule,
    sha256,
    partial,
    split_index,
    sparse,
    filtered,
    encoded,
    worktree_config,
]


def caller(project: Project) -> Caller:
    return Caller(Face.CLI, "test", "s", Scope(bound=project.id))


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
def test_a_workspace_is_what_git_worktree_add_would_have_made(
    app: App, make_repository: RepositoryMaker, layout: Callable[[RepositoryMaker], tuple[Path, Path]]
):
    folder, top = layout(make_repository)
    project = app.inventory.register_project(folder, exact=False)[0]
    assert project.root == top
    made = app.calls.make(RawCall("create_workspace", {"branch": "x"}), caller(project)).to_dict()
    assert "error" not in made, made
    created = Path(made["workspace"]["path"])
    theirs = make_repository.folder / "theirs"
    git(top, "worktree", "add", "-q", "--no-track", "-b", "theirs", str(theirs))
    if layout is sparse:
        cone = git(top, "sparse-checkout", "list")
        assert git(created, "sparse-checkout", "list") == cone
    assert _files(created) == _files(theirs)
    assert git(created, "status", "--porcelain") == ""
    names = {w["slug"]: w["available"] for w in _ask(app, project, "list_workspaces")["workspaces"]}
    assert names["x"] is True
    listed = _ask(app, project, "list_git_workspaces")["workspaces"]
    assert {w["connected"] for w in listed} >= {"main", "x"}
    removed = _ask(app, project, "remove_workspace", workspace="x", deleteBranch=True)
    assert removed["removed"] is True
    assert not created.exists()
    assert git(top, "worktree", "list", "--porcelain").count("x\n") == 0


def _ask(app: App, project: Project, tool: str, **arguments: object) -> dict:
    outcome = app.calls.make(RawCall(tool, arguments), caller(project)).to_dict()
    assert "error" not in outcome, outcome
    return outcome


def _files(top: Path) -> dict[str, tuple[str, int]]:
    return {name: facts[:2] for name, facts in picture(top).items() if name != ".git"}


def test_a_lost_lfs_server_is_one_sentence_and_leaves_nothing(app: App, make_repository: RepositoryMaker):
    """Public failure 6."""
    top = make_repository("app")
    git(top, "config", "filter.lfs.clean", "cat")
    commit_file(top, ".gitattributes", "*.bin filter=lfs\n")
    commit_file(top, "big.bin", "pointer")
    git(top, "config", "filter.lfs.process", "false")
    git(top, "config", "filter.lfs.smudge", "false")
    git(top, "config", "filter.lfs.required", "true")
    project = app.inventory.register_project(top, exact=False)[0]
    outcome = app.calls.make(RawCall("create_workspace", {"branch": "x"}), caller(project))
    assert outcome.error is not None
    assert outcome.error.code == "TOOL_FAILED"
    assert "\n" not in outcome.error.message
    assert git(top, "branch", "--list", "x") == ""
    assert len(git(top, "worktree", "list").splitlines()) == 1
    git(top, "config", "--remove-section", "filter.lfs")
    assert "error" not in app.calls.make(RawCall("create_workspace", {"branch": "x"}), caller(project)).to_dict()


def test_main_of_a_bare_project_has_no_files(app: App, make_repository: RepositoryMaker):
    project = app.inventory.register_project(bare(make_repository)[0], exact=False)[0]
    listed = _ask(app, project, "list_workspaces")["workspaces"]
    assert [(w["slug"], w["available"]) for w in listed] == [("main", False)]
