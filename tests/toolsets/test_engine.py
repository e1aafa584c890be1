"""Toolset engine, its files, shell and logs, sentence by sentence: each test's docstring is the rule it holds."""

import logging
import os
import shutil

import pytest
from exeora_ws.app import open_calls
from exeora_ws.toolsets.engine.fences import find_escaped_fence, repair_fences
from exeora_ws.toolsets.engine.retention import measure_retention
from exeora_ws.toolsets.engine.shell import find_compound
from hypothesis import given
from hypothesis import strategies as st

from support.processes import all_gone, eventually
from support.repositories import git

pytestmark = pytest.mark.anyio

PROSE = "".join(f"sentence number {n} tells of thing {n * 37 % 101}\n" for n in range(60))


@pytest.fixture
def engine(offer):
    return offer("engine")


def test_its_eight_tools(engine):
    """The two groups of tools, each with the optional `workspace`."""
    assert list(engine.calls.catalog) == [
        "read_file",
        "write_file",
        "edit_file",
        "search_files",
        "list_files",
        "revert_file",
        "run_shell",
        "read_logs",
    ]
    for tool in engine.calls.catalog.values():
        assert "workspace" in tool.input_schema(account=False)["properties"]


def test_tools_act_in_the_workspace_named(engine, app, top):
    """A named workspace is the root of files and commands alike."""
    git(top, "worktree", "add", "-q", "-b", "feat", str(top.parent / "feat"))
    default = engine.__class__(app, open_calls(app, []), engine.project)
    default.result("attach_workspace", branch="feat")
    engine.text("write_file", path="workspace/n.txt", content="x\n", workspace="feat")
    assert (top.parent / "feat/n.txt").exists()
    assert not (top / "n.txt").exists()
    assert str(top.parent / "feat") in engine.text("run_shell", command="pwd", workspace="feat")


def test_a_failure_is_an_error_string(engine):
    """A tool that fails answers with a text that begins with Error."""
    answer = engine("read_file", path="none.txt")
    assert answer["isError"] is True
    assert answer["content"][0]["text"].startswith("Error")


# paths and names of arguments


@pytest.mark.parametrize(
    "path",
    ["  a.txt ", "workspace/a.txt", "./workspace/a.txt", "/workspace/a.txt", " /workspace//a.txt\n", "ROOT/a.txt"],
)
def test_paths_are_normalised(engine, top, path):
    """Blanks around a path, the workspace root before it and a leading `workspace/` are taken off."""
    given_path = path.replace("ROOT", str(top))
    engine.text("write_file", path=given_path, content="x\n")
    assert (top / "a.txt").read_text() == "x\n"
    assert engine.text("read_file", path=given_path) == "x\n"
    assert engine.text("edit_file", path=given_path, search="x", replace="y").startswith("Edited a.txt")
    assert "a.txt:1: y" in engine.text("search_files", query="y", path=given_path)
    engine.text("revert_file", path=given_path)
    assert not (top / "a.txt").exists()
    assert not (top / "workspace").exists()


def test_the_root_itself_as_a_folder(engine):
    """The workspace root may be named where a folder is wanted."""
    for root in (".", "/workspace", "/workspace/", "workspace/"):
        assert "README.md" in engine.text("list_files", path=root)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "/workspacex/a", "/workspace/../x"])
def test_what_is_outside_stays_outside(engine, path):
    """Normalising lets nothing out."""
    assert engine.refusal("read_file", path=path)["code"] == "PATH_ESCAPE"
    assert engine.refusal("write_file", path=path, content="x")["code"] == "PATH_ESCAPE"


def test_other_names_of_arguments(engine, top):
    """`file_path` stands for path, write_file's `text` for content, edit_file's `find` for search."""
    engine.text("write_file", file_path="a.txt", text="one\n")
    assert engine.text("read_file", file_path="a.txt") == "one\n"
    engine.text("edit_file", file_path="a.txt", find="one", replace="two")
    assert (top / "a.txt").read_text() == "two\n"
    engine.text("revert_file", file_path="a.txt")
    assert not (top / "a.txt").exists()


def test_where_both_names_are_given_the_own_one_wins(engine, top):
    """When both names are present, path and content win."""
    engine.text("write_file", path="a.txt", file_path="b.txt", content="right\n", text="wrong\n")
    assert (top / "a.txt").read_text() == "right\n"
    assert not (top / "b.txt").exists()


def test_names_are_renamed_before_any_guard(engine, top):
    """The renaming comes before any guard sees the arguments."""
    assert engine.refusal("write_file", file_path="a.png", text="x")["reason"] == "binary_path"
    (top / "a.txt").write_text(PROSE)
    assert engine.refusal("write_file", file_path="a.txt", text="gone")["reason"] == "shrink_guard"


def test_unknown_arguments_are_refused(engine):
    """Any other name is unknown."""
    assert engine.refusal("read_file", filename="a")["reason"] in ("unknown_field", "missing_field")


# read_file


def test_read_gives_the_raw_contents(engine, top):
    """Without a range: the raw contents."""
    (top / "a.txt").write_text("one\r\ntwo")
    assert engine.text("read_file", path="a.txt") == "one\r\ntwo"


def test_a_range_is_numbered_under_a_header(engine, top):
    """With a range only those lines, each behind its number, under a header with path, lines and total."""
    (top / "a.txt").write_text("".join(f"l{n}\n" for n in range(1, 1001)))
    shown = engine.text("read_file", path="a.txt", start_line=990, end_line=991)
    assert shown == "[a.txt: lines 990-991 of 1000]\n990| l990\n991| l991\n"


