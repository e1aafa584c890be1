"""Nothing reached through a root lies outside it (contract, section 5; cases 17, 18, 29)."""

import os
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from exeora_ws.errors import Code, ExeoraError, InvalidArguments, PathEscape, PathNotFound, ToolFailed
from exeora_ws.files.paths import find_bytes_shown, is_git_name, show
from exeora_ws.files.reach import Reach
from exeora_ws.files.root import Root
from hypothesis import given
from hypothesis import strategies as st


def read(reach: Reach, path: str) -> bytes:
    with reach.locate_for_reading(path) as spot:
        descriptor = spot.open_file()
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read()


@contextmanager
def refused(kind: type[ExeoraError], reason: str | None = None):
    with pytest.raises(kind) as caught:
        yield caught
    if reason is not None:
        assert caught.value.reason == reason


@pytest.mark.parametrize("path", ["../app-secret/x", "..", "a/../../app-secret/x", "../app/x", "a/b/../../../x"])
def test_case_17_a_sibling_with_the_same_prefix_is_outside(reach: Reach, top: Path, path: str):
    (top.parent / "app-secret").mkdir()
    (top.parent / "app-secret" / "x").write_text("secret")
    (top / "a" / "b").mkdir(parents=True)
    (top / "x").write_text("inside")
    with refused(PathEscape, "outside_root"):
        read(reach, path)
    with refused(PathEscape), reach.locate_for_writing(path):
        pass


def test_case_17_an_absolute_path_is_refused_even_inside_the_root(reach: Reach, top: Path):
    (top / "x").write_text("inside")
    with refused(PathEscape, "absolute_path") as caught:
        read(reach, str(top / "x"))
    assert str(top) not in caught.value.message


@pytest.mark.parametrize("path", ["leak/passwd", "leak", "far", "up/passwd", "chain/passwd"])
def test_case_18_a_link_out_is_refused(reach: Reach, top: Path, path: str):
    (top / "leak").symlink_to("/etc")
    (top / "far").symlink_to("/etc/passwd")
    (top / "up").symlink_to("../" * 20 + "etc")
    (top / "chain").symlink_to("leak")
    with refused(PathEscape, "outside_root"), reach.locate_for_reading(path):
        pass


def test_a_link_inside_works_relative_absolute_and_through_its_parents(reach: Reach, top: Path):
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "file").write_text("here")
    (top / "relative").symlink_to("a/file")
    (top / "absolute").symlink_to(top / "a" / "file")
    (top / "folder").symlink_to("a/b")
    (top / "a" / "b" / "back").symlink_to("../../a/file")
    (top / "self").symlink_to(".")
    for path in ("relative", "absolute", "folder/../file", "folder/back", "self/self/relative", "a/b/../file"):
        assert read(reach, path) == b"here", path


def test_a_dangling_link_leads_to_nothing(reach: Reach, top: Path):
    (top / "gone").symlink_to("nowhere/at/all")
    for open_it in (reach.locate_for_reading, reach.locate_for_writing):
        with refused(PathNotFound, "dangling_link"), open_it("gone"):
            pass


def test_a_new_name_behind_a_link_to_a_folder_is_new(reach: Reach, top: Path):
    (top / "a" / "b").mkdir(parents=True)
    (top / "in").symlink_to("./a/b")
    (top / "a" / "half").symlink_to("b/gone")
    for path, real in (("in/new", ("a", "b", "new")), ("in/x/y/z", ("a", "b", "x", "y", "z"))):
        with reach.locate_for_writing(path) as spot:
            assert (spot.real, spot.stat) == (real, None)
    for path in ("a/half", "a/half/new", "a/half/x/y"):
        with refused(PathNotFound, "dangling_link"), reach.locate_for_writing(path):
            pass


def test_links_in_a_circle_end(reach: Reach, top: Path):
    (top / "one").symlink_to("two")
    (top / "two").symlink_to("one")
    with refused(ToolFailed, "link_loop"):
        read(reach, "one")
    with refused(ToolFailed, "link_loop"):
        read(reach, "one/x")


