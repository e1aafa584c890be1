"""The six tools the whole way of a call, with exactly the fields of the contract's table (cases 17 to 29)."""

import json
import os
import threading
from pathlib import Path

import jsonschema
import pytest
from exeora_ws.app import App, open_app
from exeora_ws.cancellation import Cancellation, no_progress
from exeora_ws.settings import find_key, store_value
from exeora_ws.tools.call import Caller, Face, RawCall, Scope
from exeora_ws.tools.files import FILE_TOOLS

from support.repositories import git


@pytest.fixture
def app(sealed) -> App:
    app = open_app()
    yield app
    app.close()


@pytest.fixture
def top(make_repository) -> Path:
    return make_repository("app")


@pytest.fixture
def project(app: App, top: Path):
    return app.inventory.register_project(top, exact=False)[0]


@pytest.fixture
def call(app: App, project):
    def make(tool: str, *, cancellation: Cancellation | None = None, progress=no_progress, **arguments):
        caller = Caller(Face.CLI, "test", "session", Scope(bound=project.id))
        if cancellation is not None or progress is not no_progress:
            caller = Caller(
                Face.CLI, "test", "session", Scope(bound=project.id),
                cancellation=cancellation or Cancellation(), progress=progress,
            )  # fmt: skip
        return app.calls.make(RawCall(tool, arguments), caller)

    return make


@pytest.fixture
def result(app: App, call):
    def make(tool: str, **arguments):
        outcome = call(tool, **arguments)
        assert outcome.error is None, outcome.error.to_dict()
        document = outcome.to_dict()
        jsonschema.validate(document, app.calls.catalog[tool].output_schema)
        json.dumps(document).encode()
        return document

    return make


@pytest.fixture
def refusal(call, app: App):
    def make(tool: str, **arguments):
        outcome = call(tool, **arguments)
        assert outcome.error is not None, outcome.to_dict()
        error = outcome.error.to_dict()
        assert error.get("reason") is None or error["reason"] in app.calls.catalog[tool].reasons, error
        return error

    return make


def test_read_file(result, top: Path):
    (top / "f").write_text("one\ntwo\nthree\n")
    assert result("read_file", path="f") == {
        "path": "f",
        "content": "one\ntwo\nthree\n",
        "truncated": False,
        "totalLines": 3,
    }
    assert result("read_file", path="./f", offset=2, limit=1) == {
        "path": "f",
        "content": "two\n",
        "truncated": True,
        "totalLines": 3,
        "nextOffset": 3,
    }
    (top / "f").write_bytes(b"caf\xe9")
    assert result("read_file", path="f")["replaced"] == 1
    (top / "f").write_text("x" * 3_000_000)
    got = result("read_file", path="f")
    assert (len(got["content"]), got["nextOffset"], got["nextColumn"]) == (500_000, 1, 500_001)
    assert len(result("read_file", path="f", column=2_900_001)["content"]) == 100_000


def test_list_files(result, top: Path):
    (top / "link").symlink_to("README.md")
    size = (top / "README.md").stat().st_size
    assert result("list_files") == {
        "path": ".",
        "entries": [
            {"path": ".git", "type": "directory"},
            {"path": "README.md", "type": "file", "size": size},
            {"path": "link", "type": "symlink"},
            {"path": "src", "type": "directory"},
        ],
        "truncated": False,
    }
    assert [entry["path"] for entry in result("list_files", recursive=True)["entries"]] == [
        "README.md",
        "link",
        "src/file-0.txt",
    ]
    assert result("list_files", path="src", glob="*.txt")["entries"][0]["path"] == "src/file-0.txt"


