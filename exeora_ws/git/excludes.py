"""Which file of global ignore rules Git reads in a checkout: Git's own answer, asked for only where one is named."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from exeora_ws.errors import ExeoraError
from exeora_ws.git.command import Git, Output, clean_environment, find_git, run
from exeora_ws.git.gitfiles import read_common_dir, read_git_link, read_text
from exeora_ws.limits import GIT_READ_SECONDS

_ASK = ("config", "--includes", "--type=path", "--get", "core.excludesFile")


def find_excludes_file(top: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Give the absolute path that `core.excludesFile` names, `/dev/null` for an empty one; None where none is named.

    Git is only asked when one of the files it would read holds such a line, or includes others. Without the git
    executable, and where it fails, the answer is None.

    Args:
        top: absolute path of a checkout, or of a folder outside Git.
        environ: where the user's configuration is; None for this process's.
    """
    variables = os.environ if environ is None else environ
    git_dir = _find_git_dir(top)
    if find_git(variables) is None or not any(map(_may_name_one, _list_config_files(git_dir, variables))):
        return None
    try:
        answer = _ask(top, git_dir, variables)
    except ExeoraError:
        return None
    if answer.code != 0:
        return None
    return os.path.join(top, answer.text) if answer.text else os.devnull


def _ask(top: str, git_dir: str | None, environ: Mapping[str, str]) -> Output:
    if git_dir is not None:
        return Git(Path(top), Path(git_dir)).read(*_ASK, ok=(0, 1))
    git = find_git(environ) or "git"
    return run([git, *_ASK, "--global"], clean_environment(environ), seconds=GIT_READ_SECONDS)


def _find_git_dir(top: str) -> str | None:
    entry = os.path.join(top, ".git")
    return entry if os.path.isdir(entry) else read_git_link(entry)


def _list_config_files(git_dir: str | None, environ: Mapping[str, str]) -> Iterator[str]:
    if git_dir is not None:
        common = read_common_dir(git_dir)
        yield from (os.path.join(common, "config"), os.path.join(git_dir, "config.worktree"))
    if "GIT_CONFIG_GLOBAL" in environ:
        yield environ["GIT_CONFIG_GLOBAL"]
    else:
        home = environ.get("HOME", "")
        yield os.path.join(home, ".gitconfig")
        yield os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "config")
    if environ.get("GIT_CONFIG_NOSYSTEM", "") in ("", "0", "false", "no", "off"):
        beside = os.path.join(os.path.dirname(os.path.dirname(find_git(environ) or "")), "etc", "gitconfig")
        yield from (environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"), beside)


def _may_name_one(path: str) -> bool:
    text = (read_text(path) or "").lower()
    return "excludesfile" in text or "[include" in text
