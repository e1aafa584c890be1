"""init, policy check, approvals, logs, skills, prompt."""

import json
import signal
import threading
from pathlib import Path

import pytest

from support.commandline import COMMAND, CommandLine, Done, child_environment
from support.processes import eventually
from support.repositories import commit_file
from support.terminal import Terminal

POLICY = '# ours\nmode = "allow_list"  # strict\nallow = ["git"]\n\n[workspace]\ncopy = [".env"]\n'


@pytest.fixture
def at_terminal(exeora: CommandLine, feature: Path):
    def start(*words: str) -> Terminal:
        return Terminal([*COMMAND, *words], child_environment(exeora.environment), exeora.folder)

    return start


@pytest.fixture
def later():
    """Run a call that waits for a person in another thread; gives its end."""
    threads = []

    def begin(exeora: CommandLine, *words: str) -> list[Done]:
        ended: list[Done] = []
        threads.append(threading.Thread(target=lambda: ended.append(exeora(*words))))
        threads[-1].start()
        return ended

    yield begin
    for thread in threads:
        thread.join()


def wait_for_question(exeora: CommandLine) -> dict[str, str]:
    found = eventually(lambda: exeora.inline("approvals", "--json").document["approvals"], 20)
    assert found, "no question came"
    return found[0]


# init


def test_init_writes_a_policy_that_counts(exeora: CommandLine, repository: Path):
    done = exeora.inline("init", "--allow", "git status", "--allow", "npm run *", "--deny", "npm run evil", "--approve")
    path = repository / "exeora.toml"
    assert (done.code, done.out) == (0, f"{path}\n")
    assert "exeora.toml created" in done.err
    facts = exeora.inline("policy", "check", "--json").document
    assert (facts["mode"], facts["approve"], facts["shell"]) == ("allow_list", True, False)
    assert [rule["text"] for rule in facts["allow"]] == ["git status", "npm run *"]
    assert {rule["origin"] for rule in facts["allow"]} == {"exeora.toml in the project root"}
    before = path.read_bytes()
    again = exeora.inline("init", "--deny", "npm run evil", "--json").document
    assert (again["created"], again["changed"], again["path"]) == (False, False, str(path))
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o644


def test_init_keeps_what_is_there_and_overwrites_only_by_force(exeora: CommandLine, repository: Path):
    path = repository / "exeora.toml"
    path.write_text(POLICY)
    refused = exeora.inline("init", "--mode", "read_only", "--json")
    assert (refused.code, refused.error["reason"]) == (2, "policy_exists")
    assert path.read_text() == POLICY
    assert exeora.inline("init", "--mode", "read_only", "--force").code == 0
    assert path.read_text() == POLICY.replace("allow_list", "read_only")
    assert exeora.inline("init", "--yes").code == 0
    assert exeora.inline("init", "--tools", "read_file", "--tools", "revert_file", "--yes").code == 0
    assert 'tools = ["read_file", "revert_file"]' in path.read_text()
    assert path.read_text().endswith('[workspace]\ncopy = [".env"]\n')


def test_init_in_a_workspace_says_that_it_counts_there(exeora: CommandLine, feature: Path, repository: Path):
    done = exeora.inline("init", "--yes", folder=feature)
    assert done.out == f"{feature / 'exeora.toml'}\n"
    assert "counts in this workspace alone" in done.err
    assert not (repository / "exeora.toml").exists()


@pytest.mark.parametrize(
    ("words", "content", "code", "reason"),
    [
        (("--mode", "no_such"), None, 2, "wrong_value"),
        (("--allow", ""), None, 2, "invalid_rule"),
        (("--deny", "'open"), None, 2, "invalid_rule"),
        (("--tools", "no_such"), None, 2, None),
        (("--approve",), "mode = \n", 1, "policy_invalid"),
        (("--approve",), b"\xff\n", 1, "not_utf8"),
    ],
)
def test_init_refuses_and_writes_nothing(exeora: CommandLine, repository: Path, words, content, code, reason):
    path = repository / "exeora.toml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = exeora.inline("init", *words, "--json")
    assert (done.code, done.out) == (code, "")
    assert reason is None or done.error["reason"] == reason
    assert path.exists() is (content is not None)


def test_init_does_not_write_through_a_link(exeora: CommandLine, repository: Path):
    (repository / "exeora.toml").symlink_to("README.md")
    before = (repository / "README.md").read_bytes()
    assert exeora.inline("init", "--yes", "--json").error["reason"] == "policy_invalid"
    assert (repository / "README.md").read_bytes() == before


def test_init_asks_at_a_terminal(at_terminal, repository: Path):
    terminal = at_terminal("init")
    for question, said in (
        ("mode, one of", b"allow_list\n"),
        ("commands to allow", b"git, npm run *\n"),
        ("commands that never run", b"\n"),
        ("ask a person", b"y\n"),
    ):
        terminal.wait_for(question)
        terminal.type(said)
    assert terminal.finish() == 0
    lines = (repository / "exeora.toml").read_text().splitlines()
    assert {'mode = "allow_list"', 'allow = ["git", "npm run *"]', "approve = true"} <= set(lines)
    assert not any(line.startswith("deny") for line in lines)


