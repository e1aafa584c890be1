"""What the other toolsets need of the core: numbered ranges, line ranges, loose matches, a drawn tree."""

from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import InvalidArguments, PathNotFound
from exeora_ws.files.outline import outline
from exeora_ws.files.reach import Reach
from exeora_ws.files.reading import number_lines, read_text
from exeora_ws.files.replacing import Replacement, replace_text
from exeora_ws.files.ripgrep import Patience, Ripgrep

from support.repositories import git


def test_lines_are_numbered_as_read(reach: Reach, top: Path):
    (top / "f").write_text("".join(f"l{n}\n" for n in range(1, 13)))
    with reach.locate_for_reading("f") as spot:
        got = read_text(spot, offset=9, limit=3)
    assert number_lines(got) == " 9| l9\n10| l10\n11| l11\n"
    (top / "f").write_text("a\n\nb")
    with reach.locate_for_reading("f") as spot:
        assert number_lines(read_text(spot), separator="\t") == "1\ta\n2\t\n3\tb"
    (top / "f").write_text("")
    with reach.locate_for_reading("f") as spot:
        assert number_lines(read_text(spot)) == ""


@pytest.mark.parametrize(
    ("data", "first", "last", "new", "expected"),
    [
        (b"a\nb\nc\n", 2, 2, "X", b"a\nX\nc\n"),
        (b"a\nb\nc\n", 2, 99, "X\nY\n", b"a\nX\nY\n"),
        (b"a\nb\nc", 3, 3, "X", b"a\nb\nX"),
        (b"a\r\nb\r\nc\r\n", 2, 2, "X\nY", b"a\r\nX\r\nY\r\nc\r\n"),
        (b"a\nb\n", 1, 1, "", b"b\n"),
        (b"a\nb", 1, 2, "whole", b"whole"),
    ],
)
def test_lines_are_replaced_by_number(data: bytes, first: int, last: int, new: str, expected: bytes):
    assert replace_text(data, Replacement("", new, first_line=first, last_line=last), "f").data == expected


@pytest.mark.parametrize(("first", "last"), [(4, 5), (0, 1), (3, 2)])
def test_a_range_the_file_does_not_have_states_its_lines(first: int, last: int):
    with pytest.raises(InvalidArguments, match="3 lines") as caught:
        replace_text(b"a\nb\nc\n", Replacement("", "x", first_line=first, last_line=last), "f")
    assert (caught.value.reason, caught.value.data) == ("invalid_range", {"totalLines": 3})


def test_a_tree_is_drawn_to_a_depth(reach: Reach, ripgrep: Ripgrep, top: Path):
    git(top, "init", "-q")
    for name in ("a/b/c/d/e", "a/x", "z", "build/o", "node_modules/m"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("")
    (top / ".gitignore").write_text("build/\n")
    (top / "empty").mkdir()
    (top / "link").symlink_to("/etc")
    with reach.locate_for_reading(".") as spot:
        drawn = outline(spot, ripgrep, Patience(Cancellation()), depth=3)
        few = outline(spot, ripgrep, Patience(Cancellation()), limit=2)
    assert [(branch.depth, branch.name, branch.folder, branch.closed) for branch in drawn.branches] == [
        (0, ".gitignore", False, False),
        (0, "a", True, False),
        (1, "b", True, False),
        (2, "c", True, True),
        (1, "x", False, False),
        (0, "empty", True, False),
        (0, "link", False, False),
        (0, "z", False, False),
    ]
    assert not drawn.truncated
    assert (len(few.branches), few.truncated) == (2, True)
    with reach.locate_for_reading("z") as spot, pytest.raises(PathNotFound):
        outline(spot, ripgrep, Patience(Cancellation()))
