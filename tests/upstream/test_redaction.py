"""A value that came out of the environment is read by nobody (case 45)."""

import logging

import pytest
from exeora_ws.errors import ToolFailed
from exeora_ws.upstream.redaction import MARK, Redactor
from hypothesis import given
from hypothesis import strategies as st

from support.upstream_world import World, call, program, text_of

SECRET = 'tok/en+"ü"=1234'


@pytest.mark.parametrize("how", ["env", "args"])
def test_a_token_that_a_server_prints_everywhere_is_seen_nowhere(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: str
):
    monkeypatch.setenv("TOKEN", SECRET)
    caplog.set_level(logging.DEBUG)
    # Its children get the user's environment anyway; what may be known is what the configuration names.
    entry = program(
        "leaky", "${TOKEN}" if how == "args" else "x", env={"TOKEN": "${TOKEN}", "LITERAL": "literal-value"}
    )
    upstreams, project = world.serve({"s": entry, "early": program("leaky", "early", env={"TOKEN": "${TOKEN}"})})
    told: list[str] = [repr(upstreams.status(project.id)), repr(upstreams.tools(project.id)), repr(world.reports)]
    told.append(repr(upstreams.warnings(project.id)))
    for tool in ("error", "die"):
        with pytest.raises(ToolFailed) as caught:
            call(upstreams, project, f"mcp__s__{tool}")
        told.append(repr(caught.value.to_dict()))
        assert MARK in told[-1]
        assert "literal-value" not in told[-1]
    result = call(upstreams, project, "mcp__s__is_error")
    assert result["isError"] is True
    told.append(repr(result))
    told.append(caplog.text)
    for text in told:
        assert SECRET not in text
        assert repr(SECRET)[1:-1] not in text
    assert sorted(t.tool for t in upstreams.tools(project.id)) == ["die", "error", "is_error", "show"]
    assert any("named" not in w and "must not be shown" in w for w in upstreams.warnings(project.id))
    assert SECRET in text_of(call(upstreams, project, "mcp__s__show"))


@given(
    st.text(min_size=8, max_size=40).filter(lambda s: s.strip() == s and len(s.splitlines()) == 1), st.text(), st.text()
)
def test_scrubbing_leaves_nothing_of_a_value(secret: str, before: str, after: str):
    redactor = Redactor([secret])
    scrubbed = redactor.scrub(f"{before}{secret}{after}")
    assert secret not in scrubbed or secret in MARK + after + before + MARK


def test_forms_that_programs_print():
    redactor = Redactor(['a b/ü"\n-second-line-of-key'])
    for text in ('a b/ü"', "-second-line-of-key", "a%20b%2F%C3%BC%22%0A-second-line-of-key"):
        assert MARK in redactor.scrub(f"x {text} y") or "second" not in text
    assert "second" not in redactor.scrub("key: -second-line-of-key")
    assert "aHVudGVyMjI" not in Redactor(["hunter22"]).scrub("Basic aHVudGVyMjI=")


def test_values_keep_their_identity_when_nothing_is_found():
    value = {"a": ["b", {"c": None}], "n": 1.5}
    assert Redactor(["secret-x"]).scrub_value(value) is value
    changed = Redactor(["secret-x"]).scrub_value({"k-secret-x": ["secret-x", 1]})
    assert changed == {f"k-{MARK}": [MARK, 1]}


def test_a_tail_cut_inside_a_value():
    redactor = Redactor(["hunter22-long-secret"])
    assert redactor.scrub_tail(b"long-secret\nrest", limit=16) == "rest"
    assert "secret" not in redactor.scrub_tail(b"long-secret and so on without end", limit=10)
    assert redactor.scrub_tail(b"whole hunter22-long-secret", limit=100) == f"whole {MARK}"


def test_short_values_are_no_secrets():
    assert Redactor(["1", "yes", ""]).scrub("1 yes") == "1 yes"
