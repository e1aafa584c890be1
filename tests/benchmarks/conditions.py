"""Under which conditions a run was made: the machine, the file system, the versions, and how busy it was."""

import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.bench import read_version
from benchmarks.inputs import PACKAGE

_PROGRAMS = {"git": ("git", "--version"), "ripgrep": ("rg", "--version"), "node": ("node", "--version")}
_PACKAGES = ("mcp", "typer", "pygit2")


def describe_machine(folder: Path) -> dict[str, str]:
    """Describe where and with what, as rows of a table."""
    return {
        "processor": f"{_read_processor()}, {len(os.sched_getaffinity(0))} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": find_file_system(folder),
        "load at the start": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "Python": platform.python_version(),
        **{name: read_version(argv) for name, argv in _PROGRAMS.items()},
        **{name: _read_package(name) for name in _PACKAGES},
        "source package": " ".join(PACKAGE),
    }


def _read_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _read_package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def find_file_system(folder: Path) -> str:
    """Name the kind of file system that a folder is on, with how it is mounted where that matters."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return sys.platform
    around = [mount for mount in mounts if folder.is_relative_to(mount[1])]
    if not around:
        return "unknown"
    device, _, kind, options, *_ = max(around, key=lambda mount: len(mount[1]))
    journal = ", without a journal" if kind == "ext4" and not _has_journal(device) else ""
    data = [option for option in options.split(",") if option.startswith("data=")]
    return f"{kind}{journal}{''.join(f', {each}' for each in data)}"


def _has_journal(device: str) -> bool:
    name = os.path.basename(os.path.realpath(device))
    return any(Path("/proc/fs/jbd2").glob(f"{name}-*"))


def show_conditions(conditions: Mapping[str, str]) -> list[str]:
    """Give them as lines of a table."""
    return ["| what | |", "|---|---|", *(f"| {name} | {value} |" for name, value in conditions.items())]
