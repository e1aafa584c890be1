"""run, each, start, ps, output, send, kill: real processes, over pipes and a real terminal."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from exeora_ws.processes.client import HostClient
from exeora_ws.processes.records import list_live, reap_leftovers
from exeora_ws.settings import find_places

from support.commandline import COMMAND, TOP, CommandLine, child_environment
from support.hosts import end_host
from support.processes import PROGRAMS, all_gone, eventually
from support.terminal import Terminal


@pytest.fixture(autouse=True)
def host(monkeypatch):
    """Whatever host a test has started ends with it, and nothing is left on record."""
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    from exeora_ws.app import MIGRATIONS
    from exeora_ws.database import Database

    yield HostClient(find_places())
    end_host(find_places())
    database = Database(find_places().database, MIGRATIONS)
    assert eventually(lambda: list_live(database) == [])
    reap_leftovers(database)


@pytest.fixture
def at_terminal(exeora: CommandLine, feature: Path):
    def start(*words: str, folder: Path | None = None) -> Terminal:
        environment = child_environment(exeora.environment) | {"TERM": "xterm", "PROGRAMS": str(PROGRAMS)}
        return Terminal([*COMMAND, *words], environment, folder or exeora.folder)

    return start


def start(exeora: CommandLine, *words: str, folder: Path | None = None) -> str:
    done = exeora.inline("start", *words, folder=folder)
    assert done.code == 0, done.err
    return done.out.removesuffix("\n")


def wait_for_output(exeora: CommandLine, process: str, text: str) -> None:
    assert eventually(lambda: text in exeora.inline("output", process).out)


# run


def test_run_streams_and_gives_the_code(exeora: CommandLine, feature: Path):
    done = exeora("run", "-w", "feat/x", "--", "sh", "-c", "echo out; echo err >&2; pwd; exit 7")
    assert (done.code, done.out, done.err) == (7, f"out\n{feature}\n", "err\n")


def test_several_words_are_an_argument_vector_and_one_is_a_shell_line(exeora: CommandLine, feature: Path):
    words = ["$HOME; `x` '*' \"", "A=1", "", "\n", "-w", "--json"]
    printer = [sys.executable, "-c", "import sys; print(sys.argv[1:])"]
    assert exeora("run", "--", *printer, *words).out == f"{words!r}\n"
    assert exeora("run", *printer, *words).out == f"{words!r}\n"
    assert exeora("run", 'A=1; echo "$A" | tr 1 2').out == "2\n"
    assert exeora("run", "--", "A=1", "env", "--json").code != 0
    program = feature / "A=1"
    program.write_text("#!/bin/sh\necho it ran\n")
    program.chmod(0o755)
    assert exeora("run", "-w", "feat-x", "--", "./A=1", "x").out == "it ran\n"


def test_words_that_are_no_text_are_passed_on_as_they_are(exeora: CommandLine, feature: Path):
    done = exeora("run", "--", "printf", "%s", os.fsdecode(b"\xff\xfe"))
    assert done.out.encode("utf-8", "surrogateescape") == b"\xff\xfe"
    shown = exeora("run", "--json", "--", "printf", "%s", os.fsdecode(b"\xff")).document
    assert (shown["stdout"], shown["command"]) == ("\ufffd", "printf %s '\\xff'")


def test_run_says_where_it_runs(exeora: CommandLine, feature: Path):
    line = 'echo "$EXEORA_PROJECT $EXEORA_WORKSPACE $EXEORA_WORKSPACE_PATH ${NO_COLOR-} ${TERM-} ${GIT_DIR-none}"'
    done = exeora("run", line, folder=feature / "src", GIT_DIR="/nowhere", TERM="xterm")
    assert done.out == f"app feat-x {feature} 1 dumb none\n"
    assert exeora("run", "--cwd", "src", "pwd", folder=feature).out == f"{feature / 'src'}\n"


def test_run_passes_input_on_and_is_silent_about_itself(exeora: CommandLine, feature: Path):
    done = exeora("run", "cat", stdin="through")
    assert (done.out, done.err) == ("through", "")


def test_run_with_json_is_the_tool_s_result(exeora: CommandLine, feature: Path):
    done = exeora("run", "--json", "-w", "feat-x", "pwd; echo err >&2; sleep 300 & exit 3")
    document = done.document
    assert done.code == 3
    (left,) = document.pop("backgroundProcesses")
    assert left["command"] == "sleep"
    assert all_gone([left["pid"]])
    assert document.pop("durationMs") >= 0
    assert document == {
        "schema": 1,
        "command": "pwd; echo err >&2; sleep 300 & exit 3",
        "exitCode": 3,
        "stdout": f"{feature}\n",
        "stderr": "err\n",
        "truncated": False,
        "timedOut": False,
    }
    killed = exeora("run", "--json", "kill -9 $$")
    assert (killed.code, killed.document["exitCode"], killed.document["signal"]) == (137, None, "SIGKILL")


def test_run_names_and_ends_what_is_left(exeora: CommandLine, feature: Path):
    done = exeora("run", "setsid sleep 300 & sleep 301 & echo $! >pid; echo hi")
    assert done.out == "hi\n"
    assert done.err.startswith("exeora: left running, and ended: ")
    assert done.err.count("(") == 2
    assert all_gone([int((exeora.folder / "pid").read_text())])


def test_run_ends_what_takes_too_long(exeora: CommandLine, feature: Path):
    began = time.monotonic()
    done = exeora("run", "--timeout", "0.3", "--", "sleep", "300")
    assert time.monotonic() - began < 10
    assert (done.code, done.err) == (1, "exeora: the command took longer than 0.3 s and was ended\n")
    kept = exeora("run", "--timeout", "0.3", "--json", "--", "sleep", "300")
    assert (kept.code, kept.document["timedOut"], kept.document["exitCode"]) == (1, True, None)


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("run",), 2, "INVALID_ARGUMENTS"),
        (("run", "--"), 2, "INVALID_ARGUMENTS"),
        (("run", ""), 2, "INVALID_ARGUMENTS"),
        (("run", "--timeout", "0", "--", "x"), 2, "INVALID_ARGUMENTS"),
        (("run", "--", "/no/such/program", "x"), 1, "TOOL_FAILED"),
        (("run", "--cwd", "..", "pwd"), 1, "PATH_ESCAPE"),
        (("run", "--cwd", "no-such", "pwd"), 1, "PATH_NOT_FOUND"),
        (("run", "-w", "no-such", "pwd"), 1, "UNKNOWN_WORKSPACE"),
        (("start",), 2, "INVALID_ARGUMENTS"),
        (("start", "--cwd", "..", "pwd"), 1, "PATH_ESCAPE"),
        (("each",), 2, "INVALID_ARGUMENTS"),
        (("each", "-w", "main", "pwd"), 2, "INVALID_ARGUMENTS"),
        (("each", "--jobs", "0", "pwd"), 2, "INVALID_ARGUMENTS"),
        (("output", "prc_no"), 1, "TOOL_FAILED"),
        (("send", "prc_no", "x"), 1, "TOOL_FAILED"),
        (("kill", "prc_no"), 1, "TOOL_FAILED"),
        (("output", "prc_no", "--follow", "--wait", "1"), 2, "INVALID_ARGUMENTS"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done(exeora: CommandLine, feature: Path, words: tuple[str, ...], code: int, error: str):
    done = exeora.inline(words[0], "--json", *words[1:])
    assert (done.code, done.out, done.error["code"]) == (code, "", error)


def test_policy_judges_every_command_and_the_record_has_it(exeora: CommandLine, feature: Path, repository: Path):
    (repository / "exeora.toml").write_text('allow = ["echo", "git status"]\ndeny = ["sudo"]\n')
    assert exeora("run", "--", "echo", "hi").out == "hi\n"
    assert exeora("run", "-w", "feat-x", "--", "git", "status").code == 0
    for words in (
        ("run", "rm x"),
        ("run", "--", "rm", "x"),
        ("run", "--json", "--", "rm", "x"),
        ("run", "--", "env", "sudo", "x"),
        ("run", "echo x; rm x"),
        ("start", "--", "rm", "x"),
    ):
        done = exeora.inline(words[0], "--json", *words[1:])
        assert (done.code, done.error["code"], done.out) == (4, "FORBIDDEN", ""), words
    assert exeora.inline("each", "--", "rm", "x").code == 1
    rows = exeora.inline("logs", "--json").document["entries"]
    assert [(row["tool"], row["workspace"], row["outcome"]) for row in rows[-10:]][:2] == [
        ("run_command", "main", "OK"),
        ("run_command", "feat-x", "OK"),
    ]
    assert [row["outcome"] for row in rows[-8:]] == ["FORBIDDEN"] * 8
    (repository / "exeora.toml").write_text('mode = "read_only"\n')
    assert exeora.inline("run", "--json", "--", "echo", "hi").error["reason"] == "read_only"


@pytest.mark.parametrize("json_too", [False, True])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_what_runs(exeora: CommandLine, feature: Path, number: int, code: int, json_too: bool):
    options = ["--json"] if json_too else []
    running = exeora.start("run", *options, "echo $$ >pid; exec sleep 300")
    pid_file = exeora.folder / "pid"
    assert eventually(lambda: pid_file.exists() and pid_file.read_text().strip(), 20)
    running.send_signal(number)
    running.communicate(timeout=20)
    assert running.returncode == code
    assert all_gone([int(pid_file.read_text())])


def test_a_signal_is_the_command_s_to_take(exeora: CommandLine, feature: Path):
    running = exeora.start("run", "trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.05; done")
    assert running.stdout.readline() == b"ready\n"
    running.terminate()
    out, _ = running.communicate(timeout=20)
    assert (out, running.returncode) == (b"got\n", 9)


def test_at_a_terminal_the_command_has_the_terminal(at_terminal):
    terminal = at_terminal(
        "run",
        "test -t 0 && test -t 1 && test -t 2 && echo real; stty size; echo $TERM ${NO_COLOR-colours}; "
        "printf '\\033[31mred\\033[0m\\n'; exit 5",
    )
    assert terminal.finish() == 5
    assert terminal.text == "real\n33 99\nxterm colours\n\x1b[31mred\x1b[0m\n"


def test_at_a_terminal_it_can_be_talked_to(at_terminal):
    terminal = at_terminal("run", "--", "sh", str(PROGRAMS / "asks.sh"))
    terminal.wait_for("name? ")
    terminal.type("Zoë\n".encode())
    assert terminal.finish() == 0
    assert "hello Zoë" in terminal.text


def test_ctrl_c_reaches_the_command_once_and_its_code_comes_back(at_terminal):
    terminal = at_terminal("run", "trap 'echo got; exit 7' INT; echo ready; while :; do sleep 0.05; done")
    terminal.wait_for("ready")
    terminal.type(b"\x03")
    assert terminal.finish() == 7
    assert terminal.text.count("got") == 1


def test_ctrl_c_ends_what_does_not_mind(at_terminal):
    terminal = at_terminal("run", "echo ready; exec sleep 300")
    terminal.wait_for("ready")
    terminal.type(b"\x03")
    assert terminal.finish() == 130
    assert "interrupted" not in terminal.text


# being asked


@pytest.mark.parametrize(("typed", "code"), [(b"y\n", 0), (b"n\n", 4), (b"\n", 4), (b"\x04", 4)])
def test_the_person_at_the_terminal_is_asked(at_terminal, repository: Path, typed: bytes, code: int):
    (repository / "exeora.toml").write_text("approve = true\n")
    terminal = at_terminal("run", "--", "touch", "done by hand")
    terminal.wait_for("Allow it? [y/N] ")
    assert "Run run_command in workspace main of project app?" in terminal.text
    assert "touch 'done by hand'" in terminal.text
    assert not (repository / "done by hand").exists()
    terminal.type(typed)
    assert terminal.finish() == code
    assert (repository / "done by hand").exists() is (code == 0)


def test_the_answer_may_come_from_another_window(at_terminal, exeora: CommandLine, repository: Path):
    (repository / "exeora.toml").write_text("approve = true\n")
    terminal = at_terminal("run", "--", "echo", "it", "ran")
    terminal.wait_for("Allow it? [y/N] ")
    (waiting,) = exeora.inline("approvals", "list", "--json").document["approvals"]
    assert exeora.inline("approvals", "allow", waiting["id"]).code == 0
    assert terminal.finish() == 0
    assert "it ran" in terminal.text


def test_ctrl_c_takes_the_question_back(at_terminal, exeora: CommandLine, repository: Path):
    (repository / "exeora.toml").write_text("approve = true\n")
    terminal = at_terminal("run", "--", "touch", "x")
    terminal.wait_for("Allow it? [y/N] ")
    terminal.type(b"\x03")
    assert terminal.finish() == 130
    assert not (repository / "x").exists()
    assert exeora.inline("approvals", "list", "--json").document["approvals"] == []


def test_without_a_terminal_nobody_is_asked(exeora: CommandLine, feature: Path, repository: Path):
    (repository / "exeora.toml").write_text("approve = true\n")
    done = exeora.inline("run", "--json", "--", "touch", "x")
    assert (done.code, done.error["reason"]) == (4, "nobody_to_ask")
    assert not (repository / "x").exists()


# each


def test_each_runs_everywhere_and_ends_in_a_table(exeora: CommandLine, feature: Path, repository: Path):
    done = exeora.inline("each", "pwd; echo err >&2; printf end; test $EXEORA_WORKSPACE = main")
    assert done.code == 1
    lines = done.out.splitlines()
    assert {f"main   | {repository}", f"feat-x | {feature}", "main   | end", "feat-x | end"} == set(lines[:-3])
    assert [line.split()[:3] for line in lines[-3:]] == [
        ["workspace", "result", "time"],
        ["main", "ok", "0.0"],
        ["feat-x", "exit", "1"],
    ] or lines[-3].split() == ["workspace", "result", "time"]
    assert sorted(done.err.splitlines()) == ["feat-x | err", "main   | err"]
    assert exeora.inline("each", "--", "true").code == 0


def test_each_as_a_document(exeora: CommandLine, feature: Path):
    done = exeora.inline("each", "--json", "--jobs", "1", "echo $EXEORA_WORKSPACE; test $EXEORA_WORKSPACE = main")
    document = done.document
    assert (done.code, document["failed"]) == (1, 1)
    assert [(w["workspace"], w["stdout"], w["exitCode"]) for w in document["workspaces"]] == [
        ("main", "main\n", 0),
        ("feat-x", "feat-x\n", 1),
    ]


def test_each_says_what_became_of_a_workspace_that_is_gone(exeora: CommandLine, feature: Path, repository: Path):
    feature.rename(feature.with_name("elsewhere"))
    done = exeora.inline("each", "--json", "echo hi")
    main, gone = done.document["workspaces"]
    assert done.code == 1
    assert main["stdout"] == "hi\n"
    assert gone["error"]["code"] == "WORKSPACE_UNAVAILABLE"
    shown = exeora.inline("each", "echo hi")
    assert "feat-x" in shown.err
    assert "WORKSPACE_UNAVAILABLE" in shown.out


def test_each_runs_side_by_side(exeora: CommandLine, feature: Path, tmp_path: Path):
    both = f"-e {tmp_path}/main -a -e {tmp_path}/feat-x"
    meet = f"touch {tmp_path}/$EXEORA_WORKSPACE; until test {both}; do sleep 0.02; done"
    assert exeora.inline("each", "--jobs", "2", "--timeout", "20", meet).code == 0


def test_ctrl_c_ends_all_of_each(exeora: CommandLine, feature: Path, tmp_path: Path):
    running = exeora.start("each", "--jobs", "2", f"echo $$ >{tmp_path}/$EXEORA_WORKSPACE.pid; exec sleep 300")
    files = [tmp_path / "main.pid", tmp_path / "feat-x.pid"]
    assert eventually(lambda: all(f.exists() and f.read_text().strip() for f in files), 20)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=20)
    assert (running.returncode, err) == (130, b"exeora: interrupted: the call was cancelled\n")
    assert all_gone([int(f.read_text()) for f in files])


# start, ps, output, send, kill


def test_a_started_command_outlives_the_shell_and_is_talked_to(exeora: CommandLine, feature: Path):
    line = 'echo ready; read -r x; echo "got $x in $EXEORA_WORKSPACE"; read -r y; echo "then $y"; exit 4'
    started = exeora("start", line, folder=feature)
    process = started.out.removesuffix("\n")
    assert started.err == f"exeora: started in workspace 'feat-x'; exeora output {process} --follow shows it\n"
    wait_for_output(exeora, process, "ready")
    assert exeora.inline("send", process, "Zoë").out == "wrote 5 bytes\n"
    assert exeora.inline("send", process, "--json", stdin="last").document["bytesWritten"] == 4
    assert exeora.inline("send", process, "--end", "").code == 0
    followed = exeora("output", process, "--follow")
    assert followed.out == "ready\ngot Zoë in feat-x\nthen last\n"
    assert followed.err == "exeora: it has ended with exit code 4\n"
    assert exeora.inline("ps").err == "exeora: nothing runs\n"
    (seen,) = exeora.inline("ps", "--all", "--json").document["processes"]
    assert (seen["running"], seen["exitCode"], seen["workspace"]) == (False, 4, "feat-x")
    ended = exeora.inline("send", process, "x", "--json")
    assert (ended.code, ended.error["reason"]) == (1, "not_running")
    assert exeora.inline("kill", process).out == f"{process} had ended already\n"


def test_ps_shows_and_filters(exeora: CommandLine, feature: Path, make_repository):
    first = start(exeora, "sleep 300")
    second = start(exeora, "--", "sleep", "301", folder=feature)
    other = make_repository("other")
    third = start(exeora, "sleep 302", folder=other)
    facts = exeora.inline("ps", "--json").document["processes"]
    assert [f["processId"] for f in facts] == [first, second, third]
    assert set(facts[0]) == {
        "processId", "kind", "project", "workspace", "command", "pid", "startedAt", "running", "exitCode", "readable",
    }  # fmt: skip
    assert (facts[1]["command"], facts[1]["kind"], facts[1]["readable"]) == ("sleep 301", "start", True)
    assert [line.split()[:2] for line in exeora.inline("ps").out.splitlines()] == [
        [first, "app/main"],
        [second, "app/feat-x"],
        [third, "other/main"],
    ]
    chosen = exeora.inline("ps", "-w", "feat/x", "--json").document["processes"]
    assert [f["processId"] for f in chosen] == [second]
    chosen = exeora.inline("ps", "--project", "other", "--json").document["processes"]
    assert [f["processId"] for f in chosen] == [third]
    wrong = exeora.inline("kill", first, "-w", "feat-x", "--json")
    assert (wrong.code, wrong.error["reason"]) == (2, "other_place")
    for process in (first, second, third):
        assert exeora.inline("kill", process, folder=other).out == f"killed {process}\n"
    assert all_gone([f["pid"] for f in facts])


def test_output_is_read_in_pieces(exeora: CommandLine, feature: Path):
    process = start(exeora, "printf abc; sleep 300")
    wait_for_output(exeora, process, "abc")
    document = exeora.inline("output", process, "--json", "--cursor", "1").document
    assert document == {
        "schema": 1, "processId": process, "chunk": "bc", "nextCursor": 3, "skipped": 0, "running": True,
        "exitCode": None,
    }  # fmt: skip
    assert exeora.inline("output", process, "--cursor", "3", "--wait", "0.05", "--json").document["chunk"] == ""
    shown = exeora.inline("output", process)
    assert (shown.out, shown.err) == ("abc", "exeora: it runs on; --cursor 3 gives what comes after this\n")
    wrong = exeora.inline("output", process, "--cursor", "9", "--json")
    assert (wrong.code, wrong.error["reason"]) == (2, "cursor_out_of_range")


def test_what_is_no_longer_kept_is_said(exeora: CommandLine, feature: Path):
    process = start(exeora, "head -c 600000 /dev/zero | tr '\\0' x")
    done = exeora.inline("output", process, "--follow")
    assert len(done.out) + sum(int(line.split()[1]) for line in done.err.splitlines() if "no longer kept" in line) == (
        600_000
    )
    documents = [json.loads(line) for line in exeora.inline("output", process, "-f", "--json").out.splitlines()]
    assert documents[0]["skipped"] == 344_000
    assert sum(len(d["chunk"]) for d in documents) == 256_000
    assert (documents[-1]["running"], documents[-1]["chunk"], documents[-1]["exitCode"]) == (False, "", 0)


def test_following_ends_with_ctrl_c_and_the_command_runs_on(exeora: CommandLine, feature: Path):
    process = start(exeora, "echo ready; sleep 300")
    following = exeora.start("output", process, "--follow")
    assert following.stdout.readline() == b"ready\n"
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=10)
    assert following.returncode == 130
    assert exeora.inline("ps", "--json").document["processes"][0]["running"] is True


def test_a_reader_that_goes_away_ends_following_and_is_no_bug(exeora: CommandLine, feature: Path):
    process = start(exeora, "while :; do echo x; sleep 0.01; done")
    following = exeora.start("output", process, "--follow")
    assert following.stdout.readline() == b"x\n"
    following.stdout.close()
    assert following.wait(10) == 141
    assert following.stderr.read() == b""
    following.stderr.close()
    assert "bug" not in find_places().log.read_text()


def test_send_reports_a_command_that_does_not_read(exeora: CommandLine, feature: Path):
    process = start(exeora, "sleep 300")
    done = exeora.inline("send", process, "--json", stdin="x" * 500_000)
    assert (done.code, done.error["reason"]) == (1, "input_not_read")
    assert 0 < done.error["data"]["bytesWritten"] < 500_000


def test_a_server_s_processes_are_seen_and_ended_but_not_read(exeora: CommandLine, feature: Path):
    running = exeora.start("run", "echo ready; exec sleep 300", folder=feature)
    assert running.stdout.readline() == b"ready\n"
    seen = eventually(lambda: exeora.inline("ps", "--json").document["processes"])[0]
    assert (seen["kind"], seen["workspace"], seen["readable"]) == ("run", "feat-x", False)
    for words in (("output", seen["processId"]), ("send", seen["processId"], "x")):
        done = exeora.inline(*words, "--json")
        assert (done.code, done.error["reason"]) == (1, "not_in_host")
    assert exeora.inline("kill", seen["processId"], "--json").document["killed"] is True
    running.communicate(timeout=10)
    assert running.returncode == 143


def test_removing_a_workspace_ends_what_was_started_in_it(exeora: CommandLine, feature: Path):
    process = start(exeora, "sleep 300", folder=feature)
    (seen,) = exeora.inline("ps", "--json").document["processes"]
    done = exeora.inline("remove", "feat-x", "--force", "--json")
    assert done.document["stoppedProcesses"] == ["sleep 300"]
    assert all_gone([seen["pid"]])
    assert exeora.inline("output", process, "--json").error["code"] == "UNKNOWN_WORKSPACE"


def test_what_is_started_while_its_workspace_goes_is_ended(
    exeora: CommandLine, feature: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The workspace goes after the call was placed and before the host has the command on record."""
    from exeora_ws.processes.client import HostClient

    begin = HostClient.start

    def start_late(self: HostClient, *given: object) -> object:
        assert exeora("detach", "feat-x").code == 0
        return begin(self, *given)

    monkeypatch.setattr(HostClient, "start", start_late)
    done = exeora.inline("start", "--json", f"echo $$ >{tmp_path}/pid; exec sleep 300", folder=feature)
    assert (done.code, done.error["code"]) == (1, "UNKNOWN_WORKSPACE")
    assert exeora.inline("ps", "--json").document["processes"] == []
    pid = tmp_path / "pid"
    assert not pid.exists() or all_gone([int(pid.read_text() or 0)])


def test_at_most_eight_run_in_a_project(exeora: CommandLine, feature: Path):
    for _ in range(8):
        start(exeora, "sleep 300")
    done = exeora.inline("start", "--json", "sleep 300")
    assert (done.code, done.error["reason"]) == (1, "too_many_processes")


def test_process_ids_are_completed(exeora: CommandLine, feature: Path):
    process = start(exeora, "sleep 300")
    environment = child_environment(exeora.environment)
    environment |= {"_EXEORA_COMPLETE": "complete_bash", "COMP_WORDS": "exeora\nkill\nprc_", "COMP_CWORD": "2"}
    done = subprocess.run(COMMAND, cwd=exeora.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [process]


def test_nothing_of_a_command_stays_on_record(exeora: CommandLine, feature: Path):
    from exeora_ws.app import MIGRATIONS
    from exeora_ws.database import Database
    from exeora_ws.processes.schema import has_servers

    for words in (("run", "true"), ("run", "--json", "true"), ("call", "run_command", '{"command": "true"}')):
        assert exeora(*words).code == 0
        assert not has_servers(Database(find_places().database, MIGRATIONS)), words
