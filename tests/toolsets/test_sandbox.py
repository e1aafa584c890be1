"""Toolset sandbox, sentence by sentence: each test's docstring is the rule it holds."""

import json
import os
import threading
import time
from functools import partial

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.settings import find_key, store_value
from exeora_ws.tools.call import Caller, Face, RawCall, Scope

from support.processes import eventually, find_tagged
from support.repositories import git

pytestmark = pytest.mark.anyio


@pytest.fixture
def sandbox(offer):
    return offer("sandbox")


def test_its_three_tools(sandbox):
    """The toolset has project_fs_edit, project_fs_write and project_exec, each with the optional `workspace`."""
    assert list(sandbox.calls.catalog) == ["project_fs_edit", "project_fs_write", "project_exec"]
    for tool in sandbox.calls.catalog.values():
        schema = tool.input_schema(account=False)
        assert "workspace" in schema["properties"]
        assert "workspace" not in schema["required"]


# project_fs_edit


def test_edit_replaces_the_only_occurrence(sandbox, top):
    """Replaces an exact string that occurs exactly once; gives path, replacements and bytes."""
    (top / "a.txt").write_text("one\ntwo\nthree\n")
    result = sandbox.result("project_fs_edit", path="a.txt", oldString="two", newString="zwei")
    assert result == {"path": "a.txt", "replacements": 1, "bytes": 15}
    assert (top / "a.txt").read_text() == "one\nzwei\nthree\n"


@pytest.mark.parametrize(
    ("old", "content"),
    [("  two ", "one\n  two \n"), ("t.o", "two\nt.o\n"), ("a\\d", "a1 a\\d"), ("$&", "x $& y")],
)
def test_edit_takes_the_old_string_literally(sandbox, top, old, content):
    """`oldString` is matched literally: not trimmed, not a regular expression."""
    (top / "a.txt").write_text(content)
    assert sandbox.result("project_fs_edit", path="a.txt", oldString=old, newString=r"\1 $&")["replacements"] == 1
    assert (top / "a.txt").read_text() == content.replace(old, r"\1 $&")


def test_edit_does_not_trim(sandbox, top):
    """An old string with white space around it that is not in the file matches nothing."""
    (top / "a.txt").write_text("two\n")
    error = sandbox.refusal("project_fs_edit", path="a.txt", oldString=" two ", newString="x")
    assert (error["code"], error["reason"]) == ("TOOL_FAILED", "no_match")


def test_edit_without_a_match_says_so(sandbox, top):
    """No match is refused, and the message says that the text is not in the file."""
    (top / "a.txt").write_text("one\n")
    error = sandbox.refusal("project_fs_edit", path="a.txt", oldString="four", newString="4")
    assert error["reason"] == "no_match"
    assert "does not stand there" in error["message"]
    assert (top / "a.txt").read_text() == "one\n"


def test_edit_with_several_matches_names_the_lines(sandbox, top):
    """More than one match is refused as ambiguous, and the message names the line numbers."""
    (top / "a.txt").write_text("x = 1\ny = 2\nx = 1\n")
    error = sandbox.refusal("project_fs_edit", path="a.txt", oldString="x = 1", newString="x = 3")
    assert error["reason"] == "ambiguous_match"
    assert "lines 1, 3" in error["message"]
    assert error["data"]["lines"] == [1, 3]
    assert (top / "a.txt").read_text() == "x = 1\ny = 2\nx = 1\n"


def test_edit_replaces_all_on_purpose(sandbox, top):
    """`replaceAll: true` replaces every occurrence."""
    (top / "a.txt").write_text("ab ab ab\n")
    result = sandbox.result("project_fs_edit", path="a.txt", oldString="ab", newString="c", replaceAll=True)
    assert result == {"path": "a.txt", "replacements": 3, "bytes": 6}
    assert (top / "a.txt").read_text() == "c c c\n"


def test_edit_never_creates_a_file(sandbox, top):
    """It cannot silently clobber a file, nor make one."""
    error = sandbox.refusal("project_fs_edit", path="none.txt", oldString="a", newString="b")
    assert error["code"] == "PATH_NOT_FOUND"
    assert not (top / "none.txt").exists()


# project_fs_write


