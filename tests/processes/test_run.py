import os
import resource
import threading
import time

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, InvalidArguments, PathNotFound, ToolFailed
from exeora_ws.processes.command import Command
from exeora_ws.processes.output import Stream, Tail
from exeora_ws.processes.run import run

from support.processes import OWNER, all_gone, eventually, find_tagged


def test_outputs_apart_and_the_code(execute):
    ran = execute("echo out; echo err >&2; exit 3")
    assert (ran.stdout, ran.stderr) == ("out\n", "err\n")
    assert (ran.finish.code, ran.finish.signal, ran.finish.timed_out) == (3, None, False)
    assert ran.finish.leftovers == ()
    assert 0 < ran.finish.seconds < 5


def test_input_is_empty(execute):
    assert execute("cat; echo done").stdout == "done\n"


def test_a_signal_is_named_and_there_is_no_code(execute):
    ran = execute("kill -9 $$")
    assert (ran.finish.code, ran.finish.signal) == (None, "SIGKILL")


@pytest.mark.parametrize("program", ["holds_pipe.sh", "sets_session.sh", "holds_stderr.sh"])
def test_case_30_what_holds_the_pipe_does_not_hold_the_answer(execute, program):
    ran = execute(f"$PROGRAMS/{program}")
    assert ran.stdout == "hi\n"
    assert ran.finish.code == 0
    assert ran.seconds < 1
    assert ran.seconds - ran.finish.seconds < 0.15
    assert [left.program for left in ran.finish.leftovers] == ["sleep"]
    pid = ran.finish.leftovers[0].pid
    assert eventually(lambda: all_gone([pid]))


def test_case_30_one_that_let_go_of_the_pipes_is_found_as_well(execute):
    ran = execute("sleep 300 >/dev/null 2>&1 & echo hi")
    assert ran.seconds < 0.5
    assert [left.program for left in ran.finish.leftovers] == ["sleep"]


@pytest.mark.parametrize("option", ["", "--scrub"])
def test_a_daemon_is_found_even_without_the_tag(execute, option):
    ran = execute(f"$PROGRAMS/forks_twice.py {option}")
    pid = int(ran.stdout)
    assert [left.pid for left in ran.finish.leftovers] == [pid]
    assert eventually(lambda: all_gone([pid]))


def test_a_session_leader_without_environment_is_found(execute):
    ran = execute("env -i setsid sleep 300 & sleep 0.05; echo hi")
    assert [left.program for left in ran.finish.leftovers] == ["sleep"]


def test_output_of_a_child_that_ends_just_after_is_not_lost(execute):
    assert execute("(sleep 0.03; echo late) & echo early").stdout == "early\nlate\n"


def test_case_31_a_timeout_ends_what_ignores_term_and_has_children_in_other_sessions(execute):
    ran = execute("exec $PROGRAMS/ignores_term.sh", timeout=1.0)
    assert ran.stdout == "ready\n"
    assert (ran.finish.code, ran.finish.signal, ran.finish.timed_out) == (None, "SIGKILL", True)
    assert ran.finish.leftovers == ()
    assert 3.0 <= ran.seconds < 3.6
    assert find_tagged() == []


def test_a_timeout_ends_what_obeys_at_once(execute):
    ran = execute("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done", timeout=0.3)
    assert ran.stdout == "ready\nbye\n"
    assert (ran.finish.code, ran.finish.timed_out) == (None, True)
    assert ran.seconds < 0.7


def test_children_born_while_the_tree_is_ended_do_not_survive(execute):
    ran = execute("$PROGRAMS/forks_when_asked_to_end.py", timeout=0.3)
    assert ran.finish.timed_out
    assert find_tagged() == []


def test_a_stopped_process_is_ended_too(execute):
    ran = execute("sleep 300 & kill -STOP $!; sleep 300", timeout=0.3)
    assert ran.seconds < 1
    assert find_tagged() == []


