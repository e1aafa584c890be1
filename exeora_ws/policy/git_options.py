"""Programs that Git's own options would start: the known ways are judged or refused (docs/security.md has the rest)."""

import re
from collections.abc import Sequence
from dataclasses import replace

from exeora_ws.policy.invocation import Invocation, Nested
from exeora_ws.policy.shell_words import Unclear, Word, name_set

_HARMLESS = re.compile(
    r"(?:user\.(?:name|email)|color\.[\w.]+|core\.(?:quotepath|abbrev|autocrlf|eol|safecrlf|ignorecase)|advice\.\w+|"
    r"init\.defaultbranch|(?:commit|tag)\.gpgsign|log\.\w+|diff\.(?:renames|algorithm|context|noprefix)|"
    r"merge\.(?:conflictstyle|ff)|pull\.(?:rebase|ff)|push\.default|gc\.auto|maintenance\.auto|column\.ui|status\.\w+|"
    r"rebase\.(?:autostash|autosquash|updaterefs)|fetch\.prune|safe\.directory)\Z",
    re.IGNORECASE,
)
"""Settings that name no program and no file; any other `-c` is refused."""

_FLAGS = name_set(
    "-p --paginate -P --no-pager --bare --no-replace-objects --literal-pathspecs --glob-pathspecs --noglob-pathspecs "
    "--icase-pathspecs --no-optional-locks --no-lazy-fetch --no-advice --version -v --help -h --html-path --man-path "
    "--info-path --exec-path"
)
_VALUED = frozenset(("-C", "--git-dir", "--work-tree", "--namespace"))
_NAMES_PROGRAM = ("upload-pack", "receive-pack", "exec", "extcmd", "open-files-in-pager", "sendmail-cmd", "smtp-server")
_NAMES_PROGRAM_IN_NEW = (*_NAMES_PROGRAM, "config", "template")
_RUNS_OTHERS = name_set(
    "filter-branch difftool mergetool send-email instaweb for-each-repo hook daemon shell web--browse"
)
_SECTIONS = re.compile(
    r"(?:alias|core|diff|difftool|merge|mergetool|filter|credential|gpg|pager|include|includeif|sequence|uploadpack|remote|"
    r"submodule|interactive|browser|man|init|sendemail|trailer|url|protocol|http|ssh)\b",
    re.IGNORECASE,
)
_CONFIG_READS = name_set("--get --get-all --get-regexp --get-urlmatch --list -l get list --unset --unset-all unset")


def open_git(found: Invocation, nested: Nested) -> Invocation:
    """Find what git would start, and show the subcommand without git's own options, so that a rule on it holds."""
    at = _skip_options(found.words)
    rest = found.words[at:]
    inner: list[Invocation] = []
    if rest and rest[0] is None:
        raise Unclear("which subcommand git would run is only known to the shell")
    if rest and at > 1:
        inner.append(Invocation(("git", *rest)))
    if rest:
        inner += _open_subcommand(rest, nested)
    return replace(found, inner=tuple(inner), reach=len(found.words))


def _skip_options(words: Sequence[Word]) -> int:
    at = 1
    while at < len(words):
        word = words[at]
        if word is None:
            raise Unclear("an option of git is only known to the shell")
        if word == "-c":
            _check_setting(words[at + 1] if at + 1 < len(words) else "")
            at += 2
        elif word in _FLAGS:
            at += 1
        elif word.split("=")[0] in _VALUED:
            at += 1 if "=" in word else 2
        elif word.startswith("-"):
            raise Unclear(f"git has an option {word.split('=')[0]!r} that can name a program")
        else:
            break
    return at


def _check_setting(setting: Word) -> None:
    if setting is None:
        raise Unclear("a setting of git is only known to the shell")
    key = setting.partition("=")[0]
    if not _HARMLESS.match(key):
        raise Unclear(f"the setting {key!r} of git can name a program")


def _open_subcommand(rest: tuple[Word, ...], nested: Nested) -> list[Invocation]:
    name = str(rest[0])
    known = [word for word in rest[1:] if word is not None]
    if name in _RUNS_OTHERS:
        raise Unclear(f"git {name} runs other programs")
    if name == "bisect" and rest[1:2] == ("run",) and rest[2:]:
        return [nested.open(rest[2:])]
    if name == "submodule" and "foreach" in known:
        return _open_foreach(rest, nested)
    if name == "rebase":
        return _open_rebase(rest, nested)
    if name == "config" and any(map(_SECTIONS.match, known)) and not _reads_config(known):
        raise Unclear("git config can set a program for later")
    if any(_names_program(name, word) for word in known) or _has_short_program(name, known):
        raise Unclear(f"git {name} has an option that can name a program")
    return []


def _reads_config(known: Sequence[str]) -> bool:
    """Whether the first word that is not about which file says so: later ones may be values."""
    first = next((w for w in known if w not in ("--global", "--local", "--system", "--worktree")), "")
    return first in _CONFIG_READS


def _names_program(name: str, word: str) -> bool:
    """Whether a word is an option that names a program, or short for one: git takes any beginning of an option."""
    option = word.removeprefix("--").split("=", maxsplit=1)[0]
    dangerous = _NAMES_PROGRAM_IN_NEW if name in ("clone", "init") else _NAMES_PROGRAM
    short_for = word.startswith("--") and option and any(each.startswith(option) for each in dangerous)
    return bool(short_for) or "ext::" in word


def _has_short_program(name: str, known: Sequence[str]) -> bool:
    letters = {"clone": "uc", "grep": "O", "ls-remote": "u"}.get(name, "")
    return any(re.match(rf"-[A-Za-z]*[{letters}]", word) for word in known) if letters else False


def _open_foreach(rest: tuple[Word, ...], nested: Nested) -> list[Invocation]:
    words = [word for word in rest[rest.index("foreach") + 1 :] if word not in ("--recursive", "--quiet", "-q")]
    text = None if None in words else " ".join(str(word) for word in words)
    return list(nested.read(text, "git submodule foreach"))


def _open_rebase(rest: Sequence[Word], nested: Nested) -> list[Invocation]:
    """Every `-x TEXT`, `-xTEXT`, `--exec TEXT` and `--exec=TEXT`; anything that might be one more is unclear."""
    inner: list[Invocation] = []
    for at, word in enumerate(rest):
        following = rest[at + 1] if at + 1 < len(rest) else ""
        if word in ("-x", "--exec"):
            inner += nested.read(following, "git rebase")
        elif word and word.startswith("--exec="):
            inner += nested.read(word.removeprefix("--exec="), "git rebase")
        elif word and (word.startswith("--ex") or re.match(r"-[a-zA-Z]*x", word)):
            raise Unclear("git rebase has an option that can name a program")
    return inner
