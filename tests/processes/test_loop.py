import os
import threading

from exeora_ws.processes.loop import Loop


class FakeClock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_timers_run_in_order_when_their_time_has_come():
    clock, done = FakeClock(), []
    loop = Loop(clock)
    loop.after(10, lambda: done.append("late"))
    loop.after(5, lambda: done.append("early"))
    loop.after(5, lambda: done.append("early too"))
    loop.after(5, lambda: done.append("never")).cancel()
    loop.turn(0)
    assert done == []
    clock.now += 5
    loop.turn(0)
    assert done == ["early", "early too"]
    clock.now += 5
    loop.turn(0)
    assert done == ["early", "early too", "late"]
    loop.stop()


def test_a_posted_call_wakes_a_waiting_loop_and_runs_in_its_thread():
    loop, ran, seen = Loop(), threading.Event(), []
    loop.start()

    def note():
        seen.append(threading.current_thread().name)
        ran.set()

    loop.post(note)
    assert ran.wait(5)
    loop.stop()
    assert seen == ["processes"]


def test_a_descriptor_that_an_earlier_event_let_go_of_is_not_touched():
    loop, touched = Loop(), []
    pipes = [os.pipe() for _ in range(2)]
    readers = [reading for reading, _ in pipes]

    def drop_both():
        touched.append(1)
        for reading in readers:
            loop.unwatch(reading)

    for reading, writing in pipes:
        loop.watch(reading, drop_both)
        os.write(writing, b"x")
    loop.turn(1)
    assert touched == [1]
    for pair in pipes:
        for descriptor in pair:
            os.close(descriptor)
    loop.stop()


def test_it_leaves_no_descriptor():
    before = len(os.listdir("/proc/self/fd"))
    loop = Loop()
    loop.start()
    loop.stop()
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_action_posted_by_an_action_waits_for_the_next_turn():
    loop, done = Loop(), []
    loop.post(lambda: loop.post(lambda: done.append("second")))
    loop.turn(0)
    assert done == []
    loop.turn(0)
    assert done == ["second"]
    loop.stop()
