"""The hot commands answer the same as the slow way, and before anything heavy is imported."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exeora_cli import fast
from exeora_cli.data_folder import find_data_folder
from exeora_cli.plain import render_json
from support.commandline import CommandLine, child_environment
from support.repositories import RepositoryMaker, git

HEAVY = ("typer", "pygit2", "json", "sqlite3", "dataclasses", "pathlib", "re", "platformdirs", "msgspec", "logging")
PROBE = """
import sys
sys.argv = ["exeora", *sys.argv[1:]]
before = set(sys.modules)
from exeora_cli.main import main
code = main()
print(",".join(sorted(set(sys.modules) - before)), file=sys.stderr)
sys.exit(code)
"""
COMPLETE = {"_EXEORA_COMPLETE": "complete_bash"}


def complete_bash(line: str) -> dict[str, str]:
    words = line.split(" ")
    return {**COMPLETE, "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}


def answer_both(exeora: CommandLine, words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Give the hot answer, which must come from the hot way, and the slow one."""
    with monkeypatch.context() as patch:
        patch.setattr("exeora_cli.program.run", lambda _words: pytest.fail("the slow way answered"))
        hot = exeora.inline(*words, folder=folder)
    return hot, exeora.inline(*words, folder=folder, slow=True)


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("list", "--json"),
        ("--json", "list"),
        ("--project", "app", "list"),
        ("list", "--project", "app", "--json"),
        ("list", "--status", "--json"),
        ("--project", "app", "list", "--json", "--status"),
        ("path",),
        ("path", "@"),
        ("path", "main", "--json"),
        ("path", "feat-x"),
        ("path", "feat/x"),
        ("-w", "feat/x", "path", "--json"),
        ("--project", "app", "path", "feat-x"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("place", ["main", "inside", "feature"])
def test_the_hot_answer_is_the_slow_answer(
    exeora: CommandLine, feature: Path, repository: Path, monkeypatch, words: tuple[str, ...], place: str
):
    folder = {"main": repository, "inside": repository / "src", "feature": feature / "src"}[place]
    hot, slow = answer_both(exeora, words, folder, monkeypatch)
    assert hot == slow
    assert hot.code == 0
    assert hot.out


@pytest.mark.parametrize(
    "words", [("list",), ("list", "--json"), ("path", "feat/x"), ("path",), ("--project", "app", "list")], ids=" ".join
)
def test_nothing_heavy_is_imported(exeora: CommandLine, feature: Path, sealed: dict[str, str], words: tuple[str, ...]):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words],
        cwd=feature,
        env=child_environment(sealed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    loaded = done.stderr.strip().split(",")
    assert "exeora_cli.fast" in loaded
    assert not {name.split(".")[0] for name in loaded} & set(HEAVY), loaded
    assert {name for name in loaded if not name.startswith(("exeora_cli", "exeora_ws"))} == set(), loaded


def test_nothing_heavy_is_imported_to_complete(exeora: CommandLine, feature: Path, sealed: dict[str, str]):
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=feature,
        env=child_environment(sealed) | complete_bash("exeora path fe"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "feat-x\nfeat/x\n"
    assert {n for n in done.stderr.strip().split(",") if not n.startswith(("exeora_cli", "exeora_ws"))} == set()


def test_states_are_told_without_what_parses_commands_and_serves(exeora, feature: Path, sealed: dict[str, str]):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, "list", "--status", "--json"],
        cwd=feature,
        env=child_environment(sealed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    loaded = {name.split(".")[0] for name in done.stderr.strip().split(",")}
    assert "exeora_ws" in loaded
    assert not loaded & {"typer", "pydantic", "mcp", "pygit2"}


def test_odd_names_and_states_are_answered_the_same(exeora: CommandLine, feature: Path, repository: Path, monkeypatch):
    for branch in ('quo"ted', "café", "日本", "main-2"):
        assert exeora.inline("create", branch).code == 0
    git(feature, "checkout", "-q", "--detach")
    gone = Path(exeora.inline("create", "gone").out.strip())
    gone.rename(gone.with_name("moved-away"))
    for words in (("list",), ("list", "--json"), ("path", "日本")):
        hot, slow = answer_both(exeora, words, repository, monkeypatch)
        assert hot == slow
    listed = {w["slug"]: w for w in exeora.inline("list", "--json").document["workspaces"]}
    assert listed["feat-x"]["branch"] is None
    assert listed["gone"]["available"] is False
    assert "(unavailable)" in exeora.inline("list").out


@pytest.mark.parametrize(
    "words",
    [
        ("list", "--help"),
        ("list", "extra"),
        ("list", "-w", "main"),
        ("list", "--json=1"),
        ("list", "--status"),
        ("list", "--status", "--fast", "--json"),
        ("list", "--status", "--json", "extra"),
        ("--project", "no-such", "list"),
        ("--project", "", "list"),
        ("path", "no-such"),
        ("path", ""),
        ("path", "main", "feat-x"),
        ("path", "main", "-w", "feat-x"),
        ("path", "-w"),
        ("path", "--", "main"),
        ("--version",),
        ("create",),
        (),
    ],
    ids=" ".join,
)
def test_whatever_is_unusual_is_left_to_the_slow_way(
    exeora: CommandLine, feature: Path, repository, monkeypatch, words
):
    monkeypatch.chdir(repository)
    assert fast.answer(list(words)) is None


def test_states_of_the_registry_that_are_left_to_the_slow_way(
    exeora: CommandLine, feature: Path, repository: Path, tmp_path: Path, monkeypatch, make_repository: RepositoryMaker
):
    from exeora_ws.settings import find_places

    inventory = find_places().inventory
    monkeypatch.chdir(repository)
    content = inventory.read_bytes()
    for broken in (b"", content[:-5], content.replace(b"exeora-inventory 1", b"exeora-inventory 2")):
        inventory.write_bytes(broken)
        assert fast.answer(["list"]) is None
    inventory.unlink()
    assert fast.answer(["list"]) is None
    inventory.write_bytes(content)
    monkeypatch.chdir(tmp_path)
    assert fast.answer(["list"]) is None
    inner = make_repository("app/inner")
    monkeypatch.chdir(inner)
    assert fast.answer(["list"]) is None
    assert fast.answer(["path"]) is None
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert fast.answer(["list"]) is None


def test_a_broken_link_is_never_answered_with_main(exeora: CommandLine, feature: Path, repository: Path, monkeypatch):
    nested = repository / "nested"
    git(repository, "worktree", "add", "-q", "-b", "nested", str(nested))
    assert exeora.inline("attach", "nested").code == 0
    (nested / ".git").unlink()
    monkeypatch.chdir(nested)
    done = exeora.inline("path", "nested", folder=nested)
    assert done.code == 1
    assert exeora.inline("path", "nested", "--json").error["reason"] == "not_a_worktree"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_json_by_hand_is_json_by_the_library(value):
    try:
        expected = msgspec.json.encode(value)
    except UnicodeEncodeError:
        with pytest.raises(UnicodeEncodeError):
            render_json(value).encode()
    else:
        assert render_json(value).encode() == expected


def test_json_by_hand_refuses_what_it_cannot_say():
    with pytest.raises(TypeError):
        render_json({"a": 1.5})


DATA_FOLDER = """
import sys
sys.platform = sys.argv[1]
import platformdirs
print(platformdirs.user_data_path("exeora"))
"""


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": "/home/ada"},
        {"HOME": "/home/ada", "XDG_DATA_HOME": "/elsewhere/data"},
        {"HOME": "/home/ada", "XDG_DATA_HOME": ""},
        {"HOME": "/home/ada", "XDG_DATA_HOME": "relative"},
        {"HOME": "/home/ada", "XDG_DATA_HOME": "~/data"},
        {"HOME": "/home/ada", "XDG_DATA_HOME": " /data"},
        {"HOME": "/home/ada/", "XDG_DATA_HOME": "/data/"},
        {"HOME": "/home//ada"},
        {"HOME": "relative"},
        {"HOME": ""},
        {},
    ],
    ids=str,
)
def test_the_data_folder_is_where_platformdirs_puts_it(platform: str, environment: dict[str, str]):
    done = subprocess.run(
        [sys.executable, "-c", DATA_FOLDER, platform],
        env=environment | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    by_hand = find_data_folder(environment, platform)
    if by_hand is not None:
        assert by_hand == done.stdout.removesuffix("\n")
    elif environment == {"HOME": "/home/ada"}:
        pytest.fail("the plain case must be answered")


def test_the_data_folder_is_where_the_settings_put_it(monkeypatch, tmp_path: Path):
    from exeora_ws.settings import find_places

    for chosen in (str(tmp_path / "x"), "relative/folder", str(tmp_path / "a" / ".." / "b")):
        monkeypatch.setenv("EXEORA_DATA_DIR", chosen)
        assert find_data_folder(os.environ) == str(find_places().data)
    monkeypatch.setenv("EXEORA_DATA_DIR", "~/x")
    assert find_data_folder(os.environ) is None
    monkeypatch.delenv("EXEORA_DATA_DIR")
    assert find_data_folder(os.environ) == str(find_places().data)
    assert find_data_folder(os.environ, "win32") is None


@pytest.mark.parametrize("words", [("remove", "feat/x"), ("-w", "feat-x", "remove", "--json")], ids=" ".join)
def test_a_plain_remove_waits_for_no_typer(exeora, repository, feature, sealed, words: tuple[str, ...]):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words],
        env=child_environment(sealed),
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {"typer", "pydantic", "pygit2", "mcp"} & set(done.stderr.splitlines()[-1].split(",")) == set()
    assert not feature.exists()
    assert "feat-x" in done.stdout


@pytest.mark.parametrize("json", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(
    "words",
    [
        ("remove", "feat-x"),
        ("remove", "main"),
        ("remove", "nowhere"),
        ("remove", "@"),
        ("--project", "no", "remove", "x"),
    ],
)
def test_a_refused_remove_says_the_same(
    exeora, repository, feature, monkeypatch, words: tuple[str, ...], json: tuple[str, ...]
):
    (feature / "new").write_text("mine")
    hot, slow = answer_both(exeora, (*words, *json), repository, monkeypatch)
    assert hot == slow
    assert hot.code != 0
    assert (feature / "new").exists()
