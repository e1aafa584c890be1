"""The file commands: what they print, what they change, their JSON, and how they fail."""

import json
from pathlib import Path

import pytest

from support.commandline import CommandLine
from support.repositories import git
from support.trees import repository_picture

ENVELOPE = """\
*** Begin Patch
*** Update File: README.md
@@
-revision 1
+revision 2
*** Add File: new.txt
+one
*** End Patch
"""


@pytest.mark.parametrize(
    "data",
    [
        b"plain\n",
        b"no end",
        b"\r\nmixed\r\nends\n",
        "caf\xe9 \u20ac \U0001f600\n".encode(),
        b"\xef\xbb\xbfmarked\n",
        b"latin \xe9\n",
        b"",
    ],
    ids=["plain", "no-end", "crlf", "utf8", "bom", "latin1", "empty"],
)
def test_read_gives_the_bytes_of_the_file(exeora: CommandLine, repository: Path, data: bytes):
    (repository / "x.txt").write_bytes(data)
    done = exeora.inline("read", "x.txt")
    assert (done.code, done.out.encode("utf-8", "surrogateescape")) == (0, data)
    assert done.err in ("", "exeora: registered this repository as project 'app'\n")


def test_read_takes_a_range_and_says_how_to_go_on(exeora: CommandLine, repository: Path):
    (repository / "x.txt").write_text("".join(f"{n}\n" for n in range(1, 11)))
    exeora.inline("project", "add", ".")
    done = exeora.inline("read", "x.txt", "--offset", "3", "--limit", "2")
    assert done.out == "3\n4\n"
    assert done.err == "exeora: there is more, of 10 lines in all: exeora read x.txt --offset 5\n"
    document = exeora.inline("read", "x.txt", "--offset", "3", "--limit", "2", "--json").document
    assert document == {
        "schema": 1,
        "path": "x.txt",
        "content": "3\n4\n",
        "truncated": True,
        "totalLines": 10,
        "nextOffset": 5,
    }
    (repository / "long.txt").write_bytes(b"x" * 1_200_000)
    first = exeora.inline("read", "long.txt")
    assert len(first.out) == 500_000
    assert "exeora read long.txt --offset 1 --column 500001" in first.err
    assert exeora.inline("read", "long.txt", "--offset", "1", "--column", "1000001").out == "x" * 200_000


def test_the_workspace_is_the_one_around_or_named(exeora: CommandLine, feature: Path, repository: Path):
    (feature / "here.txt").write_text("in the workspace")
    assert exeora.inline("read", "here.txt", folder=feature / "src").out == "in the workspace"
    assert exeora.inline("-w", "feat/x", "read", "here.txt").out == "in the workspace"
    assert exeora.inline("read", "here.txt", "--json").error["code"] == "PATH_NOT_FOUND"
    assert exeora.inline("write", "new.txt", "--content", "n", folder=feature).code == 0
    assert not (repository / "new.txt").exists()
    nowhere = exeora.inline("-w", "no-such", "write", "new.txt", "--content", "n", "--json")
    assert (nowhere.code, nowhere.error["code"]) == (1, "UNKNOWN_WORKSPACE")
    assert not (repository / "new.txt").exists()


def test_ls_shows_paths_kinds_and_sizes(exeora: CommandLine, repository: Path):
    (repository / "link").symlink_to("README.md")
    assert exeora.inline("ls").out.splitlines() == [".git/", "README.md", "link", "src/"]
    assert exeora.inline("ls", "src", "-g", "*-0.txt").out == "src/file-0.txt\n"
    assert exeora.inline("ls", "-r").out.splitlines() == ["README.md", "link", "src/file-0.txt", "src/file-1.txt"]
    rows = [line.split() for line in exeora.inline("ls", "--long").out.splitlines()]
    size = str((repository / "README.md").stat().st_size)
    assert rows == [
        ["directory", "-", ".git/"],
        ["file", size, "README.md"],
        ["symlink", "-", "link"],
        ["directory", "-", "src/"],
    ]
    document = exeora.inline("ls", "src", "--json").document
    assert set(document) == {"schema", "path", "entries", "truncated"}
    assert document["truncated"] is False


def test_ls_says_that_there_is_more(exeora: CommandLine, repository: Path):
    for number in range(1_001):
        (repository / f"n{number:04}").touch()
    done = exeora.inline("ls")
    assert len(done.out.splitlines()) == 1_000
    assert "there are more than these 1000" in done.err


