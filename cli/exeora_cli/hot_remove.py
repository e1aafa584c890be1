"""`exeora remove WORKSPACE` without the library of commands: loading that takes longer than all the rest.

It is the same session and the same call (`removing.py`); only what parses the command line is left out.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from exeora_cli.fast import Asked


def remove(asked: "Asked") -> int:
    """Remove the workspace that is named; gives the exit code, errors told."""
    from exeora_cli.answer import ReaderGone, quiet_pipe

    try:
        return _remove(asked)
    except ReaderGone:
        return quiet_pipe()
    except Exception as error:  # noqa: BLE001  told as every command's is
        import typer

        from exeora_cli.program import explain

        return error.exit_code if isinstance(error, typer.Exit) else explain(error, json=asked.json)


def _remove(asked: "Asked") -> int:
    from exeora_ws.serve.log import keep_log
    from exeora_ws.settings import find_places

    from exeora_cli.removing import remove as remove_named
    from exeora_cli.session import Session

    keep_log(find_places())
    session = Session()
    try:
        for name in ("project", "workspace", "json"):
            session.options.take(name, getattr(asked, name))
        remove_named(session, asked.positional[0] if asked.positional else None)
    finally:
        session.close()
    sys.stdout.flush()
    return 0
