"""`exeora token`: made once, kept as a hash, listed without secrets, revoked by whatever names it."""

import re
import subprocess
import sys
import time
from datetime import datetime

import pytest
from exeora_ws.serve.tokens import TokenBook
from exeora_ws.settings import find_places

from support.commandline import CommandLine, child_environment
from support.repositories import RepositoryMaker

SECRET = re.compile(r"exo_[A-Za-z0-9_-]{43}\n\Z")


@pytest.fixture
def projects(exeora: CommandLine, make_repository: RepositoryMaker) -> None:
    for folder in (exeora.folder, make_repository("api")):
        assert exeora.inline("project", "add", str(folder)).code == 0


def test_stdout_is_the_token_alone_and_it_opens_everything(exeora: CommandLine, projects: None):
    done = exeora("token", "create", "--name", "laptop")
    assert (done.code, SECRET.match(done.out) is not None) == (0, True)
    token = TokenBook(find_places()).find(done.out.strip())
    assert (token.name, token.account, token.projects, token.read_only, token.expires) == (
        "laptop",
        True,
        None,
        False,
        None,
    )
    assert done.err == f"exeora: token {token.id} opens all projects; it is shown only now\n"
    assert done.out.strip().encode() not in find_places().database.read_bytes()


@pytest.mark.parametrize(
    ("words", "name", "account", "slugs"),
    [
        (("--project", "app"), "app", False, ["app"]),
        (("--project", "app", "--project", "api"), "app, api", False, ["api", "app"]),
        (("--project", "app", "--account", "--read-only"), "app", True, ["app"]),
        (("--account",), "account", True, None),
    ],
)
def test_what_is_granted_is_what_is_named(exeora: CommandLine, projects: None, words, name, account, slugs):
    document = exeora.inline("token", "create", *words, "--json").document
    token = document["token"]
    assert set(document) == {"schema", "token", "secret"}
    assert (token["name"], token["account"], token["projects"]) == (name, account, slugs)
    assert token["readOnly"] is ("--read-only" in words)
    assert (token["expires"], token["used"], token["revoked"], token["state"]) == (None, None, None, "valid")
    kept = TokenBook(find_places()).find(document["secret"])
    assert kept.account is account
    assert (kept.projects is None) is (slugs is None)


def test_a_project_in_front_of_the_command_counts_too(exeora: CommandLine, projects: None):
    document = exeora.inline("--project", "api", "token", "create", "--project", "app", "--json").document
    assert document["token"]["projects"] == ["api", "app"]


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5_400), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600)])
def test_a_token_may_end_by_itself(exeora: CommandLine, text: str, seconds: int):
    token = exeora.inline("token", "create", "--expires", text, "--json").document["token"]
    assert abs(datetime.fromisoformat(token["expires"]).timestamp() - time.time() - seconds) < 60


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("--expires", "0d"), 2, "invalid_duration"),
        (("--expires", "30"), 2, "invalid_duration"),
        (("--expires", "-1d"), 2, "invalid_duration"),
        (("--expires", ""), 2, "invalid_duration"),
        (("--expires", "1d\n"), 2, "invalid_duration"),
        (("--name", ""), 2, "wrong_value"),
        (("--name", "a\x1b[2J"), 2, "wrong_value"),
        (("--project", ""), 2, "wrong_value"),
        (("--project", "no-such"), 1, None),
        (("-w", "main"), 2, "no_workspace_taken"),
    ],
)
def test_what_makes_no_sense_makes_no_token(exeora: CommandLine, projects: None, words, code, reason):
    done = exeora.inline("token", "create", *words, "--json")
    assert (done.code, done.out, done.error.get("reason")) == (code, "", reason)
    assert TokenBook(find_places()).list() == []


def test_the_list_shows_no_secret_and_everything_else(exeora: CommandLine, projects: None):
    assert exeora.inline("token", "list").err == "exeora: there is no token: exeora token create makes one\n"
    assert exeora.inline("token", "list", "--json").document == {"schema": 1, "tokens": []}
    book = TokenBook(find_places())
    secrets = [book.create(name)[1] for name in ("one", "two")]
    book.create("three", seconds=0.001)
    exeora.inline("token", "revoke", "two")
    listed = exeora.inline("token", "list")
    rows = [re.split(r"  +", line)[1:] for line in listed.out.splitlines()]
    assert [row[:2] for row in rows] == [["one", "valid"], ["two", "revoked"], ["three", "expired"]]
    assert rows[0][2:] == ["for ever", "never used", "all projects"]
    assert not any(secret in listed.out for secret in secrets)
    document = exeora.inline("token", "list", "--json").document
    assert [token["state"] for token in document["tokens"]] == ["valid", "revoked", "expired"]


@pytest.mark.parametrize("how", ["id", "name", "secret"])
def test_a_token_is_revoked_by_whatever_names_it(exeora: CommandLine, how: str):
    book = TokenBook(find_places())
    token, secret = book.create("mine")
    done = exeora("token", "revoke", {"id": token.id, "name": "mine", "secret": secret}[how])
    assert (done.code, done.out) == (0, f"revoked {token.id}  mine\n")
    assert book.find(secret) is None
    again = exeora.inline("token", "revoke", token.id, "--json")
    assert again.code == 0
    assert again.document["token"]["state"] == "revoked"


def test_what_names_no_token_revokes_none_and_no_secret_is_said_back(exeora: CommandLine):
    book = TokenBook(find_places())
    for _ in range(2):
        book.create("twin")
    wrong = "exo_" + "A" * 43
    for selector, reason in (("no-such", "unknown_token"), ("twin", "ambiguous_token"), (wrong, "unknown_token")):
        done = exeora.inline("token", "revoke", selector, "--json")
        assert (done.code, done.out, done.error["reason"]) == (2, "", reason)
        assert wrong not in done.err
    assert all(token.revoked is None for token in book.list())
    assert exeora("token", "revoke").code == 2
    assert exeora("token", "revoke", b"\xff".decode("utf-8", "surrogateescape")).code == 2
    assert exeora.inline("--project", "x", "token", "list").code == 2


def test_tokens_need_no_mcp(exeora: CommandLine):
    script = (
        "import sys; sys.argv = ['exeora', 'token', 'list']\n"
        "from exeora_cli.main import main\nmain()\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('mcp', 'mcp_types', 'uvicorn', 'starlette')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=exeora.folder,
        env=child_environment(exeora.environment),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_without_a_runtime_folder_nothing_is_warned_about(exeora: CommandLine, monkeypatch: pytest.MonkeyPatch):
    exeora.environment.pop("XDG_RUNTIME_DIR")
    done = exeora("token", "list")
    assert done.err == "exeora: there is no token: exeora token create makes one\n"
    assert find_places(exeora.environment).runtime.is_relative_to(find_places(exeora.environment).data)
