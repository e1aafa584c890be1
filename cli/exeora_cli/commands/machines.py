"""machine add, list, revoke: which machines a fleet has."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exeora_cli.group import Group
from exeora_cli.plain import align, show_text
from exeora_cli.session import Session, Shown, session_of
from exeora_cli.times import write_time

if TYPE_CHECKING:
    from exeora_ws.fleet.home import FleetHome, Operation
    from exeora_ws.fleet.roster import KnownMachine

group = Group("Fleet", "machine", "The machines of a fleet (exeora gateway); run it where the gateway's keys are.")

_KEYS = "id, name, state, added, revoked, seen, version, platform, projects[{id, slug}]"
_MEANING = (
    "`state`: `online` (it has just answered), `offline`, `revoked`; `seen`, `version` and `platform` are what it last "
    "said of itself, null when it never did; times in UTC or null"
)


@group.command(
    "add",
    """
    exeora machine add laptop
    exeora machine add laptop --out laptop.exeora
    exeora machine add build-1 --url nats://gateway.example.com:7374
    exeora machine add laptop --replace
    """,
    "`machine{id, name}`, and `credential` (the secret line, shown this once) or `file` (where it was written).",
)
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What you call it.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the credential there (0600), do not print it.")
    ] = None,
    url: Annotated[
        list[str] | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Where the machine reaches the NATS server, if not as this host does. May be given repeatedly.",
        ),
    ] = None,
    authority: Annotated[
        Path | None,
        typer.Option(
            "--authority",
            metavar="FILE",
            help="Certificates (PEM) that the machine judges the server's by, where the system's do not know it.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also for a name in use: its old credential is void at once.")
    ] = False,
) -> None:
    """Make a machine's credential: one line, to be passed to exeora connect there. It is kept nowhere.

    A machine that was revoked comes back under its name with a new one.
    """
    session = session_of(ctx)
    session.refuse_globals("machine add")
    with _operating(session, begin=True) as (home, operation):
        from exeora_ws.fleet.home import read_certificates

        trusted = None if authority is None else read_certificates(authority)
        urls = home.find_public_urls(tuple(url or ()))
        credential = operation.roster.add(name, urls, authority=trusted, replace=replace)
    machine = {"id": credential.identity, "name": credential.name}
    if out is not None:
        from exeora_ws.fleet.credentials import store_credential

        store_credential(out, credential)
        hint = f"on that machine: exeora connect --credential {out.name}"
        session.show({"machine": machine, "file": str(out)}, lambda _: Shown([str(out)], [hint]))
        return
    text = credential.to_text()
    hint = "on that machine: exeora connect - and paste this line; it is shown only now"
    session.show({"machine": machine, "credential": text}, lambda _: Shown([text], [hint]))


@group.command(
    "list",
    """
    exeora machine list
    exeora machine list --json
    """,
    f"`machines[{{{_KEYS}}}]`. {_MEANING}.",
)
def list_(ctx: typer.Context) -> None:
    """List the machines, which of them are there, and what they have; also those that were sent away."""
    session = session_of(ctx)
    session.refuse_globals("machine list")
    with _operating(session) as (_, operation):
        machines = [_describe(machine) for machine in operation.roster.list(operation.line)]
    session.show({"machines": machines}, _show_list)


@group.command(
    "revoke",
    """
    exeora machine revoke laptop
    """,
    f"`machine{{{_KEYS}}}`. {_MEANING}.",
)
def revoke(
    ctx: typer.Context,
    machine: Annotated[str, typer.Argument(metavar="MACHINE", help="Its name or id.")],
) -> None:
    """Send a machine away: its connection is closed at once, and it cannot come back with that credential."""
    session = session_of(ctx)
    session.refuse_globals("machine revoke")
    with _operating(session) as (_, operation):
        revoked = _describe(operation.roster.revoke(machine))
    session.show({"machine": revoked}, lambda _: Shown([f"revoked {revoked['id']}  {show_text(revoked['name'])}"]))


@contextmanager
def _operating(session: Session, *, begin: bool = False) -> "Iterator[tuple[FleetHome, Operation]]":
    from exeora_ws.fleet import require_extra

    require_extra()
    from exeora_ws.fleet.home import FleetHome, operate

    home = FleetHome(session.app.places)
    with operate(home, home.ensure_keys() if begin else home.require_keys()) as operation:
        yield home, operation


def _describe(machine: "KnownMachine") -> dict[str, Any]:
    record, presence = machine.record, machine.presence
    return {
        "id": machine.id,
        "name": record.name,
        "state": "revoked" if record.revoked is not None else "online" if machine.online else "offline",
        "added": write_time(record.added),
        "revoked": None if record.revoked is None else write_time(record.revoked),
        "seen": None if presence is None else write_time(presence.seen / 1000),
        "version": None if presence is None else presence.version,
        "platform": None if presence is None else presence.platform,
        "projects": [{"id": identity, "slug": slug} for identity, slug in machine.projects],
    }


def _show_list(result: dict[str, Any]) -> Shown:
    machines = result["machines"]
    if not machines:
        return Shown([], ["there is no machine: exeora machine add NAME makes one's credential"])
    return Shown(align([_row(machine) for machine in machines]))


def _row(machine: dict[str, Any]) -> tuple[str, ...]:
    seen = f"seen {machine['seen']}" if machine["seen"] else "never seen"
    about = machine["version"] or ""
    slugs = ", ".join(project["slug"] for project in machine["projects"])
    return machine["id"], show_text(machine["name"]), machine["state"], seen, about, show_text(slugs)
