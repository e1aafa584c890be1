"""Messages over Streamable HTTP: a POST for each, its answer as JSON or as a stream of events, one stream beside.

Built on httpx2 rather than on the MCP library's client, which drops what it does not know, tells no HTTP status, and
does not start a new session when the old one is gone (docs/decisions/0009-upstreams.md). Cancelling a request has to
close its socket, so this one module has an event loop, in a thread of its own.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as WaitTimeoutError
from contextlib import suppress
from typing import Any

import httpx2

from exeora_ws import __version__
from exeora_ws.upstream.messages import Message, format_message, parse_message
from exeora_ws.upstream.peer import ConnectionLost, Peer, ProtocolError
from exeora_ws.upstream.server import Remote

log = logging.getLogger("exeora")

MAX_ANSWER_BYTES = 64_000_000
MAX_ERROR_BYTES = 16_384
_EXCERPT_CHARACTERS = 300
_CONNECT_SECONDS = 30.0
_CLOSE_SECONDS = 3.0
_RETRY_SECONDS = 1.0
_RETRY_MAX_SECONDS = 60.0
_RESUMPTIONS = 5
_REDIRECTS = 3

_NOT_FOUND, _ERROR = 404, 400
_SAME_METHOD = (307, 308)
"""The redirects that keep a POST a POST."""


class HttpConnection:
    """One session with a remote server, and the thread that runs its requests."""

    def __init__(self, remote: Remote, peer: Peer) -> None:
        # They log whole addresses and headers, where tokens stand.
        for name in ("httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._url = remote.url
        self._headers = dict(remote.headers)
        self._peer = peer
        self._session: str | None = None
        self._version: str | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._closed = threading.Event()
        self._initialized = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
        self._client = httpx2.AsyncClient(timeout=timeout, follow_redirects=False)
        self._thread = threading.Thread(target=self._run, name="upstream-http", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> None:
        """Post a message. Raises `ConnectionLost` once closed."""
        body = format_message(message)
        request_id = message["id"] if "method" in message and "id" in message else None
        method = message.get("method")
        self._soon(lambda: self._start(self._post(body, request_id, method), request_id))

    def begin(self, version: str) -> None:
        """Name this version from now on, and listen to what the server has to say unasked."""
        self._version = version
        self._soon(lambda: self._start(self._listen(), None))

    def abandon(self, request_id: int) -> None:
        """Close the socket of a request."""
        with suppress(ConnectionLost):
            self._soon(lambda: self._cancel(request_id))

    def exit_code(self) -> int | None:
        """There is no process."""
        return None

    def stderr_tail(self) -> bytes:
        """There is no process."""
        return b""

    def close(self) -> None:
        """End the session. May be called twice."""
        if self._closed.is_set():
            return
        self._closed.set()
        ending = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        with suppress(WaitTimeoutError):
            ending.result(_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        self._peer.lose(ConnectionLost("it was stopped"))

    def _soon(self, work: Callable[[], None]) -> None:
        try:
            if not self._closed.is_set():
                self._loop.call_soon_threadsafe(work)
                return
        except RuntimeError:
            # The loop was closed between the question and the call.
            log.debug("an upstream was closed meanwhile")
        raise ConnectionLost("it was stopped", unseen=True)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _start(self, work: Coroutine[Any, Any, None], request_id: int | None) -> None:
        task = self._loop.create_task(work)
        if request_id is None:
            self._others.add(task)
            task.add_done_callback(self._others.discard)
        else:
            self._tasks[request_id] = task
            task.add_done_callback(lambda _: self._tasks.pop(request_id, None))

    def _cancel(self, request_id: int) -> None:
        if (task := self._tasks.get(request_id)) is not None:
            task.cancel()

    async def _end(self) -> None:
        tasks = [*self._tasks.values(), *self._others]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            with suppress(httpx2.HTTPError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._client.delete(self._url, headers=self._make_headers())
        await self._client.aclose()

    async def _post(self, body: bytes, request_id: int | None, method: str | None) -> None:
        try:
            # What is asked first must not overtake the word that the handshake is done.
            if method not in ("initialize", "notifications/initialized"):
                await self._initialized.wait()
            await self._exchange(body, request_id)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            self._fail(request_id, ConnectionLost(f"it cannot be reached: {_explain(error)}"))
        except (ConnectionLost, ProtocolError) as error:
            self._fail(request_id, error)
        except Exception as error:
            log.exception("bug in an exchange with an upstream")
            self._fail(request_id, ProtocolError(f"the exchange failed: {type(error).__name__}"))
        finally:
            if method == "notifications/initialized":
                self._initialized.set()

    def _fail(self, request_id: int | None, error: Exception) -> None:
        if request_id is not None:
            self._peer.fail(request_id, error)

    async def _exchange(self, body: bytes, request_id: int | None) -> None:
        url = httpx2.URL(self._url)
        for _ in range(_REDIRECTS):
            headers = self._make_headers() | {"content-type": "application/json"}
            async with self._client.stream("POST", url, content=body, headers=headers) as response:
                if response.status_code not in _SAME_METHOD or response.next_request is None:
                    return await self._take(response, request_id)
                url = _require_same_origin(url, response.next_request.url)
        raise ProtocolError("it redirects in circles")

    def _make_headers(self, accept: str = "application/json, text/event-stream") -> dict[str, str]:
        ours = {"accept": accept, "user-agent": f"exeora/{__version__}"}
        if self._session is not None:
            ours["mcp-session-id"] = self._session
        if self._version is not None:
            ours["mcp-protocol-version"] = self._version
        return {key: value for key, value in self._headers.items() if key.lower() not in ours} | ours

    async def _take(self, response: httpx2.Response, request_id: int | None) -> None:
        if response.status_code >= _ERROR:
            return await self._take_refusal(response, request_id)
        self._session = self._session or response.headers.get("mcp-session-id")
        if request_id is None:
            return None
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            await self._follow(response, request_id)
        elif kind == "application/json":
            self._receive(await _read(response, MAX_ANSWER_BYTES))
        else:
            raise ProtocolError(f"it answered HTTP {response.status_code} with neither JSON nor events")
        if self._peer.waits_for(request_id):
            raise ProtocolError("its answer holds no JSON-RPC response")
        return None

    async def _take_refusal(self, response: httpx2.Response, request_id: int | None) -> None:
        text = await _read(response, MAX_ERROR_BYTES, cut=True)
        if response.status_code == _NOT_FOUND and self._session is not None:
            lost = ConnectionLost("its session is over", unseen=True)
            self._peer.lose(lost)
            raise lost
        message = parse_message(text)
        if isinstance(message, dict) and "error" in message and request_id is not None:
            self._peer.receive({**message, "id": request_id})
            return
        excerpt = " ".join(text.decode("utf-8", "replace").split())[:_EXCERPT_CHARACTERS]
        said = f"it answered HTTP {response.status_code} {response.reason_phrase}".rstrip()
        raise ProtocolError(f"{said}: {excerpt}" if excerpt else said)

    def _receive(self, data: bytes) -> None:
        message = parse_message(data)
        if message is not None:
            self._peer.receive(message)

    async def _follow(self, response: httpx2.Response, request_id: int) -> None:
        """Take events until the answer has come; a server may close the stream and have us come back for the rest."""
        last, pause = await self._take_events(response, "", _RETRY_SECONDS)
        for _ in range(_RESUMPTIONS):
            if not self._peer.waits_for(request_id):
                return
            if not last:
                break
            await asyncio.sleep(pause)
            headers = self._make_headers("text/event-stream") | {"last-event-id": last}
            async with self._client.stream("GET", self._url, headers=headers) as again:
                if again.status_code >= _ERROR:
                    break
                last, pause = await self._take_events(again, last, pause)
        if self._peer.waits_for(request_id):
            raise ConnectionLost("its stream of events ended before the answer")

    async def _take_events(self, response: httpx2.Response, last: str, pause: float) -> tuple[str, float]:
        """Receive a stream's events; gives the last event's id and how long to wait before asking for more."""
        source = httpx2.EventSource(response, max_event_size=MAX_ANSWER_BYTES)
        try:
            async for event in source:
                last = event.id or last
                pause = event.retry / 1000 if event.retry is not None else pause
                self._receive(event.data.encode())
        except httpx2.SSEError as error:
            raise ProtocolError(_explain(error)) from error
        except (httpx2.RemoteProtocolError, httpx2.ReadError):
            log.debug("an upstream's stream of events broke off")
        return last, pause

    async def _listen(self) -> None:
        """Hold the stream on which a server speaks unasked, where it has one."""
        await self._initialized.wait()
        last, pause = "", _RETRY_SECONDS
        while True:
            headers = self._make_headers("text/event-stream") | ({"last-event-id": last} if last else {})
            with suppress(httpx2.HTTPError, httpx2.InvalidURL, ProtocolError):
                async with self._client.stream("GET", self._url, headers=headers) as response:
                    if response.status_code == _NOT_FOUND and self._session is not None:
                        return self._peer.lose(ConnectionLost("its session is over", unseen=True))
                    kind = response.headers.get("content-type", "")
                    if response.status_code >= _ERROR or not kind.startswith("text/event-stream"):
                        return None
                    last, pause = await self._take_events(response, last, _RETRY_SECONDS)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _RETRY_MAX_SECONDS)


async def _read(response: httpx2.Response, limit: int, *, cut: bool = False) -> bytes:
    data = bytearray()
    async for block in response.aiter_bytes():
        data += block
        if len(data) > limit:
            if cut:
                return bytes(data[:limit])
            raise ProtocolError(f"its answer is larger than {limit} bytes")
    return bytes(data)


def _require_same_origin(old: httpx2.URL, new: httpx2.URL) -> httpx2.URL:
    """Follow a redirect only where the configured headers, which hold tokens, may go."""
    if (old.scheme, old.host, old.port) != (new.scheme, new.host, new.port):
        raise ProtocolError("it redirects to another host, where its headers must not go")
    return new


def _explain(error: Exception) -> str:
    return str(error)[:_EXCERPT_CHARACTERS] or type(error).__name__
