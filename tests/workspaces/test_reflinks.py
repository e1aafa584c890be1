"""Copies into a new workspace share their blocks where the file system can: tried on real ones, in an image."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from exeora_ws.workspaces.copying import Copied, Copier

MAKERS = {
    "btrfs": (("mkfs.btrfs", "-q"), 130),
    "xfs": (("mkfs.xfs", "-q", "-m", "reflink=1"), 340),
}
"""How to make each, and how many megabytes it wants at least (the image is sparse)."""
SIZE = 32_000_000


def can_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None and os.path.exists("/dev/loop-control")


@pytest.fixture(params=MAKERS)
def cloning(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system that can clone."""
    (maker, *options), megabytes = MAKERS[request.param]
    found = shutil.which(maker, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{maker} is not installed")
    if not can_mount():
        pytest.skip("only root can mount an image")
    image, folder = tmp_path / "image", tmp_path / "mounted"
    with image.open("wb") as stream:
        stream.truncate(megabytes * 1_000_000)
    folder.mkdir()
    subprocess.run([found, *options, str(image)], check=True, capture_output=True)
    mounted = subprocess.run(
        ["mount", "-o", "loop", str(image), str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"images cannot be mounted here: {mounted.stderr.strip()[:100]}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def used(folder: Path) -> int:
    os.sync()
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def test_a_copy_takes_no_room_and_is_one_of_its_own(cloning: Path):
    source, target = cloning / "source", cloning / "target"
    for folder in (source / "deep", target):
        folder.mkdir(parents=True)
    (source / "deep/large").write_bytes(os.urandom(SIZE))
    (source / "deep/large").chmod(0o640)
    (source / "small").write_text("a few bytes")
    before, copied = used(cloning), Copied()
    copier = Copier(source, target, copied)
    copier.copy("deep/")
    copier.copy("small")
    assert (copied.files, copied.cloned, copied.skipped) == (2, 2, [])
    assert used(cloning) - before < SIZE / 4
    assert (target / "deep/large").read_bytes() == (source / "deep/large").read_bytes()
    assert (target / "deep/large").stat().st_mode & 0o777 == 0o640
    with (target / "deep/large").open("r+b") as stream:
        stream.write(b"changed")
    assert (source / "deep/large").read_bytes()[:7] != b"changed"


def test_to_another_file_system_the_bytes_are_copied(cloning: Path, tmp_path: Path):
    (cloning / "source").mkdir()
    (cloning / "source/file").write_bytes(b"x" * 100_000)
    (tmp_path / "target").mkdir()
    copied = Copied()
    Copier(cloning / "source", tmp_path / "target", copied).copy("file")
    assert (copied.files, copied.cloned) == (1, 0)
    assert (tmp_path / "target/file").read_bytes() == b"x" * 100_000
