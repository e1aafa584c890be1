"""A real Streamable HTTP upstream on loopback, bare, whose misbehaviour is chosen by the test."""

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object"}},
    {"name": "where", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]


PLAIN_REPLIES = {
    "error": (500, "text/plain", b"it broke"),
    "html": (200, "text/html", b"<html>"),
    "rpc-error": (
        400,
        "application/json",
        b'{"jsonrpc": "2.0", "id": null, "error": {"code": -7, "message": "refused"}}',
    ),
}


class Remote:
    """Attributes may be changed while it runs."""

    def __init__(self) -> None:
        self.mode = "json"
        self.tools = list(TOOLS)
        self.sessions: set[str] = set()
        self.requests: list[tuple[str, dict[str, str], dict]] = []
        self.listeners: list[queue.Queue] = []
        self.withdrawn = threading.Event()
        self.dropped = threading.Event()
        self.calls = 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/mcp"

    def announce(self) -> None:
        for listener in self.listeners:
            listener.put({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    def close(self) -> None:
        for listener in self.listeners:
            listener.put(None)
        self.server.shutdown()
        self.server.server_close()

    def answer(self, message: dict) -> dict:
        if message["method"] == "initialize":
            info = {"name": "remote", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
        elif message["method"] == "tools/list":
            result = {"tools": self.tools}
        elif message["params"]["name"] == "fail":
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -5, "message": "no"}}
        else:
            self.calls += 1
            text = json.dumps(message["params"]["arguments"])
            result = {"content": [{"type": "text", "text": text, "zzz": 1}], "structuredContent": {"n": None}, "x": 1}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        remote = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def begin_events(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True

            def event(self, data: object, identity: str | None = None) -> None:
                head = f"id: {identity}\nretry: 10\n" if identity else ""
                text = json.dumps(data) if data != "" else ""
                self.wfile.write(f"{head}event: message\ndata: {text}\n\n".encode())
                self.wfile.flush()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                message = json.loads(body)
                remote.requests.append((self.path, dict(self.headers.items()), message))
                remote_post(remote, self, message)

            def do_GET(self) -> None:
                remote.requests.append((self.path, dict(self.headers.items()), {"method": "GET"}))
                remote_get(remote, self)

            def do_DELETE(self) -> None:
                remote.requests.append((self.path, dict(self.headers.items()), {"method": "DELETE"}))
                remote.sessions.discard(self.headers.get("mcp-session-id", ""))
                self.reply(200)

        return Handler


def remote_post(remote: Remote, handler, message: dict) -> None:
    method = message.get("method")
    if remote.mode == "unauthorized":
        token = handler.headers.get("authorization", "")
        handler.reply(401, f"bad token {token} at {handler.path}".encode(), content_type="text/plain")
    elif remote.mode == "elsewhere":
        handler.reply(307, location="http://localhost:1/steal")
    elif remote.mode == "moved" and handler.path == "/mcp":
        handler.reply(307, location="/mcp/")
    elif method == "initialize":
        session = f"s{len(remote.requests)}"
        remote.sessions.add(session)
        body = json.dumps(remote.answer(message)).encode()
        handler.reply(200, body, content_type="application/json", mcp_session_id=session)
    elif handler.headers.get("mcp-session-id") not in remote.sessions:
        handler.reply(404)
    elif "id" not in message:
        if method == "notifications/cancelled":
            remote.withdrawn.set()
        handler.reply(202)
    elif method == "tools/call" and remote.mode != "json":
        special_call(remote, handler, message)
    else:
        handler.reply(200, json.dumps(remote.answer(message)).encode(), content_type="application/json; charset=utf-8")


def special_call(remote: Remote, handler, message: dict) -> None:
    if remote.mode in PLAIN_REPLIES:
        status, kind, body = PLAIN_REPLIES[remote.mode]
        handler.reply(status, body, content_type=kind)
        return
    handler.begin_events()
    if remote.mode == "broken":
        return
    if remote.mode == "resume":
        handler.event("", "e1")
        remote.pending = remote.answer(message)
        return
    token = message["params"].get("_meta", {}).get("progressToken")
    progress = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
    handler.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
    if remote.mode == "slow":
        remote.withdrawn.wait(20)
        # The client has closed the socket: sooner or later, writing fails.
        try:
            for _ in range(2000):
                handler.wfile.write(b": still here\n\n")
                threading.Event().wait(0.005)
        except OSError:
            remote.dropped.set()
        return
    if remote.mode == "large":
        answer = remote.answer(message)
        answer["result"]["content"][0]["text"] = "x" * 3_000_000
        handler.event(answer)
        return
    handler.event(remote.answer(message))


def remote_get(remote: Remote, handler) -> None:
    if remote.mode == "resume" and handler.headers.get("last-event-id"):
        handler.begin_events()
        handler.event(remote.pending, "e2")
        return
    if remote.mode == "no-stream":
        handler.reply(405)
        return
    listener: queue.Queue = queue.Queue()
    handler.begin_events()
    remote.listeners.append(listener)
    while (message := listener.get()) is not None:
        handler.event(message)
