"""Toolset agentexec, sentence by sentence: each test's docstring is the rule it holds."""

import json
import os
import signal
import threading
import time

import pytest
from exeora_ws.app import open_calls
from exeora_ws.cancellation import Cancellation
from exeora_ws.limits import LIVE_PROCESSES_AGENTEXEC
from exeora_ws.processes.output import Fresh, Piece
from exeora_ws.toolsets import login_shell
from exeora_ws.toolsets.terminal_answer import cut_middle
from hypothesis import given
from hypothesis import strategies as st

from support.processes import all_gone, eventually, find_tagged
from support.repositories import git

pytestmark = pytest.mark.anyio

FIELDS = ["exit_code", "seconds", "session_id", "text"]


@pytest.fixture
def terminal(offer):
    return offer("agentexec")


# levels


def test_each_level_contains_the_one_before(app):
    """`read` has read, list and search; `files` adds edit; `terminal` adds exec_command and write_stdin."""
    reading, files, terminal = (set(open_calls(app, [name]).catalog) for name in LEVELS)
    assert reading == {"read", "list", "search"}
    assert files == reading | {"edit"}
    assert terminal == files | {"exec_command", "write_stdin"}


LEVELS = ("agentexec-read", "agentexec-files", "agentexec")


def test_every_tool_keeps_the_workspace(terminal):
    """Every tool has the optional `workspace`."""
    for tool in terminal.calls.catalog.values():
        schema = tool.input_schema(account=False)
        assert "workspace" in schema["properties"]
        assert "workspace" not in schema.get("required", [])


def test_tools_act_in_the_workspace_named(terminal, app, top):
    """A named workspace is the root of files and commands alike."""
    git(top, "worktree", "add", "-q", "-b", "feat", str(top.parent / "feat"))
    (top.parent / "feat/only-here.txt").write_text("x\n")
    default = terminal.__class__(app, open_calls(app, []), terminal.project)
    default.result("attach_workspace", branch="feat")
    assert "only-here.txt" in terminal.text("list", workspace="feat")
    assert "only-here.txt" not in terminal.text("list")
    answer = terminal.result("exec_command", cmd="pwd", workspace="feat")
    assert answer["text"] == f"{(top.parent / 'feat').resolve()}\n"


# the answer


def test_the_four_fields_in_order_as_text_and_as_structured_content(terminal):
    """The answer is exit_code, seconds, session_id and text, in this order, as text and as structuredContent."""
    answer = terminal("exec_command", cmd="echo what it wrote")
    fields = answer["structuredContent"]
    assert list(fields) == FIELDS
    assert (fields["exit_code"], fields["session_id"], fields["text"]) == (0, "none", "what it wrote\n")
    assert answer["content"] == [
        {
            "type": "text",
            "text": f"exit_code: 0\nseconds: {fields['seconds']:.3f}\nsession_id: none\ntext:\nwhat it wrote\n",
        }
    ]


def test_a_failing_command_is_an_answer(terminal):
    """A command that exits non-zero is an answer, not a failure."""
    answer = terminal("exec_command", cmd="echo no; exit 7")
    assert answer["isError"] is False
    assert answer["structuredContent"]["exit_code"] == 7


def test_a_failed_tool_is_an_error(terminal):
    """A failed tool sets MCP's `isError`."""
    assert terminal("read", path="not-there")["isError"] is True


def test_a_running_command_has_a_session_and_no_exit_code(terminal):
    """While it runs, exit_code is `running` and session_id names it; once it has ended, session_id is `none`."""
    started = terminal.result("exec_command", cmd="echo a; read x; echo got $x", yield_time_ms=300)
    assert started["exit_code"] == "running"
    assert started["session_id"] != "none"
    assert started["text"] == "a\n"
    ended = terminal.result("write_stdin", session_id=started["session_id"], chars="b\n", yield_time_ms=5000)
    assert (ended["exit_code"], ended["session_id"], ended["text"]) == (0, "none", "got b\n")
    assert terminal.refusal("write_stdin", session_id=started["session_id"])["reason"] == "unknown_session"


