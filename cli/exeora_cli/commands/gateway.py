"""gateway: MCP over HTTP for the projects of many machines."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments
from exeora_ws.fleet import require_extra

from exeora_cli import answer
from exeora_cli.fleet_state import CredentialFile
from exeora_cli.group import Group
from exeora_cli.parameters import AllowedHosts, BehindProxy
from exeora_cli.serving import Announcer
from exeora_cli.session import Session, session_of

if TYPE_CHECKING:
    from exeora_ws.fleet.credentials import Credential
    from exeora_ws.fleet.gateway import FleetCore
    from exeora_ws.fleet.home import FleetHome
    from exeora_ws.serve.options import HttpEvent, HttpOptions

_PORT = 7375
_LAST_PORT = 65_535
_CALLS, _SESSIONS, _CONNECTIONS = 1_024, 4_096, 4_096
_NEXT = "exeora machine add NAME"

Urls = Annotated[
    list[str] | None,
    typer.Option("--nats", metavar="URL", help="A NATS server of the fleet; may be given several times."),
]


def _serve(
    ctx: typer.Context,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Run a nats-server of its own; so without --nats and --credential.")
    ] = False,
    nats: Urls = None,
    credential: CredentialFile = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=_LAST_PORT, help="Port for MCP; 0 takes a free one.")
    ] = _PORT,
    host: Annotated[
        str, typer.Option("--host", help="Address for MCP; only loopback without --behind-proxy.")
    ] = "127.0.0.1",
    behind_proxy: BehindProxy = False,
    allowed_host: AllowedHosts = None,
    toolset: Annotated[
        list[str] | None,
        typer.Option("--toolset", metavar="NAME", help="Serve this toolset too, at /p/PROJECT/NAME/mcp."),
    ] = None,
    nats_host: Annotated[
        str | None,
        typer.Option("--nats-host", metavar="ADDRESS", help="Embedded: where machines connect; loopback by default."),
    ] = None,
    nats_port: Annotated[
        int | None,
        typer.Option("--nats-port", min=0, max=_LAST_PORT, help="Embedded: its port; 7374 by default. Kept."),
    ] = None,
    nats_certificate: Annotated[
        str | None, typer.Option("--nats-certificate", metavar="FILE", help="Embedded: speak TLS with this (PEM).")
    ] = None,
    nats_key: Annotated[
        str | None, typer.Option("--nats-key", metavar="FILE", help="Embedded: the key of the certificate (PEM).")
    ] = None,
    replicas: Annotated[
        int, typer.Option("--replicas", min=1, max=5, help="On how many servers of a cluster what it keeps stands.")
    ] = 1,
) -> None:
    """Serve MCP over HTTP for the projects of many machines: /mcp for all, /p/PROJECT/mcp for one.

    Machines join with exeora machine add, here, and exeora connect, there. What it knows stands in NATS, so any number
    of gateways may serve the same.
    """
    if ctx.invoked_subcommand is not None:
        return
    session = session_of(ctx)
    session.refuse_globals("gateway")
    own = {"host": nats_host, "port": nats_port, "certificate": nats_certificate, "key": nats_key}
    chosen = _Chosen(embedded, tuple(nats or ()), credential, {k: v for k, v in own.items() if v is not None}, replicas)
    chosen.check()
    require_extra()
    from exeora_ws.serve.options import Capacity, HttpOptions

    options = HttpOptions(
        host=host,
        port=port,
        behind_proxy=behind_proxy,
        allowed_hosts=tuple(allowed_host or ()),
        capacity=Capacity(_CALLS, _SESSIONS, _CONNECTIONS),
    )
    _Serving(session, chosen).run(options, toolset or [])


group = Group("Fleet", "gateway", "MCP over HTTP for the projects of many machines.", main=_serve)
group.describe_main(
    """
    exeora gateway --embedded
    exeora gateway --nats nats://10.0.0.5:4222 --credential gateway.exf --port 0 --json
    exeora gateway --embedded --nats-host 0.0.0.0 --behind-proxy --allowed-host exeora.example.com
    """,
    (
        "One object a line for each event, as `serve` has them. `ready` also has `nats` (urls) and `machines` (how "
        "many have been added). `fleet`: `state` (`connected`, `lost`, `refused`) and `message`, of its connection to "
        "the NATS servers; `warning`: `message`."
    ),
)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Which servers, and as whom."""

    embedded: bool
    urls: tuple[str, ...]
    credential: Path | None
    own: dict[str, Any]
    replicas: int

    @property
    def is_embedded(self) -> bool:
        return not self.urls and self.credential is None

    def check(self) -> None:
        """See that the options go together; raises `InvalidArguments`."""
        if self.embedded and not self.is_embedded:
            raise InvalidArguments("--embedded: not together with --nats or --credential", reason="conflicting_fields")
        if self.own and not self.is_embedded:
            raise InvalidArguments("--nats-host and its kin are for --embedded", reason="conflicting_fields")


