"""The commands, one module a group; a new group is one module and one line here."""

from exeora_cli.commands import agents, completions, files, processes, projects, settings, status, workspaces
from exeora_cli.group import Group

GROUPS: tuple[Group, ...] = (
    workspaces.group,
    status.group,
    files.group,
    processes.group,
    agents.group,
    projects.group,
    settings.group,
    completions.group,
)
"""In the order of the help."""