def test_text_is_what_it_wrote_since_the_last_answer(terminal):
    """Each answer holds only what came since the one before, both outputs in the order they were written."""
    command = "for w in 1 2 3; do echo out$w; echo err$w >&2; read x; done"
    answer = terminal.result("exec_command", cmd=command, yield_time_ms=300)
    assert answer["text"] == "out1\nerr1\n"
    for number in (2, 3):
        answer = terminal.result("write_stdin", session_id=answer["session_id"], chars="\n")
        assert answer["text"] == f"out{number}\nerr{number}\n"


@pytest.mark.parametrize(
    ("cmd", "code"),
    [
        ("kill -TERM $$", 128 + signal.SIGTERM),
        ("kill -KILL $$", 128 + signal.SIGKILL),
        ("sh -c 'kill -SEGV $$'; exit $?", 128 + signal.SIGSEGV),
    ],
)
def test_a_command_stopped_by_a_signal(terminal, cmd, code):
    """A command stopped by a signal has 128 plus the signal's number."""
    assert terminal.result("exec_command", cmd=cmd)["exit_code"] == code


# windows


@pytest.fixture
def waits(monkeypatch):
    """How long each answer was ready to wait for the command, in seconds."""
    from exeora_ws.processes.running import Running

    asked = []
    real = Running.wait_end

    def wait_end(self, seconds, cancellation=None):
        asked.append(seconds)
        return real(self, min(seconds, 0.05), cancellation)

    monkeypatch.setattr(Running, "wait_end", wait_end)
    return asked


@pytest.mark.parametrize(
    ("given_ms", "seconds"),
    [(None, 10), (250, 0.25), (0, 0.25), (-5, 0.25), (30_000, 30), (30_001, 30), (10**9, 30), (700, 0.7)],
)
def test_exec_waits_within_its_window(terminal, waits, given_ms, seconds):
    """exec_command waits yield_time_ms, 250 to 30000, 10000 by default; anything else counts as the nearest."""
    terminal.result("exec_command", cmd="sleep 5", **({} if given_ms is None else {"yield_time_ms": given_ms}))
    assert waits == [seconds]


@pytest.mark.parametrize(
    ("chars", "given_ms", "seconds"),
    [
        ("", None, 5),
        ("", 0, 5),
        ("", 250, 5),
        ("", 5_001, 5.001),
        ("", 60_000, 30),
        ("x", None, 0.25),
        ("x", 10, 0.25),
        ("x", 2_000, 2),
        ("x", 90_000, 30),
    ],
)
def test_typing_and_polling_wait_within_their_windows(terminal, waits, chars, given_ms, seconds):
    """With no chars it waits 5000 to 30000 ms, 5000 by default; with chars 250 to 30000."""
    started = terminal.result("exec_command", cmd="sleep 5")
    waits.clear()
    wanted = {} if given_ms is None else {"yield_time_ms": given_ms}
    terminal.result("write_stdin", session_id=started["session_id"], chars=chars, **wanted)
    assert waits == [seconds]


def test_a_command_that_ends_is_not_waited_for(terminal):
    """An answer comes as soon as the command has ended."""
    terminal.result("exec_command", cmd="true")  # the login shell's environment is taken
    started = time.monotonic()
    assert terminal.result("exec_command", cmd="true", yield_time_ms=30_000)["seconds"] < 5
    assert time.monotonic() - started < 5


def test_a_poll_gives_what_came_meanwhile(terminal, top):
    """With no chars, a poll waits for more."""
    started = terminal.result("exec_command", cmd="sleep 1; echo late", yield_time_ms=250)
    assert (started["exit_code"], started["text"]) == ("running", "")
    polled = terminal.result("write_stdin", session_id=started["session_id"])
    assert (polled["exit_code"], polled["text"]) == (0, "late\n")


# keys


def test_interrupt_is_a_signal(terminal):
    """`\\u0003` is delivered as SIGINT to the command and what it runs in front."""
    started = terminal.result("exec_command", cmd="trap 'echo caught; exit 9' INT; sleep 60", yield_time_ms=300)
    ended = terminal.result("write_stdin", session_id=started["session_id"], chars="\x03", yield_time_ms=5000)
    assert (ended["exit_code"], ended["text"]) == (9, "caught\n")


def test_interrupt_of_a_command_that_does_not_catch_it(terminal):
    """A command stopped by the interrupt has 128 plus 2."""
    started = terminal.result("exec_command", cmd="sleep 60", yield_time_ms=250)
    ended = terminal.result("write_stdin", session_id=started["session_id"], chars="\x03", yield_time_ms=5000)
    assert ended["exit_code"] == 130


