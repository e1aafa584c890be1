"""Steps that call every tool of the catalog once or more, in an order in which each has something to do."""

from exeora_ws.tools.catalog import CATALOG

STEPS = [
    {"tool": "get_agent_prompt", "arguments": {}},
    {"tool": "list_skills", "arguments": {}},
    {"tool": "list_git_workspaces", "arguments": {}},
    {"tool": "create_workspace", "arguments": {"branch": "feature/x"}},
    {"tool": "create_workspace", "arguments": {"branch": "feature/x"}},
    {"tool": "write_file", "arguments": {"path": "new.txt", "content": "one\ntwo\n", "workspace": "feature-x"}},
    {
        "tool": "edit_file",
        "arguments": {"path": "new.txt", "oldString": "two", "newString": "three", "workspace": "feature-x"},
    },
    {
        "tool": "apply_patch",
        "arguments": {
            "operations": [
                {"type": "create", "path": "b.txt", "content": "b\n"},
                {"type": "delete", "path": "new.txt"},
            ],
            "workspace": "feature-x",
        },
    },
    {"tool": "read_file", "arguments": {"path": "b.txt", "workspace": "feature-x"}},
    {"tool": "list_files", "arguments": {"workspace": "feature-x"}},
    {"tool": "grep", "arguments": {"pattern": "b", "workspace": "feature-x"}},
    {"tool": "run_command", "arguments": {"command": "git rev-parse --show-toplevel", "workspace": "feature-x"}},
    {
        "tool": "start_command",
        "arguments": {"command": "cat", "workspace": "feature-x"},
        "save": {"process": "processId"},
    },
    {
        "tool": "send_command_input",
        "arguments": {"processId": "$process", "data": "hello", "workspace": "feature-x"},
    },
    {"tool": "get_command_output", "arguments": {"processId": "$process", "workspace": "feature-x"}},
    {"tool": "kill_command", "arguments": {"processId": "$process", "workspace": "feature-x"}},
    {"tool": "run_command", "arguments": {"command": "git worktree add -q ../attached -b attached"}},
    {"tool": "attach_workspace", "arguments": {"branch": "attached"}},
    {"tool": "detach_workspace", "arguments": {"workspace": "attached"}},
    {"tool": "remove_workspace", "arguments": {"workspace": "feature-x", "force": True}},
    {"tool": "list_workspaces", "arguments": {}},
    {"tool": "list_projects", "arguments": {}},
]


def steps_for(*, account: bool) -> list[dict[str, object]]:
    """The steps for tools that there are; those for an account only where it is one."""
    listed = [s for s in STEPS if s["tool"] in CATALOG and (account or not CATALOG[s["tool"]].account_only)]
    missing = {t.name for t in CATALOG.values() if account or not t.account_only} - {s["tool"] for s in listed}
    assert not missing, f"no step calls {missing}"
    return listed


FAILING = [
    {"tool": "run_command", "arguments": {"command": "true", "workspace": "nope"}},
    {"tool": "create_workspace", "arguments": {"branch": "main"}},
    {"tool": "remove_workspace", "arguments": {"workspace": "main"}},
    {"tool": "kill_command", "arguments": {"processId": "nope"}},
    {"tool": "create_workspace", "arguments": {"zzz": 1}},
]
"""Calls that must fail, each with an answer that its client takes."""
