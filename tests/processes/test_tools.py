"""The five tools, the whole way of a call over a real repository."""

import json
import os
import time

import jsonschema
import pytest
from exeora_ws.app import open_app
from exeora_ws.cancellation import Cancellation
from exeora_ws.limits import RESULT_BYTES
from exeora_ws.tools.call import Caller, Face, RawCall, Scope
from exeora_ws.tools.processes import PROCESS_TOOLS, show_newest_line

from support.processes import PROGRAMS, all_gone, eventually, find_tagged


@pytest.fixture
def app(sealed):
    app = open_app()
    yield app
    app.services.supervisor.close()
    assert find_tagged() == []


@pytest.fixture
def repository(make_repository):
    return make_repository("app")


@pytest.fixture
def project(app, repository):
    return app.inventory.register_project(repository, exact=False)[0]


@pytest.fixture
def call(app, project):
    def make(tool, *, session="session", **arguments):
        caller = Caller(Face.CLI, "test", session, Scope(bound=project.id))
        return app.calls.make(RawCall(tool, arguments), caller)

    return make


@pytest.fixture
def result(app, call):
    def make(tool, **arguments):
        outcome = call(tool, **arguments)
        assert outcome.error is None, outcome.error.to_dict()
        document = outcome.to_dict()
        jsonschema.validate(document, app.calls.catalog[tool].output_schema)
        json.dumps(document)
        return document

    return make


@pytest.fixture
def refusal(call):
    def make(tool, **arguments):
        outcome = call(tool, **arguments)
        assert outcome.error is not None, outcome.to_dict()
        return outcome.error.to_dict()

    return make


def test_run_command_answers_with_the_fields_of_the_contract(result, repository):
    done = result("run_command", command="pwd; echo err >&2; exit 4")
    assert done.pop("durationMs") >= 0
    assert done == {
        "command": "pwd; echo err >&2; exit 4",
        "exitCode": 4,
        "stdout": f"{repository}\n",
        "stderr": "err\n",
        "truncated": False,
        "timedOut": False,
    }


def test_what_is_left_running_is_reported_and_gone(result):
    done = result("run_command", command=f"{PROGRAMS}/holds_pipe.sh secret-argument")
    (left,) = done["backgroundProcesses"]
    assert left["command"] == "sleep"
    assert "secret" not in json.dumps(done["backgroundProcesses"])
    assert eventually(lambda: all_gone([left["pid"]]))


def test_a_timeout_and_a_signal_have_no_exit_code(result):
    late = result("run_command", command="sleep 30", timeoutMs=1000)
    assert (late["exitCode"], late["timedOut"], late["signal"]) == (None, True, "SIGTERM")
    assert 1000 <= late["durationMs"] < 2500
    shot = result("run_command", command="kill -SEGV $$")
    assert (shot["exitCode"], shot["timedOut"], shot["signal"]) == (None, False, "SIGSEGV")


def test_truncation_is_said(result):
    done = result("run_command", command="yes | head -c 250000")
    assert done["truncated"] is True
    assert len(done["stdout"]) == 200_000


@pytest.mark.parametrize(("name", "value"), [("timeoutMs", 999), ("timeoutMs", 300_001), ("command", ""), ("cwd", "")])
def test_arguments_out_of_bounds_are_refused(refusal, name, value):
    assert refusal("run_command", **{"command": "true", name: value})["code"] == "INVALID_ARGUMENTS"


def test_started_read_answered_and_ended(result, repository):
    started = result("start_command", command=f"{PROGRAMS}/asks.sh")
    assert set(started) == {"processId", "command", "pid"}
    here = {"processId": started["processId"]}
    first = result("get_command_output", **here, waitMs=5000)
    assert first == {**here, "chunk": "name? ", "nextCursor": 6, "skipped": 0, "running": True, "exitCode": None}
    assert result("send_command_input", **here, data="Zoë") == {**here, "bytesWritten": 5}
    text, cursor, running = "", 6, True
    while running:
        more = result("get_command_output", **here, cursor=cursor, waitMs=5000)
        text, cursor, running = text + more["chunk"], more["nextCursor"], more["running"]
    assert text == "hello Zoë\n"
    assert more["exitCode"] == 0
    assert result("kill_command", **here) == {**here, "killed": False, "exitCode": 0}


