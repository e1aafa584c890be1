"""Choose a workspace at a terminal: type to narrow, arrow keys, a preview beside. The only importer of prompt_toolkit.

It is drawn on the terminal's other screen, so that whatever way it ends, the terminal is as it was.
"""

import asyncio
import signal
import sys
from collections.abc import Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    Container,
    Dimension,
    DynamicContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.styles import Style

from exeora_cli.colours import wants_colour
from exeora_cli.fuzzy import Row, rank
from exeora_cli.plain import align, show_text
from exeora_cli.previews import Load, Previews

_WIDE = 90
"""From this many columns on the preview stands beside the list, else below it."""
_ESCAPE_SECONDS = 0.05
"""How long an Escape may be the beginning of another key's sequence."""
_HELP = "type to narrow · ↑ ↓ · Enter · Esc"
_STYLE = Style.from_dict(
    {
        "chosen": "reverse",
        "faint": "#888888",
        "bold": "bold",
        "dim": "#888888",
        "red": "ansired",
        "green": "ansigreen",
        "yellow": "ansiyellow",
        "cyan": "ansicyan",
    }
)


class Ended(Exception):
    """A signal to end came while the picker was shown.

    Args:
        number: which one.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Picker:
    """The list, what was typed, and which row is highlighted.

    Args:
        rows: name, branch and more, one row a workspace.
        load: gives the preview of a name; called in a thread.
    """

    def __init__(self, rows: Sequence[Row], load: Load) -> None:
        self._rows = list(rows)
        self._lines = dict(
            zip((row[0] for row in rows), align([tuple(map(show_text, row)) for row in rows]), strict=True)
        )
        self._shown = self._rows
        self._at = 0
        self._buffer = Buffer(multiline=False, on_text_changed=lambda _: self._narrow())
        self._application: Application[str | None] = self._build()
        self._previews = Previews(load, self._application.invalidate)

    def run(self) -> str | None:
        """Show it until something is chosen; gives the name, None for Escape.

        Raises:
            KeyboardInterrupt: Ctrl-C.
            Ended: told to end.
        """
        try:
            return self._application.run(pre_run=self._watch_signals)
        finally:
            self._previews.close()

    def _watch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, number)

    def _end(self, number: int) -> None:
        if self._application.is_running and not self._application.is_done:
            self._application.exit(exception=Ended(number))

    @property
    def _chosen(self) -> str | None:
        return self._shown[self._at][0] if self._shown else None

    def _narrow(self) -> None:
        typed = self._buffer.text
        self._shown = [row for _, row in rank(self._rows, typed)] if typed.strip() else self._rows
        self._at = 0

    def _move(self, by: int) -> None:
        self._at = max(0, min(self._at + by, len(self._shown) - 1))

    def _build(self) -> "Application[str | None]":
        output = create_output(stdout=sys.stderr if sys.stderr.isatty() else sys.stdout)
        application: Application[str | None] = Application(
            layout=Layout(DynamicContainer(lambda: self._lay_out(output.get_size().columns)), self._typing()),
            key_bindings=self._bind(),
            style=_STYLE,
            full_screen=True,
            color_depth=None if wants_colour(sys.stderr) else ColorDepth.DEPTH_1_BIT,
            input=create_input(sys.stdin),
            output=output,
        )
        application.ttimeoutlen = _ESCAPE_SECONDS
        return application

    def _typing(self) -> Window:
        self._line = Window(BufferControl(self._buffer, [BeforeInput("switch to: ", "class:bold")]), height=1)
        self._list = Window(
            FormattedTextControl(self._show_rows, show_cursor=False, get_cursor_position=lambda: Point(0, self._at)),
            always_hide_cursor=True,
        )
        self._preview = Window(FormattedTextControl(self._show_preview), wrap_lines=True)
        return self._line

    def _lay_out(self, columns: int) -> Container:
        width = max(map(len, self._lines.values()), default=0) + 3
        body: Container
        if columns >= _WIDE:
            self._list.width = Dimension.exact(min(width, columns // 2))
            self._list.height = None
            body = VSplit([self._list, Window(width=1, char="│", style="class:faint"), self._preview], padding=1)
        else:
            self._list.width = None
            self._list.height = Dimension(weight=1)
            body = HSplit([self._list, Window(height=1, char="─", style="class:faint"), self._preview])
        return HSplit([self._line, body, Window(FormattedTextControl(self._show_help), height=1)])

    def _show_help(self) -> StyleAndTextTuples:
        return [("class:faint", f"{len(self._shown)} of {len(self._rows)} · {_HELP}")]

    def _show_rows(self) -> StyleAndTextTuples:
        parts: StyleAndTextTuples = []
        for number, row in enumerate(self._shown):
            chosen = number == self._at
            parts.append(("class:chosen" if chosen else "", f"{'>' if chosen else ' '} {self._lines[row[0]]}\n"))
        return parts or [("class:faint", "  nothing fits")]

    def _show_preview(self) -> StyleAndTextTuples:
        if self._chosen is None:
            return []
        lines = self._previews.find(self._chosen)
        if lines is None:
            return [("class:faint", "looking…")]
        return [(f"class:{style}" if style else "", f"{show_text(text)}\n") for style, text in lines]

    def _bind(self) -> KeyBindings:
        keys = KeyBindings()
        pages = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "tab": 1, "s-tab": -1, "pageup": -10, "pagedown": 10}
        for key, by in pages.items():
            keys.add(key)(lambda _event, by=by: self._move(by))

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            if self._chosen is not None:
                event.app.exit(result=self._chosen)

        @keys.add("escape", eager=True)
        @keys.add("c-g")
        def _(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _(event: KeyPressEvent) -> None:
            event.app.exit(exception=KeyboardInterrupt())

        @keys.add("c-z")
        def _(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        return keys


def choose(rows: Sequence[Row], load: Load) -> str | None:
    """Ask which workspace is meant; see `Picker`."""
    return Picker(rows, load).run()
