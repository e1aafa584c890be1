"""Ready to run: copied and linked files, ports, variables, set-up commands only when trusted."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from exeora_ws.app import App
from exeora_ws.cancellation import Cancellation
from exeora_ws.errors import Forbidden, ToolFailed
from exeora_ws.limits import PORT_FIRST, PORT_LAST
from exeora_ws.workspaces import trust
from exeora_ws.workspaces.place import Project
from exeora_ws.workspaces.recipe import parse_recipe

from support.repositories import git
from support.trees import picture


@pytest.fixture
def write(repository: Path):
    """Write the recipe of the project, uncommitted."""

    def make(toml: str = "", include: str | None = None) -> None:
        (repository / "exeora.toml").write_text(toml)
        if include is not None:
            (repository / ".worktreeinclude").write_text(include)

    return make


def trust_now(app: App, project: Project) -> None:
    app.inventory.setup.trust(project, app.inventory.setup.load_recipe(project).digest)


def make_ignored(root: Path) -> None:
    (root / ".git/info/exclude").write_text(".env*\nnode_modules/\nbuild/\nother.local\n.claude/\n")
    (root / ".env").write_text("A=1\n")
    (root / ".env").chmod(0o600)
    (root / "src" / ".env.local").write_text("B=2\n")
    (root / "node_modules/.bin").mkdir(parents=True)
    (root / "node_modules/lib.js").write_text("lib")
    os.symlink("../lib.js", root / "node_modules/.bin/tool")
    (root / "build").mkdir()
    (root / "build/out").write_text("out")
    (root / "other.local").write_text("x")


def test_included_files_are_copied_only_when_ignored(result, write, repository: Path):
    make_ignored(repository)
    (repository / "notes.txt").write_text("untracked, not ignored")
    write(include="# comment\n.env*\n!.env.never\nnode_modules/\nnotes.txt\nREADME.md\n")
    (repository / ".env.never").write_text("")
    made = result("create_workspace", branch="x")
    top = Path(made["workspace"]["path"])
    assert (top / ".env").read_text() == "A=1\n"
    assert (top / ".env").stat().st_mode & 0o777 == 0o600
    assert (top / "src/.env.local").read_text() == "B=2\n"
    assert os.readlink(top / "node_modules/.bin/tool") == "../lib.js"
    assert not any((top / name).exists() for name in ("notes.txt", ".env.never", "build", "other.local"))
    assert made["setup"]["status"] == "done"
    assert made["setup"]["copiedFiles"] == 4
    assert git(top, "status", "--porcelain") == ""
    assert (top / ".env").stat().st_mtime_ns == (repository / ".env").stat().st_mtime_ns


def test_nothing_is_followed_overwritten_or_entered(result, write, repository: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    os.symlink(outside, repository / "config")
    git(repository, "add", "config")
    git(repository, "switch", "-q", "-c", "linked-out")
    git(repository, "commit", "-q", "-m", "a link out")
    git(repository, "switch", "-q", "main")
    (repository / ".git/info/exclude").write_text("config/\nlinked\n.claude/\ndata/\n")
    (repository / "config").mkdir()
    (repository / "config/own").write_text("own")
    os.symlink(outside, repository / "linked")
    git(repository, "worktree", "add", "-q", "-b", "other", str(repository / ".claude/worktrees/other"))
    (repository / "data").mkdir()
    os.mkfifo(repository / "data/pipe")
    (repository / "data/file").write_text("file")
    write('[workspace]\ncopy = ["config/", "linked", "data/", ".claude/"]\nlink = ["linked", "missing"]\n')
    before = picture(outside)
    made = result("create_workspace", branch="x", from_="linked-out")
    top = Path(made["workspace"]["path"])
    assert picture(outside) == before
    skipped = {(s["path"], s["reason"]) for s in made["setup"]["skipped"]}
    assert ("linked", "leads_out") in skipped
    assert ("missing", "missing") in skipped
    assert ("data/pipe", "special") in skipped
    assert (".claude/worktrees/other/", "checkout") in skipped
    assert os.readlink(top / "linked") == str(outside)
    assert (top / "data/file").exists()
    assert not (top / ".claude/worktrees/other").exists()
    assert os.readlink(top / "config") == str(outside)
    assert {r for p, r in skipped if p.startswith("config")} == {"link_in_the_way"}


def test_links_lead_to_the_project_root(result, write, repository: Path):
    make_ignored(repository)
    write('[workspace]\nlink = ["node_modules"]\ncopy = ["build/"]\n')
    made = result("create_workspace", branch="x")
    top = Path(made["workspace"]["path"])
    assert os.readlink(top / "node_modules") == str(repository / "node_modules")
    assert made["setup"]["linked"] == ["node_modules"]
    assert (top / "build/out").read_text() == "out"
    result("remove_workspace", workspace="x", force=True)
    assert (repository / "node_modules/lib.js").exists()


def test_a_wholly_untracked_folder_is_searched_within_limits(result, write, repository: Path, monkeypatch):
    monkeypatch.setattr("exeora_ws.workspaces.copying.COPY_SEARCH_ENTRIES", 50)
    (repository / ".git/info/exclude").write_text("big/\nsmall/\n")
    for name, count in (("big", 80), ("small", 3)):
        (repository / name / "deep").mkdir(parents=True)
        for number in range(count):
            (repository / name / f"{number:03}").write_text("")
        (repository / name / "deep" / "zz.env").write_text(name)
    write(include="*.env\n")
    made = result("create_workspace", branch="x")
    top = Path(made["workspace"]["path"])
    assert (top / "small/deep/zz.env").exists()
    assert made["setup"]["skipped"] == [{"path": "big/", "reason": "too_many_to_search"}]


def test_untrusted_commands_are_skipped_said_and_never_wait(app: App, project: Project, result, write):
    write('[workspace]\nsetup = ["touch ran", "read x"]\nenv = { TOKEN = "t" }\n')
    made = result("create_workspace", branch="x")
    assert made["setup"] == {"status": "skipped_untrusted", "commands": ["touch ran", "read x"]}
    assert not (Path(made["workspace"]["path"]) / "ran").exists()
    assert "TOKEN" not in app.inventory.setup.make_environment(app.inventory.require_place(project, "x"))


def test_trusted_commands_run_with_ports_and_variables_until_one_fails(app: App, project: Project, result, write):
    write(
        '[workspace]\nports = ["web"]\nenv = { MODE = "dev" }\n'
        'setup = ["echo $EXEORA_PORT_WEB $MODE $EXEORA_WORKSPACE > ran", "echo so; echo sad >&2; exit 3",\n'
        '  "touch never"]\n'
    )
    trust_now(app, project)
    made = result("create_workspace", branch="x")
    top, setup = Path(made["workspace"]["path"]), made["setup"]
    assert (top / "ran").read_text().split() == [str(setup["ports"]["web"]), "dev", "x"]
    assert (setup["status"], setup["failedCommand"], setup["exitCode"]) == (
        "failed",
        "echo so; echo sad >&2; exit 3",
        3,
    )
    assert sorted(setup["output"].split()) == ["sad", "so"]
    assert not (top / "never").exists()
    again = result("create_workspace", branch="x")
    assert (again["created"], again["setup"]["status"]) == (False, "failed")
    write('[workspace]\nsetup = ["touch better"]\n')
    trust_now(app, project)
    assert result("create_workspace", branch="x")["setup"]["status"] == "done"
    assert result("create_workspace", branch="x")["setup"]["status"] == "none"


def test_one_changed_character_needs_new_trust(app: App, project: Project, result, write):
    write('[workspace]\nsetup = ["true"]\n')
    trust_now(app, project)
    assert result("create_workspace", branch="a")["setup"]["status"] == "done"
    write('[workspace]\nsetup = ["true "]\n')
    assert result("create_workspace", branch="b")["setup"]["status"] == "skipped_untrusted"
    write('[workspace]\nsetup = ["true"]\ncopy = ["x"]\n')
    assert result("create_workspace", branch="c")["setup"]["status"] == "done"
    assert app.inventory.setup.revoke_trust(project) == 1
    assert result("create_workspace", branch="d")["setup"]["status"] == "skipped_untrusted"


def test_the_new_branch_cannot_bring_its_own_commands(app: App, project: Project, result, repository: Path, write):
    git(repository, "switch", "-q", "-c", "evil")
    write('[workspace]\nsetup = ["touch evil"]\n')
    git(repository, "add", "exeora.toml")
    git(repository, "commit", "-q", "-m", "evil")
    git(repository, "switch", "-q", "main")
    made = result("create_workspace", branch="evil", reuseExistingBranch=True)
    assert made["setup"] == {"status": "none"}


def test_an_agent_cannot_trust(app: App, project: Project, result, write, monkeypatch):
    write('[workspace]\nsetup = ["true"]\n')
    digest = app.inventory.setup.load_recipe(project).digest
    shown = result("run_command", command="env")["stdout"]
    variables = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    assert trust.is_inside_command(variables)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Forbidden) as caught:
        app.inventory.setup.trust(project, digest)
    assert caught.value.reason == "agent_cannot_trust"
    assert not app.inventory.setup.is_trusted(project, app.inventory.setup.load_recipe(project))


def test_ports_are_stable_distinct_and_free(app: App, project: Project, result, write):
    write('[workspace]\nports = ["web", "db"]\n')
    first = result("create_workspace", branch="a")["setup"]["ports"]
    second = result("create_workspace", branch="b")["setup"]["ports"]
    every = [*first.values(), *second.values()]
    assert len(set(every)) == 4
    assert all(PORT_FIRST <= port <= PORT_LAST for port in every)
    shown = result("run_command", workspace="a", command="echo $EXEORA_PORT_WEB $EXEORA_PORT_DB")["stdout"].split()
    assert shown == [str(first["web"]), str(first["db"])]
    result("remove_workspace", workspace="a")
    app.upkeep.restore(project, "a", detach=False, cancellation=Cancellation())
    assert app.inventory.setup.make_environment(app.inventory.require_place(project, "a")) == {
        "EXEORA_PORT_WEB": str(first["web"]),
        "EXEORA_PORT_DB": str(first["db"]),
    }
    result("remove_workspace", workspace="a")
    app.upkeep.empty_trash(project)
    with app.inventory.registry.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM ports").fetchone()[0] == 2


def test_a_port_in_use_is_passed_over_and_main_gets_its_own(app: App, project: Project, write, monkeypatch):
    write("[workspace]\nports = { web = 3000 }\n")
    main = app.inventory.require_place(project, "main")
    assert app.inventory.setup.make_environment(main) == {"EXEORA_PORT_WEB": "3000"}
    monkeypatch.setattr("exeora_ws.workspaces.ports._COUNT", 2)
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", PORT_FIRST))
        taken.listen()
        write('[workspace]\nports = ["db"]\n')
        assert app.inventory.setup.make_environment(main) == {"EXEORA_PORT_DB": str(PORT_FIRST + 1)}
        write('[workspace]\nports = ["db", "more"]\n')
        assert app.inventory.setup.make_environment(main) == {}


def test_teardown_runs_before_the_folder_goes_and_stops_nothing(app: App, project: Project, result, write, tmp_path):
    write(f'[workspace]\nteardown = ["cp README.md {tmp_path}/saved", "false"]\n')
    trust_now(app, project)
    result("create_workspace", branch="x")
    removed = result("remove_workspace", workspace="x")
    assert (tmp_path / "saved").exists()
    assert removed["removed"] is True
    assert (removed["teardown"]["status"], removed["teardown"]["failedCommand"]) == ("failed", "false")


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[workspace\n", "not valid TOML"),
        ("workspace = 3\n", "expected a table"),
        ("[workspace]\nsteup = []\n", "workspace.steup"),
        ("[workspace]\nsetup = [1]\n", "workspace.setup"),
        ('[workspace]\nlink = ["../x"]\n', "workspace.link"),
        ('[workspace]\nlink = ["/etc"]\n', "workspace.link"),
        ('[workspace]\nlink = [".git/hooks"]\n', "workspace.link"),
        ('[workspace]\nenv = { GIT_DIR = "x" }\n', "workspace.env.GIT_DIR"),
        ('[workspace]\nenv = { "a b" = "x" }\n', "workspace.env.a b"),
        ("[workspace]\nports = { web = 0 }\n", "workspace.ports.web"),
        ("[workspace]\nports = { web = true }\n", "workspace.ports.web"),
        ('[workspace]\nports = ["a-b"]\n', "workspace.ports.a-b"),
        ('[workspace]\nports = ["a", "A"]\n', "differ only in case"),
    ],
)
def test_a_recipe_that_cannot_be_read_is_said_and_stops_nothing(toml: str, said: str, result, write):
    with pytest.raises(ToolFailed) as caught:
        parse_recipe(toml, "")
    assert caught.value.reason == "setup_invalid"
    assert said in caught.value.message


def test_an_invalid_recipe_does_not_undo_the_workspace(result, write):
    write("[workspace]\nsetup = [1]\n")
    made = result("create_workspace", branch="x")
    assert made["setup"]["status"] == "invalid"
    assert "workspace.setup" in made["setup"]["message"]


@pytest.mark.parametrize("pattern", ["!", "\\", "[z-a]", "x\\", "[[:digit:]].env"])
def test_a_pattern_that_is_not_understood_is_said_and_the_workspace_is_there(result, write, pattern: str):
    write(include=f"*.env\n{pattern}\n")
    made = result("create_workspace", branch="x")
    assert made["created"] is True
    assert made["setup"]["status"] == "invalid"
    assert repr(pattern) in made["setup"]["message"]


@pytest.mark.parametrize("tag", ["cmd_1", "-"])
def test_a_tag_that_was_taken_off_on_the_way_is_still_a_command(sealed: dict[str, str], tag: str):
    asked = "import os, exeora_ws.workspaces.trust as trust; print(trust.is_inside_command(os.environ))"
    line = f'env -u EXEORA_TAG "{sys.executable}" -c "{asked}"; true'
    environment = sealed | {"EXEORA_TAG": tag, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["/bin/sh", "-c", line], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tag != '-'}\n"