def test_grep(result, top: Path):
    (top / "b.bin").write_bytes(b"line one\0")
    assert result("grep", pattern="LINE (one|two)", caseInsensitive=True) == {
        "matches": [
            {"path": "src/file-0.txt", "line": 1, "text": "line one"},
            {"path": "src/file-0.txt", "line": 2, "text": "line two"},
        ],
        "truncated": False,
        "skippedBinary": 1,
    }
    assert result("grep", pattern="line", maxResults=1)["truncated"] is True
    (top / "long").write_text("x" * 900)
    (match,) = result("grep", pattern="xx", path="long")["matches"]
    assert (match["cut"], len(match["text"])) == (True, 500)


def test_edit_file(result, top: Path):
    assert result("edit_file", path="src/file-0.txt", oldString="line two\n", newString="2\n") == {
        "path": "src/file-0.txt",
        "replacements": 1,
        "diff": "--- a/src/file-0.txt\n+++ b/src/file-0.txt\n@@ -1,3 +1,3 @@\n line one\n-line two\n+2\n file 0\n",
    }


def test_write_file(result, top: Path):
    assert result("write_file", path="new/f", content="é") == {"path": "new/f", "bytesWritten": 2, "created": True}
    assert result("write_file", path="new/f", content="") == {"path": "new/f", "bytesWritten": 0, "created": False}


def test_apply_patch(result, top: Path):
    done = result(
        "apply_patch",
        operations=[
            {"type": "create", "path": "n", "content": "x\n"},
            {"type": "update", "path": "README.md", "oldString": "revision", "newString": "version"},
            {"type": "replace", "path": "n", "content": "y\n"},
            {"type": "move", "path": "src/file-0.txt", "to": "moved"},
            {"type": "delete", "path": "n"},
        ],
    )
    assert done["operations"] == [
        {"type": "create", "path": "n"},
        {"type": "update", "path": "README.md"},
        {"type": "replace", "path": "n"},
        {"type": "move", "path": "src/file-0.txt", "to": "moved"},
        {"type": "delete", "path": "n"},
    ]
    assert "rename to moved" in done["diff"]
    assert git(top, "status", "--porcelain") == " M README.md\n D src/file-0.txt\n?? moved"


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"type": "create", "path": "x"}, "missing_field"),
        ({"type": "update", "path": "x", "oldString": "a"}, "missing_field"),
        ({"type": "move", "path": "x"}, "missing_field"),
        ({"type": "delete", "path": "x", "content": "a"}, "unexpected_field"),
        ({"type": "create", "path": "x", "content": "a", "to": "b"}, "unexpected_field"),
    ],
)
def test_operations_have_the_fields_of_their_type(refusal, operation, reason):
    error = refusal("apply_patch", operations=[operation])
    assert (error["code"], error["reason"], error["data"]) == ("INVALID_ARGUMENTS", reason, {"operation": 0})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "f", "offset": 0}),
        ("read_file", {"path": "f", "lines": 3}),
        ("read_file", {"path": 3}),
        ("grep", {"pattern": "x", "maxResults": 201}),
        ("list_files", {"recursive": "yes"}),
        ("edit_file", {"path": "f", "oldString": "a"}),
        ("apply_patch", {"operations": []}),
        ("apply_patch", {"operations": [{"type": "rename", "path": "x"}]}),
        ("apply_patch", {"operations": [{"type": "delete", "path": "x"}] * 21}),
    ],
)
def test_arguments_are_checked_by_the_schema(call, tool: str, arguments):
    assert call(tool, **arguments).error.code == "INVALID_ARGUMENTS"


EVERY_TOOL = [
    ("read_file", {}),
    ("list_files", {}),
    ("list_files", {"recursive": True}),
    ("grep", {"pattern": "x"}),
    ("edit_file", {"oldString": "a", "newString": "b"}),
    ("write_file", {"content": "x"}),
]