def test_end_of_input(terminal):
    """`\\u0004` ends the command's input, after what was typed before it."""
    started = terminal.result("exec_command", cmd="cat; echo end", yield_time_ms=250)
    ended = terminal.result("write_stdin", session_id=started["session_id"], chars="abc\n\x04", yield_time_ms=5000)
    assert (ended["exit_code"], ended["text"]) == (0, "abc\nend\n")


def test_typing_after_the_end_of_input_is_an_error(terminal):
    """What cannot be typed any more is not taken for typed."""
    started = terminal.result("exec_command", cmd="exec <&-; sleep 5", yield_time_ms=250)
    terminal.result("write_stdin", session_id=started["session_id"], chars="\x04")
    error = terminal.refusal("write_stdin", session_id=started["session_id"], chars="x")
    assert error["reason"] == "input_closed"


def test_typing_into_a_command_that_has_ended_loses_no_output(terminal, top):
    """Typing comes too late: an error, and the next poll still tells how it ended."""
    started = terminal.result("exec_command", cmd="sleep 0.4; echo bye; exit 3; : $(touch x)", yield_time_ms=250)
    running = terminal.app.services.supervisor.list_started()[0]
    assert eventually(lambda: not running.running or not terminal.app.services.supervisor.list_started()[0].running)
    assert terminal.refusal("write_stdin", session_id=started["session_id"], chars="x")["reason"] == "not_running"
    ended = terminal.result("write_stdin", session_id=started["session_id"])
    assert (ended["exit_code"], ended["text"]) == (3, "bye\n")


def test_commands_use_pipes(terminal):
    """Commands use pipes, not a terminal."""
    assert terminal.result("exec_command", cmd="test -t 0 || test -t 1 || echo pipes")["text"] == "pipes\n"


# the cut


def test_a_text_that_json_makes_longer_than_an_answer_is_cut_further(terminal):
    """A text that JSON makes longer than one answer holds is cut further, so that its session_id arrives."""
    line = "head -c 390000 /dev/zero; echo; echo ready; sleep 60"
    answer = terminal.result("exec_command", cmd=line, max_output_tokens=100_000, yield_time_ms=1_500)
    assert answer["exit_code"] == "running"
    assert answer["session_id"].startswith("prc_")
    assert "bytes cut" in answer["text"]
    assert answer["text"].endswith("\nready\n")


def test_long_output_is_cut_in_the_middle(terminal):
    """Past max_output_tokens (four characters each) text is cut in the middle, saying how much was cut."""
    answer = terminal.result("exec_command", cmd="seq 1 20000", max_output_tokens=100)
    whole = "".join(f"{n}\n" for n in range(1, 20001))
    head, _, rest = answer["text"].partition("\n[… ")
    number, _, tail = rest.partition(" bytes cut …]\n")
    assert (head, tail) == (whole[:200], whole[-200:])
    assert int(number) == len(whole) - 400


def test_seven_thousand_tokens_by_default(terminal):
    """max_output_tokens is 7000 by default: 28,000 characters are whole, one more is cut."""
    whole = terminal.result("exec_command", cmd="head -c 28000 /dev/zero | tr '\\0' x")["text"]
    assert whole == "x" * 28_000
    cut = terminal.result("exec_command", cmd="head -c 28001 /dev/zero | tr '\\0' x")["text"]
    assert "[… 1 bytes cut …]" in cut


def test_the_beginning_and_the_end_of_very_much_output_are_kept(terminal):
    """However much was written, both ends are there and the number is right."""
    answer = terminal.result("exec_command", cmd="echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last")
    assert answer["text"].startswith("first\n")
    assert answer["text"].endswith("last\n")
    kept = len(answer["text"]) - len("\n[…  bytes cut …]\n") - len(str(3_000_011 - 28_000))
    assert kept == 28_000
    assert f"[… {3_000_011 - 28_000} bytes cut …]" in answer["text"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40)), st.integers(1, 60), st.integers(4, 30))
