"""agentexec as an ASGI application, to mount under any path of another server."""

import asyncio
import warnings
from pathlib import Path

import anyio
from anyio import to_thread
from mcp.shared.exceptions import MCPDeprecationWarning
from starlette.types import Receive, Send

from exeora_ws.app import App, open_agentexec, open_app
from exeora_ws.names import ProjectId
from exeora_ws.serve.admission import Admitted, Refused
from exeora_ws.serve.endpoint import Asgi, HttpEndpoint
from exeora_ws.serve.log import keep_log
from exeora_ws.serve.manual import Manual
from exeora_ws.serve.sessions import Sessions
from exeora_ws.tools.call import Calls, Scope
from exeora_ws.tools.tokens import Token

_IDLE_LOOK_SECONDS = 30.0


class MountedExec:
    """Answers every request that reaches it: whoever mounts it decides who may. For one asyncio event loop.

    Args:
        app: the core; closed with this.
        calls: the way of a call.
        project: the project that its folder is in.
    """

    def __init__(self, app: App, calls: Calls, project: ProjectId) -> None:
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        self._app = app
        self._sessions = Sessions(app.close_session)
        self._endpoint = HttpEndpoint(calls, Manual(), self._sessions, _tell_nobody)
        self._admitted = _admit(project)
        self._live: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._closing = asyncio.Event()

    async def __call__(self, asgi: Asgi, receive: Receive, send: Send) -> None:
        """Take one request (ASGI)."""
        if asgi["type"] == "lifespan":
            await self._last(receive, send)
            return
        if asgi["type"] != "http":
            raise RuntimeError("agentexec answers HTTP alone")
        if not await self._start():
            await Refused(503, None, "this server is closing").respond()(asgi, receive, send)
            return
        await self._endpoint.handle(self._admitted, asgi, receive, send)

    async def aclose(self) -> None:
        """Answer what is in flight, end every command still running, and return when nothing is left."""
        self._closing.set()
        if self._live is not None:
            await self._live
        await to_thread.run_sync(self._app.close)

    @property
    def all_ended(self) -> bool:
        """Whether no thread is in a call any more."""
        return self._endpoint.all_ended

    async def _start(self) -> bool:
        """Begin with the first request; False once it closes."""
        if self._closing.is_set():
            return False
        if self._live is None:
            self._live = asyncio.create_task(self._run())
        ready = asyncio.ensure_future(self._ready.wait())
        await asyncio.wait({ready, self._live}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        return self._ready.is_set() and not self._closing.is_set()

    async def _run(self) -> None:
        async with self._endpoint.open(self._app), anyio.create_task_group() as beside:
            beside.start_soon(self._end_idle)
            self._ready.set()
            await self._closing.wait()
            async with anyio.create_task_group() as both:
                both.start_soon(self._endpoint.stop)
                both.start_soon(self._sessions.end_work)
            for session in list(self._sessions.shaken.values()):
                await self._endpoint.end_session(session)
            await self._sessions.end_unspoken()
            beside.cancel_scope.cancel()

    async def _end_idle(self) -> None:
        while True:
            await anyio.sleep(_IDLE_LOOK_SECONDS)
            await self._sessions.end_idle()

    async def _last(self, receive: Receive, send: Send) -> None:
        """Live as long as the server that runs this alone."""
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def _admit(project: ProjectId) -> Admitted:
    """Make the one admission that every request has."""
    token = Token(
        id="agentexec", name="agentexec", account=False, projects=frozenset((project,)), read_only=False, created=0.0,
        expires=None, used=None, revoked=None,
    )  # fmt: skip
    return Admitted(token, Scope(bound=project, granted=frozenset((project,))), project)


def _tell_nobody(_kind: str, **_facts: object) -> None:
    pass


def open_mounted(folder: Path, level: str) -> MountedExec:
    """Open agentexec for a folder.

    Raises:
        ExeoraError: as `open_agentexec`.
    """
    app = open_app()
    keep_log(app.places)
    return MountedExec(app, *open_agentexec(app, folder, level))
