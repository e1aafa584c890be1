"""The console entry. The hot commands are answered first; everything else loads the whole program."""

import sys

_INTERRUPTED = 130


def main() -> int:
    """Run the command line of this process; gives its exit code."""
    try:
        return _answer(sys.argv[1:])
    except KeyboardInterrupt:
        return _INTERRUPTED


def _answer(words: list[str]) -> int:
    from exeora_cli import fast

    try:
        code = fast.answer(words)
    except BrokenPipeError:
        from exeora_cli.answer import quiet_pipe

        return quiet_pipe()
    if code is not None:
        return code
    from exeora_cli.program import run

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
