"""Endings begin in one thread while another waits for them."""

import sys
import threading

import pytest
from exeora_ws.fleet.endings import Endings


@pytest.fixture
def hasty():
    """Threads that take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_what_begins_while_it_is_waited_for_can_be_waited_for(hasty):
    ended = []
    endings = Endings(ended.append)
    over = threading.Event()

    def begin():
        for number in range(1_000):
            endings.end_sessions([str(number)])
        over.set()

    beginner = threading.Thread(target=begin)
    beginner.start()
    while not over.is_set():
        endings.join(5)
    beginner.join()
    endings.join(5)
    assert len(ended) == 1_000
