"""The lexer against real shells: whatever a shell really starts, the reader has listed, or refused to say.

The shells run in an empty folder with a PATH that holds only stubs. A stub writes its name to a log and does nothing.
"""

import itertools
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from exeora_ws.policy.commands import judge_command
from exeora_ws.policy.layer import parse_layer
from exeora_ws.policy.rules import Origin
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

_numbers = itertools.count()
SHELLS = [path for name in ("dash", "bash") if (path := shutil.which(name))]
NAMES = ("sudo", "one", "two")
DENY = parse_layer({"deny": ["sudo"], "shell": True}, Origin.PROJECT, str).policy
ALLOW = parse_layer(
    {"mode": "allow_list", "allow": ["one", "two", "read", "set", ":", "[", "test", "echo", "true"], "shell": True},
    Origin.PROJECT,
    str,
).policy

PIECES = [
    "sudo",
    "su",
    "do",
    "one",
    "two",
    "x",
    "A=1",
    "A=sudo",
    "$A",
    "${A}",
    "${A:-sudo}",
    "${B:=sudo}",
    '"$A"',
    "E",
    " ",
    " ",
    " ",
    "\n",
    "\n",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "(",
    ")",
    "{ ",
    " }",
    "$(",
    "`",
    '"',
    "'",
    "\\",
    "\\\n",
    "#",
    " # ",
    "<<E\n",
    "<<'E'\n",
    "<<-E\n",
    "\nE\n",
    "\tE\n",
    "> f",
    "2>&1",
    "< /dev/null",
    "<(",
    ">(",
    "$((",
    "))",
    "((",
    "if ",
    "; then ",
    "; fi",
    "while ",
    "; do ",
    "; done",
    "for A in ",
    "case A in ",
    " A) ",
    ";; esac",
    "!",
    "f() { ",
    "f",
    "eval ",
    "exec ",
    "command ",
    "trap ",
    " EXIT",
    "$'",
    '$"',
    "[ ",
    " ]",
    "[[ ",
    " ]]",
    "=",
    "*",
    "?",
    "~",
    "{",
    ",",
    "}",
    "\t",
    "\r",
    "\x0b",
    "$",
    "1",
    "-",
    "--",
    "|&",
    "&>",
    ";;",
    "read A",
    "set -- sudo; ",
    '"$@"',
    "$1",
    "alias one=sudo\n",
    "<<<",
    "é",
    "\xa0",
    "coproc ",
    "function f { ",
    "time ",
    "sudo)",
    "echo sudo",
    "${A#",
    "${A@P}",
    "$[",
    "A+=",
    "A[0]=",
    "until ",
    "select A in sudo; do ",
    "let ",
    "[ -v 'A[$(sudo)]' ]",
    "\\$(",
    "<<\\E\n",
    "'\\''",
    "A=( ",
    "elif ",
    "else ",
]


@pytest.fixture(scope="module")
def cage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stubs and an empty working folder."""
    folder = tmp_path_factory.mktemp("cage")
    (folder / "bin").mkdir()
    (folder / "work").mkdir()
    for name in NAMES:
        stub = folder / "bin" / name
        stub.write_text(f'#!/bin/sh\necho {name} >> "$EXEORA_LOG"\n')
        stub.chmod(0o755)
    return folder


def run_for_real(shell: str, cage: Path, text: str) -> set[str]:
    """Give the stubs that the shell really started, in the background too: the pipe ends when the last one has."""
    log = cage / f"log-{next(_numbers)}"
    child = subprocess.Popen(
        [shell, "-c", text],
        cwd=cage / "work",
        env={"PATH": str(cage / "bin"), "EXEORA_LOG": str(log)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        child.communicate(timeout=1)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
    for left in (cage / "work").iterdir():
        left.unlink()
    return set(log.read_text().split()) if log.exists() else set()


@pytest.mark.skipif(not SHELLS, reason="no shell to compare with")
@settings(max_examples=700, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join).filter(lambda t: "\0" not in t))
@example(text="cat <<E\nfoo \\\nE\ncat <<'F'\nE\nsudo\nF\n")
@example(text="one <<E; two <<F\nF\nE\nF\nsudo")
@example(text="one \\\n sudo; su\\\ndo")
@example(text="A+=1 sudo")
@example(text="one x\n\\sudo")
@example(text="one &>f sudo")
@example(text="one \\\n#c \\\n\\\n sudo")
def test_a_command_that_passes_starts_nothing_that_it_should_not(cage: Path, text: str):
    denies = judge_command(DENY, text).reason is None
    allows = judge_command(ALLOW, text).reason is None
    if not (denies or allows):
        return
    for shell in SHELLS:
        started = run_for_real(shell, cage, text)
        assert "sudo" not in started, f"{shell} ran sudo (deny: {denies}, allow: {allows})"
