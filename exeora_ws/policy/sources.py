"""Where policies stand on disk, read once and again whenever they may have changed."""

import errno
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exeora_ws.policy.layer import Layer, parse_policy_file, parse_user_policy
from exeora_ws.policy.rules import OPEN, Origin, Policy, closed_policy, narrow_all
from exeora_ws.storage import FileSignature, is_settled, sign_file

POLICY_FILE = "exeora.toml"
POLICY_BYTES = 262_144
"""Largest `exeora.toml` that is read, in bytes."""

_OPEN_LAYER = Layer(OPEN)


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """What all layers come to, and what their authors should be told."""

    policy: Policy
    warnings: tuple[str, ...]


_OPEN_POLICY = LoadedPolicy(OPEN, ())


class PolicyBook:
    """The policies of all projects, as they are on disk now. Thread-safe; two `stat` a call while nothing changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._layers: dict[tuple[str, Origin], tuple[FileSignature, Layer]] = {}

    def load_policy(self, project_root: Path, workspace_root: Path, user_policy: Any) -> LoadedPolicy:
        """Narrow the user's policy, the project root's file and the workspace's own copy into one.

        Args:
            project_root: where the project's `exeora.toml` stands.
            workspace_root: where the call acts; the project root itself for main.
            user_policy: the project's entry in `config.json`.
        """
        layers = [_OPEN_LAYER if user_policy == {} else parse_user_policy(user_policy)]
        layers.append(self._load(project_root, Origin.PROJECT))
        if workspace_root != project_root:
            layers.append(self._load(workspace_root, Origin.WORKSPACE))
        if all(layer is _OPEN_LAYER for layer in layers):
            return _OPEN_POLICY
        policy = narrow_all(layer.policy for layer in layers)
        return LoadedPolicy(policy, tuple(warning for layer in layers for warning in layer.warnings))

    def _load(self, folder: Path, origin: Origin) -> Layer:
        path = f"{folder}/{POLICY_FILE}"
        try:
            signature = sign_file(path, follow=False)
        except OSError:  # a missing one shows its coming at once; its folder may be gone instead, so that is looked at
            return load_layer(folder, origin)
        key = (path, origin)
        with self._lock:
            known = self._layers.get(key)
        if known is not None and known[0] == signature and is_settled(signature):
            return known[1]
        layer = load_layer(folder, origin)
        with self._lock:
            self._layers[key] = (signature, layer)
        return layer


def load_layer(folder: Path, origin: Origin) -> Layer:
    """Read one `exeora.toml`. A missing one is open; one that cannot be read closes the project to read only."""
    try:
        text = _read_policy_text(folder)
    except FileNotFoundError:
        return _OPEN_LAYER
    except _Unreadable as error:
        return Layer(closed_policy(f"{origin}: {error}", origin))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        return Layer(closed_policy(f"{origin}, line {line}: not UTF-8", origin))
    except OSError as error:
        why = "it is a symbolic link" if error.errno in (errno.ELOOP, errno.EMLINK) else os.strerror(error.errno or 0)
        return Layer(closed_policy(f"{origin} cannot be read: {why}", origin))
    return parse_policy_file(text, origin)


class _Unreadable(Exception):
    """The file is there and is not what a policy is read from."""


def _read_policy_text(folder: Path) -> str:
    """Read the file by descriptor, following no link at its name; a folder that is gone is not a missing file."""
    try:
        inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _Unreadable(f"the folder it stands in cannot be opened: {os.strerror(error.errno or 0)}") from error
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(POLICY_FILE, flags, dir_fd=inside)
    finally:
        os.close(inside)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _Unreadable("it is not a regular file")
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(POLICY_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > POLICY_BYTES:
        raise _Unreadable(f"it is larger than {POLICY_BYTES} bytes")
    return data.decode("utf-8-sig")


PolicySource = Callable[[], Policy]
"""Gives a project's policy as it is at this moment."""
