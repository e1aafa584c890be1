"""The transcripts in fixtures/ are what really happens: each line after `$` is run, and what follows is compared.

Commits, times, ages, ids, ports and places stand as `COMMIT`, `TIME`, `AGE`, `ID`, `PORT`, `REPOSITORY`, `WORKSPACES`.
To write one anew: put the commands in, and run with `EXEORA_WRITE_TRANSCRIPTS=1`.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from support.commandline import TOP
from support.repositories import RepositoryMaker
from support.shells import install

FOLDER = TOP / "fixtures" / "transcripts"
WRITES = "EXEORA_WRITE_TRANSCRIPTS" in os.environ  # read before the environment is sealed
_PATTERNS = (
    (re.compile(r"\b[0-9a-f]{40}\b"), "COMMIT"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{7,10}\b"), "COMMIT"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"), "TIME"),
    (re.compile(r"\bwsp_[a-z0-9]+"), "ID"),
    (re.compile(r"\b\d+ s old"), "AGE old"),
    (re.compile(r"\bweb 2\d{4}"), "web PORT"),
)


@pytest.mark.parametrize("name", sorted(p.name for p in FOLDER.glob("*.txt")))
def test_a_transcript_is_what_happens(
    name: str, make_repository: RepositoryMaker, tmp_path: Path, sealed: dict[str, str]
):
    repository = make_repository("app", commits=2)
    environment = install(tmp_path / "bin", sealed)
    expected = (FOLDER / name).read_text()
    found = replay(expected, repository, environment)
    if WRITES:
        (FOLDER / name).write_text(found)
    assert found == expected


def replay(text: str, repository: Path, environment: dict[str, str]) -> str:
    """Run every command of a transcript; gives the transcript as it happened."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            lines.append(line)
        elif line.startswith("$ "):
            lines += [line, *run(line[2:], repository, environment)]
    return "\n".join(lines) + "\n"


def run(command: str, repository: Path, environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=repository,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    shown = done.stdout.replace(f"{environment['XDG_DATA_HOME']}/exeora/workspaces", "WORKSPACES")
    shown = shown.replace(str(repository), "REPOSITORY")
    for pattern, word in _PATTERNS:
        shown = pattern.sub(word, shown)
    return shown.splitlines() + ([f"[{done.returncode}]"] if done.returncode else [])