@pytest.mark.parametrize(
    ("wanted", "header"),
    [
        ({"start_line": 3}, "[a.txt: lines 3-4 of 4]"),
        ({"end_line": 2}, "[a.txt: lines 1-2 of 4]"),
        ({"start_line": 2, "end_line": 99}, "[a.txt: lines 2-4 of 4]"),
        ({"start_line": "2", "end_line": " 3 "}, "[a.txt: lines 2-3 of 4]"),
        ({"start_line": 4, "end_line": 4}, "[a.txt: lines 4-4 of 4]"),
    ],
)
def test_where_a_range_begins_and_ends(engine, top, wanted, header):
    """start_line is 1 by default, end_line the last line; past the end means the last line."""
    (top / "a.txt").write_text("a\nb\nc\nd\n")
    assert engine.text("read_file", path="a.txt", **wanted).split("\n")[0] == header


@pytest.mark.parametrize("wanted", [{"start_line": 5}, {"start_line": 3, "end_line": 2}, {"start_line": 0}])
def test_a_range_that_is_none(engine, top, wanted):
    """A start past the end, or an end before the start, is an error that states the line count."""
    (top / "a.txt").write_text("a\nb\nc\nd\n")
    error = engine.refusal("read_file", path="a.txt", **wanted)
    assert error["reason"] == "invalid_range"
    assert "4 lines" in error["message"]


def test_a_range_read_is_the_range_that_is_edited(engine, top):
    """Lines are counted as edit_file counts them."""
    (top / "a.txt").write_bytes("a\x0cb\u2028c\r\nsecond\rhalf\nthird".encode())
    shown = engine.text("read_file", path="a.txt", start_line=2, end_line=2)
    assert shown == "[a.txt: lines 2-2 of 3]\n2| second\rhalf\n"
    engine.text("edit_file", path="a.txt", search="", replace="2nd", start_line=2, end_line=2)
    assert (top / "a.txt").read_bytes() == "a\x0cb\u2028c\r\n2nd\nthird".encode()


def test_an_empty_file_has_a_range_too(engine, top):
    """An empty file has 0 lines, and says so."""
    (top / "a.txt").touch()
    assert "0 lines" in engine.text("read_file", path="a.txt", start_line=1)
    assert "0 lines" in engine.refusal("read_file", path="a.txt", start_line=2)["message"]


def test_a_file_too_large_says_how_to_go_on(engine, top):
    """A whole file too large for one answer gives its line count and how to read a range of it."""
    (top / "a.txt").write_text("0123456789\n" * 60_000)
    answer = engine("read_file", path="a.txt")
    notice = answer["structuredContent"]["notice"]
    assert "60000 lines" in notice
    assert "start_line" in notice
    assert answer["content"][0]["text"].endswith(f"\n\n[{notice}]")


def test_a_range_too_large_says_how_to_go_on(engine, top):
    """A range is never cut silently: where numbers make it too long for one answer, it says where to go on."""
    (top / "a.txt").write_text("x\n" * 240_000)
    answer = engine("read_file", path="a.txt", start_line=1)["structuredContent"]
    header, _, rest = answer["text"].partition("\n")
    last = int(rest.rstrip("\n").rpartition("\n")[2].split("|")[0])
    assert header == f"[a.txt: lines 1-{last} of 240000]"
    assert answer["notice"].endswith(f"start_line {last + 1}")


@pytest.mark.parametrize(
    "name",
    ["a.png", "a.JPG", "s.mp3", "v.mp4", "d.pdf", "d.docx", "t.xlsx", "p.pptx", "z.zip", "z.tar.gz", "b.epub"],
)
def test_media_and_archives_are_refused_by_name(engine, top, name):
    """A media, document or archive name is refused before it is read, naming list_files on its folder."""
    (top / "assets").mkdir()
    (top / "assets" / name).write_text("plain text\n")
    for path in (f"assets/{name}", f"none/{name}"):
        error = engine.refusal("read_file", path=path)
        assert error["reason"] == "not_read_as_text"
        assert "list_files" in error["hint"]
        assert repr(path.rpartition("/")[0]) in error["hint"]


@pytest.mark.parametrize("name", ["a.svg", "a.html", "a.js", "a.ts", "a.csv", "png", ".gitignore", "a.key"])
def test_text_formats_are_read(engine, top, name):
    """SVG, HTML and scripts are text and read normally."""
    (top / name).write_text("text\n")
    assert engine.text("read_file", path=name) == "text\n"


# write_file


def test_write_creates_and_overwrites(engine, top):
    """Creates or overwrites."""
    assert engine.text("write_file", path="n/a.txt", content="x\n") == "Created n/a.txt: 2 bytes."
    assert engine.text("write_file", path="n/a.txt", content="yy\n") == "Overwrote n/a.txt: 3 bytes."
    assert (top / "n/a.txt").read_text() == "yy\n"


# the shrink guard