def test_grep_prints_as_ripgrep_does(exeora: CommandLine, repository: Path):
    (repository / "a.txt").write_text("x: one\nTWO: b\n")
    assert exeora.inline("grep", "file [01]").out == "src/file-0.txt:3:file 0\nsrc/file-1.txt:3:file 1\n"
    assert exeora.inline("grep", "two", "a.txt").out == ""
    assert exeora.inline("grep", "-i", "two", "a.txt").out == "a.txt:2:TWO: b\n"
    assert exeora.inline("grep", "line", "-g", "file-0.txt", "-m", "1").err.startswith("exeora: there are more than")
    nothing = exeora.inline("grep", "no such text")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "exeora: no match\n")
    document = exeora.inline("grep", "TWO", "--json").document
    assert document["matches"] == [{"path": "a.txt", "line": 2, "text": "TWO: b"}]
    assert (document["truncated"], document["skippedBinary"]) == (False, 0)
    refused = exeora.inline("grep", "(", "--json")
    assert (refused.code, refused.error["reason"]) == (2, "invalid_pattern")


def test_edit_takes_texts_from_options_files_and_stdin(exeora: CommandLine, repository: Path):
    target = repository / "README.md"
    done = exeora.inline("edit", "README.md", "--old", "revision 1", "--new", "revision 2")
    assert done.code == 0
    assert done.out.splitlines()[-2:] == ["-revision 1", "+revision 2"]
    assert target.read_text() == "# app\n\nrevision 2\n"
    (repository / "old.txt").write_text("revision 2\n")
    assert exeora.inline("edit", "README.md", "--old-file", "old.txt", stdin="$& \\1 \u20ac\n").code == 0
    assert target.read_text() == "# app\n\n$& \\1 \u20ac\n"
    made = exeora.inline("edit", "README.md", "--json", stdin='{"oldString": "# app", "newString": "# it"}').document
    assert set(made) == {"schema", "path", "replacements", "diff"}
    assert target.read_text().startswith("# it\n")


@pytest.mark.parametrize(
    ("words", "stdin", "reason"),
    [
        (("--old", "a", "--old-file", "b"), b"", "conflicting_fields"),
        (("--new", "a"), b"", "missing_field"),
        (("--old-file", "no-such"), b"x", "unreadable_arguments"),
        (("--old", "revision"), b"\xff", "not_unicode"),
        ((), b"[]", "invalid_json"),
        ((), b"{", "invalid_json"),
        ((), b'{"oldString": "a"}', "missing_field"),
        ((), b'{"oldString": "a", "newString": "b", "x": 1}', "unknown_field"),
        (("--old", "", "--new", "x"), b"", "empty_old_text"),
    ],
)
def test_edit_refuses(exeora: CommandLine, repository: Path, words: tuple[str, ...], stdin: bytes, reason: str):
    before = repository_picture(repository)
    done = exeora.inline("edit", "README.md", *words, "--json", stdin=stdin)
    assert (done.code, done.out, done.error["reason"]) == (2, "", reason)
    assert repository_picture(repository) == before


def test_an_edit_that_misses_fails_and_changes_nothing(exeora: CommandLine, repository: Path):
    before = (repository / "README.md").read_bytes()
    done = exeora.inline("edit", "README.md", "--old", "no such", "--new", "x", "--json")
    assert (done.code, done.error["reason"]) == (1, "no_match")
    assert (repository / "README.md").read_bytes() == before


def test_write_takes_text_from_an_option_or_stdin(exeora: CommandLine, repository: Path):
    done = exeora.inline("write", "deep/er/x.txt", stdin="a\r\n\u20ac")
    assert (done.code, done.out) == (0, "created deep/er/x.txt (6 bytes)\n")
    assert (repository / "deep/er/x.txt").read_bytes() == "a\r\n\u20ac".encode()
    assert exeora.inline("write", "deep/er/x.txt", "--content", "").out == "wrote deep/er/x.txt (0 bytes)\n"
    document = exeora.inline("write", "y", "--content", "abc", "--json").document
    assert document == {"schema": 1, "path": "y", "bytesWritten": 3, "created": True}


@pytest.mark.parametrize(
    ("path", "stdin", "code", "error"),
    [
        ("../out.txt", b"x", 1, "PATH_ESCAPE"),
        (".git/config", b"x", 1, "PATH_ESCAPE"),
        ("exeora.toml", b"x", 1, "PATH_ESCAPE"),
        ("src", b"x", 1, "TOOL_FAILED"),
        ("x.txt", b"\xff", 2, "INVALID_ARGUMENTS"),
    ],
)
def test_write_refuses(exeora: CommandLine, repository: Path, path: str, stdin: bytes, code: int, error: str):
    before = repository_picture(repository)
    done = exeora.inline("write", path, "--json", stdin=stdin)
    assert (done.code, done.out, done.error["code"]) == (code, "", error)
    assert repository_picture(repository) == before