def test_what_is_cut_is_counted(texts, most, half):
    """Whatever the characters: what is shown and what is said to be cut is all that was written."""
    fresh, written = Fresh(half), "".join(texts).encode()
    for at in range(0, len(written), 3):
        fresh.append(written[at : at + 3])
    shown = cut_middle(fresh.take(final=True), most)
    head, marker, rest = shown.partition("\n[… ")
    number, _, tail = rest.partition(" bytes cut …]\n")
    if not marker:
        assert shown.encode() == written
        return
    assert written.startswith(head.encode())
    assert written.endswith(tail.encode())
    assert len((head + tail).encode()) + int(number) == len(written)
    assert len(head) + len(tail) <= most


@given(st.text("aä€😀", max_size=60), st.data())
def test_no_character_is_torn_between_answers(text, data):
    """A character of which only a part was written waits for the next answer."""
    fresh, raw, got, at = Fresh(1000), text.encode(), "", 0
    while at < len(raw):
        step = data.draw(st.integers(1, 5))
        fresh.append(raw[at : at + step])
        at += step
        got += fresh.take(final=False).head
    assert got + fresh.take(final=True).head == text


def test_a_piece_that_fits_is_whole():
    """Nothing is cut up to the limit."""
    assert cut_middle(Piece("abcdef", 0, ""), 6) == "abcdef"
    assert cut_middle(Piece("abcdef", 0, ""), 5) == "abc\n[… 1 bytes cut …]\nef"


# sessions


def test_session_ids_are_random(terminal):
    """A session id cannot be guessed."""
    ids = {terminal.result("exec_command", cmd="sleep 9", yield_time_ms=250)["session_id"] for _ in range(2)}
    assert len(ids) == 2
    assert all(len(identity) >= 24 for identity in ids)


def test_a_session_is_for_its_own_client_only(terminal):
    """Another client of the same server gets the answer of a session that never was."""
    started = terminal.result("exec_command", cmd="cat", yield_time_ms=250)
    other = terminal.as_session("session-2")
    stolen = other.refusal("write_stdin", session_id=started["session_id"], chars="\x03")
    assert stolen == other.refusal("write_stdin", session_id="prc_" + "0" * 24, chars="\x03")
    still = terminal.result("write_stdin", session_id=started["session_id"], chars="x\n")
    assert (still["exit_code"], still["text"]) == ("running", "x\n")


def test_at_most_64_commands_and_none_evicted(terminal, monkeypatch):
    """At most 64 commands run at once; the 65th is refused and none is evicted."""
    monkeypatch.setattr("exeora_ws.toolsets.terminal.EXEC_YIELD_MAX_MS", 1)
    ids = [terminal.result("exec_command", cmd="exec cat")["session_id"] for _ in range(LIVE_PROCESSES_AGENTEXEC)]
    assert LIVE_PROCESSES_AGENTEXEC == 64
    error = terminal.refusal("exec_command", cmd="touch refused")
    assert error["reason"] == "too_many_processes"
    assert "64" in error["message"]
    for identity in (ids[0], ids[-1]):
        assert terminal.result("write_stdin", session_id=identity)["exit_code"] == "running"
    monkeypatch.setattr("exeora_ws.toolsets.terminal.EXEC_YIELD_MAX_MS", 5_000)
    terminal.result("write_stdin", session_id=ids[0], chars="\x04", yield_time_ms=5000)
    assert terminal.result("exec_command", cmd="echo room")["text"] == "room\n"


def test_the_64_leave_room_for_started_commands(terminal, app, monkeypatch):
    """Commands of the other toolsets are counted apart."""
    monkeypatch.setattr("exeora_ws.toolsets.terminal.EXEC_YIELD_MAX_MS", 1)
    for _ in range(9):
        terminal.result("exec_command", cmd="exec sleep 60")
    default = terminal.__class__(app, open_calls(app, []), terminal.project)
    assert default.result("start_command", command="sleep 60")["processId"]


def test_closing_the_connection_stops_every_command(terminal, app):
    """When the connection closes, every command still running is stopped, with what it started."""
    terminal.result("exec_command", cmd="sleep 77 & sleep 78", yield_time_ms=250)
    terminal.as_session("session-2").result("exec_command", cmd="sleep 79", yield_time_ms=250)
    before = find_tagged()
    app.close_session("session-1")
    left = find_tagged()
    assert len(before) > len(left) == 1
    assert terminal.refusal("exec_command", cmd="true")["reason"] == "shutting_down"


