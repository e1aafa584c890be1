"""What a person is asked, in words that cannot deceive a terminal."""

import json
import unicodedata
from dataclasses import dataclass

from exeora_ws.limits import APPROVAL_PREVIEW_CHARACTERS
from exeora_ws.policy.request import Request

_HIDDEN = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `preview` is cut at 2,048 characters; `omitted` says how many characters more there are."""

    project: str
    workspace: str
    tool: str
    client: str
    preview: str
    omitted: int
    fingerprint: str

    @property
    def text(self) -> str:
        """Everything a person is shown."""
        rest = f"\n… and {self.omitted} characters more, not shown" if self.omitted else ""
        who = f" (asked by {self.client})" if self.client else ""
        return (
            f"Run {self.tool} in workspace {self.workspace} of project {self.project}?{who}\n"
            f"Arguments: {self.preview}{rest}"
        )


def make_question(request: Request) -> Question:
    """Put a call into words."""
    whole = make_visible(json.dumps(request.arguments, ensure_ascii=False))
    tool = request.tool
    if request.upstream is not None:
        tool = f"{request.upstream.tool} of MCP server {request.upstream.server}"
    return Question(
        project=make_visible(request.project),
        workspace=make_visible(request.workspace),
        tool=make_visible(tool),
        client=make_visible(request.client),
        preview=whole[:APPROVAL_PREVIEW_CHARACTERS],
        omitted=max(0, len(whole) - APPROVAL_PREVIEW_CHARACTERS),
        fingerprint=request.fingerprint,
    )


def make_visible(text: str) -> str:
    r"""Show control characters, overrides of writing direction and the like as `\u…`: nothing acts on a terminal."""
    return "".join(_escape(c) if unicodedata.category(c) in _HIDDEN else c for c in text)


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004 - where four digits end