def test_case_29_what_is_no_file_is_named_at_once(reach: Reach, top: Path):
    os.mkfifo(top / "p")
    (top / "z").symlink_to("/dev/zero")
    (top / "folder").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    previous = Path.cwd()
    os.chdir(top)  # the path of a socket is short
    listener.bind("s")
    os.chdir(previous)
    started = time.monotonic()
    for path, reason in (("p", "is_a_fifo"), ("s", "is_a_socket"), ("folder", "is_a_folder")):
        with refused(ToolFailed, reason):
            read(reach, path)
    with refused(PathEscape):
        read(reach, "z")
    assert time.monotonic() - started < 1
    listener.close()


def test_a_writer_that_waits_on_a_fifo_is_not_woken(reach: Reach, top: Path):
    os.mkfifo(top / "p")
    woken = threading.Event()

    def write():
        descriptor = os.open(top / "p", os.O_WRONLY)
        woken.set()
        os.close(descriptor)

    writer = threading.Thread(target=write)
    writer.start()
    state = Path(f"/proc/self/task/{writer.native_id}/stat")
    while state.read_text().rpartition(")")[2].split()[0] != "S":
        time.sleep(0.001)  # until it waits for a reader
    with refused(ToolFailed, "is_a_fifo"):
        read(reach, "p")
    assert not woken.is_set()
    reader = os.open(top / "p", os.O_RDONLY | os.O_NONBLOCK)
    writer.join(5)
    assert woken.is_set()
    os.close(reader)


@pytest.mark.parametrize(
    ("path", "kind", "reason"),
    [
        ("", InvalidArguments, "empty_path"),
        ("a\0b", InvalidArguments, "invalid_path"),
        ("\ud800", InvalidArguments, "invalid_path"),
        ("x" * 256, InvalidArguments, "name_too_long"),
        ("é" * 128, InvalidArguments, "name_too_long"),
        ("abc/" * 2000, InvalidArguments, "name_too_long"),
        ("~", PathEscape, "outside_root"),
        ("~/x", PathEscape, "outside_root"),
        ("~/.agents/secrets", PathEscape, "outside_root"),
        ("missing", PathNotFound, None),
        ("missing/deep", PathNotFound, None),
        ("missing/../x", PathNotFound, None),
        ("file/below", PathNotFound, "not_a_folder"),
        ("file/", PathNotFound, "not_a_folder"),
    ],
)
def test_paths_that_cannot_be_read(reach: Reach, top: Path, path: str, kind: type[ExeoraError], reason: str | None):
    (top / "file").write_text("x")
    (top / "x").write_text("x")
    with refused(kind, reason):
        read(reach, path)


GIT_NAMES = [".git", ".GIT", ".Git", ".git ", ".git.", ".git . .", "git~1", "GIT~1", ".g\u200cit", "\ufeff.git"]


@pytest.mark.parametrize("name", [*GIT_NAMES, ".git::$INDEX_ALLOCATION", ".git\\config", "x\\.git"])
def test_git_folders_are_never_written_at_any_depth(reach: Reach, top: Path, name: str):
    (top / "sub").mkdir()
    for path in (name, f"{name}/config", f"sub/{name}/hooks/x", f"new/{name}"):
        with refused(PathEscape, "git_folder"), reach.locate_for_writing(path):
            pass


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", ".github", "git", "git~2", "agit", ".git-hooks"])
def test_neighbours_of_git_names_are_written(reach: Reach, name: str):
    with reach.locate_for_writing(name) as spot:
        assert spot.real == (name,)


def test_git_is_not_written_through_links_either(reach: Reach, top: Path):
    (top / ".git").mkdir()
    (top / ".git" / "config").write_text("")
    (top / "innocent").symlink_to(".git")
    (top / "file").symlink_to(".git/config")
    for path in ("innocent/config", "innocent/new", "file"):
        with refused(PathEscape, "git_folder"), reach.locate_for_writing(path):
            pass
    with reach.locate_for_reading(".git/config") as spot:
        assert spot.real == (".git", "config")