def test_a_cancelled_call_leaves_nothing_running(terminal, top):
    """A call that is taken back before its answer leaves nothing that nobody could end."""
    cancellation = Cancellation()
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(
            terminal("exec_command", cmd="touch begun; sleep 60", yield_time_ms=30_000, cancellation=cancellation)
        )
    )
    thread.start()
    assert eventually((top / "begun").exists)
    pids, started = find_tagged(), time.monotonic()
    cancellation.cancel()
    thread.join(5)
    assert time.monotonic() - started < 2
    assert answers[0]["structuredContent"]["error"]["code"] == "CANCELLED"
    assert all_gone(pids)


def test_what_a_command_leaves_running_is_said_and_ended(terminal):
    """What a command leaves running when it ends is named and ended."""
    answer = terminal.result("exec_command", cmd="sleep 66 & echo hi")
    assert answer["text"].startswith("hi\n")
    assert "sleep" in answer["text"]
    assert eventually(lambda: not find_tagged())


def test_an_ended_command_is_not_kept(terminal, app):
    """Once it has been answered that a command ended, nothing of it is kept."""
    terminal.result("exec_command", cmd="echo x")
    assert app.services.supervisor.list_started() == []


# where and how commands run


def test_a_command_runs_in_a_login_shell(terminal, home, monkeypatch):
    """`cmd` runs with what a login shell sets up."""
    (home / ".profile").write_text("export FROM_PROFILE=yes\n")
    monkeypatch.setenv("SHELL", "/bin/sh")
    assert terminal.result("exec_command", cmd="echo $FROM_PROFILE")["text"] == "yes\n"


def test_the_login_environment_is_taken_once(terminal, home, monkeypatch):
    """The login shell's environment is taken once: a slow profile is paid for by the first call only."""
    (home / ".profile").write_text("echo noise; echo x >> ~/logins; export FROM_PROFILE=yes\n")
    monkeypatch.setenv("SHELL", "/bin/sh")
    for _ in range(3):
        assert terminal.result("exec_command", cmd="echo $FROM_PROFILE")["text"] == "yes\n"
    assert (home / "logins").read_text() == "x\n"


def test_a_login_shell_that_fails_or_hangs_is_done_without(terminal, home, monkeypatch):
    """A profile that ends the shell, or never ends, keeps no command from running."""
    monkeypatch.setattr(login_shell, "_SECONDS", 0.3)
    monkeypatch.setenv("SHELL", "/bin/sh")
    (home / ".profile").write_text("sleep 60\n")
    assert terminal.result("exec_command", cmd="echo on")["text"] == "on\n"
    login_shell._taken.clear()
    (home / ".profile").write_text("exit 1\n")
    assert terminal.result("exec_command", cmd="echo on")["text"] == "on\n"


def test_no_token_of_ours_reaches_a_command(terminal, monkeypatch):
    """A command's environment holds no token of ours, and says which workspace it is in."""
    monkeypatch.setenv("AGENTEXEC_TOKEN", "secret-1")
    monkeypatch.setenv("SHELL", "/bin/sh")
    shown = terminal.result("exec_command", cmd="env")["text"]
    assert "secret-1" not in shown
    assert "EXEORA_WORKSPACE=main\n" in shown


@pytest.mark.parametrize("workdir", ["src", "./src/", "ABSOLUTE"])
def test_workdir(terminal, top, workdir):
    """A command starts in `workdir`, relative or absolute inside the workspace."""
    given_dir = str(top / "src") if workdir == "ABSOLUTE" else workdir
    assert terminal.result("exec_command", cmd="pwd", workdir=given_dir)["text"] == f"{top}/src\n"


@pytest.mark.parametrize("workdir", ["..", "/", "/etc"])
def test_a_workdir_outside_is_refused(terminal, workdir):
    """A workdir outside the workspace is refused."""
    assert terminal.refusal("exec_command", cmd="pwd", workdir=workdir)["code"] == "PATH_ESCAPE"


def test_policy_judges_commands(terminal, top):
    """exec_command obeys the project's lists."""
    (top / "exeora.toml").write_text('deny = ["curl"]\n')
    assert terminal.refusal("exec_command", cmd="env curl x")["reason"] == "denied"


# read


def test_read_gives_numbered_lines(terminal, top):
    """A text file as numbered lines."""
    (top / "a.txt").write_text("one\ntwo\nthree\n")
    assert terminal.text("read", path="a.txt") == "1\tone\n2\ttwo\n3\tthree\n"


