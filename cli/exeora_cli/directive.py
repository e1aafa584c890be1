"""Where the shell shall go next: told to the wrapper of `exeora shell-init` through a file, which it reads as data.

The wrapper makes the file and names it in `EXEORA_DIRECTIVE_FILE`. The only thing it does is `cd`; nothing is ever
evaluated.
"""

import os
import stat

TYPE_CHECKING = False  # type checkers take it as true; importing `typing` would cost the hot way too much
if TYPE_CHECKING:
    from exeora_ws.workspaces.place import Place

    from exeora_cli.session import Session

VARIABLE = "EXEORA_DIRECTIVE_FILE"


def can_direct() -> bool:
    """Whether a wrapper is listening."""
    return bool(os.environ.get(VARIABLE))


def direct_to(path: str) -> bool:
    """Tell the shell to go to a folder; gives whether there was one to tell."""
    name = os.environ.get(VARIABLE)
    if not name:
        return False
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(descriptor, "wb") as stream:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return False
        stream.write(b"cd " + os.fsencode(path))
    return True


def leave_if_gone(session: "Session", around: "Place | None") -> None:
    """Take the shell to main when the workspace it stood in (`around`) is no more."""
    if around is None or around.workspace.main:
        return
    listed = session.app.inventory.list_workspaces(around.project)
    if all(workspace.id != around.workspace.id for workspace in listed):
        direct_to(str(around.project.root))