def test_the_shrink_guard_refuses_once(engine, top, caplog):
    """A write that keeps less than half is refused once, naming what would be lost and edit_file; then it passes."""
    (top / "a.txt").write_text(PROSE)
    error = engine.refusal("write_file", path="a.txt", content=PROSE[:300])
    assert error["reason"] == "shrink_guard"
    assert "lose" in error["message"]
    assert "'sentence number" in error["message"]
    assert "edit_file" in error["hint"]
    assert (top / "a.txt").read_text() == PROSE
    assert [(r.tag, r.path) for r in caplog.records if hasattr(r, "tag")] == [("SHRINK-GUARD", "a.txt")]
    engine.text("write_file", path="./a.txt", content=PROSE[:300])
    assert (top / "a.txt").read_text() == PROSE[:300]


@pytest.mark.parametrize(("kept", "refused"), [(0.49, True), (0.51, False), (0.0, True), (1.0, False)])
def test_what_is_retained_is_measured_by_character(engine, top, kept, refused):
    """Below a share of 0.5 of the existing characters, the write is refused."""
    (top / "a.txt").write_text("ä" * 1000)
    answer = engine("write_file", path="a.txt", content="ä" * int(1000 * kept))
    assert answer["isError"] is refused


@pytest.mark.parametrize(("size", "refused"), [(399, False), (400, True)])
def test_small_files_are_not_protected(engine, top, size, refused):
    """Files under 400 bytes are not protected."""
    (top / "a.txt").write_text("x" * size)
    assert engine("write_file", path="a.txt", content="y")["isError"] is refused


