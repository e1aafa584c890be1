"""A machine without git: libgit2 writes what git would, or refuses in one sentence and leaves nothing."""

from pathlib import Path

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.git.opening import open_repository
from exeora_ws.git.port import Addition

from support.repositories import commit_file, git


@pytest.fixture
def top(make_repository) -> Path:
    return make_repository(commits=2)


def install_filter(top: Path) -> None:
    git(top, "config", "filter.upper.smudge", "tr a-z A-Z")
    commit_file(top, ".gitattributes", "*.up filter=upper\n")


def install_nested_filter(top: Path) -> None:
    commit_file(top, "deep/er/.gitattributes", "*.up filter=upper\n")


def install_encoding(top: Path) -> None:
    commit_file(top, ".gitattributes", "*.txt text working-tree-encoding=UTF-16LE\n")


def install_macro(top: Path) -> None:
    commit_file(top, ".gitattributes", "[attr]binaryish -diff\n")


def install_outer_attributes(top: Path) -> None:
    (top / ".git" / "info" / "attributes").write_text("*.up filter=upper\n")


def install_global_attributes(top: Path) -> None:
    (Path.home() / "config" / "git").mkdir()
    (Path.home() / "config" / "git" / "attributes").write_text("*.up filter=upper\n")


def install_named_attributes(top: Path) -> None:
    (Path.home() / "my-attributes").write_text("*.up filter=upper\n")
    git(top, "config", "core.attributesFile", "~/my-attributes")


def install_sparse_cone(top: Path) -> None:
    git(top, "sparse-checkout", "set", "src")


def install_hook(top: Path) -> None:
    hook = top / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)


def install_hook_elsewhere(top: Path) -> None:
    hook = top / "hooks" / "post-checkout"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    git(top, "config", "core.hooksPath", "hooks")


def install_line_endings(top: Path) -> None:
    git(top, "config", "core.autocrlf", "true")


def install_submodule(top: Path) -> None:
    git(top, "submodule", "--quiet", "add", str(top), "inner")
    git(top, "commit", "-qm", "submodule")


def install_staged_submodule(top: Path) -> None:
    git(top, "submodule", "--quiet", "add", str(top), "inner")


def install_split_index(top: Path) -> None:
    git(top, "config", "core.splitIndex", "true")
    git(top, "update-index", "--split-index")


CHECKOUT = [
    install_filter, install_nested_filter, install_encoding, install_macro, install_outer_attributes,
    install_global_attributes, install_named_attributes, install_sparse_cone, install_hook, install_hook_elsewhere,
    install_line_endings, install_submodule,
]  # fmt: skip
STATUS = [
    install_filter, install_nested_filter, install_encoding, install_outer_attributes, install_global_attributes,
    install_sparse_cone, install_line_endings, install_submodule, install_staged_submodule, install_split_index,
]  # fmt: skip


@pytest.mark.parametrize("install", CHECKOUT)
def test_a_checkout_that_needs_more_is_refused(top, tmp_path, monkeypatch, trace, install):
    install(top)
    before = trace(top)
    commit = git(top, "rev-parse", "HEAD")
    with monkeypatch.context() as bare:
        bare.setenv("PATH", str(tmp_path))
        with pytest.raises(ToolFailed) as caught:
            open_repository(top).add_worktree(Addition(tmp_path / "new", commit, new_branch="new", source=top))
    assert caught.value.reason == "unsupported"
    assert "git executable" in caught.value.message
    assert trace(top) == before
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("install", STATUS)
def test_a_status_that_needs_more_is_refused(top, tmp_path, monkeypatch, install):
    install(top)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolFailed):
        open_repository(top).status()


def test_the_cone_of_another_source_is_seen(top, tmp_path, monkeypatch):
    git(top, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    git(tmp_path / "linked", "sparse-checkout", "set", "src")
    commit = git(top, "rev-parse", "HEAD")
    monkeypatch.setenv("PATH", str(tmp_path))
    addition = Addition(tmp_path / "new", commit, new_branch="new", source=tmp_path / "linked")
    with pytest.raises(ToolFailed) as caught:
        open_repository(top).add_worktree(addition)
    assert caught.value.reason == "unsupported"