@pytest.mark.parametrize("how", ["link", "gitfile"])
def test_the_folder_a_git_link_or_file_leads_to_is_git_too(reach: Reach, top: Path, how: str):
    (top / "meta").mkdir()
    if how == "link":
        (top / ".git").symlink_to("meta")
    else:
        (top / ".git").write_text("gitdir: meta\n")
    with refused(PathEscape, "git_folder"), reach.locate_for_writing("meta/hooks/pre-commit"):
        pass


def test_the_policy_file_is_written_only_where_the_user_allows(reach: Reach, top: Path, home: Path):
    (top / "exeora.toml").write_text("")
    (top / "alias").symlink_to("exeora.toml")
    for path in ("exeora.toml", "./exeora.toml", "Exeora.TOML", "alias"):
        with refused(PathEscape, "policy_file"), reach.locate_for_writing(path):
            pass
    with reach.locate_for_writing("docs/exeora.toml"):
        pass
    with Reach(top, home, policy_writable=True).locate_for_writing("exeora.toml"):
        pass


def test_the_users_agent_files_are_read_and_never_written(reach: Reach, home: Path):
    (home / ".agents" / "skills" / "one").mkdir(parents=True)
    (home / ".agents" / "AGENTS.md").write_text("mine")
    (home / ".agents" / "secret").write_text("no")
    (home / ".agents" / "skills" / "one" / "SKILL.md").write_text("skill")
    (home / ".agents" / "skills" / "out").symlink_to("../secret")
    assert read(reach, "~/.agents/AGENTS.md") == b"mine"
    assert read(reach, "~/.agents/skills/one/SKILL.md") == b"skill"
    assert read(reach, f"{home}/.agents/skills/one/SKILL.md") == b"skill"
    for path in ("~/.agents/secret", "~/.agents/skills/../secret", "~/.agents/skills/out", "~/.agents"):
        with refused(PathEscape):
            read(reach, path)
    for path in ("~/.agents/AGENTS.md", "~/.agents/skills/one/SKILL.md", "~/.agents/skills/new"):
        with refused(PathEscape, "read_only_root"), reach.locate_for_writing(path):
            pass


def test_missing_agent_files_are_not_found(reach: Reach):
    for path in ("~/.agents/AGENTS.md", "~/.agents/skills/x", "~/.agents/skills"):
        with refused(PathNotFound):
            read(reach, path)


def test_a_project_that_is_the_home_folder_still_keeps_the_agent_files(home: Path):
    (home / ".agents" / "skills").mkdir(parents=True)
    inside = Reach(home, home)
    for path in (".agents/skills/x", ".agents/AGENTS.md"):
        with refused(PathEscape, "user_folder"), inside.locate_for_writing(path):
            pass


def test_a_root_that_has_gone_is_said(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (tmp_path / "gone", tmp_path / "link"):
        with pytest.raises(ExeoraError) as caught:
            Root(path)
        assert caught.value.code is Code.WORKSPACE_UNAVAILABLE


def test_a_name_outside_utf8_can_be_given_as_it_is_shown(reach: Reach, top: Path):
    raw = os.fsdecode(b"caf\xe9.txt")
    (top / raw).write_text("latin")
    assert show(raw) == "caf\\xe9.txt"
    assert read(reach, "caf\\xe9.txt") == b"latin"
    (top / "caf\\xe9.txt").write_text("literal")
    assert read(reach, "caf\\xe9.txt") == b"literal"


@given(st.binary(min_size=1).filter(lambda raw: b"\0" not in raw and b"/" not in raw and b"\\" not in raw))
def test_every_name_shown_leads_back(raw: bytes):
    name = os.fsdecode(raw)
    shown = show(name)
    shown.encode()
    assert shown == name or find_bytes_shown(shown) == name


@given(st.sampled_from(GIT_NAMES), st.sampled_from(["", " ", ".", " .", ":x"]))
def test_a_git_name_stays_one_with_what_file_systems_drop(name: str, tail: str):
    assert is_git_name(name + tail)


def test_no_descriptor_is_left_open(reach: Reach, top: Path):
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "f").write_text("x")
    (top / "out").symlink_to("/etc")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        read(reach, "a/b/f")
        for path in ("a/b/none", "out/x", "a/../..", "none/x"):
            with pytest.raises(ExeoraError):
                read(reach, path)
    assert len(os.listdir("/proc/self/fd")) == before
