r"""Code fences of Markdown whose backticks were escaped, so that they would show as backslashes. Pure."""

import re

_ESCAPED = re.compile(r"^(?P<indent>[ \t]*(?:>[ \t]?)*)(?P<fence>(?:\\`){3}|\\```)", re.MULTILINE)


def find_escaped_fence(text: str) -> tuple[int, str] | None:
    """Give number (from 1) and text of the first line that opens with an escaped fence; None when none does."""
    found = _ESCAPED.search(text)
    if found is None:
        return None
    end = text.find("\n", found.start())
    return text.count("\n", 0, found.start()) + 1, text[found.start() : None if end < 0 else end].strip()


def repair_fences(text: str) -> str:
    """Take the backslashes out of every escaped fence at the start of a line."""
    return _ESCAPED.sub(lambda found: found["indent"] + "```", text)
