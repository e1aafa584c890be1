"""Where things are stored, and what the user has set (contract, section 12).

The only I/O here is reading and writing `config.json`.
"""

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from exeora_ws.errors import InvalidArguments, ToolFailed
from exeora_ws.limits import TOOL_NAME_CHARACTERS, TRASH_MEGABYTES
from exeora_ws.storage import FileSignature, is_settled, make_private_folder, replace_file, sign_file

APP = "exeora"
_ROOT_HINT = "exeora config set worktree-root PATH"


@dataclass(frozen=True, slots=True)
class Places:
    """The folders and files of one user. All absolute; none need exist yet."""

    config_file: Path
    data: Path
    runtime: Path

    @property
    def mcp_file(self) -> Path:
        """The upstream servers, beside `config.json`."""
        return self.config_file.with_name("mcp.json")

    @property
    def database(self) -> Path:
        """Registry, audit and live processes."""
        return self.data / "exeora.db"

    @property
    def inventory(self) -> Path:
        """The plain-text copy of the registry that the hot commands read."""
        return self.data / "inventory.txt"

    @property
    def locks(self) -> Path:
        """Lock files, never deleted."""
        return self.data / "locks"

    @property
    def snapshots(self) -> Path:
        """What files held before a session first wrote them."""
        return self.data / "snapshots"

    @property
    def patches(self) -> Path:
        """Journals of patches under way."""
        return self.data / "patches"

    @property
    def log(self) -> Path:
        """Where a bug leaves its traceback."""
        return self.data / "exeora.log"

    @property
    def default_managed_root(self) -> Path:
        """Where created workspaces live unless configured otherwise."""
        return self.data / "workspaces"


def find_places(environ: Mapping[str, str] | None = None) -> Places:
    """Work out the places from `EXEORA_CONFIG_PATH`, `EXEORA_DATA_DIR` and the platform's own rules."""
    env = os.environ if environ is None else environ
    config = env.get("EXEORA_CONFIG_PATH")
    data = env.get("EXEORA_DATA_DIR")
    return Places(
        config_file=_absolute(config) if config else platformdirs.user_config_path(APP) / "config.json",
        data=_absolute(data) if data else platformdirs.user_data_path(APP),
        runtime=_absolute(data) / "run"
        if data
        else _find_runtime_folder(env) or platformdirs.user_data_path(APP) / "run",
    )


def _find_runtime_folder(environ: Mapping[str, str]) -> Path | None:
    """Give ours in `XDG_RUNTIME_DIR`, if that is a folder of this user alone.

    Over ssh, in cron and in containers there often is none: no reason to warn, nor to put a socket into `/tmp`.
    """
    chosen = environ.get("XDG_RUNTIME_DIR", "")
    try:
        found = os.lstat(chosen) if os.path.isabs(chosen) else None
    except OSError:
        return None
    alone = found is not None and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return Path(chosen) / APP if alone and found is not None and stat.S_ISDIR(found.st_mode) else None


def _absolute(text: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(text)))


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its dotted name in `config.json` and how it reads on the command line."""

    name: str
    typed: str
    kind: type
    meaning: str


KEYS: tuple[Key, ...] = (
    Key("worktreeRoot", "worktree-root", str, "the managed root: where created workspaces live"),
    Key("mcp.nameBudget", "mcp.name-budget", int, "longest published name of an upstream tool, in characters"),
    Key(
        "trash.megabytes", "trash-megabytes", int, "how much removed workspaces may take before the oldest are deleted"
    ),
    Key(
        "toolsMayEditPolicy",
        "tools-may-edit-policy",
        bool,
        "let tools write exeora.toml, which holds a project's policy",
    ),
    Key(
        "sandbox.protectedPaths",
        "sandbox-protected-paths",
        list,
        "folders, by commas, that the tools of toolset sandbox do not write under",
    ),
    Key(
        "sandbox.denylist",
        "sandbox-denylist",
        list,
        "commands, by commas, that project_exec of toolset sandbox refuses",
    ),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What `config.json` says, as read; absent keys take their defaults here."""

    document: Mapping[str, Any]

    def managed_root(self, places: Places, environ: Mapping[str, str] | None = None) -> Path:
        """Give the managed root: `EXEORA_WORKTREE_ROOT`, else `worktreeRoot`, else `workspaces/` in the data folder.

        Raises:
            ToolFailed: reason `config_invalid`; one that depended on the current directory would be many.
        """
        env = os.environ if environ is None else environ
        chosen = env.get("EXEORA_WORKTREE_ROOT") or self.document.get("worktreeRoot")
        if not chosen:
            return places.default_managed_root
        if not isinstance(chosen, str) or "\0" in chosen:
            raise ToolFailed("config.json: worktreeRoot is not a path", reason="config_invalid", hint=_ROOT_HINT)
        if not env.get("EXEORA_WORKTREE_ROOT") and not os.path.isabs(os.path.expanduser(chosen)):
            raise ToolFailed("config.json: worktreeRoot must be absolute", reason="config_invalid", hint=_ROOT_HINT)
        return _absolute(chosen)

    @property
    def trash_bytes(self) -> int:
        """How much disk removed workspaces may take together before the oldest are deleted for good."""
        trash = self.document.get("trash", {})
        chosen = trash.get("megabytes") if isinstance(trash, dict) else None
        return (chosen if isinstance(chosen, int) and chosen > 0 else TRASH_MEGABYTES) * 1_000_000

    @property
    def name_budget(self) -> int:
        """Longest published name of an upstream tool, in characters."""
        mcp = self.document.get("mcp", {})
        budget = mcp.get("nameBudget") if isinstance(mcp, dict) else None
        return budget if isinstance(budget, int) and budget > 1 else TOOL_NAME_CHARACTERS

    @property
    def tools_may_edit_policy(self) -> bool:
        """Whether a tool may write `exeora.toml`."""
        return bool(self.document.get("toolsMayEditPolicy", False))

    @property
    def sandbox_protected_paths(self) -> tuple[str, ...] | None:
        """Folders that the sandbox toolset does not write under; None where nothing is set."""
        return self._find_texts("sandbox", "protectedPaths")

    @property
    def sandbox_denylist(self) -> tuple[str, ...] | None:
        """Commands that the sandbox toolset refuses; None where nothing is set."""
        return self._find_texts("sandbox", "denylist")

    def _find_texts(self, group: str, name: str) -> tuple[str, ...] | None:
        """Give a list of texts.

        Raises:
            ToolFailed: reason `config_invalid`, for anything else: what protects does not fall back to less.
        """
        values = self.document.get(group, {})
        found = values.get(name) if isinstance(values, dict) else values
        if found is None:
            return None
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            raise ToolFailed(f"config.json: {group}.{name} is not a list of texts", reason="config_invalid")
        return tuple(found)

    def project_policy(self, slug: str) -> Any:
        """Give the user's own policy for a project, by slug, as it stands; empty when there is none.

        One of the wrong type is given as it is: whoever reads it closes the project, where empty would open it.
        """
        policies = self.document.get("policies", {})
        return policies.get(slug, {}) if isinstance(policies, dict) else policies


