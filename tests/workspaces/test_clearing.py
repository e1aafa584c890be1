"""A large folder is deleted by several processes; nothing outside it is."""

import os
from pathlib import Path

import pytest
from exeora_ws.workspaces.clearing import clear_tree


@pytest.mark.parametrize("folders", [3, 250])
def test_everything_goes_and_nothing_else(tmp_path: Path, folders: int):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    tree = tmp_path / "tree"
    for number in range(folders):
        folder = tree / f"{number % 7}" / f"{number}"
        folder.mkdir(parents=True)
        (folder / "file").write_text("x")
        (folder / "other\n").write_text("x")
        (folder / "link").symlink_to(outside)
        (folder / "file-link").symlink_to(outside / "kept")
    os.mkfifo(tree / "0" / "fifo")
    (tree / "1" / "closed").mkdir()
    (tree / "1" / "closed" / "file").write_text("x")
    (tree / "1" / "closed").chmod(0o500)
    clear_tree(tree)
    assert not tree.exists()
    assert (outside / "kept").read_text() == "kept"


def test_what_is_not_there_is_no_error(tmp_path: Path):
    clear_tree(tmp_path / "nowhere")
