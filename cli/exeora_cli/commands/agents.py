"""mcp, tools, call: what agents use, and the same from a shell."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from exeora_ws.errors import InvalidArguments, UnknownTool

from exeora_cli import answer, render
from exeora_cli.completion import complete_tool
from exeora_cli.direct import run_direct
from exeora_cli.group import Group
from exeora_cli.session import Session, session_of
from exeora_cli.stdin import parse_object, read_file

group = Group("Agents")

Toolsets = Annotated[
    list[str] | None,
    typer.Option(
        "--toolset",
        metavar="NAME",
        help="Offer this toolset instead of the default one: exeora, workspaces, agentexec, engine or sandbox. "
        "May be given several times.",
    ),
]


@group.command(
    "mcp",
    """
    exeora mcp
    exeora --project api mcp
    exeora mcp --account
    exeora mcp --toolset agentexec --toolset workspaces
    exeora mcp --toolset engine --plan plan.toml --stage draft
    """,
    "None: stdout belongs to the protocol.",
)
def mcp(
    ctx: typer.Context,
    account: Annotated[
        bool, typer.Option("--account", help="Serve every project; each call then names its project.")
    ] = False,
    toolset: Toolsets = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="Keep one turn of toolset engine to this plan.", show_default=False
        ),
    ] = None,
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="NAME", help="Whose turn of the plan it is.", show_default=False)
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", hidden=True, help="Have the protocol library answer everything.")
    ] = False,
) -> None:
    """Serve MCP over stdio, for a client that starts this command.

    It serves the project around the current directory, or the one given with --project. Each call names its
    workspace; without one it means main.
    """
    session = session_of(ctx)
    session.refuse_workspace("mcp")
    if account and session.options.project is not None:
        raise InvalidArguments("--account serves every project: leave --project out", reason="conflicting_fields")
    session.toolsets = tuple(toolset or ())
    calls = session.calls if plan is None else _open_planned(session, plan, stage)
    if plan is None and stage is not None:
        raise InvalidArguments("--stage: needs --plan", reason="missing_field")
    project = None if account else session.require_project()
    from exeora_ws.serve.manual import HOUSE_MANUAL, Manual
    from exeora_ws.serve.stdio import serve_stdio

    # Clients show a server's error output where they say what is wrong with it.
    session.app.upstreams.report_to(lambda line: answer.narrate([line]))
    manual = HOUSE_MANUAL if session.offers_default else Manual()
    serve_stdio(session.app, session.bind(project), calls=calls, manual=manual, plain=plain)


def _open_planned(session: Session, plan: Path, stage: str | None) -> Any:
    from exeora_ws.app import open_planned_calls

    return open_planned_calls(session.app, session.toolsets, plan, stage)


@group.command(
    "tools",
    """
    exeora tools
    exeora tools --json
    exeora tools --schema create_workspace
    exeora tools --toolset engine
    """,
    (
        "`tools[{name, title, description, annotations, inputSchema, outputSchema}]`; with `--schema` one of "
        "these objects."
    ),
)
def tools(
    ctx: typer.Context,
    schema: Annotated[
        str | None,
        typer.Option("--schema", metavar="TOOL", help="Print one tool's schemas.", autocompletion=complete_tool),
    ] = None,
    toolset: Toolsets = None,
) -> None:
    """List the tools that MCP and `exeora call` offer.

    In a project its upstream servers are started for it, and ended again; each has half a minute to answer.
    """
    session = session_of(ctx)
    session.toolsets = tuple(toolset or ())
    session.refuse_workspace("tools")
    if schema is not None and schema in session.find_calls(schema).catalog:
        _print_json(session, _describe(session.require_tool(schema)))
        return
    proxied = [_describe_proxied(entry) for entry in _list_proxied(session)]
    if schema is not None:
        _print_json(session, _require_described(proxied, schema))
        return
    listed = [_describe(tool) for tool in session.calls.catalog.values()]
    session.show({"tools": listed + proxied}, render.show_tools)


def _list_proxied(session: Session) -> list[dict[str, Any]]:
    """List the tools of the project's upstream servers; without a project there are none."""
    project = session.find_project()
    if project is None or not session.offers_default:
        return []
    session.app.upstreams.report_to(lambda line: answer.narrate([line]))
    calls, scope = session.calls, session.bind(project)
    return run_direct(session, "upstream servers", lambda cancellation: calls.list_proxied(scope, cancellation))


