"""The faces that speak MCP: stdio and HTTP. Of our packages only this one and `upstream` import the MCP library.

Nothing of it is imported here: `tokens` and `running` are for the command line and stay free of the library's second
of start-up time.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from exeora_ws.serve.mounted import MountedExec


def agentexec(*, workspace: "str | os.PathLike[str]", level: str = "read") -> "MountedExec":
    """Make the agentexec toolset an ASGI application, to mount under any path of a server of your own.

    It answers whoever reaches it: decide before that who may, and speak TLS in front of it. Await its `aclose()` when
    done, which ends every command still running; a server that speaks the lifespan protocol with it does so itself.

    Args:
        workspace: the folder its tools act in.
        level: `read`, `files` or `terminal`.

    Raises:
        ExeoraError: no such folder or level, or the folder can be no workspace.
    """
    from pathlib import Path

    from exeora_ws.serve.mounted import open_mounted

    return open_mounted(Path(workspace), level)
