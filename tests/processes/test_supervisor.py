import os
import signal
import threading
import time

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Cancelled, InvalidArguments, ToolFailed
from exeora_ws.limits import FINISHED_PROCESS_SECONDS, PROCESS_RING_BYTES
from exeora_ws.processes.command import Owner
from exeora_ws.processes.loop import Loop
from exeora_ws.processes.supervisor import Supervisor

from support.processes import OWNER, PROGRAMS, all_gone, eventually, find_tagged


class FakeClock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def start(supervisor, shell):
    def start(line, owner=OWNER, **more):
        started = supervisor.start(shell(line), owner, **more)
        return supervisor.require(started.id, owner)

    return start


def read_to_end(running, limit=100_000):
    text, cursor, skipped = "", 0, 0
    while True:
        output = running.read(cursor, wait=10, limit=limit)
        text, cursor, skipped = text + output.chunk.text, output.chunk.next_cursor, skipped + output.chunk.skipped
        if not output.running and not output.chunk.text:
            return text, cursor, skipped, output.code


def test_case_32_chunks_of_a_slow_euro_join_exactly(start):
    text, cursor, skipped, code = read_to_end(start("$PROGRAMS/prints_euro.py"), limit=1000)
    assert text == "€" * 1000 + "\0\r 50%\r100%"
    assert (cursor, skipped, code) == (len(text.encode()), 0, 0)


def test_both_outputs_stand_in_one_stream_in_their_order(start):
    text, *_ = read_to_end(start("for i in 1 2 3; do echo out$i; echo err$i >&2; done"))
    assert text == "out1\nerr1\nout2\nerr2\nout3\nerr3\n"


def test_a_flood_is_skipped_and_counted(start):
    running = start("seq 1 200000")
    assert running.wait_end(10)
    whole = "".join(f"{n}\n" for n in range(1, 200_001))
    text, cursor, skipped, _ = read_to_end(running)
    assert cursor == len(whole)
    assert skipped == len(whole) - PROCESS_RING_BYTES
    assert text == whole[-PROCESS_RING_BYTES:]


def test_a_chunk_is_at_most_100000_bytes(start):
    running = start("yes | head -c 250000")
    running.wait_end(10)
    first = running.read(0)
    assert (len(first.chunk.text), first.chunk.skipped) == (100_000, 0)


def test_waiting_answers_as_soon_as_there_is_something_new(start):
    running = start("sleep 0.2; echo now; sleep 300")
    began = time.monotonic()
    assert running.read(0, wait=10).chunk.text == "now\n"
    assert time.monotonic() - began < 1.5


def test_waiting_answers_an_end_and_gives_up_in_time(start):
    running = start("sleep 0.2; exit 3")
    assert running.read(0, wait=10).code == 3
    silent = start("sleep 300")
    began = time.monotonic()
    output = silent.read(0, wait=0.2)
    assert (output.chunk.text, output.running, output.code) == ("", True, None)
    assert 0.2 <= time.monotonic() - began < 1


def test_a_cancelled_wait_ends_at_once_and_the_process_runs_on(start, later):
    running, cancellation = start("sleep 300"), Cancellation()
    later(0.1, cancellation.cancel)
    with pytest.raises(Cancelled):
        running.read(0, wait=30, cancellation=cancellation)
    assert running.live


def test_half_a_character_is_held_back_until_the_end(start):
    running = start("printf 'a\\342\\202'; read x; exit 0")
    assert running.read(0, wait=5).chunk.text == "a"
    assert running.read(1, wait=0.1).chunk.text == ""
    running.send(b"\n")
    running.wait_end(5)
    assert running.read(1).chunk.text == "\ufffd"


@pytest.mark.parametrize("cursor", [-1, 7, 10**12])
def test_a_cursor_that_never_was_is_refused(start, cursor):
    running = start("printf abc")
    running.wait_end(5)
    with pytest.raises(InvalidArguments) as refused:
        running.read(cursor)
    assert refused.value.reason == "cursor_out_of_range"


def test_input_that_nobody_reads_has_a_deadline_and_blocks_nothing_else(start):
    deaf, other = start("exec $PROGRAMS/never_reads.sh"), start("cat")
    accepted = []
    writer = threading.Thread(target=lambda: accepted.append(deaf.send(b"x" * 1_000_000, seconds=1)))
    writer.start()
    began = time.monotonic()
    assert other.send(b"hello\n") == 6
    assert other.read(0, wait=5).chunk.text == "hello\n"
    assert time.monotonic() - began < 0.9
    writer.join()
    assert 0 < accepted[0] < 1_000_000
    assert deaf.send(b"y", seconds=0.1) == 0


