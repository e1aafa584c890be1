"""What gateways have here lives as long as they are heard."""

from exeora_ws.fleet.tenancy import Tenants


def test_a_session_has_one_name_until_it_ends():
    tenants = Tenants()
    name = tenants.name_session("g", "s", 0)
    assert tenants.name_session("g", "s", 1) == name
    assert tenants.name_session("h", "s", 1) != name
    assert tenants.end_session("g", "s") == [name]
    assert tenants.end_session("g", "s") == []
    assert tenants.name_session("g", "s", 2) != name


def test_a_silent_gateway_loses_its_sessions_and_no_other_does():
    tenants = Tenants()
    silent, heard = tenants.name_session("g", "s", 0), tenants.name_session("h", "s", 0)
    tenants.hear("h", 10)
    assert tenants.end_silent(15, 0) == {}
    assert tenants.end_silent(15.1, 0) == {"g": [silent]}
    tenants.hear("g", 16)
    assert tenants.end_silent(26, 0) == {"h": [heard]}


def test_silence_counts_only_while_anybody_could_be_heard():
    tenants = Tenants()
    name = tenants.name_session("g", "s", 0)
    assert tenants.end_silent(100, connected_since=90) == {}
    assert tenants.end_silent(106, connected_since=90) == {"g": [name]}


def test_everything_ends_at_the_end():
    tenants = Tenants()
    names = {tenants.name_session(g, s, 0) for g in "ab" for s in "xy"}
    assert set(tenants.end_all()) == names
    assert tenants.end_all() == []
