import subprocess

import pytest
from exeora_ws.git.command import encode
from exeora_ws.git.refnames import find_conflict, is_branch_name
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PIECES = ["feat", "x", "/", "//", ".", "..", "-", "@", "@{", "{", "~", "^", ":", "?", "*", "[", "\\", " ", "\t", "\x7f",
          ".lock", "HEAD", "refs/heads/", "é", "日本", "\x01", "a" * 200, "\udce9", "\u200b", "$", '"']  # fmt: skip
NAMES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)


def git_takes(name: str) -> bool:
    done = subprocess.run(["git", "check-ref-format", "--branch", encode(name)], capture_output=True, check=False)
    return done.returncode == 0


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAMES)
def test_the_rule_is_gits_own(name):
    # Git lets a branch be called `@`, which nothing can name afterwards: everywhere else that is HEAD.
    assert is_branch_name(name) == (git_takes(name) and name != "@")


@pytest.mark.parametrize(
    "name", ["", "-x", "--orphan", "@", "HEAD", "@{-1}", "a b", "a..b", "x.lock", "a/.b", "/a", "a/"]
)
def test_names_that_are_none(name):
    assert not is_branch_name(name)


@pytest.mark.parametrize(
    "name", ["x", "feature/x", "Feature/X", "日本語", "a-", "a.b", "user@host", "refs/heads/x", "x/HEAD"]
)
def test_names_that_are_some(name):
    assert is_branch_name(name)


@pytest.mark.parametrize(
    ("name", "branches", "found"),
    [
        ("feat", ["feat/x"], "feat/x"),
        ("feat/x", ["feat"], "feat"),
        ("feat/x/y", ["feat"], "feat"),
        ("feat", ["feature", "feat-x"], None),
        ("feat", ["feat"], None),
        ("a/b", ["a/c", "ab"], None),
    ],
)
def test_a_branch_is_a_file_or_a_folder(name, branches, found):
    assert find_conflict(name, branches) == found
