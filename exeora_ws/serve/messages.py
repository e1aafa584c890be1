"""Messages as nearly all clients write them, known by their shape alone; anything else is `Unusual`.

What is read here, the library reads the same. Whatever it might read differently, or refuse, is for it to judge.
"""

from exeora_ws.serve import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Identity = "int | str"


class Unusual(Exception):
    """This is for the protocol library to answer."""


class Request:
    """Wants an answer."""

    __slots__ = ("identity", "method", "params")

    def __init__(self, identity: "int | str", method: str, params: "dict[str, Any] | None") -> None:
        self.identity = identity
        self.method = method
        self.params = params


class Notification:
    """Wants none."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: "dict[str, Any] | None") -> None:
        self.method = method
        self.params = params


class Response:
    """The answer to a request of ours; `result` is None for an error."""

    __slots__ = ("error", "identity", "result")

    def __init__(
        self, identity: "int | str", result: "dict[str, Any] | None", error: "dict[str, Any] | None" = None
    ) -> None:
        self.identity = identity
        self.result = result
        self.error = error


def read_message(line: bytes) -> "Request | Notification | Response":
    """Read a line.

    Raises:
        Unusual: it is not exactly one message of a usual shape.
    """
    try:
        found = jsontext.parse(line)
    except ValueError:
        raise Unusual from None
    if type(found) is not dict or found.pop("jsonrpc", None) != "2.0":
        raise Unusual
    if "method" in found:
        return _read_call(found)
    return _read_response(found)


def _read_call(found: "dict[str, Any]") -> "Request | Notification":
    method = found.pop("method")
    params = _require(found.pop("params"), dict) if "params" in found else None
    if type(method) is not str or found.keys() - {"id"}:
        raise Unusual
    return Request(_require_identity(found["id"]), method, params) if found else Notification(method, params)


def _read_response(found: "dict[str, Any]") -> Response:
    identity = _require_identity(found.pop("id", None))
    match found:
        case {"result": dict() as result} if len(found) == 1:
            return Response(identity, result)
        case {"error": {"code": int() as code, "message": str()} as error} if len(found) == 1:
            if type(code) is not bool and not error.keys() - {"code", "message", "data"}:
                return Response(identity, None, error)
    raise Unusual


def _require_identity(value: object) -> "int | str":
    if type(value) is not int and type(value) is not str:
        raise Unusual
    return value


def _require(value: "Any", kind: type) -> "Any":
    if type(value) is not kind:
        raise Unusual
    return value


def correlate(identity: "int | str") -> "int | str":
    """Give what two spellings of an id have in common: `"7"` answers 7, as the library has it."""
    if isinstance(identity, str):
        try:
            return int(identity)
        except ValueError:
            pass
    return identity


def find_cancelled(params: "dict[str, Any] | None") -> "int | str | None":
    """Give the id that `notifications/cancelled` is about, however the rest of it looks."""
    identity = (params or {}).get("requestId")
    return identity if isinstance(identity, int | str) and not isinstance(identity, bool) else None


def is_well_formed_joining(params: "dict[str, Any] | None") -> bool:
    """Whether `notifications/initialized` counts."""
    return params is None or params.get("_meta") is None or isinstance(params["_meta"], dict)


def write_result(identity: "int | str", result: "dict[str, Any]") -> bytes:
    """Write an answer.

    Raises:
        ValueError: JSON cannot hold it.
    """
    return jsontext.render({"jsonrpc": "2.0", "id": identity, "result": result})


def write_error(identity: "int | str", code: int, message: str, data: object = None) -> bytes:
    """Write a failure of JSON-RPC."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return jsontext.render({"jsonrpc": "2.0", "id": identity, "error": error})


def write_request(identity: int, method: str, params: "dict[str, Any]") -> bytes:
    """Write a request of ours."""
    return jsontext.render({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})


def write_notification(method: str, params: "dict[str, Any] | None" = None) -> bytes:
    """Write a notification of ours."""
    frame: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        frame["params"] = params
    return jsontext.render(frame)
