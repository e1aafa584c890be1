"""The commands of daily use, where the transcripts do not reach: JSON, terminals, exit codes."""

import json
import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from support.commandline import COMMAND, CommandLine, child_environment
from support.repositories import RepositoryMaker, git


class Terminal:
    """A command at a real terminal."""

    def __init__(self, exeora: CommandLine, *words: str, **more: str) -> None:
        self.primary, secondary = pty.openpty()
        environment = child_environment(exeora.environment) | more
        self.process = subprocess.Popen(
            [*COMMAND, *words], cwd=exeora.folder, env=environment, stdin=secondary, stdout=secondary, stderr=secondary
        )
        os.close(secondary)
        self.text = ""

    def read_until(self, text: str) -> str:
        deadline = time.monotonic() + 60
        while text not in self.text:
            assert time.monotonic() < deadline, self.text
            if not self._read():
                break
        assert text in self.text, self.text
        return self.text

    def type(self, text: str) -> None:
        os.write(self.primary, text.encode())

    def end(self) -> tuple[int, str]:
        while self._read():
            pass
        os.close(self.primary)
        return self.process.wait(60), self.text.replace("\r\n", "\n")

    def _read(self) -> bool:
        select.select([self.primary], [], [], 60)
        try:
            data = os.read(self.primary, 65_536)
        except OSError:
            return False
        self.text += data.decode("utf-8", "replace")
        return bool(data)


def test_a_list_at_a_terminal_shows_states_and_a_piped_one_does_not(exeora: CommandLine, feature: Path):
    (feature / "new").write_text("")
    code, shown = Terminal(exeora, "list").end()
    assert code == 0
    assert "?1" in shown
    assert "WORKSPACE" in shown
    assert "WORKSPACE" not in exeora("list").out
    code, shown = Terminal(exeora, "list", "--fast").end()
    assert "WORKSPACE" not in shown
    assert exeora("list", "--fast", "--status").code == 2


def test_states_as_json_have_every_key(exeora: CommandLine, feature: Path):
    git(feature, "commit", "-q", "--allow-empty", "-m", "work")
    shutil.copy(feature / "README.md", feature / "copy")
    rows = {w["slug"]: w for w in exeora.inline("list", "--status", "--json").document["workspaces"]}
    row = rows["feat-x"]
    assert (row["staged"], row["modified"], row["untracked"], row["conflicted"]) == (0, 0, 1, 0)
    assert row["base"] == {"ref": "main", "ahead": 1, "behind": 0}
    assert row["upstream"] is None
    assert rows["main"]["base"] is None
    assert set(row) == set(rows["main"])
    fast = exeora.inline("list", "--json").document["workspaces"]
    assert all(fast[i].items() <= {**rows[fast[i]["slug"]]}.items() for i in range(2))


def test_every_project_at_once(exeora: CommandLine, feature: Path, make_repository: RepositoryMaker):
    other = make_repository("other")
    assert exeora.inline("project", "add", str(other)).code == 0
    document = exeora.inline("list", "--all-projects", "--json").document
    assert [(w["project"], w["slug"]) for w in document["workspaces"]] == [
        ("app", "main"),
        ("app", "feat-x"),
        ("other", "main"),
    ]
    assert exeora.inline("list", "--all-projects", "--status").out.count("WORKSPACE") == 2
    assert exeora.inline("doctor", "--all-projects", "--json").document["findings"] == []


def test_trust_asks_a_person_at_a_terminal(exeora: CommandLine, repository: Path):
    (repository / "exeora.toml").write_text('[workspace]\nsetup = ["touch ready"]\n')
    (repository / ".git/info/exclude").write_text("ready\n")
    assert exeora.inline("create", "a", "--json").document["setup"]["status"] == "skipped_untrusted"
    refused = exeora("trust", stdin="yes\n")
    assert refused.code == 2
    for word, expected in (("no", 1), ("yes", 0)):
        terminal = Terminal(exeora, "trust")
        assert "touch ready" in terminal.read_until("type yes to agree: ")
        terminal.type(word + "\n")
        assert terminal.end()[0] == expected
    again = exeora.inline("setup", "a", "--json").document
    assert again["setup"] == {"status": "done", "commands": ["touch ready"]}
    assert exeora.inline("trust", "--show", "--json").document["trusted"] is True
    assert exeora.inline("trust", "--revoke", "--json").document["revoked"] == 1
    made = exeora.inline("create", "b", "--json").document
    assert made["setup"]["status"] == "skipped_untrusted"