class SettingsFile:
    """`config.json`, read once and again whenever it may have changed. Thread-safe.

    Args:
        places: where it is.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._known: tuple[FileSignature, Settings] | None = None

    def load(self) -> Settings:
        """Give what it says now; see `load_settings`."""
        try:
            signature = sign_file(self._places.config_file)
        except FileNotFoundError:
            return _NOTHING_SET
        except OSError:  # whatever is wrong, reading it says so
            return load_settings(self._places)
        known = self._known
        if known is not None and known[0] == signature and is_settled(signature):
            return known[1]
        settings = load_settings(self._places)
        self._known = (signature, settings)
        return settings


_NOTHING_SET = Settings({})


def load_settings(places: Places) -> Settings:
    """Read `config.json`; a missing file is an empty one.

    Raises:
        ToolFailed: reason `config_invalid`, naming the line, when it is not a JSON object.
    """
    try:
        text = places.config_file.read_text("utf-8")
    except FileNotFoundError:
        return Settings({})
    except (OSError, UnicodeDecodeError) as error:
        raise ToolFailed(f"config.json cannot be read: {error.__class__.__name__}", reason="config_invalid") from error
    try:
        document = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise ToolFailed(f"config.json, line {line}: not valid JSON", reason="config_invalid") from error
    if not isinstance(document, dict):
        raise ToolFailed("config.json, line 1: expected an object", reason="config_invalid")
    return Settings(document)


def find_key(typed: str) -> Key:
    """Find a setting by its dotted name or by its name on the command line.

    Raises:
        InvalidArguments: there is no such setting; the hint lists them.
    """
    for key in KEYS:
        if typed in (key.name, key.typed):
            return key
    raise InvalidArguments(
        f"there is no setting {typed!r}",
        reason="unknown_setting",
        hint="settings: " + ", ".join(k.typed for k in KEYS),
    )


def parse_value(key: Key, text: str) -> str | int | bool | list[str]:
    """Read a setting's value as typed.

    Raises:
        InvalidArguments: not of the setting's type.
    """
    if key.kind is bool:
        if text.lower() in ("true", "yes", "on", "1"):
            return True
        if text.lower() in ("false", "no", "off", "0"):
            return False
        raise InvalidArguments(f"{key.typed}: expected true or false", reason="invalid_setting")
    if key.kind is int:
        if text.isdecimal() and int(text) > 0:
            return int(text)
        raise InvalidArguments(f"{key.typed}: expected a positive number", reason="invalid_setting")
    if key.kind is list:
        return [part.strip() for part in text.split(",") if part.strip()]
    if key.name == "worktreeRoot":
        return str(_absolute(text))
    return text


def get_value(settings: Settings, key: Key) -> Any:
    """Give what is set for a key, or None."""
    found: Any = settings.document
    for part in key.name.split("."):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    return found


def store_value(places: Places, key: Key, value: str | int | bool | list[str] | None) -> None:
    """Set a key in `config.json`, or take it out with None; every other key stays.

    Raises:
        ToolFailed: reason `config_invalid`, when the present file cannot be read or has something else there: it is
            not overwritten.
    """
    document: dict[str, Any] = json.loads(json.dumps(load_settings(places).document))
    *parents, last = key.name.split(".")
    folder = document
    for part in parents:
        folder = folder.setdefault(part, {})
        if not isinstance(folder, dict):
            raise ToolFailed(f"config.json: {part} is not an object", reason="config_invalid", hint="correct it there")
    if value is None:
        folder.pop(last, None)
    else:
        folder[last] = value
    make_private_folder(places.config_file.parent)
    replace_file(places.config_file, (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
