"""`exeora gateway --embedded`, as one person uses it: one command, and nothing left of it afterwards."""

import json
import os
import signal
import subprocess

import pytest

from support.commandline import COMMAND, child_environment
from support.gateway import (
    Gateway,
    Host,
    Machine,
    add_project,
    eventually,
    find_free_port,
    find_result,
    own_environment,
)
from support.processes import all_gone
from support.served import Terminal

OWN = ("--embedded", "--nats-port", "0")


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path / "hub")


def read_server(host):
    """The process id of the gateway's own nats-server."""
    return json.loads((host.places.data / "fleet" / "nats" / "nats.pid").read_text())["server"][0]


def is_alive(pid):
    return not all_gone([pid])  # one whose parent is gone may wait, ended, for the tests' own process to ask


@pytest.mark.anyio
async def test_one_command_is_enough_and_nothing_is_left_of_it(host, tmp_path):
    gateway = Gateway(host, *OWN)
    try:
        token = gateway.ready["token"]
        assert (token["state"], gateway.ready["machines"]) == ("created", 0)
        assert gateway.ready["nats"][0].startswith("nats://127.0.0.1:")
        laptop = Host(tmp_path / "laptop")
        with own_environment(laptop.environment):
            add_project(laptop, "app")
        added = host.exeora("machine", "add", "laptop", "--json").document
        machine = Machine(laptop, added["credential"])
        async with gateway.connect("2026-07-28", token["secret"]) as client:

            def slugs():
                return [p["slug"] for p in host.exeora("machine", "list", "--json").document["machines"][0]["projects"]]

            assert eventually(slugs) == ["app"]
            done = await client.call_tool("run_command", {"project": "app", "command": "echo hello"})
            assert find_result(done)["stdout"] == "hello\n"
        server = read_server(host)
        assert machine.end() == 0
        assert gateway.end() == 0
        assert not is_alive(server)
    finally:
        gateway.discard()


def test_a_nats_server_that_dies_is_started_again_and_dies_with_its_gateway(host):
    gateway = Gateway(host, *OWN)
    try:
        first = read_server(host)
        os.kill(first, signal.SIGKILL)
        assert "started again" in gateway.wait("warning")["message"]
        second = read_server(host)
        assert second != first
        assert host.exeora("gateway", "token", "list", "--json").document["tokens"][0]["name"] == "first"
        gateway.kill()
        eventually(lambda: not is_alive(second))
    finally:
        gateway.discard()


def test_at_a_terminal_it_says_what_to_do_next_and_ends_by_ctrl_c(host):
    words = ("gateway", *OWN, "--port", str(find_free_port()))
    terminal = Terminal([*COMMAND, *words], host.home, child_environment(host.environment))
    try:
        shown = terminal.read_until("exeora machine add")
        assert "token  exo_" in shown
        assert "exeora gateway token create makes another" in shown
        server = read_server(host)
        assert terminal.end() == 0
        assert not is_alive(server)
    finally:
        terminal.kill()


def test_options_that_do_not_go_together_are_refused(host):
    for words in (("--embedded", "--nats", "nats://127.0.0.1:1"), ("--nats", "nats://127.0.0.1:1", "--nats-port", "5")):
        done = host.exeora("gateway", *words, "--json")
        assert (done.code, done.error["reason"]) == (2, "conflicting_fields")
    assert host.exeora("gateway", "--credential", "nowhere", "--json").error["reason"] == "missing_credential"
    assert host.exeora("gateway", "token", "list", "--json").error["reason"] == "no_fleet"


def test_servers_that_are_not_there_are_said_to_be(host):
    done = host.exeora("gateway", "--nats", f"nats://127.0.0.1:{find_free_port()}", "--json")
    assert (done.code, done.error["reason"]) == (1, "fleet_unreachable")


def test_a_further_gateway_and_servers_of_ones_own_are_given_what_they_need(host):
    config = json.loads(host.exeora("gateway", "nats-config").out)
    assert set(config) == {"operator", "system_account", "resolver_preload"}
    made = host.exeora("gateway", "add", "west", "--url", "nats://10.0.0.5:4222", "--json").document
    assert made["urls"] == ["nats://10.0.0.5:4222"]
    assert made["credential"].startswith("exf_")
    assert host.exeora("gateway", "add", "west", "--url", "http://x", "--json").error["reason"] == "wrong_value"


def test_it_speaks_tls_with_machines_when_it_is_given_a_certificate(host, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]
    subprocess.run([*make, *subject], check=True, capture_output=True)
    gateway = Gateway(host, *OWN, "--nats-certificate", str(certificate), "--nats-key", str(key))
    try:
        (url,) = gateway.ready["nats"]
        assert url.startswith("tls://")
        named = url.replace("127.0.0.1", "localhost")
        words = ("machine", "add", "laptop", "--url", named, "--authority", str(certificate), "--json")
        credential = host.exeora(*words).document["credential"]
        laptop = Host(tmp_path / "laptop")
        machine = Machine(laptop, credential)
        assert machine.end() == 0
        assert gateway.end() == 0
    finally:
        gateway.discard()
