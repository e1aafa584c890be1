"""The core that a gateway serves: a fleet's calls, projects and tokens, behind the face of one machine."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from exeora_ws.fleet import wire
from exeora_ws.fleet.account import AccountBook
from exeora_ws.fleet.audit import FleetAudit
from exeora_ws.fleet.buckets import (
    MACHINES_BUCKET,
    POLICY_BUCKET,
    SLUGS_BUCKET,
    TOKENS_BUCKET,
    Bucket,
    ensure_buckets,
)
from exeora_ws.fleet.clock import FleetClock
from exeora_ws.fleet.credentials import Credential
from exeora_ws.fleet.directory import Directory
from exeora_ws.fleet.dispatch import Machines
from exeora_ws.fleet.gate import AccountGate
from exeora_ws.fleet.line import Line, LineState
from exeora_ws.fleet.listing import make_local_tools, with_local_tools
from exeora_ws.fleet.permissions import INVENTORY_BUCKET, name_inbox
from exeora_ws.fleet.slugs import SlugBook
from exeora_ws.fleet.tokens import TokenDoor, TokenStore
from exeora_ws.fleet.way import FleetCalls
from exeora_ws.policy.rules import Policy, narrow
from exeora_ws.settings import Places
from exeora_ws.tools.call import AnyTool
from exeora_ws.tools.catalog import CATALOG
from exeora_ws.tools.news import CatalogNews
from exeora_ws.workspaces.place import Project

_FILL_SECONDS = 30.0
_CLOCK_SECONDS = 10.0

Tell = Callable[[str, Mapping[str, Any]], None]
"""Told of what becomes of the connections: a kind and its facts, in any thread."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A gateway's two connections."""

    calls: Line
    state: Line

    def close(self) -> None:
        """End both."""
        self.calls.close()
        self.state.close()


class FleetCore:
    """A fleet, as `serve` knows a core. Made by `open_gateway`.

    Args:
        places: where the log stands.
        lines: the connections; ended with this.
        gateway: our id.
        clock: the fleet's time.
    """

    def __init__(self, places: Places, lines: Lines, gateway: str, clock: FleetClock) -> None:
        state = lines.state
        self.places = places
        self.news = CatalogNews()
        self.gateway = gateway
        self._lines = lines
        self._account = AccountBook(Bucket(state, POLICY_BUCKET))
        inventory = Bucket(state, INVENTORY_BUCKET)
        slugs = SlugBook(Bucket(state, SLUGS_BUCKET), inventory)
        self.inventory = Directory(Bucket(state, MACHINES_BUCKET), inventory, slugs, self.news)
        self.tokens = TokenDoor(Bucket(state, TOKENS_BUCKET))
        self.token_store = TokenStore(Bucket(state, TOKENS_BUCKET))
        self._machines = Machines(lines.calls, gateway, clock.now_ms, lambda: self._account.now.text)
        self._audit = FleetAudit(state, gateway)
        self._narrowed = _Narrowed(self._account, self.inventory)
        self.calls = self.make_calls(None, CATALOG)

    def open(self) -> None:
        """Follow the buckets, hear machines, and come back when everything is known.

        Raises:
            ExecutorOffline: reason `fleet_unreachable`.
        """
        self._account.mirror.open()
        self.tokens.mirror.open()
        self.inventory.open()
        self._machines.open()
        self._account.mirror.await_filled(_FILL_SECONDS)
        self.tokens.mirror.await_filled(_FILL_SECONDS)
        self.inventory.await_filled(_FILL_SECONDS)

    def make_calls(self, toolset: str | None, catalog: Mapping[str, AnyTool]) -> FleetCalls:
        """Give the way of a call with the tools of a toolset; None for the default one."""
        tools = with_local_tools(catalog)
        gate = AccountGate(lambda: self._account.now.policy, self._narrowed, self._audit, tools)
        local = make_local_tools(self.inventory, self._machines.find_online)
        return FleetCalls(tools, self.inventory, gate, self._machines, toolset=toolset, local=local)

    def stay(self) -> None:
        """Load nothing: it is all there."""

    def close_session(self, session: str) -> None:
        """Have the machines where a conversation's calls have been end what it has started there."""
        self._machines.close_session(session)

    def end_upstreams(self) -> None:
        """End nothing: machines do."""

    def close(self) -> None:
        """End the connections, once what was said on them has left."""
        self.inventory.close()
        self._machines.close()
        self._lines.close()


class _Narrowed:
    """What projects offer: their policy as published, within the account's. Remembered while neither is another."""

    def __init__(self, account: AccountBook, directory: Directory) -> None:
        self._account = account
        self._directory = directory
        self._known: dict[str, tuple[Policy, Policy, Policy]] = {}

    def __call__(self, project: Project) -> Policy:
        account, found = self._account.now.policy, self._directory.find_known(project)
        own = account if found is None else found.policy
        known = self._known.get(project.id)
        if known is None or known[0] is not account or known[1] is not own:
            known = self._known[project.id] = (account, own, narrow(account, own))
        return known[2]


def connect_lines(credential: Credential, gateway: str, tell: Tell = lambda _kind, _facts: None) -> Lines:
    """Connect as a gateway.

    Raises:
        ExecutorOffline: reason `fleet_unreachable`.
        Forbidden: reason `credential_refused`.
    """
    if credential.state is None:
        raise AssertionError("a gateway's credential has two users")

    def note(state: LineState, why: str) -> None:
        tell("fleet", {"state": str(state), "message": why})

    with ExitStack() as opened:
        lines = []
        for user, on_state in ((credential.line, note), (credential.state, lambda _state, _why: None)):
            line = Line(
                credential.urls,
                user,
                name_inbox(gateway),
                name=f"exeora gateway {gateway}",
                trust=credential.trust,
                on_state=on_state,
            )
            line.open()
            opened.callback(line.close)
            lines.append(line)
        opened.pop_all()
    return Lines(*lines)


def open_gateway(places: Places, credential: Credential, *, replicas: int = 1, tell: Tell) -> FleetCore:
    """Open the core of a gateway.

    Args:
        places: where the log stands.
        credential: a gateway's.
        replicas: on how many servers what is made now is kept; what is there stays as it is.
        tell: told what becomes of the connection.

    Raises:
        ExecutorOffline, Forbidden: as `connect_lines`.
        ToolFailed: the servers do not keep anything.
    """
    gateway = wire.new_gateway_id()
    lines = connect_lines(credential, gateway, tell)
    try:
        ensure_buckets(lines.state, replicas=replicas)
        clock = FleetClock()
        lines.calls.accompany(clock.keep)
        clock.await_known(_CLOCK_SECONDS)
        core = FleetCore(places, lines, gateway, clock)
        core.open()
    except BaseException:
        lines.close()
        raise
    return core


def open_toolsets(core: FleetCore, names: Sequence[str]) -> dict[str, FleetCalls]:
    """Give the ways of a call of further toolsets, by name.

    Raises:
        InvalidArguments: reason `unknown_toolset`.
    """
    from exeora_ws.toolsets.catalog import collect_tools  # noqa: PLC0415  40 ms that few gateways need

    return {name: core.make_calls(name, collect_tools([name])) for name in names}