def test_a_command_that_exeora_runs_cannot_trust(exeora: CommandLine, repository: Path):
    (repository / "exeora.toml").write_text('[workspace]\nsetup = ["touch ready"]\n')
    assert exeora.inline("create", "a").code == 0
    terminal = Terminal(exeora, "trust", EXEORA_TAG="0123456789abcdef")
    terminal.read_until("type yes to agree: ")
    terminal.type("yes\n")
    code, shown = terminal.end()
    assert code == 4
    assert "by a person" in shown


def test_open_hands_over_to_the_editor_that_is_set(exeora: CommandLine, feature: Path, tmp_path: Path):
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\npwd\nprintf "%s|" "$@"\nexit 7\n')
    editor.chmod(0o755)
    done = exeora("open", "feat-x", EXEORA_EDITOR=f"'{editor}' --wait", EDITOR="false")
    assert (done.code, done.out) == (7, f"{feature}\n--wait|{feature}|")
    none = exeora("open", "feat-x", VISUAL="", EDITOR="")
    assert (none.code, "no editor is set" in none.err) == (1, True)


def test_doctor_ends_with_what_is_left_to_do(exeora: CommandLine, feature: Path):
    sound = exeora.inline("doctor")
    assert (sound.code, sound.out) == (0, "")
    feature.rename(feature.with_name("away"))
    found = exeora.inline("doctor", "--json")
    assert found.code == 1
    assert [(f["kind"], f["status"], f["project"]) for f in found.document["findings"]] == [("moved", "fixable", "app")]
    fixed = exeora.inline("doctor", "--fix")
    assert (fixed.code, fixed.out.startswith("fixed: feat-x")) == (0, True)
    assert exeora.inline("path", "feat-x").out == f"{feature.with_name('away')}\n"


def test_the_documents_of_daily_use(exeora: CommandLine, feature: Path):
    def document(*words: str) -> dict:
        done = exeora.inline(*words, "--json")
        assert done.code == 0, done.err
        return {k: v for k, v in done.document.items() if k != "schema"}

    assert document("lock", "feat-x", "--reason", "mine") == {"workspace": "feat-x", "reason": "mine"}
    assert exeora.inline("remove", "feat-x", "--json").error["reason"] == "locked"
    assert document("unlock", "feat-x") == {"workspace": "feat-x", "reason": "mine"}
    assert document("unlock", "feat-x")["reason"] is None
    assert document("rename", "feat-x", "y")["after"]["slug"] == "y"
    git(feature.with_name("y"), "commit", "-q", "--allow-empty", "-m", "work")
    assert document("diff", "y") | {"since": ""} == {
        "workspace": "y",
        "against": "main",
        "since": "",
        "diff": "",
        "untracked": [],
    }
    merged = document("merge", "y")
    assert (merged["into"], merged["commits"], merged["rebased"]) == ("main", 1, None)
    pruned = document("prune", "--merged", "--min-age", "0")["workspaces"]
    assert [(p["slug"], p["action"], p["evidence"], p["branchDeleted"]) for p in pruned] == [
        ("y", "removed", "same_commit", True)
    ]
    assert [r["slug"] for r in document("restore", "--list")["removed"]] == ["y"]
    restored = document("restore")
    assert (restored["workspace"]["slug"], restored["branchMade"]) == ("y", True)
    assert document("remove", "y", "--now")["removed"] is True
    assert document("restore", "--empty")["deleted"] in (0, 1)
    assert document("adopt") == {"connected": [], "skipped": []}
    planned = document("create", "z", "--dry-run")
    assert (planned["created"], planned["dryRun"], planned["moved"]) == (False, True, None)


@pytest.mark.parametrize(
    "words",
    [
        ("prune",),
        ("merge", "feat-x", "--squash", "--rebase"),
        ("merge", "feat-x", "-m", "x"),
        ("restore", "x", "--list"),
        ("create",),
    ],
)
def test_what_contradicts_itself_is_a_usage_error(exeora: CommandLine, feature: Path, words: tuple[str, ...]):
    assert exeora.inline(*words).code == 2


def test_interrupting_a_setup_leaves_the_workspace(exeora: CommandLine, repository: Path):
    (repository / "exeora.toml").write_text('[workspace]\nsetup = ["touch begun; sleep 300"]\n')
    (repository / ".git/info/exclude").write_text("begun\n")
    assert exeora.inline("create", "a").code == 0
    terminal = Terminal(exeora, "trust")
    terminal.read_until("type yes to agree: ")
    terminal.type("yes\n")
    assert terminal.end()[0] == 0
    top = Path(exeora.inline("path", "a").out.strip())
    process = exeora.start("setup", "a", "--json")
    deadline = time.monotonic() + 60
    while not (top / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(2)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(err.splitlines()[-1])["error"]["code"] == "CANCELLED"
    assert (top / "README.md").exists()
