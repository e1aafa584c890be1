"""Policies on disk: what is read, what is refused, and that a change counts from the next call."""

import os
from pathlib import Path

import pytest
from exeora_ws.policy.rules import Mode, Origin
from exeora_ws.policy.sources import POLICY_BYTES, PolicyBook, load_layer


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def write(folder: Path, text: str) -> Path:
    path = folder / "exeora.toml"
    path.write_text(text)
    return path


def age(path: Path) -> None:
    os.utime(path, (1_000_000_000, 1_000_000_000))


def test_without_any_file_all_is_allowed(root: Path, workspace: Path):
    loaded = PolicyBook().load_policy(root, workspace, {})
    assert (loaded.policy.mode, loaded.policy.has_list, loaded.warnings) == (Mode.ALLOW_ALL, False, ())


def test_three_layers_narrow_in_order(root: Path, workspace: Path):
    write(root, 'allow = ["git", "npm"]\nshell = true\n')
    write(workspace, 'mode = "allow_all"\nallow = ["git status"]\n[x]\n')
    loaded = PolicyBook().load_policy(root, workspace, {"deny": ["npm publish *"], "shell": True, "approve": True})
    policy = loaded.policy
    assert policy.mode is Mode.ALLOW_LIST
    assert [(rule.text, rule.origin) for rule in policy.allow] == [("git", Origin.PROJECT), ("npm", Origin.PROJECT)]
    assert [(rule.text, rule.origin) for rule in policy.deny] == [("npm publish *", Origin.USER)]
    assert policy.approve
    assert [warning.split(",")[0] for warning in loaded.warnings] == [Origin.WORKSPACE] * 2
    write(workspace, 'allow = ["git status"]\n')
    assert [r.text for r in PolicyBook().load_policy(root, workspace, {}).policy.allow] == ["git status"]


def test_a_workspace_cannot_open_what_its_project_closes(root: Path, workspace: Path):
    write(root, 'mode = "read_only"\n')
    write(workspace, 'mode = "allow_all"\nshell = true\ntools = ["run_command"]\n')
    assert PolicyBook().load_policy(root, workspace, {}).policy.mode is Mode.READ_ONLY


def test_main_reads_its_file_once(root: Path):
    write(root, 'tools = ["grep"]\nwrong = 1\n')
    loaded = PolicyBook().load_policy(root, root, {})
    assert loaded.policy.tools == {"grep"}
    assert len(loaded.warnings) == 1


def test_a_change_counts_from_the_next_call(root: Path):
    book = PolicyBook()
    path = write(root, 'mode = "read_only"\n')
    age(path)
    assert book.load_policy(root, root, {}).policy.mode is Mode.READ_ONLY
    for text, mode in (('mode = "allow_all"\n', Mode.ALLOW_ALL), ('mode = "read_only"\n', Mode.READ_ONLY)) * 20:
        write(root, text)
        assert book.load_policy(root, root, {}).policy.mode is mode
    path.unlink()
    assert book.load_policy(root, root, {}).policy.mode is Mode.ALLOW_ALL
    write(root, 'mode = "read_only"\n')
    assert book.load_policy(root, root, {}).policy.mode is Mode.READ_ONLY


def test_an_unchanged_old_file_is_not_read_again(root: Path, monkeypatch: pytest.MonkeyPatch):
    book = PolicyBook()
    path = write(root, 'mode = "read_only"\n')
    book.load_policy(root, root, {})
    monkeypatch.setattr("exeora_ws.storage._SETTLED_NS", -1)
    book.load_policy(root, root, {})
    path.chmod(0o644)  # a new ctime: read again, then known
    book.load_policy(root, root, {})
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda *a, **k: opened.append(a[0]) or real(*a, **k))
    assert book.load_policy(root, root, {}).policy.mode is Mode.READ_ONLY
    assert opened == []


def make_link(root: Path) -> None:
    (root / "elsewhere.toml").write_text('mode = "allow_all"\n')
    (root / "exeora.toml").symlink_to("elsewhere.toml")


def make_broken_link(root: Path) -> None:
    (root / "exeora.toml").symlink_to("nowhere")


def make_fifo(root: Path) -> None:
    os.mkfifo(root / "exeora.toml")


def make_folder(root: Path) -> None:
    (root / "exeora.toml").mkdir()


def make_huge(root: Path) -> None:
    write(root, "#" * (POLICY_BYTES + 1))


def make_latin_1(root: Path) -> None:
    (root / "exeora.toml").write_bytes(b'# x\n# caf\xe9\nmode = "allow_all"\n')


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (make_link, "symbolic link"),
        (make_broken_link, "symbolic link"),
        (make_fifo, "regular file"),
        (make_folder, "regular file"),
        (make_huge, "larger than"),
        (make_latin_1, "line 2: not UTF-8"),
    ],
)
def test_what_is_there_and_is_no_readable_file_closes_the_project(root: Path, make, words: str):
    make(root)
    policy = load_layer(root, Origin.PROJECT).policy
    assert policy.mode is Mode.READ_ONLY
    assert words in policy.faults[0]
    assert str(root) not in policy.faults[0]


def test_a_folder_that_is_gone_is_not_a_missing_file(root: Path, workspace: Path):
    book = PolicyBook()
    book.load_policy(root, workspace, {})
    root.rmdir()
    policy = book.load_policy(root, workspace, {}).policy
    assert policy.mode is Mode.READ_ONLY
    assert str(root) not in policy.faults[0]


def test_a_byte_order_mark_is_no_reason_to_close(root: Path):
    (root / "exeora.toml").write_bytes(b'\xef\xbb\xbfmode = "allow_list"\n')
    assert load_layer(root, Origin.PROJECT).policy.mode is Mode.ALLOW_LIST