def test_write_creates_and_says_so(sandbox, top):
    """A new file is written, with its folders; `created` is true and `bytes` its size."""
    result = sandbox.result("project_fs_write", path="new/dir/a.txt", content="äb\n")
    assert result == {"path": "new/dir/a.txt", "bytes": 4, "created": True}
    assert (top / "new/dir/a.txt").read_bytes() == "äb\n".encode()


def test_write_replaces_wholesale_and_says_so(sandbox, top):
    """A file that existed is replaced wholesale, and `created` is false."""
    (top / "a.txt").write_text("long before\n" * 100)
    result = sandbox.result("project_fs_write", path="a.txt", content="short")
    assert result == {"path": "a.txt", "bytes": 5, "created": False}
    assert (top / "a.txt").read_text() == "short"


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("node_modules/x/index.js", "node_modules"),
        ("packages/a/node_modules/x.js", "node_modules"),
        ("NODE_MODULES/x.js", "node_modules"),
        (".git/config", ".git"),
        ("sub/.git/hooks/pre-commit", ".git"),
        ("src/brand/logo.ts", "src/brand"),
        ("src/onchain/abi/token.json", "src/onchain"),
        ("src/./brand/logo.ts", "src/brand"),
        ("src/other/../brand/logo.ts", "src/brand"),
    ],
)
@pytest.mark.parametrize("tool", ["project_fs_write", "project_fs_edit"])
def test_path_rules_refuse_and_name_the_rule(sandbox, top, tool, path, rule):
    """A write under node_modules, .git, src/brand or src/onchain is refused, and the refusal names the rule."""
    (top / "src/other").mkdir(parents=True)
    arguments = {"content": "x"} if tool == "project_fs_write" else {"oldString": "a", "newString": "b"}
    error = sandbox.refusal(tool, path=path, **arguments)
    assert (error["code"], error["reason"], error["data"]) == ("PATH_ESCAPE", "path_rule", {"rule": rule})
    assert repr(rule) in error["message"]
    assert not (top / "src/brand").exists()


def test_a_link_is_no_way_around_a_path_rule(sandbox, top):
    """The path rules hold for where a path really leads."""
    (top / "src/brand").mkdir(parents=True)
    (top / "src/brand/logo.ts").write_text("logo\n")
    os.symlink("src/brand", top / "b")
    error = sandbox.refusal("project_fs_write", path="b/logo.ts", content="x")
    assert (error["reason"], error["data"]["rule"]) == ("path_rule", "src/brand")
    assert (top / "src/brand/logo.ts").read_text() == "logo\n"


def test_path_rules_are_for_what_is_under_them(sandbox, top):
    """Names that only begin like a rule are no match."""
    sandbox.result("project_fs_write", path="src/branding.ts", content="x")
    sandbox.result("project_fs_write", path="lib/src/brand/a.ts", content="x")
    assert (top / "src/branding.ts").exists()


def test_path_rules_can_be_set(sandbox, app, top):
    """The folders besides node_modules and .git are the user's to choose."""
    store_value(app.places, find_key("sandbox-protected-paths"), ["legal"])
    sandbox.result("project_fs_write", path="src/brand/a.ts", content="x")
    error = sandbox.refusal("project_fs_write", path="legal/terms.md", content="x")
    assert error["data"]["rule"] == "legal"
    assert sandbox.refusal("project_fs_write", path="node_modules/a", content="x")["data"]["rule"] == "node_modules"


def test_settings_that_cannot_be_understood_open_nothing(sandbox, app, top):
    """Malformed settings refuse instead of falling back to fewer rules."""
    app.places.config_file.parent.mkdir(parents=True, exist_ok=True)
    app.places.config_file.write_text('{"sandbox": {"protectedPaths": "legal", "denylist": [1]}}')
    assert sandbox.refusal("project_fs_write", path="a.ts", content="x")["reason"] == "config_invalid"
    assert sandbox.refusal("project_exec", command="true")["reason"] == "config_invalid"
    assert not (top / "a.ts").exists()


