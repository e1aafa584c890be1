"""The console entry. The hot commands are answered first; everything else loads the whole program."""

import sys


def main() -> int:
    """Run the command line of this process; gives its exit code."""
    from exeora_cli import fast

    words = sys.argv[1:]
    try:
        code = fast.answer(words)
    except BrokenPipeError:
        return _quiet_pipe()
    except KeyboardInterrupt:
        return 130
    if code is not None:
        return code
    from exeora_cli.program import run

    return run(words)


def _quiet_pipe() -> int:
    from exeora_cli.answer import quiet_pipe

    return quiet_pipe()


if __name__ == "__main__":
    sys.exit(main())
