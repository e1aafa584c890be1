"""How lists look as text and as JSON, written by hand: the hot commands use it before anything is imported."""

TYPE_CHECKING = False  # type checkers take it as true
if TYPE_CHECKING:
    from collections.abc import Sequence

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_KEYS: "dict[str, str]" = {}
SCHEMA = 1
"""The version of every JSON document this command line prints."""


def render_json(value: object) -> str:
    """Render objects, arrays, strings, integers, booleans and null as `msgspec.json` does; nothing else.

    Raises:
        TypeError: for any other value.
    """
    if isinstance(value, str):
        special = not value.isprintable() or '"' in value or "\\" in value
        return '"' + "".join(_escape(c) for c in value) + '"' if special else f'"{value}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "{" + ",".join([_render_key(k) + render_json(v) for k, v in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([render_json(item) for item in value]) + "]"
    if isinstance(value, int):
        return str(value)
    raise TypeError(value.__class__.__name__)


def _render_key(key: str) -> str:
    known = _KEYS.get(key)
    if known is None:
        known = _KEYS[key] = render_json(key) + ":"
    return known


def _escape(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    return f"\\u{ord(character):04x}" if character < " " else character


def show_text(text: str) -> str:
    """Give text for a line of a person's terminal: what would move the cursor or is no character is escaped."""
    if text.isprintable():
        return text
    shown = "".join(f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else c for c in text)
    return shown if shown.isprintable() else shown.encode("unicode_escape").decode("ascii")


def show_block(text: str) -> str:
    """The same for a text of several lines with tabs, which stay."""
    return "\n".join("\t".join(map(show_text, line.split("\t"))) for line in text.split("\n"))


def measure(text: str) -> int:
    """Give how many columns of a terminal a text takes: an ideograph has two, an accent of its own none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def align(rows: "Sequence[tuple[str, ...]]") -> "list[str]":
    """Set columns below each other, two spaces apart; nothing trails."""
    widths = [max(measure(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return [_join(row, widths).rstrip() for row in rows]


def _join(row: "tuple[str, ...]", widths: "list[int]") -> str:
    return "  ".join(cell + " " * (width - measure(cell)) for cell, width in zip(row, widths, strict=True))


def list_lines(workspaces: "list[dict[str, object]]", here: "str | None") -> "list[str]":
    """Show workspaces, one a line: `*` marks the one around the current directory, given by id as `here`."""
    return align([_list_row(workspace, here) for workspace in workspaces])


def _list_row(workspace: "dict[str, object]", here: "str | None") -> "tuple[str, ...]":
    branch = workspace["branch"]
    return (
        "*" if workspace["id"] == here else " ",
        str(workspace["slug"]),
        "-" if branch is None else show_text(str(branch)),
        show_text(str(workspace["path"])) + ("" if workspace["available"] else "  (unavailable)"),
    )