def test_read_from_an_offset_for_a_limit(terminal, top):
    """From `offset` for `limit` lines, saying where to go on."""
    (top / "a.txt").write_text("".join(f"l{n}\n" for n in range(1, 13)))
    shown = terminal.text("read", path="a.txt", offset=9, limit=2)
    assert shown.startswith(" 9\tl9\n10\tl10\n")
    assert "12 lines" in shown
    assert "offset 11" in shown


def test_read_gives_two_thousand_lines_by_default(terminal, top):
    """`offset` is 1 and `limit` 2000 by default."""
    (top / "a.txt").write_text("x\n" * 2001)
    shown = terminal.text("read", path="a.txt")
    assert shown.count("\tx\n") == 2000
    assert "offset 2001" in shown


def test_more_numbered_lines_than_an_answer_holds(terminal, top):
    """Numbers that make short lines too long for one answer cut it at a line, saying where to go on."""
    (top / "a.txt").write_text("x\n" * 240_000)
    shown = terminal.text("read", path="a.txt", limit=240_000)
    last, _, told = shown.rpartition("\n[")
    number = int(last.rstrip("\n").rpartition("\n")[2].split("\t")[0])
    assert f"offset {number + 1}]" in told


def test_read_past_the_end(terminal, top):
    """An offset past the end is an error that states the line count."""
    (top / "a.txt").write_text("x\n")
    error = terminal.refusal("read", path="a.txt", offset=5)
    assert (error["reason"], error["data"]["totalLines"]) == ("offset_past_end", 1)


# list


def test_list_marks_folders_and_gives_sizes(terminal, top):
    """Folders end in `/`, files give their size in bytes."""
    (top / "a.bin").write_bytes(b"12345")
    (top / "d/e").mkdir(parents=True)
    os.symlink("a.bin", top / "l")
    lines = terminal.text("list").split("\n")
    assert "a.bin 5" in lines
    assert "d/" in lines
    assert "l [link]" in lines
    assert terminal.text("list", path="d") == "e/"
    assert terminal.text("list", path="d/e") == "[the folder is empty]"


def test_a_cut_list_says_so(terminal, top):
    """A list that is cut says so."""
    (top / "many").mkdir()
    for number in range(1_001):
        (top / "many" / f"f{number:04}").touch()
    lines = terminal.text("list", path="many").split("\n")
    assert len(lines) == 1_001
    assert "there are more" in lines[-1]


# search


def test_search_gives_path_line_and_text(terminal, top):
    """Text under a folder, as path:line:text."""
    (top / "src/x.py").write_text("a\nneedle here\n")
    (top / "other.txt").write_text("needle\n")
    assert terminal.text("search", pattern="needle", path="src") == "src/x.py:2:needle here"
    assert terminal.text("search", pattern="needle").split("\n") == ["other.txt:1:needle", "src/x.py:2:needle here"]


def test_search_is_exact_unless_regex(terminal, top):
    """Exact text unless `regex`."""
    (top / "x.txt").write_text("a.c\nabc\n")
    assert terminal.text("search", pattern="a.c", path="x.txt") == "x.txt:1:a.c"
    assert terminal.text("search", pattern="a.c", path="x.txt", regex=True) == "x.txt:1:a.c\nx.txt:2:abc"


def test_search_skips_what_git_ignores(terminal, top):
    """Skips what .gitignore ignores, .git and node_modules."""
    (top / ".gitignore").write_text("build/\n")
    for folder in ("build", "node_modules/m", "kept"):
        (top / folder).mkdir(parents=True)
        (top / folder / "f.txt").write_text("needle-in-a-file\n")
    (top / ".git/needle").write_text("needle-in-a-file\n")
    assert terminal.text("search", pattern="needle-in-a-file") == "kept/f.txt:1:needle-in-a-file"
    assert terminal.text("search", pattern="nowhere-at-all") == "[nothing matches]"


def test_a_cut_search_says_so(terminal, top):
    """A search that is cut says so."""
    (top / "x.txt").write_text("hit\n" * 201)
    lines = terminal.text("search", pattern="hit").split("\n")
    assert len(lines) == 201
    assert "there are more" in lines[-1]


# edit


