"""`exeora serve`: what it prints, what it makes, whom it asks, and how it ends. Real processes throughout."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from exeora_ws.app import open_app
from exeora_ws.serve.tokens import TokenBook
from exeora_ws.settings import find_places

from support.commandline import COMMAND, CommandLine, child_environment
from support.repositories import RepositoryMaker
from support.served import HANDSHAKE, Terminal, at_terminal, call, open_session, post, serving


def make_secret(**options: Any) -> str:
    return TokenBook(find_places()).create("test", **options)[1]


def test_the_first_start_shows_a_token_and_the_lines_for_clients_and_later_ones_do_not(exeora: CommandLine):
    with subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"],
        cwd=exeora.folder,
        env=child_environment(exeora.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        lines: list[str] = []
        while not lines or "mcpServers" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        text = "".join(lines)
        secret = re.search(r"exo_[A-Za-z0-9_-]{43}", text)[0]
        url = re.search(r"^app +(http://127\.0\.0\.1:\d+/p/app/mcp)$", text, re.MULTILINE)[1]
        assert f"account  {url.removesuffix('/p/app/mcp')}/mcp\n" in text
        command = next(line for line in text.splitlines() if "claude mcp add" in line)
        assert shlex.split(command)[-2:] == ["--header", f"Authorization: Bearer {secret}"]
        assert url in command
        assert open_session(url, secret)
        process.send_signal(signal.SIGINT)
        out, narration = process.communicate(timeout=10)
    assert (out, process.returncode) == ("", 0)
    assert "registered this repository as project 'app'" in narration
    assert re.search(r"session \w+ opened with token 'first'", narration)
    assert narration.endswith("exeora: stopped\n")
    assert secret not in narration
    with serving(exeora) as again:
        assert again.ready["token"] == {"state": "exists"}
        assert "exo_" not in json.dumps(again.ready)
        assert open_session(again.account, secret)
        assert again.end()[0] == 0


def test_json_is_one_object_for_each_event(exeora: CommandLine):
    with serving(exeora) as served:
        ready = served.ready
        assert ready["schema"] == 1
        assert ready["account"] == f"{ready['url']}/mcp"
        assert ready["projects"] == [{"slug": "app", "url": f"{ready['url']}/p/app/mcp"}]
        assert ready["endpoint"] == f"{ready['url']}/p/app/mcp"
        secret = ready["token"]["secret"]
        assert ready["token"]["state"] == "created"
        assert ready["clients"]["cursor"]["mcpServers"]["exeora"] == {
            "url": ready["endpoint"],
            "headers": {"Authorization": f"Bearer {secret}"},
        }
        assert secret not in json.dumps(ready["clients"]["vscode"]), "that file is committed"
        session = open_session(served.account, secret)
        opened = served.event()
        assert opened == {
            "schema": 1,
            "event": "session_opened",
            "session": session["Mcp-Session-Id"],
            "token": "first",
        }
        assert post(served.account, "exo_wrong", "initialize", {}).status_code == 401
        assert served.event() == {"schema": 1, "event": "refused", "status": 401}
        code, events, err = served.end()
    assert code == 0
    assert [event["event"] for event in events] == ["stopping", "session_closed", "stopped"]
    note, *rest = err.splitlines()
    assert json.loads(note)["note"].startswith("registered")
    assert rest == []


def test_where_no_project_is_around_the_account_is_offered(exeora: CommandLine, tmp_path: Path):
    with serving(exeora, folder=tmp_path) as served:
        assert served.ready["endpoint"] == served.ready["account"]
        assert served.ready["projects"] == []
        assert served.end() == (0, [{"schema": 1, "event": e} for e in ("stopping", "stopped")], "")


def test_a_token_that_is_over_is_not_made_up_for(exeora: CommandLine):
    book = TokenBook(find_places())
    book.revoke(book.create("gone")[0].id)
    with serving(exeora) as served:
        assert served.ready["token"] == {"state": "none"}
    assert len(book.list()) == 1


def test_behind_a_proxy_its_name_is_what_clients_are_told(exeora: CommandLine):
    with serving(exeora, "--behind-proxy", "--allowed-host", "exeora.example.com") as served:
        assert served.ready["account"] == "https://exeora.example.com/mcp"
        assert served.ready["url"].startswith("http://127.0.0.1:")
        local = served.ready["url"] + "/mcp"
        secret = served.ready["token"]["secret"]
        assert post(local, secret, "initialize", {}).status_code == 421
        assert post(local, secret, "initialize", HANDSHAKE, Host="exeora.example.com").status_code == 200


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("--host", "0.0.0.0"), 2, "host_not_loopback"),
        (("--behind-proxy",), 2, "missing_field"),
        (("--allowed-host", "x.example"), 2, "conflicting_fields"),
        (("--port", "70000"), 2, "usage"),
        (("--port", "x"), 2, "usage"),
        (("--host", "no-such-host.invalid", "--behind-proxy", "--allowed-host", "x"), 1, "cannot_listen"),
        (("-w", "main"), 2, "no_workspace_taken"),
        (("--project", "no-such"), 1, None),
    ],
)
def test_what_cannot_be_served_is_refused_and_makes_nothing(exeora: CommandLine, words, code, reason):
    done = exeora("serve", "--json", *words)
    assert (done.code, done.out) == (code, "")
    assert done.error.get("reason") == reason
    assert TokenBook(find_places()).list() == []


def test_a_port_that_is_taken_is_said(exeora: CommandLine):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = exeora("serve", "--port", port)
    assert done.code == 1
    assert done.out == ""
    assert done.err.splitlines()[-2:] == [
        f"exeora: port {port} is taken",
        "hint: exeora status shows running servers; --port takes another port",
    ]
    assert TokenBook(find_places()).list() == []


def test_it_ends_when_nobody_reads_what_it_tells(exeora: CommandLine):
    with serving(exeora) as served:
        served.process.stdout.close()
        post(served.account, None, "initialize", {})
        assert served.process.wait(8) == 141
        served.process.stdout = None


def test_nohup_is_respected(exeora: CommandLine):
    script = "import os,signal,sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", script, *COMMAND, "serve", "--port", "0", "--json"],
        cwd=exeora.folder,
        env=child_environment(exeora.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        ready = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGHUP)
        assert post(ready["account"], None, "initialize", {}).status_code == 401
        assert json.loads(process.stdout.readline())["event"] == "refused"
        process.terminate()
        assert process.wait(8) == 0


# A person at its terminal


@pytest.fixture
def asking(exeora: CommandLine, repository: Path) -> Path:
    """A project that asks before every change."""
    exeora.inline("project", "add", ".")
    (repository / "exeora.toml").write_text("approve = true\n")
    return repository


def address(text: str) -> str:
    return re.search(r"^account +(http\S+/mcp)", text, re.MULTILINE)[1]


def start_at_terminal(exeora: CommandLine) -> tuple[Terminal, str]:
    terminal = at_terminal(exeora, "serve", "--port", "0")
    return terminal, address(terminal.read_until("mcpServers"))


def test_a_person_at_the_terminal_is_asked_and_their_answer_counts(exeora: CommandLine, asking: Path):
    secret = make_secret()
    terminal, url = start_at_terminal(exeora)
    session = open_session(url, secret)
    try:
        with ThreadPoolExecutor(1) as pool:
            for typed, expected in (("y\n", None), ("\n", "APPROVAL_DECLINED"), ("n\n", "APPROVAL_DECLINED")):
                (asking / "made").unlink(missing_ok=True)
                arguments = {"command": "touch made"}
                terminal.type("yes\n")  # typed before there is a question: no answer to it
                calling = pool.submit(call, url, secret, "run_command", arguments, **session)
                asked = terminal.read_until("Allow it? [y/N] ")
                assert "Run run_command in workspace main of project app?" in asked
                assert "touch made" in asked
                assert not (asking / "made").exists()
                terminal.type(typed)
                result = calling.result(20)
                assert (asking / "made").exists() is (expected is None)
                assert (result["structuredContent"].get("error") or {}).get("code") == expected
            # Answered in another window: the question goes away, and the next one is asked.
            calling = pool.submit(call, url, secret, "run_command", {"command": "touch made"}, **session)
            terminal.read_until("Allow it? [y/N] ")
            approvals = open_app().approvals
            approvals.decline(approvals.list_pending()[0].id, "approvals")
            assert calling.result(20)["structuredContent"]["error"]["code"] == "APPROVAL_DECLINED"
            terminal.read_until(": declined")
            # The server ends while it asks: the call is taken back, and so is the question.
            calling = pool.submit(call, url, secret, "run_command", {"command": "touch made"}, **session)
            terminal.read_until("Allow it? [y/N] ")
            assert terminal.end() == 0
            assert calling.result(20)["structuredContent"]["error"]["code"] == "CANCELLED"
        assert approvals.list_pending() == []
        assert not (asking / "made").exists()
    finally:
        terminal.kill()


@pytest.mark.parametrize("how", ["no terminal", "json", "background"])
def test_nobody_is_asked_where_nobody_can_answer(exeora: CommandLine, asking: Path, how: str):
    secret = make_secret()
    command = [*COMMAND, "serve", "--port", "0", *(["--json"] if how == "json" else [])]
    if how == "no terminal":
        with serving(exeora) as served:
            refused(served.account, secret)
            served.end()
        return
    line = f"set -m; {shlex.join(command)} & wait" if how == "background" else f"exec {shlex.join(command)}"
    terminal = Terminal(["/bin/bash", "-c", line], asking, child_environment(exeora.environment))
    try:
        text = terminal.read_until("mcpServers")
        url = json.loads(text.partition('"account":')[2].partition(",")[0]) if how == "json" else address(text)
        refused(url, secret)
        assert "Allow it?" not in terminal.seen
        if how == "background":
            pid = int(Path(f"/proc/{terminal.pid}/task/{terminal.pid}/children").read_text())
            os.kill(pid, signal.SIGTERM)
        assert terminal.end() in (0, 130, -signal.SIGINT)
    finally:
        terminal.kill()


def refused(url: str, secret: str) -> None:
    result = call(url, secret, "run_command", {"command": "touch made", "project": "app"}, **open_session(url, secret))
    assert result["structuredContent"]["error"]["reason"] == "nobody_to_ask"


def test_a_question_is_told_without_its_arguments(exeora: CommandLine, asking: Path):
    secret = make_secret()
    with serving(exeora) as served, ThreadPoolExecutor(1) as pool:
        app = open_app()
        session = open_session(served.account, secret)
        assert served.event()["event"] == "session_opened"
        with app.attendance.hold():
            calling = pool.submit(call, served.account, secret, "run_command", {"command": "echo hunter2"}, **session)
            asked = served.event()
            assert asked["event"] == "approval_asked"
            assert (asked["project"], asked["workspace"], asked["tool"]) == ("app", "main", "run_command")
            assert "hunter2" not in json.dumps(asked)
            assert 0 < datetime.fromisoformat(asked["expires"]).timestamp() - time.time() <= 90
            app.approvals.allow(asked["id"], "approvals")
            closed = served.event()
        assert {k: closed[k] for k in ("event", "id", "status", "way")} == {
            "event": "approval_closed",
            "id": asked["id"],
            "status": "allowed",
            "way": "approvals",
        }
        assert calling.result(20)["structuredContent"]["stdout"] == "hunter2\n"
        served.end()


def test_upstream_failures_are_told_once_and_without_secrets(exeora: CommandLine, make_repository: RepositoryMaker):
    exeora.inline("project", "add", ".")
    places = find_places()
    places.mcp_file.parent.mkdir(parents=True, exist_ok=True)
    leaky = Path(__file__).parents[2] / "fixtures" / "upstreams" / "leaky.py"
    entry = {"command": sys.executable, "args": [str(leaky), "early"], "env": {"TOKEN": "${HOME}-hunter2"}}
    places.mcp_file.write_text(json.dumps({"mcpServers": {"leaky": entry}}))
    secret = make_secret()
    with serving(exeora) as served:
        session = open_session(served.account, secret)
        assert served.event()["event"] == "session_opened"
        post(served.account, secret, "tools/list", {}, **session)
        warned = served.event()
        assert warned["event"] == "warning"
        assert "'leaky'" in warned["message"]
        assert "exit code 4" in warned["message"]
        assert "hunter2" not in warned["message"]
        _, events, _ = served.end()
    assert "warning" not in [event["event"] for event in events]
