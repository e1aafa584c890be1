"""What Git ignores below one root: the rule files above a listed folder, and a judgement of single paths.

ripgrep reads the `.gitignore` files inside the folder it walks. It is not left to look above that folder: there
version 14.1 misreads rules with a slash, and it stops at no repository outside Git. Those rules are gathered here and
handed to it as one ignore file.

By rising rank: the global excludes file, `.git/info/exclude`, each `.gitignore` from the top down. Outside Git the
`.gitignore` files from the root down count all the same.
"""

import os
import re
import stat as modes
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_RULES_BYTES = 1_000_000
FindExcludes = Callable[[str], str | None]
"""Gives the excludes file that Git's configuration names for a checkout; handed in, since it is Git's to say."""


class Ignores:
    """The rules in force below one root. Reads each rule file once, when first needed.

    Args:
        root: absolute real path.
        environ: where `HOME` and `XDG_CONFIG_HOME` say where the global excludes file is.
        find_excludes: names another; None to leave it at that.
    """

    def __init__(self, root: str, environ: Mapping[str, str], find_excludes: FindExcludes | None = None) -> None:
        self._root = root
        self._environ = environ
        self._find_excludes = find_excludes
        around = _find_repository(root)
        self.in_repository = around is not None
        self.top = around or root
        """Where the rules begin: the checkout's top, or the root outside Git."""
        self._lines = cache(_read_rules)
        self._shared_files = cache(self._list_shared_files)
        self._spec = cache(self._load_spec)
        self._folder_ignored = cache(self._judge_folder)

    def gather(self, folder: str) -> list[str]:
        """Give every rule that counts in a folder (relative to the root) but stands outside it, relative to `top`."""
        lines = [line for path in self._shared_files() for line in self._lines(path)]
        target = os.path.normpath(os.path.join(self._root, folder))
        for level in self._levels_above(target):
            base = os.path.relpath(level, self.top)
            rules = self._lines(os.path.join(level, ".gitignore"))
            lines += rules if base == "." else [_anchor(line, base) for line in rules if _is_rule(line)]
        return lines

    def _levels_above(self, target: str) -> list[str]:
        levels = []
        while target != self.top:
            target = os.path.dirname(target)
            levels.append(target)
        return levels[::-1]

    def is_ignored(self, path: str, *, folder: bool, named: str = "") -> bool:
        """Whether Git would leave out `path` (relative to the root) if nobody had added it.

        Args:
            path: of a file or link, or of a folder.
            folder: which of the two.
            named: a folder asked for by name: whether it, or one above it, is ignored does not matter.
        """
        above = os.path.dirname(path)
        if above and not f"{named}/".startswith(f"{above}/") and self._folder_ignored(above, named):
            return True
        return self._judge(path, folder=folder)

    def _judge_folder(self, path: str, named: str) -> bool:
        return self.is_ignored(path, folder=True, named=named)

    def _judge(self, path: str, *, folder: bool) -> bool:
        target = os.path.join(self._root, path)
        files = [(os.path.join(level, ".gitignore"), level) for level in self._levels_above(target)[::-1]]
        files += [(shared, self.top) for shared in reversed(self._shared_files())]
        for file, base in files:
            spec = self._spec(file)
            relative = os.path.relpath(target, base)
            verdict = spec.check_file(relative + "/" if folder else relative).include if spec else None
            if verdict is not None:
                return verdict
        return False

    def _load_spec(self, path: str) -> "GitIgnoreSpec | None":
        lines = [line for line in self._lines(path) if _is_rule(line)]
        if not lines:
            return None
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - slow to import, seldom needed

        good = []
        for line in lines:
            try:
                GitIgnoreSpec.from_lines([line])
            except (ValueError, re.error):
                continue  # Git passes over what it cannot read, too
            good.append(line)
        return GitIgnoreSpec.from_lines(good)

    def _list_shared_files(self) -> list[str]:
        """Give the rule files that belong to no folder, the lowest rank first."""
        common = find_common_folder(self.top)
        return [self._find_global_excludes(), *([os.path.join(common, "info", "exclude")] if common else [])]

    def _find_global_excludes(self) -> str:
        chosen = self._find_excludes(self.top) if self._find_excludes is not None else None
        if chosen is not None:
            return chosen
        config = self._environ.get("XDG_CONFIG_HOME") or os.path.join(self._environ.get("HOME", ""), ".config")
        return os.path.join(config, "git", "ignore")


def _find_repository(folder: str) -> str | None:
    """Give the folder at or above this one that has a `.git`; None outside Git."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def find_common_folder(top: str) -> str | None:
    """Give the shared Git folder of a checkout, through the two pointers of a linked worktree."""
    entry = os.path.join(top, ".git")
    if os.path.isdir(entry):
        return entry
    pointer = "".join(_read_rules(entry)[:1])
    if not pointer.startswith("gitdir:"):
        return None
    folder = os.path.join(top, pointer.removeprefix("gitdir:").strip())
    common = "".join(_read_rules(os.path.join(folder, "commondir"))[:1]).strip()
    return os.path.normpath(os.path.join(folder, common)) if common else folder


def _is_rule(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _anchor(line: str, base: str) -> str:
    """Rewrite a rule that stands in folder `base` as one that stands at the top."""
    negated = line.startswith("!")
    body = line[negated:]
    here = "".join(f"\\{char}" if char in "\\*?[]{}!# " else "?" if char < " " else char for char in base)
    depth = "" if "/" in body.rstrip().rstrip("/") else "**/"
    return f"{'!' if negated else ''}/{here}/{depth}{body.lstrip('/')}"


def _read_rules(path: str) -> list[str]:
    """Read the lines of a rule file; none when there is no regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        if not modes.S_ISREG(os.fstat(descriptor).st_mode):
            return []
        text = os.read(descriptor, _RULES_BYTES).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        return [line.removesuffix("\r") for line in text.split("\n")]
    except OSError:
        return []
    finally:
        os.close(descriptor)
