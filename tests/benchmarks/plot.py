"""A line plot as SVG: a few series over a logarithmic axis, readable on light and on dark ground."""

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT = 760, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 210, 30, 50
_COLOURS = ("#2f6db5", "#c2571a", "#3b8a4e", "#8a4fb0", "#b03a5b", "#7a7a2a")
_STYLE = "text { font: 13px system-ui, sans-serif; fill: #777 } .axis { stroke: #999 } .grid { stroke: #9993 }"
Point = tuple[float, float]


def draw(title: str, across: str, up: str, series: Mapping[str, Sequence[Point]]) -> str:
    """Draw series of points, both axes logarithmic.

    Args:
        title: above it.
        across: what the horizontal axis is.
        up: what the vertical one is.
        series: points of each, positive.
    """
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = _list_decades([y for points in series.values() for _, y in points])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        _text(_LEFT, 18, title),
    ]
    scale = _Scale(xs[0], xs[-1], ys[0], ys[-1])
    parts += [_draw_level(scale, y) for y in ys]
    parts += [_text(scale.across(x), _HEIGHT - _BOTTOM + 18, f"{x:,.0f}", "middle") for x in xs]
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, across, "middle"))
    parts.append(_text(_WIDTH - _RIGHT + 12, 18, up))
    for number, (name, points) in enumerate(series.items()):
        parts.append(_draw_series(scale, name, points, number))
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    def __init__(self, left: float, right: float, low: float, high: float) -> None:
        self._x = (_log(left), _log(right))
        self._y = (_log(low), _log(high))

    def across(self, x: float) -> float:
        span = self._x[1] - self._x[0] or 1
        return round(_LEFT + (_log(x) - self._x[0]) / span * (_WIDTH - _LEFT - _RIGHT), 1)

    def up(self, y: float) -> float:
        span = self._y[1] - self._y[0] or 1
        return round(_HEIGHT - _BOTTOM - (_log(y) - self._y[0]) / span * (_HEIGHT - _TOP - _BOTTOM), 1)


def _log(value: float) -> float:
    from math import log10

    return log10(value)


def _list_decades(values: Sequence[float]) -> list[float]:
    """Give the powers of ten, and their halves where there are few, that hold all values between them."""
    low, high = 10.0 ** (int(_log(min(values)) // 1)), 10.0 ** (int(-(-_log(max(values)) // 1)))
    levels = [low]
    while levels[-1] < high * 0.99:
        levels.append(levels[-1] * 10)
    return levels


def _draw_level(scale: _Scale, y: float) -> str:
    height = scale.up(y)
    line = f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{height}" y2="{height}"/>'
    return line + _text(_LEFT - 8, height + 4, f"{y:g}", "end")


def _draw_series(scale: _Scale, name: str, points: Sequence[Point], number: int) -> str:
    colour = _COLOURS[number % len(_COLOURS)]
    places = [(scale.across(x), scale.up(y)) for x, y in points]
    line = " ".join(f"{x},{y}" for x, y in places)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places)
    x, y = places[-1]
    return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}' + _text(
        x + 10, y + 4, name
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