def test_text_that_moves_or_grows_survives(engine, top):
    """A rewrite that keeps what is there, wherever it goes, is not questioned."""
    (top / "a.txt").write_text(PROSE)
    halves = PROSE[len(PROSE) // 2 :] + "between\n" * 50 + PROSE[: len(PROSE) // 2]
    engine.text("write_file", path="a.txt", content=halves)


def test_a_question_is_for_one_file(engine, top):
    """Having been asked about one file lets no other pass, nor another conversation."""
    for name in ("a.txt", "b.txt"):
        (top / name).write_text(PROSE)
        assert engine.refusal("write_file", path=name, content="x")["reason"] == "shrink_guard"
    assert engine.as_session("other").refusal("write_file", path="a.txt", content="x")["reason"] == "shrink_guard"
    engine.text("write_file", path="a.txt", content="x")


@given(st.text(max_size=300), st.text(max_size=300))
def test_retention_is_a_share(old, new):
    """Whatever the texts, the share is between 0 and 1; all of it survives in what contains it whole."""
    assert 0 <= measure_retention(old, new) <= 1
    assert measure_retention(old, old + new) == 1
    assert measure_retention(old, new + old) == 1


def test_retention_takes_bounded_time():
    """Large texts with nothing in common are measured too."""
    old, new = " ".join(f"a{n}" for n in range(60_000)), " ".join(f"b{n}" for n in range(60_000))
    assert measure_retention(old, new) < 0.5


# the reference guard

PAGE = '<html><body><div id="menu"></div><p id="text"></p><b id=loose></b></body></html>\n'


def test_the_reference_guard_refuses_once(engine, top, caplog):
    """An HTML write that leaves a sibling script without an id it looks up is refused once, naming it; then passes."""
    (top / "web").mkdir()
    (top / "web/index.html").write_text(PAGE)
    (top / "web/app.js").write_text("document.getElementById('menu'); x.querySelector('#loose').y")
    error = engine.refusal("write_file", path="web/index.html", content=PAGE.replace('id="menu"', ""))
    assert error["reason"] == "reference_guard"
    assert "app.js looks up #menu" in error["message"]
    assert "edit_file" in error["hint"]
    assert (top / "web/index.html").read_text() == PAGE
    assert [(r.tag, r.ids) for r in caplog.records if hasattr(r, "tag")] == [("REF-GUARD", {"app.js": ["menu"]})]
    engine.text("write_file", path="web/index.html", content=PAGE.replace('id="menu"', ""))
    assert 'id="menu"' not in (top / "web/index.html").read_text()


@pytest.mark.parametrize(
    "script",
    [
        "document.getElementById('never-declared')",
        "document.getElementById('me' + 'nu')",
        "document.getElementById(menu)",
        "document.querySelector('.menu')",
        "document.getElementById(`me${'nu'}`)",
        "// menu",
    ],
)
def test_only_literal_lookups_of_what_was_there_count(engine, top, script):
    """An id that was missing before is not held against the write, and a computed id is never reported."""
    (top / "index.html").write_text(PAGE)
    (top / "app.js").write_text(script)
    engine.text("write_file", path="index.html", content=PAGE.replace('id="menu"', ""))


def test_scripts_elsewhere_and_other_files_do_not_count(engine, top):
    """Only scripts beside an HTML file are looked at."""
    (top / "web").mkdir()
    (top / "app.js").write_text("document.getElementById('menu')")
    (top / "web/index.html").write_text(PAGE)
    engine.text("write_file", path="web/index.html", content=PAGE.replace('id="menu"', ""))
    (top / "page.txt").write_text(PAGE)
    engine.text("write_file", path="page.txt", content=PAGE.replace('id="menu"', ""))


def test_both_guards_ask_one_question(engine, top):
    """A write that both guards would question is questioned once, with both losses."""
    page = PAGE + "<p>text</p>\n" * 100
    (top / "index.html").write_text(page)
    (top / "app.js").write_text("document.getElementById('menu')")
    error = engine.refusal("write_file", path="index.html", content="<p></p>")
    assert error["reason"] == "shrink_guard"
    assert "#menu" in error["message"]
    engine.text("write_file", path="index.html", content="<p></p>")


@pytest.mark.parametrize("guard", ["retention", "references"])
def test_guards_fail_closed(engine, top, monkeypatch, guard):
    """When a check itself fails, the write is refused with the error, and that is not the first ask."""
    from exeora_ws.toolsets.engine import guards

    (top / "index.html").write_text(PAGE + "<p>text</p>\n" * 100)
    (top / "app.js").write_text("document.getElementById('menu')")

    def fail(*_arguments):
        raise RecursionError("secret detail")

    with monkeypatch.context() as patch:
        patch.setattr(guards, "measure_retention" if guard == "retention" else "find_gone_ids", fail)
        for _ in range(2):
            error = engine.refusal("write_file", path="index.html", content="<p></p>")
            assert error["reason"] == "guard_failed"
            assert "RecursionError" in error["message"]
            assert "secret" not in error["message"]
            assert "edit_file" in error["hint"]
    assert engine.refusal("write_file", path="index.html", content="<p></p>")["reason"] == "shrink_guard"


def test_a_script_that_cannot_be_read_closes_the_guard(engine, top):
    """A script that leads out of the workspace cannot be checked, so the write is refused."""
    (top / "index.html").write_text(PAGE)
    (top.parent / "out.js").write_text("x")
    os.symlink(top.parent / "out.js", top / "app.js")
    error = engine.refusal("write_file", path="index.html", content="<p></p>")
    assert error["reason"] == "guard_failed"
    assert str(top) not in error["message"]


# the binary-path guard


@pytest.mark.parametrize(
    "name",
    [
        *("a.png", "a.ico", "z.zip", "z.gz", "s.wav", "v.webm", "f.woff2", "f.ttf", "o.pyc", "o.so", "o.wasm"),
        *("d.sqlite", "d.sqlite3", "d.pdf", "m.blend", "m.glb", "m.usdz", "m.3ds", "m.umap", "m.uasset", "A.PNG"),
    ],
)
def test_no_text_is_written_to_a_binary_path(engine, top, name):
    """Text at a binary path is refused, by write_file and edit_file, with no second ask and no snapshot."""
    for _ in range(3):
        error = engine.refusal("write_file", path=name, content="x")
        assert error["reason"] == "binary_path"
        assert engine.refusal("edit_file", path=name, search="", replace="x")["reason"] == "binary_path"
    assert not (top / name).exists()
    assert engine.refusal("revert_file", path=name)["reason"] == "no_snapshot"


def test_a_link_is_no_way_around_a_binary_path(engine, top):
    """The guard holds for where a path really leads."""
    (top / "a.png").write_bytes(b"PNG")
    os.symlink("a.png", top / "a.txt")
    assert engine.refusal("write_file", path="a.txt", content="x")["reason"] == "binary_path"
    assert (top / "a.png").read_bytes() == b"PNG"


def test_the_refusal_names_what_would_make_the_file(engine):
    """The refusal names the tool that makes such a file; for a 3D file it says that nothing does."""
    assert "run_shell" in engine.refusal("write_file", path="a.png", content="x")["hint"]
    assert "run_shell" in engine.refusal("write_file", path="a.pdf", content="x")["hint"]
    scene = engine.refusal("write_file", path="a.glb", content="x")["hint"]
    assert "nothing here makes" in scene
    assert "is not the file" in scene


@pytest.mark.parametrize("name", ["a.fbx", "a.svg", "a.obj.txt", "a.json"])
def test_formats_with_a_text_form_stay_writable(engine, top, name):
    """`.fbx` stays writable: it has a text form."""
    engine.text("write_file", path=name, content="x")
    assert (top / name).exists()


# the escaped-fence guard

ESCAPED = "# t\n\n\\`\\`\\`js\nx\n\\`\\`\\`\n"
FENCED = "# t\n\n```js\nx\n```\n"


@pytest.mark.parametrize("name", ["a.md", "a.mdx", "a.markdown", "A.MD"])
def test_escaped_fences_are_refused_twice_and_then_repaired(engine, top, caplog, name):
    """A Markdown write with an escaped fence is refused twice, naming the line; the third is repaired and passes."""
    for _ in range(2):
        error = engine.refusal("write_file", path=name, content=ESCAPED)
        assert error["reason"] == "escaped_fence"
        assert "line 3" in error["message"]
        assert not (top / name).exists()
    assert "repaired" in engine.text("write_file", path=name, content=ESCAPED)
    assert (top / name).read_text() == FENCED
    assert [r.tag for r in caplog.records if hasattr(r, "tag")] == ["ESCAPED-FENCE"] * 3


def test_the_replacement_of_an_edit_is_looked_at_too(engine, top):
    """An edit's replacement is held to the same."""
    (top / "a.md").write_text("here\n")
    for _ in range(2):
        assert engine.refusal("edit_file", path="a.md", search="here", replace=ESCAPED)["reason"] == "escaped_fence"
    engine.text("edit_file", path="a.md", search="here\n", replace=ESCAPED)
    assert (top / "a.md").read_text() == FENCED


def test_fences_are_only_looked_for_in_markdown(engine, top):
    """Other files may hold what they like, and a fence within a line is none."""
    engine.text("write_file", path="a.txt", content=ESCAPED)
    engine.text("write_file", path="a.md", content="write \\`\\`\\` for a fence\n")
    assert find_escaped_fence("  \\```sh\n") == (1, "\\```sh")
    assert repair_fences("> \\`\\`\\`\n\\```\n") == "> ```\n```\n"


# edit_file


def test_edit_matches_exactly_first(engine, top):
    """Matching is exact first."""
    (top / "a.txt").write_text("a  b\na b\n")
    engine.text("edit_file", path="a.txt", search="a b", replace="X")
    assert (top / "a.txt").read_text() == "a  b\nX\n"


def test_edit_forgives_white_space_in_one_place(engine, top):
    """Else line by line, ignoring indentation and spacing, when that is exactly one place."""
    (top / "a.py").write_text("def f():\n    if  x:\n        return 1\n")
    shown = engine.text("edit_file", path="a.py", search="if x:\n  return 1", replace="    return 2")
    assert "White space differed" in shown
    assert (top / "a.py").read_text() == "def f():\n    return 2\n"


def test_forgiving_needs_one_place(engine, top):
    """When white space would be forgiven in more than one place, the edit is refused with their lines."""
    (top / "a.py").write_text("  x = 1\ny\n    x = 1\n")
    error = engine.refusal("edit_file", path="a.py", search="x  =  1", replace="x = 2")
    assert (error["reason"], error["data"]["lines"]) == ("ambiguous_match", [1, 3])


def test_an_empty_search_creates_a_missing_file(engine, top):
    """With an empty search the tool creates the file if it does not exist."""
    assert engine.text("edit_file", path="n/a.txt", search="", replace="x\n") == "Created n/a.txt: 2 bytes."
    assert (top / "n/a.txt").read_text() == "x\n"


def test_an_empty_search_without_a_range_overwrites_nothing(engine, top):
    """An empty search for a file that is there needs a range; the message has the whole-file form."""
    (top / "a.txt").write_text("a\nb\n")
    error = engine.refusal("edit_file", path="a.txt", search="", replace="x")
    assert error["reason"] == "empty_old_text"
    assert "start_line 1 and end_line 2" in error["hint"]
    assert (top / "a.txt").read_text() == "a\nb\n"


@pytest.mark.parametrize(
    ("wanted", "after"),
    [
        ({"start_line": 2, "end_line": 3}, "a\nX\nd\n"),
        ({"start_line": 2}, "a\nX\nc\nd\n"),
        ({"end_line": 2}, "X\nc\nd\n"),
        ({"start_line": "2", "end_line": "3"}, "a\nX\nd\n"),
        ({"start_line": 3, "end_line": 9}, "a\nb\nX\n"),
    ],
)
def test_a_range_with_an_empty_search_is_replaced(engine, top, wanted, after):
    """With a range and an empty search those lines are replaced; end_line is start_line by default."""
    (top / "a.txt").write_text("a\nb\nc\nd\n")
    engine.text("edit_file", path="a.txt", search="", replace="X\n", **wanted)
    assert (top / "a.txt").read_text() == after


def test_a_range_confines_the_search(engine, top):
    """With a range and a search, the search looks only there; without an end, from start_line to the end."""
    (top / "a.txt").write_text("x\nx\nx\nlast line of it\n")
    engine.text("edit_file", path="a.txt", search="x", replace="y", start_line=2, end_line=2)
    assert (top / "a.txt").read_text() == "x\ny\nx\nlast line of it\n"
    engine.text("edit_file", path="a.txt", search="x", replace="z", start_line=2)
    assert (top / "a.txt").read_text() == "x\ny\nz\nlast line of it\n"


def test_the_whole_file_form(engine, top):
    """Line 1 to past the end with an empty search rewrites the file, says that it was clamped, and is no shrinking."""
    (top / "a.txt").write_text(PROSE)
    shown = engine.text("edit_file", path="a.txt", search="", replace="short\n", start_line=1, end_line=500)
    assert "60 lines" in shown
    assert "500" in shown
    assert (top / "a.txt").read_text() == "short\n"


def test_several_matches_are_replaced_everywhere(engine, top):
    """A search that matches more than once is replaced everywhere."""
    (top / "a.txt").write_text("foo bar foo\nbaz foo\n")
    assert "3 places" in engine.text("edit_file", path="a.txt", search="foo", replace="f")
    assert (top / "a.txt").read_text() == "f bar f\nbaz f\n"


def test_a_replacement_that_would_outweigh_the_file_is_refused(engine, top):
    """The replacement's length times the matches must not exceed the file's."""
    (top / "a.txt").write_text("x\n" * 10)
    error = engine.refusal("edit_file", path="a.txt", search="x", replace="ab\ncd")
    assert error["reason"] == "repeated_replacement"
    assert (top / "a.txt").read_text() == "x\n" * 10
    engine.text("edit_file", path="a.txt", search="x", replace="ab")


def test_a_replacement_that_would_outweigh_the_range_is_refused(engine, top):
    """With a range, its length is the measure."""
    (top / "a.txt").write_text("x\n" * 4 + "long enough a line for anything at all\n" * 5)
    wanted = {"path": "a.txt", "search": "x", "replace": "abc", "start_line": 1, "end_line": 4}
    assert engine.refusal("edit_file", **wanted)["reason"] == "repeated_replacement"
    engine.text("edit_file", **{**wanted, "replace": "ab"})


def test_a_title_swapped_for_the_whole_document_is_refused(engine, top):
    """One match whose replacement opens with the file's first line and is over four times as long is refused."""
    (top / "a.md").write_text("# Title\n\ntext\nmore text\n")
    document = "# Title\n\nnew\ntext\nof it\n"
    error = engine.refusal("edit_file", path="a.md", search="# Title", replace=document)
    assert error["reason"] == "doubled_document"
    assert "start_line 1 and end_line 4" in error["hint"]
    assert (top / "a.md").read_text() == "# Title\n\ntext\nmore text\n"
    engine.text("edit_file", path="a.md", search="# Title", replace="# Title\n\na\nb")


def test_a_miss_reports_the_nearest_line(engine, top):
    """A miss reports the nearest line."""
    (top / "a.txt").write_text(PROSE)
    error = engine.refusal("edit_file", path="a.txt", search="sentence number 30 tells of thing 100x", replace="x")
    assert error["reason"] == "no_match"
    assert "lines 31 to 31" in error["message"]
    assert "whole file" not in error["hint"]


def test_a_miss_of_half_the_file_spells_out_the_whole_file_form(engine, top):
    """A failed search at least half the file long, or a range out of bounds, spells out the whole-file form too."""
    (top / "a.txt").write_text("a\nb\nc\n")
    long = engine.refusal("edit_file", path="a.txt", search="xyz", replace="x")
    assert "start_line 1 and end_line 3" in long["hint"]
    for wanted in ({"start_line": 9}, {"start_line": 3, "end_line": 2}, {"start_line": 0, "end_line": 1}):
        error = engine.refusal("edit_file", path="a.txt", search="", replace="x", **wanted)
        assert error["reason"] == "invalid_range"
        assert "start_line 1 and end_line 3" in error["hint"]


def test_edit_takes_texts_literally(engine, top):
    """Neither side is a pattern."""
    (top / "a.txt").write_text("a.c $1\n")
    engine.text("edit_file", path="a.txt", search="a.c $1", replace="\\1 $& \\g<0>")
    assert (top / "a.txt").read_text() == "\\1 $& \\g<0>\n"


# search_files and list_files


def test_search_gives_lines_grouped_by_file(engine, top):
    """With a query: matching lines as `path:line: text`, grouped by file."""
    (top / "a.txt").write_text("hit one\nno\nhit two\n")
    (top / "b.txt").write_text("hit\n")
    assert engine.text("search_files", query="hit") == "a.txt:1: hit one\na.txt:3: hit two\n\nb.txt:1: hit"
    assert engine.text("search_files", query="hit", path="b.txt") == "b.txt:1: hit"


def test_search_is_text_unless_regex(engine, top):
    """The query is text unless `regex`."""
    (top / "a.txt").write_text("a.c\nabc\n")
    assert engine.text("search_files", query="a.c", path="a.txt") == "a.txt:1: a.c"
    assert engine.text("search_files", query="a.c", regex=True, path="a.txt").count("\n") == 1


def test_search_without_a_query_lists_files(engine, top):
    """Without a query: the files that match the glob, at any depth."""
    (top / "docs/deep").mkdir(parents=True)
    for name in ("docs/a.md", "docs/deep/b.md", "docs/c.txt", "top.md"):
        (top / name).touch()
    assert engine.text("search_files", glob="docs/**/*.md") == "docs/a.md\ndocs/deep/b.md"
    assert engine.text("search_files", glob="*.md", path="docs") == "docs/a.md\ndocs/deep/b.md"
    assert engine.text("search_files", glob="*.none") == "No file matches."


def test_search_is_capped_and_says_so(engine, top):
    """At most max_results lines or files, 200 by default; a cut is said."""
    (top / "a.txt").write_text("hit\n" * 300)
    whole = engine("search_files", query="hit")["structuredContent"]
    assert whole["text"].count("hit") == 200
    assert "there are more" in whole["notice"]
    few = engine("search_files", query="hit", max_results=3)["structuredContent"]
    assert few["text"].count("hit") == 3
    files = engine("search_files", max_results=1)["structuredContent"]
    assert "\n" not in files["text"]
    assert "there are more" in files["notice"]


def test_list_draws_a_tree(engine, top):
    """A tree from the root, three levels deep by default."""
    (top / "a/b/c/d").mkdir(parents=True)
    (top / "a/b/c/file.txt").touch()
    (top / "a/b/x.txt").touch()
    shown = engine.text("list_files")
    assert shown.split("\n")[:5] == ["./", "  README.md", "  a/", "    b/", "      c/ …"]
    assert "file.txt" not in shown
    assert "file.txt" in engine.text("list_files", path="a", depth=3)
    assert engine.text("list_files", depth=1).split("\n") == ["./", "  README.md", "  a/ …", "  src/ …"]


# revert_file


def test_revert_restores_what_was_there_before(engine, top):
    """Restores the file to what it held before the first write of this run."""
    (top / "a.txt").write_text("before\n")
    engine.text("edit_file", path="a.txt", search="before", replace="one")
    engine.text("write_file", path="a.txt", content="two\n")
    assert "Reverted" in engine.text("revert_file", path="a.txt")
    assert (top / "a.txt").read_text() == "before\n"


def test_revert_deletes_what_was_not_there(engine, top):
    """Deletes the file if it did not exist before the first write."""
    engine.text("write_file", path="a.txt", content="x")
    assert "Deleted" in engine.text("revert_file", path="a.txt")
    assert not (top / "a.txt").exists()


def test_revert_needs_a_snapshot_of_this_run(engine, top):
    """Fails if no snapshot exists; those of another run do not count."""
    (top / "a.txt").write_text("before\n")
    assert engine.refusal("revert_file", path="a.txt")["reason"] == "no_snapshot"
    engine.text("write_file", path="a.txt", content="x")
    assert engine.as_session("other").refusal("revert_file", path="a.txt")["reason"] == "no_snapshot"
    assert (top / "a.txt").read_text() == "x"


def test_what_could_not_be_read_has_no_snapshot(engine, app, top):
    """A file that existed but could not be read gets no snapshot, rather than an error as its content."""
    (top / "a.txt").write_text("now\n")
    app.services.snapshots.keep_unreadable("session-1", str(top / "a.txt"))
    error = engine.refusal("revert_file", path="a.txt")
    assert error["reason"] == "no_snapshot"
    assert "unreadable" in error["message"]
    assert (top / "a.txt").read_text() == "now\n"


# run_shell


def test_run_shell_folds_its_outputs_and_code_in(engine):
    """Combined output with stderr and exit code folded in."""
    assert engine.text("run_shell", command="echo out; echo err >&2; exit 3") == "out\n\nSTDERR:\nerr\n\nExit code: 3"
    assert engine.text("run_shell", command="echo out") == "out\n\nExit code: 0"


def test_output_that_json_makes_longer_than_an_answer_is_cut(engine):
    """What does not fit into one answer is left out from the beginning, and that is said."""
    answer = engine("run_shell", command="head -c 190000 /dev/zero; echo last")["structuredContent"]
    assert answer["text"].endswith("last\n\nExit code: 0")
    assert "there was more" in answer["notice"]


def test_run_shell_says_which_signal(engine):
    """A command that a signal ended has no exit code, and the answer names the signal."""
    assert "Exit code: none (SIGKILL)" in engine.text("run_shell", command="kill -KILL $$")


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("cd web && npm start", "&&"),
        ("cd web", "a prefix that only a shell knows"),
        ("export A=1", "a prefix that only a shell knows"),
        ("source .env", "a prefix that only a shell knows"),
        ("a || b", "||"),
        ("a; b", ";"),
        ("a\nb", "a newline"),
        ("npm start &", "&"),
        ("PORT=1 npm start", "a variable in front"),
    ],
)
def test_the_background_takes_one_plain_program(engine, top, command, found):
    """A compound command in the background is refused without running, and the error names the working form."""
    error = engine.refusal(
        "run_shell", command=f"touch ran\n{command}" if found == "a newline" else command, background=True
    )
    assert error["reason"] == "not_plain"
    assert found in error["message"]
    assert "sh -c '" in error["hint"]
    assert not (top / "ran").exists()