def test_input_without_newline(result):
    started = result("start_command", command="head -c 2; echo; sleep 300")
    here = {"processId": started["processId"]}
    assert result("send_command_input", **here, data="ab", newline=False)["bytesWritten"] == 2
    assert result("get_command_output", **here, waitMs=5000)["chunk"].strip() == "ab"
    assert result("kill_command", **here) == {**here, "killed": True, "exitCode": None}


def test_case_35_the_output_of_a_process_that_has_ended_is_still_there(result):
    started = result("start_command", command=f"{PROGRAMS}/exits_late.sh")
    here = {"processId": started["processId"]}
    assert eventually(lambda: not result("get_command_output", **here)["running"])
    done = result("get_command_output", **here)
    assert (done["chunk"], done["running"], done["exitCode"]) == ("early\nlate\n", False, 7)


def test_unknown_and_another_workspace_s_process_get_the_same_answer(result, refusal):
    result("create_workspace", branch="other")
    started = result("start_command", command="sleep 300", workspace="other")
    elsewhere = refusal("get_command_output", processId=started["processId"])
    assert elsewhere == refusal("get_command_output", processId="prc_nothing")
    assert elsewhere["reason"] == "unknown_process"
    for tool, more in (("send_command_input", {"data": "x"}), ("kill_command", {})):
        assert refusal(tool, processId=started["processId"], **more) == elsewhere
    assert result("get_command_output", processId=started["processId"], workspace="other")["running"]


def test_each_workspace_runs_in_its_own_folder_and_knows_its_name(result, repository):
    made = result("create_workspace", branch="feature/x")["workspace"]
    line = 'echo "$(pwd) $PWD $EXEORA_PROJECT $EXEORA_WORKSPACE $EXEORA_WORKSPACE_PATH"'
    there = result("run_command", command=line, workspace=made["slug"])["stdout"]
    assert there == f"{made['path']} {made['path']} app feature-x {made['path']}\n"
    here = result("run_command", command=line)["stdout"]
    assert here == f"{repository} {repository} app main {repository}\n"


