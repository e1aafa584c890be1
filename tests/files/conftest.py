"""A root to act in, and the reach over it."""

import os
from pathlib import Path

import pytest
from exeora_ws.cancellation import Cancellation
from exeora_ws.files.editing import Keeping
from exeora_ws.files.reach import Reach
from exeora_ws.files.ripgrep import Ripgrep, find_ripgrep
from exeora_ws.files.snapshots import Snapshots
from exeora_ws.git.contents import list_contents, list_tracked_ignored
from exeora_ws.git.excludes import find_excludes_file
from exeora_ws.processes.piped import spawn_piped


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """The workspace's root folder, empty."""
    folder = tmp_path / "app"
    folder.mkdir()
    return folder


@pytest.fixture
def reach(top: Path, home: Path) -> Reach:
    """What paths mean in that root."""
    return Reach(top, home)


@pytest.fixture
def keeping(tmp_path: Path) -> Keeping:
    """Locks and snapshots of one session, outside the root."""
    data = tmp_path / "data"
    return Keeping(data / "locks", Snapshots(data / "snapshots"), "session-1", Cancellation())


@pytest.fixture
def ripgrep(sealed: dict[str, str]) -> Ripgrep:
    """The real binary."""
    asking = (find_excludes_file, list_contents, list_tracked_ignored)
    return Ripgrep(find_ripgrep(os.environ), spawn_piped, os.environ, *asking)
