"""From what git prints to the one sentence a caller is told: no absolute path, no credential."""

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from exeora_ws.errors import ToolFailed

_PATH = re.compile(r"(?<![\w.:/~-])/(?:[^\s'\":,;]+/)*([^\s'\":,;/]+)/?")
_CREDENTIAL = re.compile(r"(://)[^/@\s]+@")
_LONGEST = 300

_REASONS = (
    (re.compile(r"dubious ownership"), "dubious_ownership"),
    (re.compile(r"No space left on device|Disk quota exceeded"), "disk_full"),
    (re.compile(r"not a git repository"), "not_a_repository"),
    (re.compile(r"File name too long"), "name_too_long"),
    (re.compile(r"is already (checked out|used by worktree)"), "branch_checked_out"),
    (re.compile(r"'refs/heads/.*' exists; cannot create"), "branch_conflict"),
    (re.compile(r"smudge filter .* failed|external filter .* failed"), "filter_failed"),
    (re.compile(r"Unable to create '.*\.lock'|cannot lock"), "busy"),
    (re.compile(r"Could not read from remote|unable to access|could not fetch|promisor"), "remote_unreachable"),
)
_HINTS = {
    "name_too_long": "choose a shorter name",
    "dubious_ownership": "git config --global --add safe.directory PATH, if you trust its owner",
    "busy": "another git is at work in this repository, or one died and left its .lock file",
}

_ERRNO_REASONS = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied",
}


def describe_failure(code: int, stderr: str) -> ToolFailed:
    """Make the error for a git that failed: its own first fatal line, and a reason where the words give one."""
    line = tidy(find_first_complaint(stderr))
    reason = next((reason for pattern, reason in _REASONS if pattern.search(stderr)), "git_failed")
    said = line or (f"ended by signal {-code}" if code < 0 else f"exit code {code}")
    return ToolFailed(f"git: {said}", reason=reason, hint=_HINTS.get(reason))


def find_first_complaint(stderr: str) -> str:
    """Find the line that says what went wrong: the first `fatal:`, else the first `error:`, else the last one.

    A `fatal:` that only says that a checkout failed gives way to the `error:` that says why.
    """
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    empty = any("Could not reset index file" in line for line in lines)
    for prefix in ("error: ", "fatal: ") if empty else ("fatal: ", "error: "):
        for line in lines:
            if line.startswith(prefix):
                return line.removeprefix(prefix)
    return lines[-1] if lines else ""


def find_last_line(stderr: str) -> str:
    """Give the last line with something on it, fit for a message."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return tidy(lines[-1]) if lines else ""


def tidy(line: str) -> str:
    """Take absolute paths down to their last name and credentials out of addresses; cut what is too long."""
    bare = _PATH.sub(r"\1", _CREDENTIAL.sub(r"\1", line))
    shown = "".join(c if c.isprintable() else "?" for c in bare)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


@contextmanager
def translated_os_errors(what: str) -> Iterator[None]:
    """Turn what the kernel refuses into ours, naming `what` was being done and no path.

    Raises:
        ToolFailed: reason `disk_full`, `permission_denied` or `io_failed`.
    """
    try:
        yield
    except shutil.Error as error:
        raise ToolFailed(f"{what} failed: some files could not be copied", reason="io_failed") from error
    except OSError as error:
        reason = _ERRNO_REASONS.get(error.errno or 0, "io_failed")
        raise ToolFailed(f"{what} failed: {error.strerror or error.__class__.__name__}", reason=reason) from error