def _describe_proxied(entry: dict[str, Any]) -> dict[str, Any]:
    """Give what a server says of its tool; what it does not say is null."""
    keys = ("name", "title", "description", "annotations", "inputSchema", "outputSchema")
    described = {key: entry.get(key) for key in keys}
    return described | {"title": entry.get("title") or entry["name"]}


def _require_described(described: list[dict[str, Any]], name: str) -> dict[str, Any]:
    found = next((each for each in described if each["name"] == name), None)
    if found is None:
        raise UnknownTool(f"there is no tool {name!r}", hint="exeora tools names those there are")
    return found


@group.command(
    "call",
    """
    exeora call list_git_workspaces
    exeora call create_workspace '{"branch": "feature/login"}'
    exeora -w feature-login call remove_workspace '{"deleteBranch": true}'
    exeora call create_workspace @arguments.json
    echo '{"branch": "x"}' | exeora call create_workspace -
    exeora call project_exec '{"command": "make test"}'
    exeora call --toolset engine read_file '{"path": "README.md"}'
    exeora call mcp__docs__search '{"query": "worktree"}'
    """,
    (
        "The tool's structured result, with `schema` in front. Without `--json` the same, set for reading and "
        "without `schema`."
    ),
)
def call(
    ctx: typer.Context,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Name of the tool.", autocompletion=complete_tool)],
    arguments: Annotated[
        str, typer.Argument(metavar="JSON", help="Its arguments: an object, @FILE, or - for stdin.", show_default=False)
    ] = "{}",
    toolset: Toolsets = None,
) -> None:
    """Call a tool as an MCP client would, and print its structured result.

    Any tool of any toolset: where several have one of that name it is the default toolset's, unless --toolset says. A
    tool of an upstream server (mcp__…) is called as well: the server is started for it and ended again, and a result
    that says it is an error makes the exit code 1.

    The workspace is the one in the arguments, else -w, else the one around the current directory. A tool that
    requires one (remove_workspace) takes only the first two.
    """
    session = session_of(ctx)
    session.toolsets = tuple(toolset or ())
    session.speaks_tools = True
    from exeora_ws.tools.call import PROXIED_PREFIX
    from exeora_ws.tools.spec import Needs

    upstream = tool.startswith(PROXIED_PREFIX) and session.offers_default
    project = session.require_project() if upstream else None
    known = session.require_tool(tool, project)
    given = parse_object(_read_arguments(session, arguments))
    if not upstream and known.needs is not Needs.NOTHING:
        project = session.require_project()
    result = session.make(tool, _with_workspace(session, known, given, project), project)
    _print_json(session, result)
    if known.upstream is not None and result.get("isError") is True:
        raise typer.Exit(answer.FAILED)


def _with_workspace(session: Session, tool: Any, given: dict[str, Any], project: Any) -> dict[str, Any]:
    from exeora_ws.tools.spec import Routing

    if tool.routing is Routing.NONE:
        session.refuse_workspace(tool.name)
        return given
    field = tool.workspace_field
    if field in given:
        if session.options.workspace is not None:
            raise InvalidArguments(f"{field}: given in the arguments and with -w", reason="given_twice")
        return given
    if tool.routing is Routing.REQUIRED and session.options.workspace is None:
        return given
    return {**given, field: session.choose_workspace(project)}


def _read_arguments(session: Session, text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    if not text.startswith("@"):
        return text.encode("utf-8", "surrogateescape")
    return read_file(session.folder, text[1:])


def _describe(tool: Any) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "annotations": tool.hints.to_dict(),
        "inputSchema": tool.input_schema(account=False),
        "outputSchema": tool.output_schema,
    }


def _print_json(session: Session, facts: dict[str, Any]) -> None:
    """Print a document that has no other form: as such with `--json`, else for reading and without our version."""
    import msgspec

    if session.options.json:
        answer.print_document(facts)
        return
    compact = answer.render_document(facts, version=False)
    answer.print_lines([msgspec.json.format(compact.decode(), indent=2)])
