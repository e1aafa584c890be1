"""doctor: what is wrong with the machine, a project and its workspaces, and putting it right."""

from typing import Annotated, Any

import typer

from exeora_cli.direct import run_deed
from exeora_cli.group import Group
from exeora_cli.plain import show_text
from exeora_cli.session import Session, Shown, session_of

group = Group("Workspaces")


@group.command(
    "doctor",
    """
    exeora doctor
    exeora doctor --fix
    exeora doctor --all-projects
    """,
    (
        "`findings[{project, kind, subject, message, hint, status, why}]`: `status` is `found`, `fixable`, `fixed` or "
        "`not_fixed`; `why` is null but for the last; `project` is null for the machine."
    ),
)
def doctor(
    ctx: typer.Context,
    fix: Annotated[bool, typer.Option("--fix", help="Put right what can lose nothing.")] = False,
    all_projects: Annotated[bool, typer.Option("--all-projects", help="Every project, not just this one.")] = False,
) -> None:
    """Look for what is wrong with this machine, the project and its workspaces, and say what to type."""
    session = session_of(ctx)
    session.refuse_workspace("doctor")
    app = session.app
    here = session.find_project()
    projects = app.inventory.list_projects() if all_projects else [here] if here is not None else []
    findings = [_describe_finding(None, f) for f in app.upkeep.examine_machine(fix=fix)]
    for project in projects:
        findings += [_describe_finding(project.slug, f) for f in _examine(session, project, fix=fix)]
    session.show({"findings": findings}, _show_findings)
    if any(f["status"] != "fixed" for f in findings):
        raise typer.Exit(1)


def _examine(session: Session, project: Any, *, fix: bool) -> list[Any]:
    return run_deed(
        session,
        "examine_project",
        project,
        lambda cancellation: list(session.app.upkeep.examine(project, fix=fix, cancellation=cancellation)),
        arguments={"fix": fix},
        changes=fix,
    )


def _describe_finding(project: str | None, finding: Any) -> dict[str, Any]:
    problem = finding.problem
    return {
        "project": project,
        "kind": problem.kind,
        "subject": problem.subject,
        "message": problem.message,
        "hint": problem.hint,
        "status": finding.status,
        "why": finding.why,
    }


def _show_findings(facts: dict[str, Any]) -> Shown:
    lines = []
    for found in facts["findings"]:
        lines.append(show_text(f"{found['status']}: {found['subject']}: {found['message']}"))
        if found["status"] != "fixed":
            lines.append(show_text(f"    {found['why'] or found['hint']}"))
    return Shown(lines, [] if lines else ["nothing is wrong"])
