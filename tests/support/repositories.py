"""Real Git repositories for tests, made with the real git."""

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str, check: bool = True, stdin: bytes | None = None) -> str:
    """Run git in `folder`; gives its output without the last newline."""
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False, input=stdin)
    if check and done.returncode:
        raise AssertionError(f"git {' '.join(arguments)}: {done.returncode}\n{done.stderr.decode()}")
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


def commit_file(folder: Path, name: str, content: str | bytes, message: str = "change") -> str:
    """Write, add and commit one file; gives the commit."""
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content if isinstance(content, bytes) else content.encode())
    git(folder, "add", "--", name)
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


class RepositoryMaker:
    """Makes repositories side by side in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, name: str = "app", *, commits: int = 1, init: tuple[str, ...] = ()) -> Path:
        """Make `name` with commits on `main`, each changing `README.md` and adding `src/file-N.txt`; gives its top."""
        top = self.folder / name
        top.mkdir(parents=True)
        git(top, "init", "-q", "-b", "main", *init)
        for number in range(commits):
            (top / "src").mkdir(exist_ok=True)
            (top / "README.md").write_text(f"# {name}\n\nrevision {number}\n")
            (top / "src" / f"file-{number}.txt").write_text(f"line one\nline two\nfile {number}\n")
            git(top, "add", "-A")
            git(top, "commit", "-q", "-m", f"commit {number}")
        return top.resolve()