def test_what_init_warns_about(exeora: CommandLine, repository: Path):
    (repository / "exeora.toml").write_text('mode = "allow_all"\nunknown = 1\n')
    done = exeora.inline("init", "--allow", "git")
    assert "allow is not in force in mode allow_all" in done.err
    assert "unknown key 'unknown'" in done.err


# policy check


def test_check_names_the_rule_and_where_it_stands(exeora: CommandLine, feature: Path, repository: Path):
    (repository / "exeora.toml").write_text('allow = ["git", "npm run *"]\ndeny = ["sudo"]\n')
    allowed = exeora.inline("policy", "check", "--json", "--", "git", "status")
    assert allowed.code == 0
    assert allowed.document == {
        "schema": 1,
        "workspace": "main",
        "command": "git status",
        "allowed": True,
        "asks": False,
        "reason": None,
        "text": "allowed by 'git'",
        "rules": [{"text": "git", "origin": "exeora.toml in the project root"}],
        "origin": "exeora.toml in the project root",
        "faults": [],
        "warnings": [],
    }
    denied = exeora.inline("policy", "check", "env sudo ls")
    assert denied.code == 4
    assert "verdict  refused" in denied.out
    assert "reason   denied" in denied.out
    assert "rule     sudo, of exeora.toml in the project root" in denied.out
    shell = exeora.inline("policy", "check", "--json", "git status | cat")
    assert (shell.code, shell.document["reason"]) == (4, "shell_syntax")
    (feature / "exeora.toml").write_text('allow = ["git log"]\n')
    narrowed = exeora.inline("-w", "feat-x", "policy", "check", "--json", "--", "git", "status")
    assert (narrowed.code, narrowed.document["reason"]) == (4, "not_allowed")
    assert exeora.inline("policy", "check", "--", "git", "status").code == 0


def test_check_shows_the_whole_policy_and_what_is_wrong_with_it(exeora: CommandLine, feature: Path, repository: Path):
    assert exeora.inline("policy", "check").out.splitlines() == ["mode     allow_all", "shell    yes", "approve  no"]
    (repository / "exeora.toml").write_text("mode = 7\n")
    done = exeora.inline("policy", "check", "--json").document
    assert done["mode"] == "read_only"
    assert done["faults"] == [
        "exeora.toml in the project root, line 1: mode: expected one of allow_all, allow_list, read_only"
    ]
    assert done["faults"][0] in exeora.inline("policy", "check").err
    asked = exeora.inline("policy", "check", "--json", "ls")
    assert (asked.code, asked.document["reason"]) == (4, "policy_invalid")


def test_check_says_that_a_person_is_asked(exeora: CommandLine, feature: Path, repository: Path):
    (repository / "exeora.toml").write_text("approve = true\n")
    assert "verdict     asks a person first" in exeora.inline("policy", "check", "ls").out


def test_check_outside_any_project(exeora: CommandLine, tmp_path: Path):
    assert exeora.inline("policy", "check", "--json", folder=tmp_path).error["reason"] == "no_project"


# approvals


def test_a_person_allows_and_declines_at_another_window(exeora: CommandLine, feature: Path, repository: Path, later):
    (repository / "exeora.toml").write_text("approve = true\n")
    assert exeora.inline("approvals", "list").err == "exeora: no question waits\n"  # somebody is there now
    yes = later(exeora, "write", "yes.txt", "--content", "secret words")
    question = wait_for_question(exeora)
    assert set(question) == {"id", "project", "workspace", "tool", "client", "text", "expires"}
    assert (question["project"], question["workspace"], question["tool"]) == ("app", "main", "write_file")
    assert "secret words" in question["text"]
    assert question["id"] in exeora.inline("approvals").out
    assert exeora.inline("approvals", "allow", question["id"]).out == f"allowed {question['id']}\n"
    assert eventually(lambda: yes, 20)
    assert yes[0].code == 0
    assert (repository / "yes.txt").read_text() == "secret words"
    no = later(exeora, "write", "no.txt", "--content", "x", "--json")
    question = wait_for_question(exeora)
    assert exeora.inline("approvals", "deny", question["id"], "--json").document == {
        "schema": 1,
        "id": question["id"],
        "status": "declined",
    }
    assert eventually(lambda: no, 20)
    assert (no[0].code, no[0].error["code"]) == (4, "APPROVAL_DECLINED")
    assert not (repository / "no.txt").exists()
    again = exeora.inline("approvals", "allow", question["id"], "--json")
    assert (again.code, again.error["reason"]) == (1, "already_answered")
    assert "secret words" not in json.dumps(exeora.inline("logs", "--json").document)


def test_approvals_refuse_what_is_none(exeora: CommandLine, feature: Path):
    unknown = exeora.inline("approvals", "allow", "nosuch", "--json")
    assert (unknown.code, unknown.error["reason"]) == (2, "unknown_approval")
    assert exeora.inline("-w", "main", "approvals", "--json").code == 2
    assert exeora.inline("--project", "no-such", "approvals", "--json").code == 1
    assert exeora.inline("approvals", "--watch", "list").code == 2