def test_patch_reads_a_diff_an_envelope_and_the_tool_s_json(exeora: CommandLine, repository: Path):
    (repository / "README.md").write_text("# app\n\nchanged\n")
    (repository / "src" / "file-0.txt").unlink()
    diff = git(repository, "diff") + "\n"
    git(repository, "checkout", "-q", ".")
    done = exeora.inline("patch", stdin=diff)
    assert (done.code, done.out) == (0, "update README.md\ndelete src/file-0.txt\n")
    assert (repository / "README.md").read_text() == "# app\n\nchanged\n"
    assert not (repository / "src" / "file-0.txt").exists()
    git(repository, "checkout", "-q", ".")
    document = exeora.inline("patch", "--json", stdin=ENVELOPE).document
    assert [one["type"] for one in document["operations"]] == ["update", "create"]
    assert "+revision 2" in document["diff"]
    assert (repository / "new.txt").read_text() == "one\n"
    moving = {"operations": [{"type": "move", "path": "new.txt", "to": "old.txt"}]}
    assert exeora.inline("patch", stdin=json.dumps(moving)).out == "move new.txt -> old.txt\n"
    assert (repository / "old.txt").read_text() == "one\n"


@pytest.mark.parametrize(
    ("stdin", "code", "reason"),
    [
        (ENVELOPE.replace("-revision 1", "-revision 7").encode(), 1, "no_match"),
        (b"", 2, None),
        (b"hello", 2, "invalid_patch"),
        (b"\xff", 2, "not_unicode"),
        (b'{"operations": []}', 2, None),
        (b"--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n", 1, "outside_root"),
    ],
)
def test_a_patch_that_cannot_be_applied_changes_nothing(
    exeora: CommandLine, repository: Path, stdin: bytes, code: int, reason: str | None
):
    before = repository_picture(repository)
    done = exeora.inline("patch", "--json", stdin=stdin)
    assert (done.code, done.out) == (code, ""), done.err
    assert reason is None or done.error["reason"] == reason
    assert repository_picture(repository) == before


def test_revert_goes_back_and_forth(exeora: CommandLine, repository: Path):
    target = repository / "README.md"
    original = target.read_bytes()
    target.chmod(0o755)
    exeora.inline("edit", "README.md", "--old", "app", "--new", "one")
    exeora.inline("edit", "README.md", "--old", "one", "--new", "two")
    assert exeora.inline("revert", "README.md").out == "reverted README.md\n"
    assert b"# one" in target.read_bytes()
    assert exeora.inline("revert", "README.md", "--json").document["path"] == "README.md"
    assert b"# two" in target.read_bytes()
    target.unlink()
    exeora.inline("write", "README.md", "--content", "anew")
    exeora.inline("revert", "README.md")
    assert not target.exists()
    exeora.inline("revert", "README.md")
    assert target.read_bytes() == b"anew"
    assert original


def test_revert_without_a_snapshot_fails(exeora: CommandLine, repository: Path):
    before = repository_picture(repository)
    done = exeora.inline("revert", "README.md", "--json")
    assert (done.code, done.error["reason"]) == (1, "no_snapshot")
    assert repository_picture(repository) == before


def test_policy_holds_for_each(exeora: CommandLine, repository: Path):
    (repository / "x.txt").write_text("x")
    exeora.inline("write", "x.txt", "--content", "y")
    (repository / "exeora.toml").write_text('mode = "read_only"\n')
    before = repository_picture(repository)
    for words, stdin in (
        (("write", "x.txt", "--content", "z"), b""),
        (("edit", "x.txt", "--old", "y", "--new", "z"), b""),
        (("patch",), ENVELOPE.encode()),
        (("patch",), b'{"operations": [{"type": "delete", "path": "x.txt"}]}'),
        (("revert", "x.txt"), b""),
    ):
        done = exeora.inline(*words, "--json", stdin=stdin)
        assert (done.code, done.error["reason"]) == (4, "read_only"), words
    assert repository_picture(repository) == before
    for words in (("read", "x.txt"), ("ls",), ("grep", "y")):
        assert exeora.inline(*words).code == 0


def test_stdin_that_is_a_terminal_is_not_waited_for(exeora: CommandLine, repository: Path):
    import os
    import subprocess

    from support.commandline import COMMAND, child_environment

    ours, theirs = os.openpty()
    for words in (("write", "x"), ("patch",), ("edit", "README.md", "--old", "app")):
        done = subprocess.run(
            [*COMMAND, *words, "--json"],
            cwd=repository,
            env=child_environment(exeora.environment),
            stdin=theirs,
            capture_output=True,
            check=False,
            timeout=30,
        )
        assert (done.returncode, b"expected on stdin" in done.stderr) == (2, True)
    os.close(ours)
    os.close(theirs)


def test_a_project_that_is_none_yet_is_made_one(exeora: CommandLine, repository: Path, tmp_path: Path):
    done = exeora.inline("ls")
    assert done.err == "exeora: registered this repository as project 'app'\n"
    assert exeora.inline("ls", "--json", folder=tmp_path).error["reason"] == "no_project"