def test_case_34_no_token_of_ours_and_no_routing_of_git(result, monkeypatch, repository, make_repository):
    other = make_repository("other")
    for name, value in {
        "EXEORA_TOKEN": "secret-1",
        "AGENTEXEC_TOKEN": "secret-2",
        "GIT_DIR": f"{other}/.git",
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": f"{other}/.git/index",
        "MINE": "kept",
    }.items():
        monkeypatch.setenv(name, value)
    seen = result("run_command", command="printenv; git rev-parse --show-toplevel")["stdout"]
    assert "secret" not in seen
    assert str(other) not in seen
    assert "MINE=kept\n" in seen
    assert seen.endswith(f"\n{repository}\n")
    for line in ("NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "TERM=dumb"):
        assert f"\n{line}\n" in f"\n{seen}"


def test_case_17_and_18_a_working_folder_outside_is_refused(refusal, repository, home, tmp_path):
    (home / ".agents" / "skills").mkdir(parents=True)
    (repository.parent / "app-secret").mkdir()
    (repository / "leak").symlink_to("/etc")
    (repository / "up").symlink_to("../app-secret")
    (repository / "src" / "back").symlink_to("../../app-secret")
    outside = ["..", "../app-secret", str(repository.parent / "app-secret"), "/", "/etc", "leak", "up", "src/back"]
    for cwd in [*outside, "src/../..", "~", "~/.agents", "~/.agents/skills/../..", "~/.ssh", f"{repository}"]:
        assert refusal("run_command", command="touch ran", cwd=cwd)["code"] == "PATH_ESCAPE", cwd
        assert refusal("start_command", command="touch ran", cwd=cwd)["code"] == "PATH_ESCAPE", cwd
    assert not list(tmp_path.rglob("ran"))


def test_a_working_folder_that_is_not_there_is_named(refusal, repository):
    (repository / "file").touch()
    (repository / "loop").symlink_to("loop")
    missing = refusal("run_command", command="true", cwd="no/such")
    assert (missing["code"], "no/such" in missing["message"]) == ("PATH_NOT_FOUND", True)
    assert refusal("run_command", command="true", cwd="file")["reason"] == "not_a_folder"
    assert refusal("run_command", command="true", cwd="loop")["reason"] == "link_loop"
    assert refusal("run_command", command="true", cwd="a\0b")["reason"] == "invalid_path"


def test_links_inside_the_workspace_lead_where_they_lead(result, repository):
    (repository / "a" / "b").mkdir(parents=True)
    (repository / "short").symlink_to("a/b")
    (repository / "long").symlink_to(repository / "a" / "b")
    (repository / "a" / "b" / "top").symlink_to("../..")
    for cwd, wanted in (("short", "a/b"), ("long", "a/b"), ("short/top/src", "src"), ("./src//", "src")):
        assert result("run_command", command="pwd", cwd=cwd)["stdout"] == f"{repository}/{wanted}\n"


def test_a_skill_s_folder_is_a_working_folder(result, home):
    skill = home / ".agents" / "skills" / "lint"
    skill.mkdir(parents=True)
    for cwd in ("~/.agents/skills/lint", str(skill)):
        assert result("run_command", command="pwd", cwd=cwd)["stdout"] == f"{skill}\n"


def test_removing_a_workspace_ends_what_runs_in_it_and_says_so(result, call):
    result("create_workspace", branch="gone")
    started = result("start_command", command=f"{PROGRAMS}/sets_session.sh; sleep 300", workspace="gone")
    removed = result("remove_workspace", workspace="gone")
    assert removed["stoppedProcesses"] == [f"{PROGRAMS}/sets_session.sh; sleep 300"]
    assert all_gone([started["pid"]])
    assert eventually(lambda: find_tagged() == [])


def test_a_session_s_end_ends_what_it_started_and_nothing_else(result, call, app):
    mine = result("start_command", command="sleep 300")
    other = call("start_command", session="other", command="sleep 300").to_dict()
    ended = app.services.supervisor.close_session("session")
    assert [each.id for each in ended] == [mine["processId"]]
    assert all_gone([mine["pid"]])
    assert not all_gone([other["pid"]])
    late = call("start_command", command="sleep 300").to_dict()
    assert late["error"]["reason"] == "shutting_down"


def test_at_most_eight_live_in_a_project(result, refusal):
    started = [result("start_command", command="sleep 300")["processId"] for _ in range(8)]
    full = refusal("start_command", command="sleep 300")
    assert (full["code"], full["reason"]) == ("TOOL_FAILED", "too_many_processes")
    assert full["data"]["processIds"] == started
    result("kill_command", processId=started[0])
    result("start_command", command="sleep 300")


def test_progress_tells_the_newest_line(app, project):
    told = []
    caller = Caller(Face.CLI, "test", "s", Scope(bound=project.id), Cancellation(), told.append)
    app.calls.make(RawCall("run_command", {"command": "printf 'a\\nb\\n\\n'; sleep 1; printf '1%%\\r2%%\\r'"}), caller)
    assert told == ["b", "2%"]


def test_progress_is_said_at_most_four_times_a_second():
    told, now = [], [0.0]
    show = show_newest_line(told.append, lambda: now[0])
    for number in range(10):
        now[0] = number / 10
        show(1, f"line {number}\n".encode())
    assert told == ["line 0", "line 3", "line 6", "line 9"]


def test_every_tool_says_what_it_is():
    for tool in PROCESS_TOOLS:
        assert tool.description
        assert tool.routing.value == "optional"
    assert [tool.name for tool in PROCESS_TOOLS if tool.hints.read_only] == ["get_command_output"]
    assert [tool.name for tool in PROCESS_TOOLS if tool.command] == ["run_command", "start_command"]


def test_a_run_costs_little(result):
    result("run_command", command="true")
    best = min(_time(lambda: result("run_command", command="true")) for _ in range(20))
    assert best < 0.1


def _time(action):
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def test_a_workspace_whose_folder_is_gone_is_unavailable(refusal, result, tmp_path):
    made = result("create_workspace", branch="lost")["workspace"]
    os.rename(made["path"], tmp_path / "moved")
    assert refusal("run_command", command="true", workspace="lost")["code"] == "WORKSPACE_UNAVAILABLE"


@pytest.mark.parametrize("line", ["head -c 200000 /dev/zero", "head -c 150000 /dev/zero; head -c 150000 /dev/zero >&2"])
def test_output_that_json_makes_larger_than_an_answer_is_cut_at_its_beginning(result, line):
    got = result("run_command", command=f"echo first; echo first >&2; {line}; echo last; echo last >&2")
    assert got["truncated"]
    assert 500_000 < len(json.dumps(got)) < RESULT_BYTES
    assert got["stdout"].endswith("\0last\n")
    assert "first" not in got["stdout"]
    # Oldest goes by when it was read: the few bytes of error output may come before the last of the flood.
    assert "last\n".endswith(got["stderr"]) or got["stderr"].endswith("last\n")
