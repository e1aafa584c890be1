"""What a caller is told when the server that was to keep the record dies, and is back before anybody looks."""

import pytest
from exeora_ws.errors import ExecutorOffline, ExeoraError
from exeora_ws.fleet.audit import FleetAudit
from exeora_ws.policy.audit import CallFacts

from support.gateway import Fleet, eventually

FACTS = CallFacts("client", "http", "app", "main", "read_file")


def test_a_connection_that_is_there_again_does_not_make_it_the_stores_fault(tmp_path, monkeypatch):
    fleet = Fleet(tmp_path)
    try:
        with fleet.connected() as (lines, _):
            line, run = lines.state, lines.state.run

            def die_meanwhile(work, seconds):
                fleet.kill_server()
                try:
                    return run(work, seconds)
                except ExeoraError:
                    fleet.start_server()
                    eventually(lambda: line.connected)
                    raise

            audit = FleetAudit(line, "gtw_test")
            audit.begin(FACTS)
            monkeypatch.setattr(line, "run", die_meanwhile)
            with pytest.raises(ExecutorOffline) as raised:
                audit.begin(FACTS)
            assert raised.value.reason == "fleet_unreachable"
    finally:
        fleet.close()
