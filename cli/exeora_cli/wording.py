"""Errors as the shell says them: the core names tools and fields as an agent has them, a person types commands.

Everything the command line tells of an error goes through here, but for `exeora call`, whose caller writes the fields
of a tool.
"""

import copy
import re

from exeora_ws.errors import ExeoraError

COMMANDS = {
    "tools/list": "exeora tools",
    "read_file": "exeora read",
    "list_files": "exeora ls",
    "grep": "exeora grep",
    "edit_file": "exeora edit",
    "write_file": "exeora write",
    "apply_patch": "exeora patch",
    "run_command": "exeora run",
    "start_command": "exeora start",
    "get_command_output": "exeora output",
    "send_command_input": "exeora send",
    "kill_command": "exeora kill",
    "list_git_workspaces": "exeora git-list",
    "create_workspace": "exeora create",
    "attach_workspace": "exeora attach",
    "detach_workspace": "exeora detach",
    "remove_workspace": "exeora remove",
    "list_workspaces": "exeora list",
    "list_projects": "exeora project list",
    "list_skills": "exeora skills",
    "get_agent_prompt": "exeora prompt",
}
"""The command that does what a tool does (a test holds it to the catalog)."""

FIELDS = {
    "reuseExistingBranch": "--reuse",
    "deleteBranch": "--delete-branch",
    "caseInsensitive": "--ignore-case",
    "maxResults": "--max-results",
    "oldString": "--old",
    "newString": "--new",
    "timeoutMs": "--timeout",
    "waitMs": "--wait",
    "processId": "PROCESS",
    "nextCursor": "--cursor with the nextCursor",
}
"""Fields that are no English words."""

_PLAIN_FIELDS = "force|from|slug|name|workspace|project|offset|limit|column|glob|cwd|cursor"
_TOOL = re.compile("|".join(rf"(?<![\w/`'-]){re.escape(name)}(?![\w/'])" for name in COMMANDS if name != "grep"))
_FIELD = re.compile(rf"\b(?:{'|'.join(FIELDS)})\b")
_PASSED = re.compile(rf"\b(pass|with) ({_PLAIN_FIELDS})\b(?! [a-z])")
_LEADING = re.compile(r"^(force|from|slug|name|offset|limit|column|glob|cwd|cursor): ")


def for_shell(error: ExeoraError) -> ExeoraError:
    """Give the error as someone at a shell can act on it: the same code, reason and data."""
    worded = copy.copy(error)
    worded.message = _LEADING.sub(r"--\1: ", _word_fields(error.message))
    worded.args = (worded.message,)
    if error.hint is not None:
        worded.hint = _TOOL.sub(lambda found: COMMANDS[found[0]], _word_fields(error.hint))
    return worded


def _word_fields(text: str) -> str:
    named = _FIELD.sub(lambda found: FIELDS[found[0]], text)
    return _PASSED.sub(r"\1 --\2", named)