def test_edit_answers_with_a_unified_diff(terminal, top):
    """Replaces exact text that appears once, and answers with a unified diff."""
    (top / "a.txt").write_text("one\ntwo\n")
    shown = terminal.text("edit", path="a.txt", old_text="two", new_text="zwei")
    assert shown == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n"
    assert (top / "a.txt").read_text() == "one\nzwei\n"


def test_edit_needs_one_occurrence(terminal, top):
    """The text must appear once unless replace_all."""
    (top / "a.txt").write_text("x\nx\n")
    assert terminal.refusal("edit", path="a.txt", old_text="x", new_text="y")["reason"] == "ambiguous_match"
    assert terminal.refusal("edit", path="a.txt", old_text="z", new_text="y")["reason"] == "no_match"
    assert (top / "a.txt").read_text() == "x\nx\n"
    terminal.text("edit", path="a.txt", old_text="x", new_text="y", replace_all=True)
    assert (top / "a.txt").read_text() == "y\ny\n"


def test_edit_with_no_old_text_creates(terminal, top):
    """An empty old_text creates a new file."""
    shown = terminal.text("edit", path="n/new.txt", old_text="", new_text="hi\n")
    assert shown == "--- /dev/null\n+++ b/n/new.txt\n@@ -0,0 +1 @@\n+hi\n"
    assert (top / "n/new.txt").read_text() == "hi\n"


def test_edit_with_no_old_text_overwrites_nothing(terminal, top):
    """An empty old_text for a file that is there is refused."""
    before = (top / "README.md").read_text()
    assert terminal.refusal("edit", path="README.md", old_text="", new_text="x")["reason"] == "exists"
    assert (top / "README.md").read_text() == before


# paths


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "leak/passwd"])
@pytest.mark.parametrize(
    ("tool", "more"),
    [("read", {}), ("list", {}), ("search", {"pattern": "root"}), ("edit", {"old_text": "root", "new_text": "x"})],
)
def test_a_path_that_really_lies_outside_is_refused(terminal, top, tool, more, path):
    """A path that really lies outside the workspace is refused, links followed."""
    os.symlink("/etc", top / "leak")
    (top.parent / "secret").write_text("root\n")
    assert terminal.refusal(tool, path=path, **more)["code"] == "PATH_ESCAPE"


def test_an_absolute_path_inside_is_fine(terminal, top):
    """Relative paths are relative to the workspace; an absolute one that lies inside is taken for what it is."""
    (top / "a.txt").write_text("x\n")
    os.symlink("a.txt", top / "inside")
    assert terminal.text("read", path=str(top / "a.txt")) == "1\tx\n"
    assert terminal.text("read", path="inside") == "1\tx\n"
    os.symlink(top, top.parent / "alias")
    assert terminal.text("read", path=str(top.parent / "alias" / "a.txt")) == "1\tx\n"


# by the official client


async def test_by_the_official_client(connect):
    """Over stdio: the tools, the four fields as text and structured, and a session across calls."""
    async with connect("mcp", "--toolset", "agentexec") as client:
        names = {t.name for t in (await client.list_tools()).tools}
        assert names == {"exec_command", "write_stdin", "read", "list", "search", "edit"}
        answer = await client.call_tool("exec_command", {"cmd": "echo hi; cat", "yield_time_ms": 500})
        assert list(answer.structured_content) == FIELDS
        assert answer.content[0].text.startswith("exit_code: running\nseconds: ")
        identity = answer.structured_content["session_id"]
        ended = await client.call_tool("write_stdin", {"session_id": identity, "chars": "x\u0004"})
        assert ended.structured_content["text"] == "x"
        failed = await client.call_tool("read", {"path": "none"})
        assert failed.is_error
        assert json.dumps(failed.structured_content)


async def test_the_end_of_the_client_is_the_end_of_its_commands(connect, tmp_path):
    """Closing the connection stops every command still running."""
    marker = tmp_path / "pid"
    async with connect("mcp", "--toolset", "agentexec") as client:
        command = {"cmd": f"echo $$ > {marker}; exec sleep 99", "yield_time_ms": 250}
        assert (await client.call_tool("exec_command", command)).structured_content["exit_code"] == "running"
        pid = int(marker.read_text())
        assert not all_gone([pid])
    assert eventually(lambda: all_gone([pid]))