@pytest.mark.parametrize(
    "command",
    [
        "npm run dev",
        "sh -c 'cd x && A=1 y; z &'",
        'node -e "a; b && c"',
        "server 2>&1",
        "server &> log",
        r"a \; b",
        "a | b",
    ],
)
def test_quoted_text_and_redirections_are_no_compound(command):
    """What is quoted, and a redirection, is one plain program all the same."""
    assert find_compound(command) is None


def test_the_background_answers_at_once_and_logs(engine, app, top):
    """In the background it answers at once, its output goes to .server.log, and it ends with the connection."""
    shown = engine.text("run_shell", command="sh -c 'echo up; echo $$ > pid; exec sleep 50'", background=True)
    assert "Started in the background" in shown
    assert eventually(lambda: (top / ".server.log").read_text() == "up\n")
    pid = int((top / "pid").read_text())
    assert "up" in engine.text("read_logs", source="file", target=".server.log")
    app.close_session("session-1")
    assert all_gone([pid])


def test_a_background_command_that_ends_at_once_is_said(engine):
    """One that ends at once is not said to be running."""
    shown = engine.text("run_shell", command="sh -c 'exit 4'", background=True)
    assert "ended already" in shown
    assert "Exit code: 4" in shown


def test_policy_judges_run_shell(engine, top):
    """run_shell obeys the project's lists, in the background too."""
    (top / "exeora.toml").write_text('deny = ["curl"]\n')
    for background in (False, True):
        error = engine.refusal("run_shell", command="env curl x", background=background)
        assert error["reason"] == "denied"


