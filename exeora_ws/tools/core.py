"""What a face needs of whatever is behind it, as protocols: the core of this machine is one, a fleet's another."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from exeora_ws.names import ProjectId, Slug
from exeora_ws.settings import Places
from exeora_ws.tools.news import CatalogNews
from exeora_ws.tools.stations import AnyTool, Caller, Outcome, RawCall, Scope
from exeora_ws.tools.tokens import Token


class CallMaker(Protocol):
    """The way of a call, as a face sees it."""

    @property
    def catalog(self) -> Mapping[str, AnyTool]:
        """The tools of our own, by name."""
        ...

    def make(self, raw: RawCall, caller: Caller) -> Outcome:
        """Take a call the whole way; never raises but for what ends the process."""
        ...

    def offered(self, scope: Scope) -> Sequence[AnyTool]:
        """List the tools of our own that a caller is offered now."""
        ...

    def offered_proxied(self, scope: Scope) -> list[dict[str, Any]]:
        """List the entries of upstream tools that a caller is offered now."""
        ...


class NamedProject(Protocol):
    """A project, as far as an endpoint needs to know one."""

    @property
    def id(self) -> ProjectId:
        """Its id."""
        ...

    @property
    def slug(self) -> Slug:
        """Its slug."""
        ...


class ProjectList(Protocol):
    """The projects that have endpoints."""

    def list_projects(self) -> Sequence[NamedProject]:
        """Give all of them."""
        ...

    def require_project(self, selector: str) -> NamedProject:
        """Find one by slug or id; raises `UnknownProject`."""
        ...


class Tokens(Protocol):
    """Who may come in. For threads: finding out may take a moment."""

    def find(self, secret: str) -> Token | None:
        """Find the valid token that a secret belongs to, and note that it was used; None for any other text."""
        ...

    def filter_valid(self, identities: Collection[str]) -> set[str]:
        """Give those of the token ids that are valid now."""
        ...


class Core(Protocol):
    """What an HTTP server serves."""

    @property
    def places(self) -> Places:
        """Where its log and its entry among the running servers stand."""
        ...

    @property
    def calls(self) -> CallMaker:
        """The way of a call with the default toolset."""
        ...

    @property
    def inventory(self) -> ProjectList:
        """The projects."""
        ...

    @property
    def news(self) -> CatalogNews:
        """Told when what is on offer changes."""
        ...

    def stay(self) -> None:
        """Load what makes later calls cheaper."""
        ...

    def close_session(self, session: str) -> None:
        """End what a conversation has started; called once for each."""
        ...

    def end_upstreams(self) -> None:
        """End what answers calls for us, while the calls themselves are being taken back. Before `close`, or never."""
        ...

    def close(self) -> None:
        """End everything that this process has started."""
        ...
