"""A real server with the catalog's tools and some that misbehave on purpose.

python mcp_server.py stdio all|SLUG|read-only [plain]
python mcp_server.py http PORT
"""

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Annotated

from exeora_ws.app import open_app
from exeora_ws.errors import ToolFailed
from exeora_ws.serve.manual import Manual, Prompt
from exeora_ws.tools.call import Calls, Scope
from exeora_ws.tools.catalog import CATALOG
from exeora_ws.tools.news import CatalogNews
from exeora_ws.tools.spec import READS, Arguments, Hints, Needs, NoArguments, Result, Routing, Tool
from msgspec import Meta

WRITES = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)


class Echo(Arguments, frozen=True, kw_only=True):
    text: Annotated[str, Meta(description="Comes back.")]


class Echoed(Result, frozen=True, kw_only=True):
    text: str
    session: str
    workspace: str | None
    project: str | None


class Sleep(Arguments, frozen=True, kw_only=True):
    seconds: float
    marker: str


class Fill(Arguments, frozen=True, kw_only=True):
    size: int
    character: str = "x"


class Filled(Result, frozen=True, kw_only=True):
    text: str


class Count(Arguments, frozen=True, kw_only=True):
    lines: int


class Done(Result, frozen=True, kw_only=True):
    done: bool


def echo(call):
    place = call.place
    return Echoed(
        text=call.arguments.text,
        session=call.session,
        workspace=place.workspace.slug if place else None,
        project=call.project.slug if call.project else None,
    )


def sleep(call):
    marker = Path(call.arguments.marker)
    marker.write_text("started")
    marker.write_text("cancelled" if call.cancellation.wait(call.arguments.seconds) else "done")
    call.cancellation.raise_if_cancelled()
    return Done(done=True)


def stubborn(call):
    """Takes a second to end after it is cancelled, as a process tree may."""
    marker = Path(call.arguments.marker)
    marker.write_text("started")
    call.cancellation.wait(call.arguments.seconds)
    time.sleep(1)
    marker.write_text("ended")
    call.cancellation.raise_if_cancelled()
    return Done(done=True)


def deaf(call):
    """Never ends when cancelled."""
    Path(call.arguments.marker).write_text("started")
    time.sleep(call.arguments.seconds)
    return Done(done=True)


def fail(_call):
    raise ToolFailed("it is no good", reason="no_good", hint="try another", data={"tried": [1, None]})


def bug(_call):
    raise ValueError("boom secret=123 in /home/somebody")


def bad_result(_call):
    return Filled(text="\ud800")


def shout(_call):
    print("a stray print")
    sys.stdout.flush()
    return Done(done=True)


def fill(call):
    return Filled(text=call.arguments.character * call.arguments.size)


def count(call):
    for number in range(call.arguments.lines):
        call.progress(f"line {number}")
    time.sleep(0.5)
    call.progress("the last line")
    time.sleep(0.5)
    return Done(done=True)


NEWS = CatalogNews()


def change(_call):
    for _ in range(50):
        NEWS.tell()
    return Done(done=True)


def tool(function, arguments, result, *, hints=READS, needs=Needs.NOTHING, routing=Routing.NONE):
    return Tool(
        name=function.__name__,
        title=function.__name__.title(),
        description=f"Fixture: {function.__name__}.",
        arguments=arguments,
        result=result,
        hints=hints,
        routing=routing,
        needs=needs,
        function=function,
        reasons={},
    )


FIXTURES = [
    tool(echo, Echo, Echoed, needs=Needs.RECORD, routing=Routing.OPTIONAL),
    tool(sleep, Sleep, Done),
    tool(stubborn, Sleep, Done),
    tool(deaf, Sleep, Done),
    tool(fail, NoArguments, Done),
    tool(bug, NoArguments, Done),
    tool(bad_result, NoArguments, Filled),
    tool(shout, NoArguments, Done),
    tool(fill, Fill, Filled),
    tool(count, Count, Done),
    tool(change, NoArguments, Done, hints=WRITES),
]

MANUAL = Manual(
    instructions=lambda account: f"Instructions for {'an account' if account else 'a project'}.",
    prompts=(Prompt("coding_agent", "Coding agent", "How to work here.", lambda account: f"account={account}"),),
)


def command_line(*arguments):
    """How this program is started."""
    return [sys.executable, __file__, *arguments]


def open_fixture():
    """The app with the fixtures in its catalog, and a record of the sessions that were closed."""
    app = open_app()
    closed = app.places.data / "closed.txt"

    def close(session: str) -> None:
        with closed.open("a") as stream:
            stream.write(session + "\n")

    catalog = {**CATALOG, **{t.name: t for t in FIXTURES}}
    calls = Calls(catalog, app.services, app.calls.gate)
    return dataclasses.replace(app, calls=calls, session_closers=(*app.session_closers, close), news=NEWS)


def find_scope(app, text: str) -> Scope:
    if text == "all":
        return Scope()
    if text == "read-only":
        return Scope(read_only=True)
    return Scope(bound=app.inventory.require_project(text).id)


def serve_on_stdio(scope: str, how: str = "") -> None:
    from exeora_ws.serve.stdio import serve_stdio

    app = open_fixture()
    serve_stdio(app, find_scope(app, scope), manual=MANUAL, plain=how == "plain")


def serve_on_http(port: str) -> None:
    """Print each event as a line of JSON."""
    from exeora_ws.serve.http import HttpOptions, serve_http
    from exeora_ws.serve.tokens import TokenBook

    def tell(event):
        print(json.dumps({"event": event.kind, **event.facts}), flush=True)

    app = open_fixture()
    serve_http(app, TokenBook(app.places), HttpOptions(port=int(port), on_event=tell, manual=MANUAL))


if __name__ == "__main__":
    {"stdio": serve_on_stdio, "http": serve_on_http}[sys.argv[1]](*sys.argv[2:])
