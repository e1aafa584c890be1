"""Remotes: which there are, and what is asked of them, each time within a short limit and with nobody at a prompt."""

from exeora_ws.errors import ToolFailed
from exeora_ws.git.command import Git, Output, decode
from exeora_ws.git.messages import describe_failure

REMOTES = "refs/remotes/"


def list_remotes(git: Git) -> list[tuple[str, str]]:
    """List the remotes and their addresses, by name."""
    entries = decode(git.read("config", "--list", "-z").out).split("\0")
    found: dict[str, str] = {}
    for entry in entries:
        key, _, value = entry.partition("\n")
        if key.startswith("remote.") and key.endswith(".url"):
            found.setdefault(key[len("remote.") : -len(".url")], value)
    return sorted(found.items())


def fetch(git: Git, remote: str, refspec: str | None) -> None:
    """Fetch one refspec, or what the remote is configured for."""
    _require_name(remote)
    more = ["--no-tags", "--no-write-fetch-head"] if refspec is not None else []
    output = git.reach(
        "fetch", "--quiet", "--no-recurse-submodules", *more, "--", remote, *([refspec] if refspec else [])
    )
    _require_done(output)


def find_on_remote(git: Git, remote: str, ref: str) -> str | None:
    """Ask where a reference of the remote is."""
    _require_name(remote)
    output = git.reach("ls-remote", "--quiet", "--", remote, ref)
    _require_done(output)
    lines = (line.partition("\t") for line in output.text.splitlines())
    return next((commit for commit, _, name in lines if name == ref), None)


def _require_name(remote: str) -> None:
    if not remote or remote.startswith("-"):
        raise ToolFailed("that is no name of a remote", reason="invalid_argument")


def _require_done(output: Output) -> None:
    if output.code == 0:
        return
    said = decode(output.err)
    failure = describe_failure(output.code, said)
    if "couldn't find remote ref" in said:
        raise ToolFailed("the remote has no such reference", reason="unknown_ref")
    if failure.reason == "git_failed":
        raise ToolFailed(failure.message, reason="remote_unreachable", hint="try git fetch by hand")
    raise failure
