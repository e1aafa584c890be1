"""The environment of a command: the user's, without what would lead it astray or give us away (contract, section 7)."""

from collections.abc import Mapping

from exeora_ws.environment import without_git_routing

SECRET_VARIABLES = frozenset({"EXEORA_TOKEN", "AGENTEXEC_TOKEN"})
"""Tokens of our own faces: no command needs them."""

_PLAIN = {"NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb"}


def make_environment(
    user: Mapping[str, str], *, project: str, workspace: str, path: str, interactive: bool = False
) -> dict[str, str]:
    """Make the environment of a command.

    Args:
        user: the environment of whoever runs it.
        project: slug of the project (`EXEORA_PROJECT`).
        workspace: slug of the workspace (`EXEORA_WORKSPACE`).
        path: root of the workspace (`EXEORA_WORKSPACE_PATH`).
        interactive: for a person at a terminal: colours and pagers stay.
    """
    kept = without_secrets(user)
    about = {"EXEORA_PROJECT": project, "EXEORA_WORKSPACE": workspace, "EXEORA_WORKSPACE_PATH": path}
    return kept | about | ({} if interactive else _PLAIN)


def without_secrets(user: Mapping[str, str]) -> dict[str, str]:
    """Give an environment without Git's routing variables and without tokens of ours."""
    return {name: value for name, value in without_git_routing(user).items() if name not in SECRET_VARIABLES}
