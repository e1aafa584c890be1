"""Messages over the servers' limit: cut, and put together again whatever the order."""

import random

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.fleet.frames import Assembler, split
from exeora_ws.limits import FLEET_MESSAGE_BYTES
from hypothesis import given
from hypothesis import strategies as st

LIMIT = 1_000


@given(st.integers(0, 5_000), st.randoms(use_true_random=False))
def test_a_message_comes_together_in_any_order(size: int, order: random.Random):
    message = b"{" + order.randbytes(size)
    frames = split(message, LIMIT)
    assert all(len(frame) <= LIMIT for frame in frames)
    assert len(frames) == 1 or size > LIMIT - 600
    order.shuffle(frames)
    assembler = Assembler()
    whole = [assembler.add(frame) for frame in frames]
    assert whole[-1] == message
    assert whole[:-1] == [None] * (len(frames) - 1)


def test_two_messages_may_come_at_once_and_a_frame_twice():
    first, second = (b"{" + bytes([n]) * 3_000 for n in (1, 2))
    assembler, found = Assembler(), []
    for one, other in zip(split(first, LIMIT), split(second, LIMIT), strict=True):
        found += [assembler.add(one), assembler.add(one) if one is None else None, assembler.add(other)]
    assert [each for each in found if each] == [first, second]


@pytest.mark.parametrize("frame", [b"\0", b"\0" + b"x" * 8 + b"\0\0\0\5\0\0\0\2", b"\0" * 10])
def test_what_is_no_frame_is_refused(frame: bytes):
    with pytest.raises(ToolFailed) as refused:
        Assembler().add(frame)
    assert refused.value.reason == "bad_message"


def test_what_is_larger_than_the_fleet_carries_is_refused_before_it_is_sent():
    with pytest.raises(ToolFailed) as refused:
        split(b"x" * (FLEET_MESSAGE_BYTES + 1), 1_000_000)
    assert refused.value.reason == "message_too_large"
