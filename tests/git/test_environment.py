import subprocess
from pathlib import Path

import pytest
from exeora_ws.environment import ROUTING_VARIABLES, is_git_routing, without_git_routing
from exeora_ws.git.command import clean_environment
from exeora_ws.git.port import Addition

from support.repositories import git


def test_everything_that_git_calls_local_is_taken_out():
    listed = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True)
    assert set(listed.stdout.split()) <= ROUTING_VARIABLES


@pytest.mark.parametrize("name", ["GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_12", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH"])
def test_more_that_redirects(name):
    assert is_git_routing(name)


def test_what_a_user_needs_stays():
    names = (
        "PATH GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS SSH_AUTH_SOCK GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM "
        "GIT_CONFIG_SYSTEM GIT_AUTHOR_NAME GIT_COMMITTER_DATE GIT_EXEC_PATH"
    )
    kept = dict.fromkeys(names.split(), "x")
    assert without_git_routing(kept | {"GIT_DIR": "/elsewhere"}) == kept


def test_our_own_calls_ask_nothing_and_speak_english():
    env = clean_environment({"LC_ALL": "de_DE.UTF-8", "GIT_TRACE": "1", "GIT_EXTERNAL_DIFF": "evil", "HOME": "/h"})
    assert env == {
        "HOME": "/h", "LC_CTYPE": "de_DE.UTF-8", "LC_MESSAGES": "C", "LANGUAGE": "C", "GIT_TERMINAL_PROMPT": "0",
    }  # fmt: skip


def look_at(top: Path) -> tuple[object, ...]:
    return git(top, "for-each-ref"), (top / ".git" / "config").read_bytes(), git(top, "worktree", "list")


def test_exported_variables_change_nothing(opened, make_repository, monkeypatch, tmp_path: Path):
    top, other = make_repository(commits=2), make_repository("other")
    before = opened(top)
    expected = (before.head(), before.list_worktrees(), before.list_branches(), before.status())
    untouched = look_at(other)
    exported = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
        "GIT_COMMON_DIR": str(other / ".git"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git" / "objects"),
        "GIT_NAMESPACE": "elsewhere",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.worktree",
        "GIT_CONFIG_VALUE_0": str(other),
        "GIT_CEILING_DIRECTORIES": str(top),
        "GIT_PREFIX": "src/",
    }
    with monkeypatch.context() as exporting:
        for name, value in exported.items():
            exporting.setenv(name, value)
        repository = opened(top)
        now = (repository.head(), repository.list_worktrees(), repository.list_branches(), repository.status())
        assert now == expected
        repository.add_worktree(Addition(tmp_path / "new", repository.head().commit, new_branch="new", source=top))
        assert repository.delete_branch("new", repository.head().commit).reason == "checked_out"
    assert look_at(other) == untouched
    assert git(tmp_path / "new", "status", "--porcelain") == ""
    assert (tmp_path / "new" / "README.md").read_bytes() == (top / "README.md").read_bytes()
