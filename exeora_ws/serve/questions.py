"""Requests of ours to the client, and who waits for the answer to each; and the way to have a person confirm a call."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from exeora_ws.cancellation import Cancellation
from exeora_ws.policy.gate import Answer
from exeora_ws.policy.question import Question
from exeora_ws.serve.messages import Response, correlate, write_notification, write_request
from exeora_ws.serve.service import ask_with
from exeora_ws.serve.shapes import is_form, says_yes

Settle = Callable[[Response | None], None]
"""Told what the client answered, or None when it cannot any more. Must be quick."""

Write = Callable[[bytes], None]


class Questions:
    """Those of one connection, numbered in order whoever asks. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int | str, Settle] = {}
        self._last = 0

    def open(self, settle: Settle) -> int:
        """Give the number of a new one."""
        with self._lock:
            self._last += 1
            self._waiting[self._last] = settle
            return self._last

    def close(self, number: int) -> None:
        """Wait for its answer no longer."""
        with self._lock:
            self._waiting.pop(number, None)

    def settle(self, response: Response) -> None:
        """Hand an answer to whoever waits for it; one that nobody waits for is dropped."""
        with self._lock:
            settle = self._waiting.pop(correlate(response.identity), None)
        if settle is not None:
            settle(response)

    def close_all(self) -> None:
        """Tell all that the client cannot answer any more."""
        with self._lock:
            settles = list(self._waiting.values())
            self._waiting.clear()
        for settle in settles:
            settle(None)


class Elicitation:
    """Asks a client of the handshake era, while the call waits.

    Args:
        questions: those of its connection.
        write: writes to it.
    """

    way = "elicitation"

    def __init__(self, questions: Questions, write: Write) -> None:
        self._questions = questions
        self._write = write

    def ask(self, question: Question, seconds: float, withdrawn: Cancellation) -> Answer:
        """Put the question; `NONE` when the client cannot show it after all, or nobody answers in time."""
        answers: SimpleQueue[Response | None] = SimpleQueue()
        number = self._questions.open(answers.put)
        forget = withdrawn.on_cancel(lambda: self._withdraw(number, answers))
        try:
            self._write(write_request(number, "elicitation/create", ask_with(question)))
            return judge_response(answers.get(timeout=seconds))
        except Empty:
            self._withdraw(number, answers)
            return Answer.NONE
        finally:
            forget()
            self._questions.close(number)

    def _withdraw(self, number: int, answers: "SimpleQueue[Response | None]") -> None:
        self._questions.close(number)
        params: dict[str, Any] = {"requestId": number, "reason": "caller cancelled"}
        self._write(write_notification("notifications/cancelled", params))
        answers.put(None)


def judge_response(response: Response | None) -> Answer:
    """Take for a yes only an accepted form with a yes in it; a form that was closed is a no."""
    if response is None or response.result is None or not is_form(response.result, strict=False):
        return Answer.NONE
    return Answer.ALLOW if says_yes(response.result) else Answer.DECLINE
