"""The console entry. The hot commands are answered first; everything else loads the whole program."""

import os
import sys

_INTERRUPTED = 130


def start() -> int:
    """Run the command line as the whole of this process, and end it.

    After a hot command nothing is there that has to be ended in good order (whatever has threads or something to do at
    the end imports `threading`), and taking Python down would take a fifth of the time of the answer.
    """
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from exeora_cli.output import replace_closed

        replace_closed()
    code = main()
    if "threading" not in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


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
    except OSError as error:
        from exeora_cli.output import tell_unwritten

        return tell_unwritten(error)
    if code is not None:
        return code
    from exeora_cli.program import run

    return run(words)


if __name__ == "__main__":
    sys.exit(start())
