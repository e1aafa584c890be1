"""The door of the HTTP server: host, origin, path, token, and what a token opens. Nothing passes unjudged."""

import json
import math
from collections.abc import Collection, MutableMapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.responses import Response

from exeora_ws.errors import UnknownProject
from exeora_ws.serve.failures import FailureLimit
from exeora_ws.serve.hosts import is_host_allowed, is_origin_allowed
from exeora_ws.tools.call import Scope
from exeora_ws.tools.core import ProjectList, Tokens
from exeora_ws.tools.tokens import Token

ACCOUNT = "account"
_INVALID_REQUEST = -32600
_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that came in."""

    token: Token
    scope: Scope
    endpoint: str
    """`account`, or the id of the project whose endpoint it is, and its toolset: a session belongs to one."""
    toolset: str | None = None
    """The toolset that the path names, if it names one."""


class Refused(Exception):
    """A request that did not.

    Args:
        status: of HTTP.
        code: one of the contract's, or None where HTTP's own says it all.
        message: one sentence.
        headers: further ones.
    """

    def __init__(self, status: int, code: str | None, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self._code = code
        self._message = message
        self._headers = headers

    def respond(self) -> Response:
        """Give the response: an error as JSON-RPC has it, so that a client can show its sentence."""
        told = self._message if self._code is None else f"{self._code}: {self._message}"
        error: dict[str, Any] = {"code": _INVALID_REQUEST, "message": told}
        if self._code is not None:
            error["data"] = {"error": {"code": self._code, "message": self._message}}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
        return Response(body, self.status, self._headers, media_type="application/json")


class Door:
    """Admits requests.

    Args:
        book: the tokens.
        inventory: the projects.
        hosts: the names we are reached by.
        behind_proxy: whether a proxy tells who the peer is.
        toolsets: those that have endpoints of their own.
    """

    def __init__(
        self,
        book: Tokens,
        inventory: ProjectList,
        hosts: Collection[str],
        *,
        behind_proxy: bool,
        toolsets: Collection[str] = (),
    ) -> None:
        self._book = book
        self._inventory = inventory
        self._hosts = hosts
        self._behind_proxy = behind_proxy
        self._toolsets = toolsets
        self._failures = FailureLimit()

    async def admit(self, asgi: MutableMapping[str, Any]) -> Admitted:
        """Judge a request by its headers and path.

        Raises:
            Refused: 421, 403, 404, 401 or 429.
        """
        headers = Headers(scope=asgi)
        if not is_host_allowed(headers.get("host"), self._hosts):
            raise Refused(421, None, "this server does not answer to that Host")
        if not is_origin_allowed(headers.get("origin"), self._hosts):
            raise Refused(403, None, "this server takes nothing from that Origin")
        slug, toolset = self._read_path(asgi["path"])
        token = await to_thread.run_sync(self._find_token, headers)
        if token is None:
            raise self._refuse_stranger(self._peer(asgi, headers))
        if slug is None:
            return _admit_to_account(token)
        return await to_thread.run_sync(self._admit_to_project, token, slug, toolset)

    def _find_token(self, headers: Headers) -> Token | None:
        authorization = headers.get("authorization", "")
        if not authorization.lower().startswith(_BEARER):
            return None
        return self._book.find(authorization[len(_BEARER) :].strip())

    def _refuse_stranger(self, peer: str) -> Refused:
        wait = self._failures.note_failure(peer)
        if wait is not None:
            return Refused(429, None, "too many attempts with no valid token", {"Retry-After": str(math.ceil(wait))})
        return Refused(
            401,
            None,
            "a valid token is needed: send it as Authorization: Bearer exo_…, or make one with exeora token create",
            {"WWW-Authenticate": 'Bearer realm="exeora"'},
        )

    def _peer(self, asgi: MutableMapping[str, Any], headers: Headers) -> str:
        """Who is at the other end; behind a proxy, what the proxy itself added last."""
        forwarded = headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
        client = asgi.get("client")
        return forwarded if self._behind_proxy and forwarded else str(client[0] if client else "")

    def _read_path(self, path: str) -> tuple[str | None, str | None]:
        """Give project (None at the account's endpoint) and toolset (None unless one is named).

        Raises:
            Refused: no endpoint is there.
        """
        match path.rstrip("/").split("/"):
            case ["", "mcp"]:
                return None, None
            case ["", "p", slug, "mcp"] if slug:
                return slug, None
            case ["", "p", slug, toolset, "mcp"] if slug and toolset in self._toolsets:
                return slug, toolset
        more = " and /p/PROJECT/TOOLSET/mcp" if self._toolsets else ""
        raise Refused(404, None, f"there is nothing here: the endpoints are /mcp, /p/PROJECT/mcp{more}")

    def _admit_to_project(self, token: Token, slug: str, toolset: str | None) -> Admitted:
        """A project that is not there and one that was not granted are told apart to nobody."""
        try:
            project = self._inventory.require_project(slug)
        except UnknownProject:
            project = None
        if project is None or not token.reaches(project.id):
            raise Refused(404, "UNKNOWN_PROJECT", "there is no such project here")
        endpoint = project.id if toolset is None else f"{project.id}/{toolset}"
        return Admitted(token, token.project_scope(project.id), endpoint, toolset)


def _admit_to_account(token: Token) -> Admitted:
    if not token.account:
        raise Refused(403, "FORBIDDEN", "this token opens its projects' own endpoints, not the account's")
    return Admitted(token, token.account_scope(), ACCOUNT)
