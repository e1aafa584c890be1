"""The protocol's conformance suite against `exeora serve`, for both eras (conformance.yml says what not)."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from conftest import sealed_environment
from support import node_clients as tools
from support.repositories import RepositoryMaker

HERE = Path(__file__).parent
TOP = HERE.parents[1]

SUITE = tools.find_program("@modelcontextprotocol/conformance", "dist/index.js")
EXPECTED = yaml.safe_load((HERE / "conformance.yml").read_text())
SKIPPED = {*EXPECTED["fixtures"], *EXPECTED["not_offered"]}

pytestmark = pytest.mark.skipif(SUITE is None, reason=tools.HOW)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """`exeora serve` as a person starts it; gives what it says when it is ready."""
    home = tmp_path_factory.mktemp("served")
    environment = sealed_environment(home) | {"PYTHONPATH": f"{TOP}{os.pathsep}{TOP / 'cli'}"}
    (home / ".gitconfig").write_text("[user]\n\tname = Ada Test\n\temail = ada@example.invalid\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        top = RepositoryMaker(home / "repositories")("alpha")
    command = [sys.executable, "-m", "exeora_cli.main", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=top, env=environment, stdout=subprocess.PIPE, text=True) as process:
        ready = json.loads(process.stdout.readline())
        assert ready["event"] == "ready"
        yield ready
        process.send_signal(signal.SIGTERM)


@contextmanager
def with_token(ready):
    """A way to the server that adds the token: the suite cannot send one. Gives its port."""
    port, secret = ready["url"].rpartition(":")[2], ready["token"]["secret"]
    program = [str(tools.find_node()), str(tools.FOLDER / "with_token.mjs"), port, secret]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            yield int(proxy.stdout.readline())
        finally:
            proxy.kill()


def run_suite(port, version, results):
    url = f"http://127.0.0.1:{port}/mcp"
    command = [*SUITE, "server", "--url", url, "--spec-version", version, "--suite", "all", "-o", str(results)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert "SUMMARY" in done.stdout, done.stderr


def failures(results):
    """Each scenario's checks that failed."""
    found = {}
    for file in results.glob("*/checks.json"):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", file.parent.name.removeprefix("server-"))
        checks = json.loads(file.read_text())
        found[scenario] = {c["id"]: c.get("errorMessage") for c in checks if c["status"] == "FAILURE"}
    return found


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_every_scenario_that_can_be_tried_passes(served, version, tmp_path):
    with with_token(served) as port:
        run_suite(port, version, tmp_path)
    found = failures(tmp_path)
    assert len(found) >= 25
    unexpected = {
        (scenario, check): message
        for scenario, failed in found.items()
        if scenario not in SKIPPED
        for check, message in failed.items()
        if check not in EXPECTED["checks"]
    }
    assert not unexpected
    assert not {s for s in SKIPPED & set(found) if not found[s]}, "what is skipped for a reason passes now"
