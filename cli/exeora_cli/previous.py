"""Which workspace `-` means: the one that `exeora switch` left last, a small file for each project."""

from pathlib import Path

from exeora_ws.names import ProjectId, WorkspaceId
from exeora_ws.settings import Places
from exeora_ws.storage import make_private_folder, replace_file


def load_previous(places: Places, project: ProjectId) -> WorkspaceId | None:
    """Give the workspace that was left last in a project; it may be gone."""
    try:
        text = _file(places, project).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return WorkspaceId(text) if text else None


def store_previous(places: Places, project: ProjectId, workspace: WorkspaceId) -> None:
    """Remember the workspace that is being left."""
    path = _file(places, project)
    make_private_folder(path.parent)
    replace_file(path, f"{workspace}\n".encode(), durable=False)


def _file(places: Places, project: ProjectId) -> Path:
    return places.data / "previous" / project
