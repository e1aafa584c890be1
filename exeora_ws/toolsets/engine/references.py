"""Which element ids scripts look up, and which a page declares. Pure.

Only lookups with a literal are seen, so an id that a script puts together is never reported.
"""

import re
from collections.abc import Mapping
from html.parser import HTMLParser

_BY_ID = re.compile(r"""\bgetElementById\(\s*(["'`])([^"'`$\\]+)\1\s*\)""")
_BY_SELECTOR = re.compile(r"""\bquerySelector\(\s*(["'`])#([A-Za-z_][\w-]*)[^"'`$\\]*\1\s*\)""")


def find_lookups(script: str) -> set[str]:
    """Give the ids that a script looks up by name."""
    return {match[2] for pattern in (_BY_ID, _BY_SELECTOR) for match in pattern.finditer(script)}


class _Ids(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag
        self.found |= {value for name, value in attrs if name == "id" and value}


def find_ids(markup: str) -> set[str]:
    """Give the ids that a page declares."""
    parser = _Ids()
    parser.feed(markup)
    parser.close()
    return parser.found


def find_gone_ids(old: str, new: str) -> set[str]:
    """Give the ids that `old` declared and `new` does not; one that was missing before is nobody's doing."""
    return find_ids(old) - find_ids(new)


def find_broken(gone: set[str], scripts: Mapping[str, str]) -> dict[str, list[str]]:
    """Give, for each script that looks up any of the ids that are gone, which."""
    broken = {name: sorted(find_lookups(text) & gone) for name, text in sorted(scripts.items())}
    return {name: ids for name, ids in broken.items() if ids}
