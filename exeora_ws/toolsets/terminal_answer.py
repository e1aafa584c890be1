"""The answer of the terminal tools: four fields, always the same, in the same order. Pure."""

import re
import signal
from typing import Literal

from exeora_ws.files.sizes import count_json_bytes
from exeora_ws.limits import RESULT_TEXT_BYTES
from exeora_ws.processes.output import Piece
from exeora_ws.processes.process import Finish
from exeora_ws.toolsets.wording import SnakeResult

NONE = "none"
_BY_SIGNAL = 128
_SIGNAL_NUMBER = re.compile(r"SIG(\d+)\Z")


class Answer(SnakeResult, frozen=True, kw_only=True):
    """Result of both: always these four fields, in this order."""

    exit_code: int | Literal["running"]
    seconds: float
    session_id: str
    text: str


def render_answer(answer: Answer) -> str:
    """Give the four fields as text."""
    return (
        f"exit_code: {answer.exit_code}\nseconds: {answer.seconds:.3f}\nsession_id: {answer.session_id}\n"
        f"text:\n{answer.text}"
    )


def cut_to_fit(piece: Piece, most: int) -> str:
    """Cut further where JSON makes the text longer than an answer: the answer must come, for its session_id."""
    text = cut_middle(piece, most)
    while (size := count_json_bytes(text)) > RESULT_TEXT_BYTES:
        most = min(most, len(text)) * RESULT_TEXT_BYTES // size
        text = cut_middle(piece, most)
    return text


def cut_middle(piece: Piece, most: int) -> str:
    """Give at most `most` characters of it, the first and the last, and between them how much was cut."""
    head, tail = piece.head, piece.tail
    if not piece.left_out and len(head) <= most:
        return head
    if not piece.left_out:
        head, tail = head[: len(head) // 2], head[len(head) // 2 :]
    first, last = (most + 1) // 2, most // 2
    kept_head, kept_tail = head[:first], tail[max(0, len(tail) - last) :]
    cut = piece.left_out + _size(head[first:]) + _size(tail[: len(tail) - len(kept_tail)])
    return f"{kept_head}\n[… {cut} bytes cut …]\n{kept_tail}" if cut else kept_head + kept_tail


def _size(text: str) -> int:
    return len(text.encode())


def find_exit_code(finish: Finish) -> int:
    """Give the exit code, 128 plus the signal's number for a command that a signal ended."""
    if finish.code is not None:
        return finish.code
    name = finish.signal or "SIGKILL"
    numbered = _SIGNAL_NUMBER.match(name)
    return _BY_SIGNAL + (int(numbered[1]) if numbered else int(signal.Signals[name]))


def show_leftovers(finish: Finish) -> str:
    """Say what the command left running, if it left anything."""
    if not finish.leftovers:
        return ""
    names = ", ".join(f"{left.program} ({left.pid})" for left in finish.leftovers)
    return f"\n[left running when the command ended, and ended with it: {names}]"