@pytest.mark.parametrize(("tool", "arguments"), EVERY_TOOL)
def test_cases_17_and_18_hold_for_every_tool(refusal, top: Path, tool: str, arguments):
    (top.parent / "app-secret").mkdir()
    (top.parent / "app-secret" / "x").write_text("a secret")
    (top / "leak").symlink_to("/etc")
    for path in (
        "../app-secret/x",
        str(top.parent / "app-secret" / "x"),
        "leak/hostname",
        "leak",
        str(top / "README.md"),
    ):
        error = refusal(tool, path=path, **arguments)
        assert error["code"] == "PATH_ESCAPE", path
        assert str(top) not in json.dumps(error)
        assert "/etc" not in json.dumps(error)


def test_cases_17_and_18_hold_for_patches(refusal, top: Path):
    (top / "leak").symlink_to("/etc")
    for operation in (
        {"type": "create", "path": "../x", "content": ""},
        {"type": "create", "path": "leak/x", "content": ""},
        {"type": "move", "path": "README.md", "to": "../x"},
    ):
        assert refusal("apply_patch", operations=[operation])["code"] == "PATH_ESCAPE"
    assert (top / "README.md").exists()


def test_case_24_twenty_edits_at_once_through_the_calls(call, top: Path):
    (top / "f").write_text("".join(f"line {n:02}\n" for n in range(20)))
    outcomes = []
    threads = [
        threading.Thread(
            target=lambda n=n: outcomes.append(
                call("edit_file", path="f", oldString=f"line {n:02}\n", newString=f"done {n:02}\n")
            )
        )
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcome.error for outcome in outcomes] == [None] * 20
    assert (top / "f").read_text() == "".join(f"done {n:02}\n" for n in range(20))


def test_a_workspace_has_its_own_files(app: App, call, result, top: Path):
    made = call("create_workspace", branch="topic").to_dict()["workspace"]
    result("write_file", workspace="topic", path="only-here", content="x")
    assert (Path(made["path"]) / "only-here").exists()
    assert not (top / "only-here").exists()
    assert call("read_file", workspace="nowhere", path="README.md").error.code == "UNKNOWN_WORKSPACE"


def test_the_policy_file_follows_the_users_setting(app: App, call, refusal, result):
    assert refusal("write_file", path="exeora.toml", content="")["reason"] == "policy_file"
    store_value(app.places, find_key("tools-may-edit-policy"), value=True)
    assert result("write_file", path="exeora.toml", content="")["created"]


def test_a_call_taken_back_ends_the_search(call, top: Path):
    cancellation = Cancellation()
    cancellation.cancel()
    for tool, arguments in (
        ("grep", {"pattern": "x"}),
        ("list_files", {"recursive": True}),
        ("read_file", {"path": "README.md"}),
    ):
        assert call(tool, cancellation=cancellation, **arguments).error.code == "CANCELLED"


def test_writes_by_tools_can_be_found_in_the_snapshots(app: App, result, top: Path):
    before = (top / "README.md").read_bytes()
    result("write_file", path="README.md", content="gone")
    snapshot = app.services.snapshots.find(str(top / "README.md"), "session")
    assert app.services.snapshots.load_content(snapshot) == before


def test_every_tool_says_what_it_is(app: App):
    for tool in FILE_TOOLS:
        assert app.calls.catalog[tool.name] is tool
        assert tool.hints.read_only == (tool.name in ("read_file", "list_files", "grep"))
        assert 100 < len(tool.description) < 1_000
        for schema in (tool.input_schema(account=True), tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
        for name, field in tool.arguments_schema["properties"].items():
            assert "description" in json.dumps(field), name


def test_a_half_done_patch_is_undone_when_the_core_opens(app: App, top: Path):
    from exeora_ws.files.journal import Change, Journal, Kept, encode_path, open_entry

    with open_entry(app.places.patches) as entry:
        folder = entry.folder
        kept = Kept(there=False)
        (top / "half").write_text("x")
        digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
        change = Change(path="half", before=kept, after=digest, draft=".d")
        entry.begin(Journal(root=encode_path(str(top)), changes=(change,), folders=()))
    assert folder.exists()
    open_app().close()
    assert not (top / "half").exists()
    assert not os.listdir(app.places.patches)
