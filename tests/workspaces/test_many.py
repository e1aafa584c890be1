"""Twenty-four creations, eight at once, from several processes (public failure 5)."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from exeora_ws.app import open_app

from support.killed import Forker
from support.repositories import RepositoryMaker, git


def test_twenty_four_creations_eight_at_once(make_repository: RepositoryMaker, sealed: dict[str, str]):
    upstream = make_repository("upstream", commits=3)
    top = upstream.with_name("app")
    git(upstream.parent, "clone", "-q", str(upstream), "app")
    app = open_app()
    project = app.inventory.register_project(top, exact=False)[0]
    config = (top / ".git/config").read_bytes()

    def create(numbers: range) -> list[dict]:
        forker = Forker(sealed)
        try:
            return [
                forker(0, "create_workspace", branch=f"task/{n}", **{"from": "origin/main"})["outcome"] for n in numbers
            ]
        finally:
            forker.close()

    with ThreadPoolExecutor(8) as pool:
        outcomes = [o for some in pool.map(create, (range(n, 24, 8) for n in range(8))) for o in some]
    assert [o.get("created") for o in outcomes] == [True] * 24, outcomes
    assert len({o["workspace"]["path"] for o in outcomes}) == 24
    assert (top / ".git/config").read_bytes() == config
    assert git(top, "for-each-ref", "--format=%(upstream)", "refs/heads/task").strip() == ""
    listed = app.inventory.list_workspaces(project)
    assert sum(w.managed for w in listed) == 24
    assert all(app.inventory.find_fault(project, w) is None for w in listed)
    for outcome in outcomes:
        assert git(Path(outcome["workspace"]["path"]), "status", "--porcelain") == ""