@pytest.mark.parametrize("path", ["../out.txt", "/etc/passwd", "/workspace/a.txt"])
def test_paths_are_relative_to_the_workspace(sandbox, top, path):
    """Paths are relative to the workspace; one that leads out is refused."""
    assert sandbox.refusal("project_fs_write", path=path, content="x")["code"] == "PATH_ESCAPE"
    assert not (top.parent / "out.txt").exists()


# project_exec


def test_exec_gives_its_six_fields(sandbox):
    """Gives exitCode, stdout, stderr, durationMs, timedOut and truncated; a failing command is a result."""
    result = sandbox.result("project_exec", command="echo out; echo err >&2; exit 3")
    assert isinstance(result.pop("durationMs"), int)
    assert result == {"exitCode": 3, "stdout": "out\n", "stderr": "err\n", "timedOut": False, "truncated": False}


def test_exec_runs_inside_the_workspace(sandbox, app, project, top):
    """The command runs in the workspace root: main's, or that of the workspace named."""
    assert sandbox.result("project_exec", command="pwd")["stdout"] == f"{top}\n"
    git(top, "worktree", "add", "-q", "-b", "feat", str(top.parent / "feat"))
    caller = Caller(Face.STDIO, "test", "s", Scope(bound=project.id))
    attached = app.calls.make(RawCall("attach_workspace", {"branch": "feat"}), caller)
    assert attached.error is None, attached.error
    result = sandbox.result("project_exec", command="pwd", workspace="feat")
    assert result["stdout"] == f"{(top.parent / 'feat').resolve()}\n"


@pytest.mark.parametrize("command", ["sudo ls", "env sudo ls", "echo $(sudo ls)", "true; /usr/bin/sudo x", "rm -rf /"])
def test_exec_refuses_what_is_denylisted_and_names_the_pattern(sandbox, top, command):
    """A denylisted pattern is refused, and the error names it."""
    error = sandbox.refusal("project_exec", command=f"touch ran; {command}")
    pattern = "rm -rf /" if command.startswith("rm") else "sudo"
    assert (error["code"], error["reason"], error["data"]) == ("FORBIDDEN", "denylisted", {"pattern": pattern})
    assert repr(pattern) in error["message"]
    assert not (top / "ran").exists()


@pytest.mark.parametrize(
    "command", ["cat <<'EOF'\nhello\nEOF", "find . -name '*.md' -exec echo {} +", "echo pseudo-sudoku", "rm -rf ./dist"]
)
def test_exec_runs_what_is_not_denylisted(sandbox, command):
    """What only looks like a pattern runs."""
    assert sandbox.result("project_exec", command=command)["exitCode"] == 0


def test_the_denylist_can_be_set(sandbox, app):
    """The denylist is the user's to choose."""
    store_value(app.places, find_key("sandbox-denylist"), ["npm publish *"])
    assert sandbox.refusal("project_exec", command="npm publish --access public")["data"]["pattern"] == "npm publish *"


def test_the_projects_own_policy_holds_too(sandbox, top):
    """Policy judges project_exec as it judges run_command."""
    (top / "exeora.toml").write_text('deny = ["curl"]\n')
    error = sandbox("project_exec", command="curl http://localhost")["structuredContent"]["error"]
    assert (error["code"], error["reason"]) == ("FORBIDDEN", "denied")


def test_exec_ends_a_command_whose_time_is_over(sandbox):
    """After `timeoutSec` the command is ended: timedOut is true and exitCode null."""
    started = time.monotonic()
    result = sandbox.result("project_exec", command="echo begun; sleep 30", timeoutSec=1)
    assert time.monotonic() - started < 10
    assert (result["timedOut"], result["exitCode"], result["stdout"]) == (True, None, "begun\n")


def test_the_timeout_is_capped_and_has_a_default(sandbox):
    """`timeoutSec` is capped at 300 and defaults to 120."""
    schema = sandbox.calls.catalog["project_exec"].arguments_schema["properties"]["timeoutSec"]
    assert schema["default"] == 120
    assert sandbox.result("project_exec", command="echo x", timeoutSec=100_000)["stdout"] == "x\n"
    assert sandbox.refusal("project_exec", command="true", timeoutSec=0)["code"] == "INVALID_ARGUMENTS"


