"""The commands, one module a group; a new group is one module and one line here."""

from exeora_cli.commands import (
    agentexec,
    agents,
    completions,
    files,
    processes,
    projects,
    servers,
    settings,
    status,
    switching,
    together,
    tokens,
    trusting,
    undoing,
    upkeep,
    upstreams,
    workspaces,
)
from exeora_cli.group import Group

GROUPS: tuple[Group, ...] = (
    workspaces.group,
    switching.group,
    undoing.group,
    upkeep.group,
    together.group,
    status.group,
    files.group,
    processes.group,
    agents.group,
    agentexec.group,
    servers.group,
    tokens.group,
    upstreams.group,
    projects.group,
    settings.group,
    trusting.group,
    completions.group,
)
"""In the order of the help."""