# read_logs


@pytest.fixture
def log(top):
    (top / "s.log").write_text("".join(f"line {n}{' error' if n % 10 == 0 else ''}\n" for n in range(1, 301)))
    return "s.log"


def test_a_log_is_a_fenced_block(engine, log):
    """A fenced block under a header that says which source and how much of it is shown."""
    shown = engine.text("read_logs", source="file", target=log, lines=2)
    assert shown == "## File log: s.log (last 2 of 300 lines)\n```\nline 299\nline 300 error\n```"


@pytest.mark.parametrize(("wanted", "given_lines"), [(None, 100), (0, 1), (-3, 1), (5, 5), (99_999, 300)])
def test_how_many_lines(engine, log, wanted, given_lines):
    """100 lines by default, clamped to 1 to 2000."""
    more = {} if wanted is None else {"lines": wanted}
    assert f"last {given_lines} of 300 lines" in engine.text("read_logs", source="file", target=log, **more)


def test_at_most_two_thousand_lines(engine, top):
    """More than 2000 are never given."""
    (top / "s.log").write_text("x\n" * 3000)
    assert "last 2000 of 3000 lines" in engine.text("read_logs", source="file", target="s.log", lines=5000)


def test_a_filter(engine, log):
    """`filter` keeps only lines that match."""
    shown = engine.text("read_logs", source="file", target=log, filter="err.r", lines=2)
    assert "line 290 error\nline 300 error" in shown
    assert "last 2 of 30 lines that match, of 300" in shown
    assert "last 0 of 0" in engine.text("read_logs", source="file", target=log, filter="nowhere")
    assert engine.refusal("read_logs", source="file", target=log, filter="(")["reason"] == "invalid_pattern"


