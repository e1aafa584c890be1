"""What an edit would do, looked at before it is written: the replacements that repeat or double a document. Pure."""

from dataclasses import dataclass

from exeora_ws.errors import ToolFailed
from exeora_ws.files.editing import encode_text
from exeora_ws.files.matching import count_lines, find_line, find_line_span
from exeora_ws.files.replacing import Replaced, Replacement

_LINES_NAMED = 20
_SWELLING = 4
"""How many times the lines of the search a replacement may have that begins with the file's own first line."""


@dataclass
class EditReview:
    """Looks at an edit before it is written, and keeps what is to be told of it."""

    path: str
    edit: Replacement
    total: int = 0
    lines: tuple[int, ...] = ()

    def __call__(self, data: bytes, done: Replaced) -> None:
        """Look at it.

        Raises:
            ToolFailed: `ambiguous_match`, `repeated_replacement`, `doubled_document`.
        """
        self.total = count_lines(data)
        self.lines = tuple(find_line(data, span.start) for span in done.spans[:_LINES_NAMED])
        if not self.edit.old:
            return
        if done.loose and done.count > 1:
            raise self._refuse_loose(done)
        if done.count > 1:
            self._refuse_repeating(data, done)
        else:
            self._refuse_doubling(data, done)

    def _refuse_loose(self, done: Replaced) -> ToolFailed:
        return ToolFailed(
            f"{self.path}: but for white space the search stands {done.count} times, on lines {self.name_lines()}",
            reason="ambiguous_match",
            hint="copy one of them exactly, or give start_line and end_line",
            data={"lines": list(self.lines), "matches": done.count},
        )

    def _refuse_repeating(self, data: bytes, done: Replaced) -> None:
        inserted = len(encode_text(self.edit.new, "replace")) * done.count
        edited = len(data)
        if self.edit.first_line is not None:
            last = self.edit.last_line if self.edit.last_line is not None else self.total
            span = find_line_span(data, self.edit.first_line, last)
            edited = span.end - span.start
        if inserted > edited:
            raise ToolFailed(
                f"{self.path}: the search stands there {done.count} times, on lines {self.name_lines()}, and replacing "
                f"all would put in {inserted} bytes where {edited} are edited: the replacement over and over",
                reason="repeated_replacement",
                hint="include more of the lines around the one that is meant, or give start_line and end_line",
                data={"lines": list(self.lines), "matches": done.count},
            )

    def _refuse_doubling(self, data: bytes, done: Replaced) -> None:
        opening = data.split(b"\n", 1)[0].strip()
        new = encode_text(self.edit.new, "replace")
        swells = count_lines(new) > _SWELLING * max(1, count_lines(encode_text(self.edit.old, "search")))
        (span,) = done.spans
        rest = data[: span.start] + data[span.end :]
        if opening and new.split(b"\n", 1)[0].strip() == opening and swells and rest.strip():
            raise ToolFailed(
                f"{self.path}: the replacement begins as the file does and is much longer than the search: the file "
                "would hold its text twice",
                reason="doubled_document",
                hint=f"to replace the whole file: {whole_file_form(self.total)}",
                data={"totalLines": self.total},
            )

    def name_lines(self) -> str:
        """Give the lines where the search stands, the first twenty."""
        return ", ".join(map(str, self.lines))


def whole_file_form(total: int) -> str:
    """Say how a whole file is replaced."""
    return f"edit_file with an empty search, start_line 1 and end_line {max(total, 1)}"