@pytest.mark.parametrize(("asked", "given"), [(None, 120), (7, 7), (300, 300), (301, 300), (9_999, 300)])
def test_the_time_that_is_given(sandbox, monkeypatch, asked, given):
    """What is asked for is given up to the cap."""
    from exeora_ws.toolsets import sandbox as module

    times = []
    real = module.run
    monkeypatch.setattr(module, "run", lambda *args, **named: times.append(named["timeout"]) or real(*args, **named))
    sandbox.result("project_exec", command="true", **({} if asked is None else {"timeoutSec": asked}))
    assert times == [given]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_exec_keeps_head_and_tail_of_much_output(sandbox, stream):
    """Output over 16 KB is kept as a head and a tail around a marker with the number of bytes left out."""
    command = "i=0; while [ $i -lt 5000 ]; do echo line-$i; i=$((i+1)); done" + (" >&2" if stream == "stderr" else "")
    whole = "".join(f"line-{n}\n" for n in range(5000))
    result = sandbox.result("project_exec", command=command)
    assert result["truncated"] is True
    head, _, rest = result[stream].partition("\n…[")
    number, _, tail = rest.partition(" bytes truncated]…\n")
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + len(tail) == 16_000
    assert int(number) == len(whole) - 16_000


@pytest.mark.parametrize(("size", "cut"), [(16_000, False), (16_001, True)])
def test_where_the_cut_begins(sandbox, size, cut):
    """`truncated` is true exactly when something was left out."""
    result = sandbox.result("project_exec", command=f"head -c {size} /dev/zero | tr '\\0' x")
    assert result["truncated"] is cut
    assert ("truncated]…" in result["stdout"]) is cut


def test_the_cut_splits_no_character(sandbox):
    """Head and tail end and begin at whole characters."""
    result = sandbox.result("project_exec", command="i=0; while [ $i -lt 9000 ]; do printf '€'; i=$((i+1)); done")
    assert result["truncated"] is True
    assert "\ufffd" not in result["stdout"]


# whose project


def test_another_users_project_answers_as_one_that_is_not_there(sandbox, app, project, make_repository):
    """Another user's project gets the answer of one that does not exist, from every tool."""
    other = app.inventory.register_project(make_repository("other"), exact=False)[0]
    caller = Caller(Face.HTTP, "test", "s", Scope(granted=frozenset((project.id,))))
    calls = {
        "project_fs_edit": {"path": "README.md", "oldString": "a", "newString": "b"},
        "project_fs_write": {"path": "x", "content": "x"},
        "project_exec": {"command": "true"},
    }
    for tool, arguments in calls.items():
        answers = [
            sandbox.calls.make(RawCall(tool, {**arguments, "project": name}), caller).to_dict()
            for name in (other.slug, "never-was")
        ]
        assert answers[0]["error"]["code"] == "UNKNOWN_PROJECT"
        assert json.dumps(answers[0]).replace(other.slug, "?") == json.dumps(answers[1]).replace("never-was", "?")
    assert not (other.root / "x").exists()


# by the official client


async def test_by_the_official_client(connect, top):
    """The tools over stdio: listed with schemas, results as structured content, a failure as a normal result."""
    async with connect("mcp", "--toolset", "sandbox") as client:
        assert [t.name for t in (await client.list_tools()).tools] == [
            "project_fs_edit",
            "project_fs_write",
            "project_exec",
        ]
        done = await client.call_tool("project_exec", {"command": "echo hi"})
        assert done.structured_content["stdout"] == "hi\n"
        assert json.loads(done.content[0].text) == done.structured_content
        failed = await client.call_tool("project_fs_write", {"path": "src/brand/x", "content": ""})
        assert failed.is_error
        assert "src/brand" in failed.content[0].text


def test_a_cancelled_exec_is_ended(sandbox, top):
    """A call that is taken back leaves nothing running."""
    cancellation = Cancellation()
    answers = []
    call = partial(sandbox, "project_exec", command="touch begun; exec sleep 60", cancellation=cancellation)
    thread = threading.Thread(target=lambda: answers.append(call()))
    thread.start()
    assert eventually((top / "begun").exists)
    cancellation.cancel()
    thread.join(5)
    assert answers[0]["structuredContent"]["error"]["code"] == "CANCELLED"
    assert not find_tagged()