def test_a_fence_in_the_log_ends_nothing(engine, top):
    """A log that holds a fence is fenced by a longer one."""
    (top / "s.log").write_text("```\nx\n")
    assert engine.text("read_logs", source="file", target="s.log").endswith("\n````\n```\nx\n````")


def test_a_file_log_may_be_named_from_the_root(engine, log, top):
    """A path under /workspace, or a relative one, is read as read_file reads it."""
    for target in (f"/workspace/{log}", f" {log} ", str(top / log)):
        assert "line 300" in engine.text("read_logs", source="file", target=target)


def test_any_other_absolute_path_is_refused(engine, tmp_path):
    """There is no container: a file elsewhere is refused, pointing at run_shell with tail."""
    (tmp_path / "s.log").write_text("secret\n")
    error = engine.refusal("read_logs", source="file", target=str(tmp_path / "s.log"))
    assert error["code"] == "PATH_ESCAPE"
    assert "run_shell" in error["hint"]
    assert "tail" in error["hint"]


def test_a_file_that_cannot_be_read_points_at_tail(engine, top):
    """A file too large, or one that cannot be read, is an error pointing at run_shell with tail."""
    with (top / "big.log").open("wb") as stream:
        stream.truncate(50_000_001)
    for target, reason in (("big.log", "too_large"), ("src", "is_a_folder"), ("none.log", None)):
        error = engine.refusal("read_logs", source="file", target=target)
        assert error.get("reason") == reason
        assert "tail" in error["hint"]


