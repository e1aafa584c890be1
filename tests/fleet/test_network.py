"""A machine behind a network of its own (a network namespace), and the network cut."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from exeora_ws.app import open_app
from exeora_ws.fleet.buckets import ensure_buckets
from exeora_ws.fleet.credentials import Keys, store_credential
from exeora_ws.fleet.server import start_server
from exeora_ws.fleet.server_config import ServerOptions

from support.commandline import COMMAND, child_environment
from support.fleet import Connect, make_credential, operating
from support.processes import all_gone, eventually


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Namespace:
    """A network namespace with one cable to this one."""

    def __init__(self) -> None:
        tag = f"{os.getpid() % 100_000:05d}"
        self.name, self.here, self.there = f"exeora{tag}", f"exh{tag}", f"ext{tag}"
        block = os.getpid() % 250
        self.near, self.far = f"10.213.{block}.1", f"10.213.{block}.2"

    def make(self) -> None:
        ip("netns", "add", self.name)
        ip("link", "add", self.here, "type", "veth", "peer", "name", self.there, "netns", self.name)
        ip("addr", "add", f"{self.near}/30", "dev", self.here)
        ip("link", "set", self.here, "up")
        ip("-n", self.name, "addr", "add", f"{self.far}/30", "dev", self.there)
        ip("-n", self.name, "link", "set", self.there, "up")

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", self.here], check=False, capture_output=True)


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    made = Namespace()
    try:
        made.make()
    except (OSError, subprocess.CalledProcessError) as error:
        made.remove()
        pytest.skip(f"no network namespaces for this user: {error}")
    yield made
    made.remove()


def test_a_network_that_is_cut_and_mended(namespace: Namespace, tmp_path: Path, keys: Keys, sealed, make_repository):
    project = open_app().inventory.register_project(make_repository("app"), exact=False)[0]
    runs = project.root / "runs"
    options = ServerOptions(tmp_path / "nats", host=namespace.near)
    with closing(start_server(keys, options)) as server, operating(keys, (server.url,)) as hand:
        ensure_buckets(hand.state)
        credential = make_credential(hand)
        machine = credential.identity
        store_credential(tmp_path / "machine.exeora", credential)
        inside = [
            "ip",
            "netns",
            "exec",
            namespace.name,
            *COMMAND,
            "connect",
            "--json",
            "--credential",
            "machine.exeora",
        ]
        process = subprocess.Popen(
            inside, cwd=tmp_path, env=child_environment(sealed), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        running = Connect(process)
        try:
            running.wait("connected")
            hand.live()
            kept = hand.call(machine, project.id, "start_command", {"command": "sleep 300"}).done()["structured"]["pid"]
            heard = hand.call(machine, project.id, "run_command", {"command": "echo begun >> runs; sleep 60"})
            assert eventually(runs.exists)
            ip("link", "set", namespace.here, "down")
            began = time.monotonic()
            late = hand.call(
                machine, project.id, "run_command", {"command": "echo late >> runs"}, start_by=hand.now() + 1_000
            )
            running.wait("lost")
            assert time.monotonic() - began < 10
            ip("link", "set", namespace.here, "up")
            running.wait("back", 30)
            again = hand.call(machine, project.id, "run_command", {"command": "echo after >> runs"})
            assert again.done()["structured"]["exitCode"] == 0
            assert late.said == []
            assert "structured" not in (heard.said or [{}])[-1]
            assert not all_gone([kept])
            assert runs.read_text().split() == ["begun", "after"]
            code, _, _ = running.end()
            assert code == 0
            assert all_gone([kept])
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()
