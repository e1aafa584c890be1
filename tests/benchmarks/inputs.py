"""What is measured on: generated repositories, and a large source package, kept between runs as packed repositories.

A generated repository of N files has log-normal sizes (half of them below 2.5 KB, the largest some hundred KB), folders
as deep and as full as those of real projects, and always the same bytes.
"""

import math
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

FORM = 1
"""Changes when what is generated changes."""
PACKAGE = ("django", "5.2.7")
"""A source package with thousands of files, on the package index."""
_MEDIAN_BYTES = 2_500
_SIGMA = 1.25
_MOST_BYTES = 500_000
_FILES_A_FOLDER = 9
_CORPUS_BYTES = 4_000_000
_ENDINGS = (".py", ".py", ".py", ".ts", ".tsx", ".js", ".go", ".c", ".h", ".md", ".json", ".yaml", ".txt", ".css")
_SYLLABLES = ("al", "ba", "con", "der", "est", "fi", "gra", "hol", "in", "jo", "ker", "lo", "men", "nor", "op", "par")
_TOP_FILES = {
    ".gitignore": "*.pyc\n__pycache__/\n/build/\nnode_modules/\n*.log\n.env\n",
    ".gitattributes": "* text=auto\n",
    "README.md": "# A generated repository\n",
}


class Inputs:
    """Repositories in a cache folder: `EXEORA_BENCH_CACHE`, else in the user's cache."""

    def __init__(self) -> None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.cache = Path(os.environ.get("EXEORA_BENCH_CACHE") or os.path.join(home, "exeora-bench")).resolve()

    def clone(self, files: int, target: Path, environment: Mapping[str, str]) -> Path:
        """Give a fresh clone, with its files checked out, of a generated repository of so many files."""
        return _clone(
            self._require(f"generated-{FORM}-{files}", lambda into: generate(into, files)), target, environment
        )

    def clone_package(self, target: Path, environment: Mapping[str, str]) -> Path:
        """Give a fresh clone of a repository that holds the source package."""
        return _clone(self._require("-".join((*PACKAGE, str(FORM))), _fetch_package), target, environment)

    def _require(self, name: str, make) -> Path:
        found = self.cache / f"{name}.git"
        if not found.exists():
            self.cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.cache) as draft:
                made = Path(draft) / "made.git"
                print(f"making {name} (kept in {self.cache})", file=sys.stderr, flush=True)
                make(made)
                made.rename(found)
        return found


def _clone(source: Path, target: Path, environment: Mapping[str, str]) -> Path:
    _git("clone", "--quiet", "--no-hardlinks", str(source), str(target), environment=environment)
    return target


def generate(into: Path, files: int) -> None:
    """Make a bare repository of so many files, in one commit."""
    _git("init", "--quiet", "--bare", "--initial-branch=main", str(into))
    with subprocess.Popen(
        ["git", "-c", "core.compression=1", "-C", str(into), "fast-import", "--quiet", "--depth=0"],
        stdin=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        for piece in _write_commit(files):
            child.stdin.write(piece)
        child.stdin.close()
        if child.wait():
            raise RuntimeError("git fast-import failed")


def _write_commit(files: int) -> Iterator[bytes]:
    yield b"commit refs/heads/main\ncommitter Bench <bench@example.invalid> 1700000000 +0000\ndata 4\nmade\n"
    for path, content in _TOP_FILES.items():
        yield _write_file(path, content.encode())
    chance = random.Random(f"{FORM} {files}")
    corpus = _make_corpus(chance)
    for number, path in enumerate(make_paths(chance, files - len(_TOP_FILES))):
        size = min(_MOST_BYTES, int(chance.lognormvariate(math.log(_MEDIAN_BYTES), _SIGMA)))
        start = chance.randrange(len(corpus) - _MOST_BYTES)
        start = corpus.index(b"\n", start) + 1
        head = f"file number_{number}\n".encode()
        yield _write_file(path, head + corpus[start : start + size] + b"\n")


def _write_file(path: str, content: bytes) -> bytes:
    return f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n"


def _make_corpus(chance: random.Random) -> bytes:
    words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(6_000)]
    lines = []
    size = 0
    while size < _CORPUS_BYTES + _MOST_BYTES:
        indent = " " * (4 * chance.randint(0, 4))
        line = indent + " ".join(chance.choices(words, k=chance.randint(0, 11)))
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines).encode()


def make_paths(chance: random.Random, count: int) -> list[str]:
    """Invent distinct paths: folders grow out of folders, the more full ones more often, three to seven deep mostly."""
    folders = ["src", "tests", "docs"]
    taken: set[str] = set()
    while len(folders) < max(4, count // _FILES_A_FOLDER):
        above = folders[int(len(folders) * chance.random() ** 1.5)]
        if above.count("/") < 9:
            folder = f"{above}/{_make_name(chance)}"
            if folder not in taken:
                taken.add(folder)
                folders.append(folder)
    paths: dict[str, None] = {}
    while len(paths) < count:
        path = f"{chance.choice(folders)}/{_make_name(chance)}{chance.choice(_ENDINGS)}"
        if path not in taken:
            paths[path] = None
    return sorted(paths)


def _make_name(chance: random.Random) -> str:
    return "_".join("".join(chance.choices(_SYLLABLES, k=chance.randint(1, 3))) for _ in range(chance.randint(1, 3)))


def _fetch_package(into: Path) -> None:
    """Fetch the source package by the ordinary client, and commit what is in it."""
    name, version = PACKAGE
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        client = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*client, "--dest", folder, f"{name}=={version}"], check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        archive.unlink()
        (top,) = Path(folder).iterdir()
        _git("init", "--quiet", "--initial-branch=main", str(top))
        _git("-C", str(top), "add", "--all", "--force")
        identity = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
        _git(*identity, "-C", str(top), "commit", "--quiet", "-m", f"{name} {version}")
        _git("clone", "--quiet", "--bare", str(top), str(into))
        shutil.rmtree(top)


def _git(*words: str, environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(["git", *words], check=True, env=None if environment is None else dict(environment))
