"""What a server over HTTP tells its person: where it is reached, with which token, and what happens."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from exeora_ws.errors import ExeoraError

from exeora_cli import answer
from exeora_cli.plain import align, show_text
from exeora_cli.snippets import VARIABLE, make_snippets, show_snippets
from exeora_cli.teller import Facts, Teller

if TYPE_CHECKING:
    from exeora_ws.serve.options import HttpEvent
    from exeora_ws.tools.tokens import Token

_FIRST_NAME = "first"


class Book(Protocol):
    """Where tokens are made."""

    def create_first(self, name: str) -> "tuple[Token, str] | None":
        """Make a token for whoever begins; None when any was ever made."""
        ...

    def list(self) -> "Sequence[Token]":
        """Give all tokens."""
        ...


class Announcer:
    """Shows the events of one server.

    Args:
        json: whether as documents.
        public: where a proxy in front is reached; None without.
        project: the slug of the project whose endpoint is named for clients; None for the account's.
        book: gives where tokens are made.
        make_token: the command that makes one.
        closing: lines to end the description with.
    """

    def __init__(
        self,
        *,
        json: bool,
        public: str | None,
        project: str | None,
        book: Callable[[], Book],
        make_token: str = "exeora token create",  # noqa: S107  a command
        closing: Callable[[Facts], list[str]] = lambda _facts: [],
    ) -> None:
        self._json = json
        self._public = public
        self._project = project
        self._book = book
        self._make_token = make_token
        self._closing = closing
        self.teller = Teller(self._show)

    def take(self, event: "HttpEvent") -> None:
        """Show an event of the server, in its turn."""
        self.teller.tell(event.kind, event.facts)
        if event.kind == "stopped":
            # The last chance: the process may be ended by force after this.
            self.teller.close()

    def _show(self, kind: str, facts: Facts) -> None:
        """Show one event; in the teller's thread."""
        if kind == "ready":
            facts = self._complete(facts)
        if self._json:
            answer.print_document({"event": kind, **facts})
        elif kind == "ready":
            answer.print_lines([*self._show_ready(facts), *self._closing(facts)])
        else:
            answer.narrate([_word_event(kind, facts)])

    def _complete(self, facts: Facts) -> dict[str, Any]:
        """Add the token and the clients' lines to where the server is reached."""
        base = self._public or str(facts["url"])
        urls = {"account": f"{base}/mcp"}
        urls |= {project["slug"]: f"{base}/p/{project['slug']}/mcp" for project in facts["projects"]}
        toolsets = [
            {**each, "url": f"{base}/p/{each['slug']}/{each['toolset']}/mcp"} for each in facts.get("toolsets", [])
        ]
        endpoint = urls["account"] if self._project is None else f"{base}/p/{self._project}/mcp"
        token = self._find_token()
        return {
            **facts,
            "account": urls.pop("account"),
            "projects": [{"slug": slug, "url": url} for slug, url in urls.items()],
            "toolsets": toolsets,
            "endpoint": endpoint,
            "token": token,
            "clients": make_snippets(endpoint, token.get("secret")),
        }

    def _find_token(self) -> dict[str, Any]:
        """Make the very first token, or say whether there is one."""
        try:
            book = self._book()
            made = book.create_first(_FIRST_NAME)
            if made is not None:
                return {"state": "created", "id": made[0].id, "name": made[0].name, "secret": made[1]}
            now = time.time()
            return {"state": "exists" if any(token.is_valid(now) for token in book.list()) else "none"}
        except ExeoraError as error:
            self.teller.tell("warning", {"message": f"the tokens cannot be looked at: {error.message}"})
            return {"state": "unknown"}

    def _show_ready(self, facts: Facts) -> list[str]:
        rows = [("account", facts["account"]), *((project["slug"], project["url"]) for project in facts["projects"])]
        rows += [(f"{each['slug']} {each['toolset']}", each["url"]) for each in facts["toolsets"]]
        return [*align(rows), "", *self._word_token(facts["token"]), "", *show_snippets(facts["clients"])]

    def _word_token(self, token: Mapping[str, str]) -> list[str]:
        make = self._make_token
        match token["state"]:
            case "created":
                return [f"token  {token['secret']}", f"       shown only now; {make} makes another"]
            case "exists":
                return [f"token  made before ({VARIABLE} below stands for it); {make} makes another"]
            case "none":
                return [f"token  none is valid any more: {make} makes one"]
        return [f"token  {make.replace('create', 'list')}"]


def _word_event(kind: str, facts: Facts) -> str:
    words = _WORDS.get(kind)
    return kind if words is None else words.format_map({key: show_text(str(value)) for key, value in facts.items()})


_WORDS = {
    "session_opened": "session {session} opened with token {token!r}",
    "session_closed": "session {session} closed",
    "refused": "refused a request ({status})",
    "approval_asked": (
        "{tool} in workspace {workspace} of project {project} waits for a person: exeora approvals allow {id}"
    ),
    "approval_closed": "question {id}: {status}",
    "warning": "{message}",
    "fleet": "the connection to the fleet is {state}",
    "events_lost": "{count} events are not shown: they came faster than they were read",
}
