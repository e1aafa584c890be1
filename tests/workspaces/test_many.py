"""Twenty-four creations, eight at once, from several processes (public failure 5)."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from exeora_ws.app import open_app

from support.repositories import RepositoryMaker, git

TESTS = Path(__file__).parents[1]


def test_twenty_four_creations_eight_at_once(make_repository: RepositoryMaker, sealed: dict[str, str]):
    upstream = make_repository("upstream", commits=3)
    top = upstream.with_name("app")
    git(upstream.parent, "clone", "-q", str(upstream), "app")
    app = open_app()
    project = app.inventory.register_project(top, exact=False)[0]
    config = (top / ".git/config").read_bytes()
    environment = sealed | {"PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}

    def create(number: int) -> dict:
        arguments = json.dumps({"branch": f"task/{number}", "from": "origin/main"})
        done = subprocess.run(
            [sys.executable, "-m", "support.killed", "0", "app", "create_workspace", arguments],
            env=environment,
            capture_output=True,
            check=True,
        )
        return json.loads(done.stdout)["outcome"]

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(create, range(24)))
    assert [o.get("created") for o in outcomes] == [True] * 24, outcomes
    assert len({o["workspace"]["path"] for o in outcomes}) == 24
    assert (top / ".git/config").read_bytes() == config
    assert git(top, "for-each-ref", "--format=%(upstream)", "refs/heads/task").strip() == ""
    listed = app.inventory.list_workspaces(project)
    assert sum(w.managed for w in listed) == 24
    assert all(app.inventory.find_fault(project, w) is None for w in listed)
    for outcome in outcomes:
        assert git(Path(outcome["workspace"]["path"]), "status", "--porcelain") == ""
