"""A root to act in, and the reach over it."""

from pathlib import Path

import pytest
from exeora_ws.files.reach import Reach


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
