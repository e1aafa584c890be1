"""What requests carry, known by its shape: who the client is, what it can do, what it asks for.

As `messages`: what is read here the library reads the same, and anything else is `Unusual`. Fields that the library's
models are known to ignore (further capabilities, further `_meta`) are ignored here too.
"""

from exeora_ws.serve.messages import Unusual
from exeora_ws.serve.protocol import CAPABILITIES_KEY, CLIENT_KEY, MODERN_VERSION, RESERVED, VERSION_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CLIENT_CHARACTERS = 100
_ENVELOPE = frozenset((VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY))
_OF_A_FORM = frozenset(("content", "_meta"))
_OF_A_CALL = frozenset(("_meta", "name", "arguments"))
_OF_A_MODERN_CALL = _OF_A_CALL | {"requestState", "inputResponses"}
CONFIRM = "confirm"
"""The one thing that a person is asked for."""


class Introduction:
    """Who a client is."""

    __slots__ = ("client", "shows_forms", "version")

    def __init__(self, version: str, client: str, *, shows_forms: bool) -> None:
        self.version = version
        """The revision it speaks, or would like to."""
        self.client = client
        self.shows_forms = shows_forms
        """Whether its person can be asked."""


class CallParams:
    """What `tools/call` carries."""

    __slots__ = ("arguments", "form", "name", "state")

    def __init__(
        self, name: str, arguments: "dict[str, Any]", state: "str | None", form: "dict[str, Any] | None"
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.state = state
        self.form = form
        """The form that came back with `state`, if one did."""


def name_client(name: str, version: str) -> str:
    """Give what the client calls itself, for the audit."""
    return "".join(c if c.isprintable() else "?" for c in f"{name} {version}".strip())[:_CLIENT_CHARACTERS]


def read_handshake(params: "dict[str, Any] | None") -> Introduction:
    """Read the parameters of `initialize`."""
    read_progress_token(params)
    match params:
        case {
            "protocolVersion": str() as version,
            "capabilities": dict() as abilities,
            "clientInfo": dict() as info,
            **further,
        } if further.keys() <= {"_meta"}:
            return Introduction(version, _read_client(info), shows_forms=_read_abilities(abilities))
    raise Unusual


def read_envelope(params: "dict[str, Any] | None") -> Introduction:
    """Read what every request of the later era says of its sender."""
    meta = (params or {}).get("_meta")
    if type(meta) is not dict:
        raise Unusual
    match meta:
        case {"io.modelcontextprotocol/clientCapabilities": dict() as abilities}:
            shows_forms = _read_abilities(abilities)
        case _:
            raise Unusual
    if meta.get(VERSION_KEY) != MODERN_VERSION or any(k.startswith(RESERVED) and k not in _ENVELOPE for k in meta):
        raise Unusual
    client = "unknown"
    if CLIENT_KEY in meta:
        info = meta[CLIENT_KEY]
        if type(info) is not dict:
            raise Unusual
        client = _read_client(info)
    return Introduction(MODERN_VERSION, client, shows_forms=shows_forms)


def has_envelope(params: "dict[str, Any] | None") -> bool:
    """Whether a request claims to be of the later era."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def refuse_reserved(params: "dict[str, Any] | None") -> None:
    """See that a request of the handshake era has nothing of the later one's."""
    meta = (params or {}).get("_meta")
    if isinstance(meta, dict) and any(key.startswith(RESERVED) for key in meta):
        raise Unusual


def read_progress_token(params: "dict[str, Any] | None") -> "int | str | None":
    """Give what progress is to be told under; None where none is asked for."""
    if params is None or "_meta" not in params:
        return None
    meta = params["_meta"]
    if type(meta) is not dict:
        raise Unusual
    if "progressToken" not in meta:
        return None
    token = meta["progressToken"]
    if type(token) is not int and type(token) is not str:
        raise Unusual
    return token


def read_nothing(params: "dict[str, Any] | None") -> None:
    """See that a request asks for nothing in particular."""
    read_progress_token(params)
    if params is not None and params.keys() - {"_meta"}:
        raise Unusual


def read_cursor(params: "dict[str, Any] | None") -> "str | None":
    """Read which page of a list is asked for."""
    read_progress_token(params)
    if params is None or not params.keys() - {"_meta"}:
        return None
    match params:
        case {"cursor": str() as cursor} if not params.keys() - {"_meta", "cursor"}:
            return cursor
    raise Unusual


def read_prompt_name(params: "dict[str, Any] | None") -> str:
    """Read which prompt is asked for. None of ours takes arguments, so that any are passed over."""
    read_progress_token(params)
    match params:
        case {"name": str() as name, **further} if further.keys() <= {"_meta", "arguments"}:
            arguments = further.get("arguments", {})
            if type(arguments) is dict and all(type(value) is str for value in arguments.values()):
                return name
    raise Unusual


def read_call(params: "dict[str, Any] | None", *, modern: bool) -> CallParams:
    """Read what is to be called."""
    known = _OF_A_MODERN_CALL if modern else _OF_A_CALL
    if params is None or params.keys() - known:
        raise Unusual
    name, arguments = params.get("name"), params.get("arguments", {})
    state, responses = params.get("requestState", ""), params.get("inputResponses", {})
    if type(name) is not str or type(arguments) is not dict or type(state) is not str or type(responses) is not dict:
        raise Unusual
    if responses and (responses.keys() != {CONFIRM} or not is_form(responses[CONFIRM])):
        raise Unusual
    return CallParams(name, arguments, state if "requestState" in params else None, responses.get(CONFIRM))


def is_form(response: object, *, strict: bool = True) -> bool:
    """Whether this is a form as a person sends it back, or the news that they did not.

    Args:
        response: what came.
        strict: whether only fields that are known make one.
    """
    match response:
        case {"action": "accept" | "decline" | "cancel", **further} if not (strict and further.keys() - _OF_A_FORM):
            content, meta = further.get("content"), further.get("_meta")
            return (meta is None or type(meta) is dict) and (
                content is None or (type(content) is dict and all(_is_field(value) for value in content.values()))
            )
    return False


def says_yes(form: "dict[str, Any]") -> bool:
    """Whether a form confirms: it was accepted, with a yes in it."""
    return form.get("action") == "accept" and (form.get("content") or {}).get(CONFIRM) is True


def _is_field(value: object) -> bool:
    if type(value) is list:
        return all(type(each) is str for each in value)
    return value is None or type(value) in (str, int, float, bool)


def _read_client(info: "dict[str, Any]") -> str:
    match info:
        case {"name": str() as name, "version": str() as version}:
            further = info.keys() - {"name", "version"}
            if further <= {"title", "description", "websiteUrl"} and all(type(info[key]) is str for key in further):
                return name_client(name, version)
    raise Unusual


def _read_abilities(abilities: "dict[str, Any]") -> bool:
    """Check what a client says it can do; gives whether it shows forms. An empty `elicitation` means forms."""
    for name in ("experimental", "extensions", "tasks", "sampling", "elicitation"):
        if name in abilities and not _is_tree(abilities[name], free=name != "tasks"):
            raise Unusual
    roots = abilities.get("roots", {})
    if type(roots) is not dict or type(roots.get("listChanged", True)) is not bool:
        raise Unusual
    elicitation = abilities.get("elicitation")
    return elicitation is not None and ("form" in elicitation or "url" not in elicitation)


def _is_tree(value: object, *, free: bool) -> bool:
    """Whether these are objects in objects; in those that are `free`, anything below the second."""
    if type(value) is not dict:
        return False
    return all(type(inner) is dict and (free or _is_tree(inner, free=False)) for inner in value.values())
