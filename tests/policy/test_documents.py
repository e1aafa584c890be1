"""docs/security.md names what a list cannot promise; these pass, and the document says so of each."""

from pathlib import Path

import pytest
from exeora_ws.policy.commands import judge_command
from exeora_ws.policy.layer import KEYS, parse_layer, parse_policy_file
from exeora_ws.policy.rules import Mode, Origin
from exeora_ws.policy.verdict import REASONS

DOCS = Path(__file__).parents[2] / "docs"
DENY = parse_layer({"deny": ["sudo", "git push", "rm -rf /"], "shell": True}, Origin.PROJECT, str).policy
ALLOW = parse_layer({"allow": ["git"]}, Origin.PROJECT, str).policy


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("python -c 'import os; os.system(\"sudo\")'", "**Interpreters.**"),
        ("perl -e 'exec sudo'", "`perl -e`"),
        ("node -e 1", "`node -e`"),
        ("awk 'BEGIN{system(\"sudo\")}'", "awk"),
        ("make", "`make`"),
        ("npm run x", "`npm run`"),
        ("vim -c '!sudo'", "vim -c"),
        ("sh build.sh", "`sh build.sh`"),
        ("./build.sh", "`./build.sh`"),
        (". ./env.sh", "`. ./env.sh`"),
        ("python", "REPL started and then typed into"),
        ("git push origin", "`git push` in `deny` does not match `git push origin`"),
        ("rm -r -f /", "`rm -r -f /`"),
        ("tar --checkpoint-action=exec=sudo -cf x y", "tar --checkpoint-action"),
        ("rsync -e sudo a b:", "`rsync -e`"),
        ("ssh -o ProxyCommand=sudo x", "ssh -o"),
        ("npx sudo", "`npx`"),
        ("docker run x", "`docker run`"),
        ("rg --pre sudo x", "`rg --pre`"),
        ("man -P sudo ls", "`man -P`"),
        ("cp /usr/bin/sudo x; ./x", "a copy of a denied program"),
        ("echo x > /tmp/y", "a redirection writes any file"),
        ("> f", "a redirection writes any file"),
    ],
)
def test_what_passes_a_deny_list_is_named(command: str, named: str):
    assert judge_command(DENY, command).reason is None
    assert named in " ".join((DOCS / "security.md").read_text().split())


def test_a_file_of_an_allowed_name_passes_and_is_named():
    assert judge_command(ALLOW, "./git status").reason is None
    assert 'passes `allow = ["git"]` as `./git`' in " ".join((DOCS / "security.md").read_text().split())


def test_every_reason_and_every_key_is_documented():
    text = (DOCS / "policy.md").read_text()
    for name in (*REASONS, *KEYS, *Mode):
        assert f"`{name}`" in text


def test_the_example_in_the_document_is_a_policy():
    example = (DOCS / "policy.md").read_text().split("```toml\n")[1].split("```")[0]
    layer = parse_policy_file(example, Origin.PROJECT)
    assert layer.warnings == ()
    assert layer.policy.mode is Mode.ALLOW_LIST