def test_writes_of_several_callers_do_not_mix(start):
    running = start("cat")
    pieces = [bytes([65 + n]) * 50_000 + b"\n" for n in range(4)]
    writers = [threading.Thread(target=running.send, args=(piece,)) for piece in pieces]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    running.end_input()
    text, *_ = read_to_end(running)
    assert sorted(text.splitlines()) == sorted(piece.decode().strip() for piece in pieces)


def test_a_cancelled_write_is_withdrawn(start, later):
    running, cancellation = start("sleep 300"), Cancellation()
    later(0.1, cancellation.cancel)
    with pytest.raises(Cancelled):
        running.send(b"x" * 1_000_000, seconds=30, cancellation=cancellation)


def test_input_after_its_reader_closed_it_or_ended(start):
    closed = start("exec <&-; echo closed; sleep 300")
    closed.read(0, wait=5)
    with pytest.raises(ToolFailed) as refused:
        closed.send(b"x")
    assert (refused.value.reason, refused.value.data) == ("input_closed", {"bytesWritten": 0})
    ended = start("true")
    ended.wait_end(5)
    with pytest.raises(ToolFailed) as refused:
        ended.send(b"x")
    assert refused.value.reason == "not_running"


def test_end_of_input_and_interrupt(start):
    reader = start("cat; echo end")
    reader.send(b"some\n")
    reader.end_input()
    assert read_to_end(reader)[0] == "some\nend\n"
    sleeper = start("trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done")
    sleeper.read(0, wait=5)
    sleeper.signal(signal.SIGINT)
    assert read_to_end(sleeper)[0::3] == ("ready\ninterrupted\n", 5)


def test_kill_ends_the_tree_and_says_whether_it_did(start, supervisor):
    running = start("exec $PROGRAMS/ignores_term.sh")
    running.read(0, wait=5)
    began = time.monotonic()
    done = supervisor.kill(running.id, OWNER)
    assert (done.killed, done.code) == (True, None)
    assert 2.0 <= time.monotonic() - began < 3
    assert find_tagged() == []
    assert supervisor.kill(running.id, OWNER).killed is False
    assert (running.read(0).chunk.text, running.read(0).signal) == ("ready\n", "SIGKILL")


def test_killing_an_obedient_tree_of_sixteen_takes_little_time(start, supervisor):
    running = start("for i in 1 2 3 4 5 6 7; do setsid sleep 300 & sleep 300 & done; echo ready; sleep 300")
    running.read(0, wait=5)
    assert eventually(lambda: len(find_tagged()) == 16)
    began = time.monotonic()
    supervisor.kill(running.id, OWNER)
    assert time.monotonic() - began < 0.3
    assert find_tagged() == []


def test_a_started_command_that_ends_leaves_nothing_either(start):
    running = start("exec $PROGRAMS/sets_session.sh")
    assert running.wait_end(5)
    assert eventually(lambda: find_tagged() == [])


def test_a_private_command_is_seen_by_its_session_only(supervisor, shell):
    started = supervisor.start(shell("sleep 300"), OWNER, private=True)
    assert supervisor.require(started.id, OWNER)
    with pytest.raises(ToolFailed) as refused:
        supervisor.require(started.id, Owner(OWNER.project, OWNER.workspace, "another"))
    assert refused.value.reason == "unknown_process"


def test_another_session_of_the_same_workspace_can_read(start, supervisor):
    running = start("sleep 300")
    assert supervisor.require(running.id, Owner(OWNER.project, OWNER.workspace, "another")) is running


def test_a_command_that_is_waited_for_cannot_be_addressed(supervisor, shell):
    running = supervisor.launch(shell("sleep 300"), OWNER, lambda _s, _d: True, timeout=None)
    with pytest.raises(ToolFailed):
        supervisor.require(running.id, OWNER)
    assert supervisor.list_started() == []


def test_a_workspace_is_stopped_with_what_somebody_waits_for(supervisor, start, execute):
    elsewhere = start("exec sleep 300", owner=Owner("prj_a", "wsp_b", "session-a"))
    here = start("exec sleep 300")
    ran = []
    waiting = threading.Thread(target=lambda: ran.append(execute("exec sleep 300")))
    waiting.start()
    assert eventually(lambda: len(find_tagged()) == 3)
    stopped = supervisor.stop_workspace("wsp_a")
    waiting.join(5)
    assert {each.line for each in stopped} == {"exec sleep 300"}
    assert len(stopped) == 2
    assert ran[0].finish.killed
    assert (here.live, elsewhere.live) == (False, True)


