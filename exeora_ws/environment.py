"""Which environment variables would send Git elsewhere than the folder a child was started in.

An inherited `GIT_DIR` and its kin beat a child's working directory (contract, section 2): as inside a Git hook, every
command would then act on that repository. Git's own calls and the user's commands are started without them.
"""

from collections.abc import Mapping

ROUTING_VARIABLES = frozenset(
    {
        # which repository, worktree, index and objects
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_COMMON_DIR",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_QUARANTINE_PATH",
        "GIT_SHALLOW_FILE",
        "GIT_GRAFT_FILE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_REPLACE_REF_BASE",
        "GIT_REFERENCE_BACKEND",
        "GIT_NAMESPACE",
        "GIT_ATTR_SOURCE",
        # where the search for it starts and ends
        "GIT_PREFIX",
        "GIT_CEILING_DIRECTORIES",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_INTERNAL_TOPLEVEL",
        # configuration of one command that leaks into the next
        "GIT_CONFIG",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        # pathspecs that mean something else
        "GIT_LITERAL_PATHSPECS",
        "GIT_GLOB_PATHSPECS",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_ICASE_PATHSPECS",
        # what a hook was told about itself
        "GIT_PUSH_OPTION_COUNT",
        "GIT_REFLOG_ACTION",
    }
)
"""Everything that `git rev-parse --local-env-vars` lists, and what else redirects a call. `GIT_SSH*`, `GIT_ASKPASS`,
`GIT_CONFIG_GLOBAL`, `GIT_CONFIG_SYSTEM`, `GIT_CONFIG_NOSYSTEM`, `GIT_EXEC_PATH` and the author's identity stay."""

_NUMBERED = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_PUSH_OPTION_")


def is_git_routing(name: str) -> bool:
    """Whether this variable would route Git away from the folder it is started in."""
    return name in ROUTING_VARIABLES or name.startswith(_NUMBERED)


def without_git_routing(environ: Mapping[str, str]) -> dict[str, str]:
    """Give a copy of `environ` without the variables that route Git."""
    return {name: value for name, value in environ.items() if not is_git_routing(name)}
