"""init and policy check: what a project allows, written and explained."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments

from exeora_cli import answer, render_policy
from exeora_cli.direct import run_deed
from exeora_cli.group import Group
from exeora_cli.session import Session, session_of

if TYPE_CHECKING:
    from exeora_ws.cancellation import Cancellation
    from exeora_ws.policy.document import PolicyDraft
    from exeora_ws.policy.sources import LoadedPolicy
    from exeora_ws.policy.writing import PolicyWritten
    from exeora_ws.workspaces.place import Place

group = Group("Set-up")
policy_group = Group("Set-up", "policy", "Explain what a project allows.")

_MODES = ("allow_all", "allow_list", "read_only")


@group.command(
    "init",
    """
    exeora init
    exeora init --yes --approve
    exeora init --allow 'npm run *' --allow git --deny 'git push *'
    exeora init --mode read_only --force
    """,
    "`workspace` (the slug), `path`, `created`, `changed`, `warnings[…]`.",
)
def init(
    ctx: typer.Context,
    mode: Annotated[str | None, typer.Option("--mode", help="allow_all, allow_list or read_only.")] = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="RULE", help="A command that may run. Repeatable.")
    ] = None,
    deny: Annotated[
        list[str] | None, typer.Option("--deny", metavar="RULE", help="A command that never runs. Repeatable.")
    ] = None,
    tools: Annotated[
        list[str] | None, typer.Option("--tools", metavar="TOOL", help="Offer this tool and no others. Repeatable.")
    ] = None,
    shell: Annotated[
        bool | None, typer.Option("--shell/--no-shell", help="Whether shell syntax may be used with a list.")
    ] = None,
    approve: Annotated[
        bool | None, typer.Option("--approve/--no-approve", help="Whether a person confirms every change.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite keys that say something else.")] = False,
) -> None:
    """Write exeora.toml, the project's policy, into a workspace; at a terminal it asks what it should say.

    A file that is there keeps its comments and everything else. In a workspace other than main it counts there alone,
    until main has it.
    """
    session = session_of(ctx)
    place = _require_place(session, registers=True)
    from exeora_ws.policy.document import PolicyDraft

    draft = PolicyDraft(
        mode=_read_mode(mode), allow=allow, deny=deny, shell=shell, approve=approve, tools=_read_tools(session, tools)
    )
    if not draft.values() and not yes and _may_ask(session) and not (place.root / "exeora.toml").exists():
        draft = _ask()
    # The policy does not judge who writes it; that it was written is on record.
    written = run_deed(
        session,
        "write_policy",
        place,
        lambda cancellation: _write(session, place, draft, cancellation, force=force),
        changes=False,
    )
    result = _describe_written(place, written)
    session.show(result, render_policy.show_written)


@policy_group.command(
    "check",
    """
    exeora policy check
    exeora policy check -- npm publish
    exeora -w feature/login policy check 'cat x | sudo tee y'
    """,
    (
        "With a command `workspace`, `command`, `allowed`, `asks` (a person is asked first), `reason` or null, `text`, "
        "`rules[{text, origin}]`, `origin`; without one `workspace`, `mode`, `allow` (rules, or null where no such "
        "list is in force), `deny`, `shell`, `approve`, `tools` or null, `origins`. Both with `faults[…]` and "
        "`warnings[…]`."
    ),
    takes_command=True,
)
def check(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND…", help="As run takes it.", show_default=False),
    ] = None,
) -> None:
    """Explain whether a command would run, which rule decides, and where that stands; without one, show the policy.

    The exit code is 0 for a command that would run and 4 for one that would not.
    """
    session = session_of(ctx)
    place = _require_place(session, registers=False)
    loaded = session.app.calls.gate.load_layers(place.project, place)
    remarks = {"faults": list(loaded.policy.faults), "warnings": list(loaded.warnings)}
    slug = place.workspace.slug
    if not words:
        session.show({"workspace": slug, **_describe(loaded), **remarks}, render_policy.show_policy)
        return
    verdict = {"workspace": slug, **_judge(loaded, words), **remarks}
    session.show(verdict, render_policy.show_verdict)
    raise typer.Exit(answer.DONE if verdict["allowed"] else answer.REFUSED)


def _require_place(session: Session, *, registers: bool) -> "Place":
    project = session.require_project() if registers else session.require_known_project()
    place = session.app.inventory.require_place(project, session.choose_workspace(project))
    session.app.inventory.require_available(place, files=True)
    return place


def _read_mode(text: str | None) -> Any:
    from exeora_ws.policy.rules import Mode

    if text is None:
        return None
    if text not in _MODES:
        raise InvalidArguments(f"--mode: expected one of {', '.join(_MODES)}; got {text!r}", reason="wrong_value")
    return Mode(text)


def _read_tools(session: Session, names: list[str] | None) -> list[str] | None:
    from exeora_ws.tools.shell.files import REVERT_FILE

    for name in names or ():
        if name != REVERT_FILE.name:
            session.require_tool(name)
    return names


def _may_ask(session: Session) -> bool:
    return not session.options.json and sys.stdin.isatty() and sys.stderr.isatty()


def _ask() -> "PolicyDraft":
    """Ask for the keys that most projects want."""
    from exeora_ws.policy.document import PolicyDraft

    mode = _read_mode(_put(f"mode, one of {', '.join(_MODES)}", "allow_all"))
    allow = _split(_put("commands to allow, separated by commas", "")) if mode == "allow_list" else None
    deny = _split(_put("commands that never run, separated by commas", ""))
    approve = _put("ask a person before every change, y or n", "n").lower() in ("y", "yes")
    return PolicyDraft(mode=mode, allow=allow, deny=deny or None, approve=approve or None)


def _put(question: str, default: str) -> str:
    sys.stderr.write(f"{question} [{default}]: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or default


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _write(
    session: Session, place: "Place", draft: "PolicyDraft", cancellation: "Cancellation", *, force: bool
) -> "PolicyWritten":
    from exeora_ws.tools.shell.policy import write_place_policy

    return write_place_policy(session.app.services, place, draft, session.name, cancellation, force=force)


def _describe_written(place: "Place", done: "PolicyWritten") -> dict[str, Any]:
    from exeora_ws.policy.rules import Origin
    from exeora_ws.policy.sources import POLICY_FILE, load_layer

    return {
        "workspace": place.workspace.slug,
        "path": str(place.root / POLICY_FILE),
        "created": done.created,
        "changed": done.changed,
        "warnings": list(load_layer(place.root, Origin.PROJECT).warnings),
    }


def _describe(loaded: "LoadedPolicy") -> dict[str, Any]:
    policy = loaded.policy
    return {
        "mode": str(policy.mode),
        "allow": None if policy.allow is None else [_show_rule(rule) for rule in policy.allow],
        "deny": [_show_rule(rule) for rule in policy.deny],
        "shell": policy.shell,
        "approve": policy.approve,
        "tools": None if policy.tools is None else sorted(policy.tools),
        "origins": {name: str(origin) for name, origin in policy.origins.items()},
    }


def _judge(loaded: "LoadedPolicy", words: list[str]) -> dict[str, Any]:
    from exeora_ws.policy.verdict import explain
    from exeora_ws.tools.shell.commands import join_words

    line, _ = join_words(words)
    found = explain(loaded.policy, line)
    shown = {key: value for key, value in asdict(found).items() if key not in ("rules", "origin", "faults")}
    return {"command": line, **shown, "rules": [_show_rule(rule) for rule in found.rules], "origin": str(found.origin)}


def _show_rule(rule: Any) -> dict[str, str]:
    return {"text": rule.text, "origin": str(rule.origin)}