def test_an_unknown_source_or_no_target_is_an_error(engine):
    """An unknown source, or a missing target, is an error."""
    assert engine.refusal("read_logs", source="syslog", target="x")["reason"] == "unknown_source"
    assert engine.refusal("read_logs", source="file", target=" ")["reason"] == "missing_target"
    assert engine.refusal("read_logs", source="docker", target="--help")["code"] == "INVALID_ARGUMENTS"


@pytest.mark.parametrize(("source", "program"), [("docker", "docker"), ("systemd", "journalctl")])
def test_containers_and_services_where_present(engine, top, tmp_path, monkeypatch, source, program):
    """Docker and systemd logs come from their programs; where there is none, the answer says so."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for needed in ("sh", "rg"):
        os.symlink(shutil.which(needed) or "/nonexistent", folder / needed)
    monkeypatch.setenv("PATH", str(folder))
    assert engine.refusal("read_logs", source=source, target="web")["reason"] == "source_missing"
    (folder / program).write_text('#!/bin/sh\necho "args: $*"\necho on stderr >&2\n')
    (folder / program).chmod(0o755)
    shown = engine.text("read_logs", source=source, target="web", lines=7)
    title = {"docker": "Docker logs", "systemd": "Systemd logs"}[source]
    assert shown.startswith(f"## {title}: web (last 2 of 2 lines)\n```\nargs: ")
    assert " 7 " in shown
    assert "on stderr" in shown
    (folder / program).write_text("#!/bin/sh\necho no such thing >&2\nexit 1\n")
    assert "no such thing" in engine.refusal("read_logs", source=source, target="web")["message"]


def test_policy_judges_the_programs_that_read_logs(engine, top):
    """A project that denies docker is not read by docker; files are."""
    (top / "exeora.toml").write_text('deny = ["docker", "journalctl"]\n')
    (top / "s.log").write_text("x\n")
    assert engine.refusal("read_logs", source="docker", target="web")["reason"] == "denied"
    assert engine.refusal("read_logs", source="systemd", target="web")["reason"] == "denied"
    assert "x" in engine.text("read_logs", source="file", target="s.log")


# by the official client


async def test_by_the_official_client(connect, top):
    """Over stdio: raw strings as text, the same in structured content, failures as Error texts."""
    async with connect("mcp", "--toolset", "engine") as client:
        assert len((await client.list_tools()).tools) == 8
        (top / "a.txt").write_text("raw\n")
        read = await client.call_tool("read_file", {"file_path": "workspace/a.txt"})
        assert read.content[0].text == "raw\n"
        assert read.structured_content == {"text": "raw\n"}
        refused = await client.call_tool("write_file", {"path": "a.png", "content": "x"})
        assert refused.is_error
        assert refused.content[0].text.startswith("Error")


def test_guards_are_logged_as_fields(engine, top, caplog):
    """Refusals are logged with a tag and fields of their own."""
    caplog.set_level(logging.INFO, "exeora.engine")
    (top / "a.txt").write_text(PROSE)
    engine.refusal("write_file", path="a.txt", content="x")
    (record,) = [r for r in caplog.records if r.name == "exeora.engine"]
    assert (record.tag, record.path, record.kept) == ("SHRINK-GUARD", "a.txt", pytest.approx(0, abs=0.01))
    assert record.getMessage().startswith("[SHRINK-GUARD]")