def test_whoever_watches_is_asked(at_terminal, exeora: CommandLine, repository: Path, later):
    (repository / "exeora.toml").write_text("approve = true\n")
    watching = at_terminal("approvals", "--watch")
    assert eventually(lambda: (exeora.folder.parent, _is_watched())[1], 20)
    ended = later(exeora, "write", "yes.txt", "--content", "x")
    watching.wait_for("Allow it? [y/N] ", 20)
    assert "Run write_file in workspace main of project app?" in watching.text
    watching.type(b"y\n")
    assert eventually(lambda: ended, 20)
    assert ended[0].code == 0
    watching.wait_for("allowed")
    watching.type(b"\x03")
    assert watching.finish() == 130


def _is_watched() -> bool:
    from exeora_ws.policy.attendance import Attendance
    from exeora_ws.settings import find_places

    return Attendance(find_places().locks).find_somebody()


def test_watching_without_a_terminal_tells_and_is_answered_elsewhere(
    exeora: CommandLine, feature: Path, repository: Path, later
):
    (repository / "exeora.toml").write_text("approve = true\n")
    watching = exeora.start("approvals", "--watch", "--json")
    assert eventually(_is_watched, 20)
    ended = later(exeora, "write", "x.txt", "--content", "secret words")
    line = watching.stdout.readline()
    assert b"secret" not in line
    asked = json.loads(line)
    assert (asked["event"], asked["tool"]) == ("approval_asked", "write_file")
    assert exeora.inline("approvals", "allow", asked["id"]).code == 0
    closed = json.loads(watching.stdout.readline())
    assert (closed["event"], closed["status"], closed["way"]) == ("approval_closed", "allowed", "approvals")
    assert eventually(lambda: ended, 20)
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=20)
    assert watching.returncode == 130


# logs


def test_logs_show_who_called_what(exeora: CommandLine, feature: Path):
    exeora.inline("read", "README.md", folder=feature)
    exeora.inline("read", "no-such")
    exeora.inline("-w", "no-such", "read", "x")
    entries = exeora.inline("logs", "--json").document["entries"]
    assert [(e["tool"], e["project"], e["workspace"], e["outcome"]) for e in entries] == [
        ("create_workspace", "app", "main", "OK"),
        ("read_file", "app", "feat-x", "OK"),
        ("read_file", "app", "main", "PATH_NOT_FOUND"),
    ]
    assert set(entries[0]) == {
        "id", "time", "client", "face", "project", "workspace", "tool", "outcome", "durationMs",
    }  # fmt: skip
    shown = exeora.inline("logs", "--limit", "1").out.split()
    assert shown[2:6] == ["cli", "app/main", "read_file", "PATH_NOT_FOUND"]
    assert len(exeora.inline("logs", "--tool", "read_file", "--json").document["entries"]) == 2
    assert exeora.inline("logs", "--project", "no-such", "--json").error["code"] == "UNKNOWN_PROJECT"
    assert len(exeora.inline("logs", "--project", "app").out.splitlines()) == 3
    assert exeora.inline("-w", "main", "logs").code == 2


def test_logs_follow(exeora: CommandLine, feature: Path):
    exeora.inline("read", "README.md")
    following = exeora.start("logs", "--follow", "--json", "--limit", "1", "--tool", "read_file")
    assert json.loads(following.stdout.readline())["outcome"] == "OK"
    exeora.inline("ls")
    exeora.inline("read", "no-such")
    assert json.loads(following.stdout.readline())["outcome"] == "PATH_NOT_FOUND"
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=20)
    assert following.returncode == 130


# skills and prompt


def test_skills_of_the_workspace_and_of_the_user(exeora: CommandLine, feature: Path, home: Path):
    commit_file(feature, ".agents/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: How we deploy\n---\n")
    mine = home / ".agents" / "skills" / "review"
    mine.mkdir(parents=True)
    (mine / "SKILL.md").write_text("---\nname: review\ndescription: How I review\n---\n")
    (mine.parent / "broken").mkdir()
    (mine.parent / "broken" / "SKILL.md").write_text("nothing")
    done = exeora.inline("skills", folder=feature)
    assert [line.split()[:2] for line in done.out.splitlines()] == [["deploy", "project"], ["review", "user"]]
    assert "~/.agents/skills/broken/SKILL.md: left out" in done.err
    document = exeora.inline("skills", "--json").document
    assert [s["name"] for s in document["skills"]] == ["review"]
    path = document["skills"][0]["path"]
    assert exeora.inline("read", path).out.startswith("---\nname: review")


def test_the_prompt(exeora: CommandLine, tmp_path: Path):
    plain = exeora.inline("prompt", folder=tmp_path)
    assert plain.out.startswith("# Where you are\n")
    assert "list_projects" not in plain.out
    account = exeora.inline("prompt", "--account", "--json", folder=tmp_path).document
    assert "list_projects" in account["prompt"]
