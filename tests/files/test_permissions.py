"""What the file system refuses is said with its name, and nothing changes."""

import pytest

from support.somebody import open_folder_for_all, tell_as_somebody
from support.trees import picture


@pytest.fixture
def top():
    with open_folder_for_all() as top:
        yield top


def test_closed_files_and_folders_are_refused_by_name(top):
    (top / "closed").write_text("old")
    (top / "closed").chmod(0)
    (top / "fixed").write_text("old")
    (top / "fixed").chmod(0o444)
    (top / "locked").mkdir()
    (top / "locked" / "f").write_text("old")
    (top / "locked" / "f").chmod(0o666)
    (top / "locked").chmod(0o555)
    (top / "dark").mkdir()
    (top / "dark" / "f").write_text("old")
    (top / "dark").chmod(0)
    before = picture(top)
    told = tell_as_somebody(
        """
def at(path, function, *more, **options):
    with reach.locate_for_reading(path) as spot:
        return function(spot, *more, **options)
def patch(*operations):
    apply_patch(reach, operations, keeping, top.parent / "patches")
told = {
    "read": refused(at, "closed", read_text),
    "search": refused(at, "closed", search, Query("x"), ripgrep, patience),
    "list": refused(at, "dark", list_folder),
    "below": refused(at, "dark/f", read_text),
    "edit closed": refused(edit_file, reach, "closed", Replacement("old", "new"), keeping),
    "edit fixed": refused(edit_file, reach, "fixed", Replacement("old", "new"), keeping),
    "edit locked": refused(edit_file, reach, "locked/f", Replacement("old", "new"), keeping),
    "write fixed": refused(write_file, reach, "fixed", "new", keeping),
    "write locked": refused(write_file, reach, "locked/new/f", "new", keeping),
    "write dark": refused(write_file, reach, "dark/f", "new", keeping),
    "create locked": refused(patch, Operation("create", "a", content=""), Operation("create", "locked/g", content="")),
    "delete locked": refused(patch, Operation("create", "a", content=""), Operation("delete", "locked/f")),
    "move locked": refused(patch, Operation("create", "a", content=""), Operation("move", "locked/f", to="b")),
    "update fixed": refused(patch, Operation("create", "a", content=""),
                            Operation("update", "fixed", hunks=(Hunk("old", "new"),))),
}
""",
        top,
    )
    reasons = {name: reason for name, (_, reason) in told.items()}
    assert reasons == {name: "read_only" if "fixed" in name else "permission_denied" for name in told}, told
    assert {code for code, _ in told.values()} == {"TOOL_FAILED"}
    assert picture(top) == before


def test_what_a_search_or_listing_could_not_open_is_counted(top):
    for number in range(300):
        (top / f"closed{number}").write_text("needle")
        (top / f"closed{number}").chmod(0)
    (top / "open").write_text("needle\n")
    for name in ("dark", "dim"):
        (top / name).mkdir()
        (top / name / "f").write_text("needle")
        (top / name).chmod(0)
    told = tell_as_somebody(
        """
with reach.locate_for_reading(".") as spot:
    found = search(spot, Query("needle"), ripgrep, patience)
    listed = list_tree(spot, ripgrep, patience)
told = [[m.path for m in found.matches], found.unreadable, len(listed.entries), listed.unreadable]
""",
        top,
    )
    assert told == [["open"], 302, 301, 2]
