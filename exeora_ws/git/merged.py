"""Whether a branch whose commits are not in another one is merged into it all the same: squashed, or rebased."""

from exeora_ws.git.command import Git, Output
from exeora_ws.limits import SQUASH_SEARCH_COMMITS

_PATCH = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--full-index", "--binary")


def find_evidence(git: Git, head: str, target: str) -> str | None:
    """Find evidence beyond the commits themselves, cheapest first; see the port."""
    base = git.read("merge-base", target, head, ok=(0, 1)).text
    if _has_tree_of(git, head, target):
        return "same_tree"
    if not base:
        return None
    if _has_tree_of(git, head, base):
        return "no_difference"
    if _adds_nothing(git, head, target):
        return "adds_nothing"
    return "squashed" if _is_squashed(git, head, target, base) else None


def _has_tree_of(git: Git, one: str, other: str) -> bool:
    return len(set(git.read("rev-parse", f"{one}^{{tree}}", f"{other}^{{tree}}").text.split())) == 1


def _adds_nothing(git: Git, head: str, target: str) -> bool:
    """Merge in memory (git 2.38 or newer; an older one cannot, and says nothing)."""
    output = git.read("merge-tree", "--write-tree", "--no-messages", target, head, ok=(0, 1, 128, 129))
    return output.code == 0 and output.text == git.read("rev-parse", f"{target}^{{tree}}").text


def _is_squashed(git: Git, head: str, target: str, base: str) -> bool:
    """Look for the patch of the whole branch among the newest commits that only the target has."""
    wanted = _list_patch_ids(git, git.read("diff-tree", "-p", *_PATCH, base, head))
    if not wanted:
        return False
    span = (f"--max-count={SQUASH_SEARCH_COMMITS}", "--no-merges", f"{base}..{target}", "--")
    return bool(wanted & _list_patch_ids(git, git.read("log", "-p", "--format=commit %H", *_PATCH, *span)))


def _list_patch_ids(git: Git, patches: Output) -> set[str]:
    lines = git.read("patch-id", "--stable", stdin=patches.out).text.splitlines() if patches.out else []
    return {line.split()[0] for line in lines}
