"""The commands, one module a group; a new group is one module and one line here."""

from exeora_cli.commands import (
    agents,
    completions,
    files,
    guidance,
    oversight,
    policy,
    processes,
    projects,
    servers,
    settings,
    status,
    switching,
    together,
    trusting,
    undoing,
    upkeep,
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
    guidance.group,
    oversight.approvals_group,
    oversight.group,
    servers.group,
    policy.group,
    policy.policy_group,
    projects.group,
    settings.group,
    trusting.group,
    completions.group,
)
"""In the order of the help."""
