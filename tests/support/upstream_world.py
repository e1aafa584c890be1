"""Real servers, started as users have them started: an mcp.json, a project, the product's own spawner."""

import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from exeora_ws.names import ProjectId
from exeora_ws.upstream.calls import UpstreamCall
from exeora_ws.upstream.instance import Surroundings
from exeora_ws.upstream.upstreams import Timing, Upstreams

FIXTURES = Path(__file__).parents[2] / "fixtures" / "upstreams"


@dataclass(frozen=True)
class Project:
    id: ProjectId
    root: Path


def program(name: str, *arguments: str, **more) -> dict:
    """An mcp.json entry for one of the fixtures."""
    return {"command": sys.executable, "args": [str(FIXTURES / f"{name}.py"), *arguments], **more}


@dataclass
class World:
    """A user with an mcp.json and projects."""

    folder: Path
    surroundings: Surroundings
    opened: list[Upstreams] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)

    @property
    def mcp_file(self) -> Path:
        return self.folder / "config" / "mcp.json"

    def write(self, servers: dict, **more) -> None:
        self.mcp_file.parent.mkdir(exist_ok=True)
        fresh = self.mcp_file.with_suffix(".new")
        fresh.write_text(json.dumps({"mcpServers": servers, **more}))
        fresh.replace(self.mcp_file)

    def project(self, name: str = "app") -> Project:
        root = self.folder / name
        root.mkdir(exist_ok=True)
        return Project(ProjectId(f"prj_{name}"), root.resolve())

    def open(self, **more) -> Upstreams:
        timing = more.pop("timing", Timing(watch=0.05, quiet=0.02, idle=600))
        upstreams = Upstreams(self.mcp_file, self.surroundings, timing=timing, report=self.reports.append, **more)
        self.opened.append(upstreams)
        return upstreams

    def serve(self, servers: dict, **more) -> tuple[Upstreams, Project]:
        """Write the file, open, start one project and wait until its servers have answered or failed."""
        self.write(servers)
        upstreams, project = self.open(**more), self.project()
        upstreams.start(project)
        assert upstreams.wait_until_settled(project.id, 30)
        return upstreams, project


def call(upstreams: Upstreams, project: Project, name: str, arguments: dict | None = None, **more) -> dict:
    tool = upstreams.find(project.id, name)
    assert tool is not None, f"{name} is not published"
    more.setdefault("directory", project.root)
    return upstreams.call(project.id, UpstreamCall(tool, arguments=arguments or {}, **more))


def text_of(result: dict) -> str:
    return result["content"][0]["text"]


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait for what other processes and threads bring about."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        threading.Event().wait(0.01)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
