"""config get, set, unset: the user's own settings."""

from typing import Annotated, Any

import typer
from exeora_ws.settings import KEYS, Key, find_key, find_places, get_value, load_settings, parse_value, store_value

from exeora_cli.completion import complete_setting
from exeora_cli.group import Group
from exeora_cli.plain import align, show_text
from exeora_cli.session import Shown, session_of

group = Group("Set-up", "config", "Read and change your settings (config.json).")

Setting = Annotated[str, typer.Argument(metavar="KEY", help="Name of the setting.", autocompletion=complete_setting)]


@group.command(
    "get",
    """
    exeora config get
    exeora config get worktree-root
    """,
    "`key` and `value`, null where it is not set; without a name `settings{key: value}`.",
)
def get(
    ctx: typer.Context,
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="KEY", help="Name of the setting; all of them without.", autocompletion=complete_setting
        ),
    ] = None,
) -> None:
    """Print a setting, or all of them. One that is not set prints nothing, and null in JSON."""
    session = session_of(ctx)
    session.refuse_globals("config")
    loaded = load_settings(find_places())
    if key is None:
        session.show({"settings": {k.typed: get_value(loaded, k) for k in KEYS}}, _show_all)
        return
    found = find_key(key)
    session.show({"key": found.typed, "value": get_value(loaded, found)}, lambda result: _show_one(found, result))


@group.command(
    "set",
    """
    exeora config set worktree-root ~/worktrees
    exeora config set tools-may-edit-policy false
    """,
    "`key` and `value`.",
)
def set_(ctx: typer.Context, key: Setting, value: Annotated[str, typer.Argument(metavar="VALUE")]) -> None:
    """Change a setting."""
    session = session_of(ctx)
    session.refuse_globals("config")
    found = find_key(key)
    parsed = parse_value(found, value)
    store_value(find_places(), found, parsed)
    session.show({"key": found.typed, "value": parsed}, lambda _result: Shown([], [f"{found.typed} = {_word(parsed)}"]))


@group.command(
    "unset",
    """
    exeora config unset worktree-root
    """,
    "`key` and `value`, which is null.",
)
def unset(ctx: typer.Context, key: Setting) -> None:
    """Take a setting out, so that the default counts again."""
    session = session_of(ctx)
    session.refuse_globals("config")
    found = find_key(key)
    store_value(find_places(), found, None)
    session.show({"key": found.typed, "value": None}, lambda _result: Shown([], [f"{found.typed} is not set"]))


def _show_one(key: Key, result: dict[str, Any]) -> Shown:
    if result["value"] is None:
        return Shown([], [f"{key.typed} is not set ({key.meaning})"])
    return Shown([_word(result["value"])])


def _show_all(result: dict[str, Any]) -> Shown:
    meanings = {k.typed: k.meaning for k in KEYS}
    settings = result["settings"]
    return Shown(align([(typed, _word(value), meanings[typed]) for typed, value in settings.items()]))


def _word(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return show_text(", ".join(map(str, value)))
    return show_text(str(value).lower() if isinstance(value, bool) else str(value))