class _Serving:
    """One run of the gateway, as its person sees it."""

    def __init__(self, session: Session, chosen: _Chosen) -> None:
        from exeora_ws.settings import find_places

        self._places = find_places()
        self._json = session.options.json
        self._chosen = chosen

    def run(self, options: "HttpOptions", toolsets: list[str]) -> None:
        """Serve until told to end.

        Raises:
            ExeoraError: it cannot serve.
            ReaderGone: nobody read any more what it had to tell.
        """
        from exeora_ws.fleet.gateway import open_gateway, open_toolsets
        from exeora_ws.serve.http import serve_http

        core: FleetCore
        announcer = Announcer(
            json=self._json,
            public=options.public_url,
            project=None,
            book=lambda: core.token_store,
            make_token="exeora gateway token create",  # noqa: S106  a command
            closing=_show_next,
        )
        try:
            with ExitStack() as leaving:
                credential = self._reach(announcer, leaving)
                core = open_gateway(
                    self._places, credential, replicas=self._chosen.replicas, tell=announcer.teller.tell
                )
                leaving.callback(core.close)

                def take(event: "HttpEvent") -> None:
                    if event.kind == "ready":
                        facts = {
                            **event.facts,
                            "nats": list(credential.urls),
                            "machines": core.inventory.count_machines(),
                        }
                        event = replace(event, facts=facts)
                    announcer.take(event)

                serving = replace(options, on_event=take, toolsets=open_toolsets(core, toolsets))
                serve_http(core, core.tokens, serving)
        finally:
            announcer.teller.close()
        if announcer.teller.reader_gone:
            raise answer.ReaderGone

    def _reach(self, announcer: Announcer, leaving: ExitStack) -> "Credential":
        """Have servers, and be somebody to them."""
        from exeora_ws.fleet.embedded import EmbeddedServer
        from exeora_ws.fleet.home import FleetAddress, FleetHome, operate

        chosen, home = self._chosen, FleetHome(self._places)
        if not chosen.is_embedded:
            return _find_credential(home, chosen.urls, chosen.credential)
        keys, known = home.ensure_keys(), home.load_address()
        address = replace(known if known is not None and known.embedded else FleetAddress(), **chosen.own)
        home.store_address(address)
        server = EmbeddedServer(home, keys, address, lambda line: announcer.teller.tell("warning", {"message": line}))
        leaving.callback(server.close)
        with operate(home, keys):
            pass  # it settles what a command that was killed has left half done
        return home.make_gateway(keys, "gateway", (server.url,))


def _find_credential(home: "FleetHome", urls: tuple[str, ...], file: Path | None) -> "Credential":
    """Give the credential of a file, or one made with the keys that are here."""
    from exeora_ws.fleet.credentials import load_credential
    from exeora_ws.fleet.home import FleetAddress

    if file is not None:
        credential = load_credential(file, "gateway")
        return replace(credential, urls=urls or credential.urls)
    keys = home.ensure_keys()
    if home.load_address() is None:
        home.store_address(FleetAddress(urls=urls))
    return home.make_gateway(keys, "gateway", urls)


def _show_next(facts: Any) -> list[str]:
    if facts.get("machines"):
        return []
    return ["", "no machine yet:", f"  {_NEXT}  here, and what it prints there"]