def test_closing_ends_everything_at_once_and_takes_nothing_more(shell):
    supervisor = Supervisor()
    for _ in range(5):
        supervisor.start(shell("exec $PROGRAMS/ignores_term.sh"), OWNER)
    began = time.monotonic()
    supervisor.close()
    assert time.monotonic() - began < 3.5
    assert find_tagged() == []
    with pytest.raises(ToolFailed) as refused:
        supervisor.start(shell("true"), OWNER)
    assert refused.value.reason == "shutting_down"
    supervisor.close()


def test_a_finished_process_is_readable_for_ten_minutes_and_no_longer(shell):
    clock = FakeClock()
    loop = Loop(clock)
    supervisor = Supervisor(clock=clock, loop=loop)
    started = supervisor.start(shell("echo kept; exit 3"), OWNER)
    running = supervisor.require(started.id, OWNER)
    while not running.process.gone:
        loop.turn(5)
    clock.now += FINISHED_PROCESS_SECONDS - 1
    loop.turn(0)
    output = supervisor.require(started.id, OWNER).read(0)
    assert (output.chunk.text, output.code) == ("kept\n", 3)
    assert not supervisor.idle
    clock.now += 2
    loop.turn(0)
    with pytest.raises(ToolFailed):
        supervisor.require(started.id, OWNER)
    assert supervisor.idle
    loop.stop()


def test_the_grace_is_two_seconds_by_the_clock(shell):
    clock = FakeClock()
    loop = Loop(clock)
    supervisor = Supervisor(clock=clock, loop=loop)
    started = supervisor.start(shell("trap '' TERM; echo ready; while :; do sleep 0.01; done"), OWNER)
    process = supervisor.require(started.id, OWNER).process
    running = supervisor.require(started.id, OWNER)
    while not running.read(0).chunk.text:
        loop.turn(5)
    loop.post(process.end)
    loop.turn(0)
    for _ in range(10):
        clock.now += 0.19
        loop.turn(0.01)
    assert process.finish is None, "1.9 s have passed"
    clock.now += 0.2
    while not process.gone:
        loop.turn(0.01)
        clock.now += 0.05
    assert process.require_finish().signal == "SIGKILL"
    loop.stop()


def test_ids_cannot_be_guessed(start):
    ids = {start("true").id for _ in range(8)}
    assert len(ids) == 8
    assert all(each.startswith("prc_") and len(each) == 28 for each in ids)


def test_zombies_of_orphans_are_collected_and_exit_codes_of_others_are_not_stolen(start, supervisor):
    import subprocess

    theirs = subprocess.Popen(["/bin/sh", "-c", "exit 42"], start_new_session=True)
    running = start(f"setsid sh -c 'sh -c \"sleep 0.1\" & exit' & {PROGRAMS}/exits_late.sh; sleep 3")
    assert eventually(lambda: all_gone([theirs.pid]))
    time.sleep(2.5)
    assert running.live
    assert theirs.wait() == 42


def test_a_deadline_passes_while_another_command_is_being_ended(start, supervisor):
    """What takes two seconds to end holds up nobody."""
    stubborn, quick = start("exec $PROGRAMS/ignores_term.sh"), start("cat")
    stubborn.read(0, wait=5)
    killer = threading.Thread(target=supervisor.kill, args=(stubborn.id, OWNER))
    killer.start()
    began = time.monotonic()
    quick.send(b"x\n")
    assert quick.read(0, wait=5).chunk.text == "x\n"
    assert time.monotonic() - began < 0.5
    killer.join()


def test_without_a_pid_descriptor_it_works_the_same(monkeypatch, shell):
    """As on macOS, where a thread waits for each process."""
    monkeypatch.delattr(os, "pidfd_open")
    supervisor = Supervisor()
    started = supervisor.start(shell("sleep 0.1; exit 3"), OWNER)
    running = supervisor.require(started.id, OWNER)
    assert running.wait_end(5)
    assert running.read(0).code == 3
    stubborn = supervisor.start(shell("sleep 300"), OWNER)
    assert supervisor.kill(stubborn.id, OWNER).killed
    supervisor.close()
    assert find_tagged() == []