def test_case_32_a_flood_keeps_the_last_bytes_in_flat_memory(execute):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ran = execute("timeout 1 $PROGRAMS/floods.sh")
    assert len(ran.stdout) == 200_000
    assert ran.tail.truncated
    assert ran.stdout.endswith("4567\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_case_32_characters_byte_by_byte_nuls_and_progress_bars(execute):
    ran = execute("$PROGRAMS/prints_euro.py")
    assert ran.stdout == "€" * 1000 + "\0\r 50%\r100%"


def test_the_newest_of_both_outputs_is_kept(execute):
    ran = execute("yes o | head -c 300000; yes e | head -c 1000 >&2; echo end", limit=200_000)
    assert len(ran.stdout) + len(ran.stderr) == 200_000
    assert ran.stdout.endswith("end\n")
    assert ran.tail.truncated


def test_everything_is_handed_on_in_order_and_nothing_is_lost_to_a_slow_reader(execute):
    got = []

    def slowly(stream, data):
        got.append((stream, data))
        time.sleep(0.002)

    ran = execute("seq 1 300000; echo end >&2", on_output=slowly)
    whole = b"".join(data for stream, data in got if stream is Stream.STDOUT)
    assert whole == b"".join(b"%d\n" % n for n in range(1, 300_001))
    assert ran.stderr == "end\n"


def test_a_reader_that_never_returns_does_not_hold_the_timeout(execute):
    released = threading.Event()
    watched = []

    def block(stream, data):
        if not watched:
            watched.append(find_tagged())
            assert eventually(lambda: find_tagged() == [], 3)
            released.set()

    ran = execute("$PROGRAMS/floods.sh", timeout=0.3, on_output=block)
    assert released.is_set()
    assert watched[0]
    assert ran.finish.timed_out


@pytest.mark.parametrize("line", ["sleep 300", "$PROGRAMS/ignores_term.sh", "$PROGRAMS/floods.sh"])
def test_case_38_a_cancelled_command_is_dead_within_two_seconds(execute, later, line):
    cancellation = Cancellation()
    cancelled_at = []

    def cancel():
        cancelled_at.append(time.monotonic())
        cancellation.cancel()

    later(0.2, cancel)
    with pytest.raises(Cancelled):
        execute(line, cancellation=cancellation)
    assert time.monotonic() - cancelled_at[0] < 2
    assert find_tagged() == []


def test_a_call_that_was_cancelled_before_starts_nothing(execute):
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(Cancelled):
        execute("touch started", cancellation=cancellation)


def test_a_failing_reader_leaves_nothing_running(execute):
    def fail(stream, data):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute("echo x; sleep 300", on_output=fail)
    assert find_tagged() == []


def test_a_folder_that_is_gone_is_named(execute, supervisor, shell, tmp_path):
    with pytest.raises(PathNotFound) as refused:
        supervisor.start(shell("true", cwd=tmp_path / "gone"), OWNER)
    assert refused.value.reason == "cwd_gone"


@pytest.mark.parametrize("line", ["echo \0", "echo \ud800"])
def test_text_that_no_program_can_be_given_is_refused(execute, line):
    with pytest.raises(InvalidArguments):
        execute(line)


def test_a_command_too_long_for_the_system_is_refused(execute):
    with pytest.raises(ToolFailed) as refused:
        execute("true " + "x" * 200_000)
    assert refused.value.reason == "command_too_long"


def test_it_starts_in_the_folder_that_was_opened_whatever_the_path_means_now(supervisor, tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "here").touch()
    folder = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
    inside.rename(tmp_path / "moved")
    inside.symlink_to(outside)
    tail = Tail(1000)
    command = Command(("/bin/ls",), "ls", str(inside), dict(os.environ), folder)
    run(supervisor, command, OWNER, capture=tail, timeout=5, cancellation=Cancellation())
    os.close(folder)
    assert tail.text(Stream.STDOUT) == "here\n"


def test_four_at_once_do_not_disturb_each_other(execute):
    results = {}

    def one(number):
        results[number] = execute(f"for i in 1 2 3; do echo {number}; sleep 0.02; done; exit {number}")

    threads = [threading.Thread(target=one, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: (r.finish.code, r.stdout) for n, r in results.items()} == {n: (n, f"{n}\n" * 3) for n in range(4)}
