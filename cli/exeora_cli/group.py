"""How a command is declared: its name, its examples, and the global options that every command takes."""

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

from exeora_cli import answer
from exeora_cli.session import session_of

_SHORT_HELP = 90
_GLOBAL = "global_"
"""Begins the names of the global options' parameters: a command may have an argument `workspace` beside them."""

CommandFunction = Callable[..., None]


class Group:
    """Commands that belong together, one module a group.

    Args:
        title: the heading in the help.
        prefix: the word in front of the commands (`project` for `project add`); None for commands of the top.
        about: one sentence for the help of a prefix.
        main: what the prefix alone does; it shows its help unless there is something.
        inside: the group whose prefix stands before this one's.
    """

    def __init__(
        self,
        title: str,
        prefix: str | None = None,
        about: str = "",
        main: CommandFunction | None = None,
        inside: "Group | None" = None,
    ) -> None:
        self.title = title
        self.prefix = prefix
        self.about = about
        self._inside = inside
        self._typer = typer.Typer(rich_markup_mode=None, no_args_is_help=False)
        self._epilog: str | None = None
        self.names: list[str] = []
        self.documents: dict[str, str] = {}
        """For each command, what its JSON document holds (docs/cli.md is made of it)."""
        if prefix is not None:
            self._typer.callback(invoke_without_command=True)(main or show_help)
        if inside is not None:
            inside._typer.add_typer(self._typer, name=prefix, help=about)  # noqa: SLF001  of its own kind

    def command(
        self, name: str, examples: str, document: str, *, takes_command: bool = False
    ) -> Callable[[CommandFunction], CommandFunction]:
        """Declare a command.

        Args:
            name: as typed.
            examples: command lines, one a line, shown at the end of its help.
            document: what its JSON document holds, for the reference.
            takes_command: its arguments are another command: from the first on, options are that one's.
        """
        self.documents[" ".join((*self._words, name))] = document
        self.names.append(name)
        return self._typer.command(
            name,
            epilog=write_examples(examples),
            context_settings={"allow_interspersed_args": not takes_command},
        )

    def describe_main(self, examples: str, document: str) -> None:
        """Say of what the prefix alone does what `command` says of a command."""
        self.documents[" ".join(self._words)] = document
        self._epilog = write_examples(examples)

    @property
    def _words(self) -> tuple[str, ...]:
        """The words in front of the commands."""
        before = () if self._inside is None else self._inside._words  # noqa: SLF001  of its own kind
        return before if self.prefix is None else (*before, self.prefix)

    def add_to(self, root: typer.Typer) -> None:
        """Add the commands to the program."""
        if self.prefix is None:
            root.add_typer(self._typer)
        elif self._inside is None:
            root.add_typer(self._typer, name=self.prefix, help=self.about, epilog=self._epilog)

    @property
    def shown_names(self) -> list[str]:
        """What the program's help lists of it."""
        if self._inside is not None:
            return []
        return self.names if self.prefix is None else [self.prefix]


def write_examples(examples: str) -> str:
    """Give command lines, one a line, as the end of a help has them."""
    return "\b\nExamples:\n" + "\n".join(f"  {line.strip()}" for line in examples.strip().splitlines())


def show_help(context: typer.Context) -> None:
    """Show what there is, when no command is named."""
    if context.invoked_subcommand is None:
        answer.print_lines([context.get_help()])


class Program(TyperGroup):
    """The program itself: its help lists the commands under the titles of their groups."""

    groups: ClassVar[tuple[Group, ...]] = ()
    """Set once, by the program."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, a section for each title."""
        del ctx
        for title in dict.fromkeys(group.title for group in self.groups):
            names = [name for group in self.groups if group.title == title for name in group.shown_names]
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(_SHORT_HELP)) for name in names])


def spread_options(root: Any) -> None:
    """Have every command and prefix take the program's own options after its name too, but for one it has itself.

    Args:
        root: the group that typer built; its commands are changed in place.
    """
    shared = [parameter for parameter in root.params if parameter.name.startswith(_GLOBAL)]
    for parameter in shared:
        _hand_over(parameter)
    for command in _list_commands(root):
        own = {option for parameter in command.params for option in parameter.opts}
        command.params.extend(copy.copy(parameter) for parameter in shared if own.isdisjoint(parameter.opts))


def _list_commands(group: Any) -> list[Any]:
    found: list[Any] = []
    for command in group.commands.values():
        found.append(command)
        if hasattr(command, "commands"):
            found += _list_commands(command)
    return found


def _hand_over(parameter: Any) -> None:
    def take(context: typer.Context, _parameter: Any, value: str | bool | None) -> None:
        # An empty selector was given, and names nothing: it must not read as none given.
        if value is not None and value is not False:
            session_of(context).options.take(parameter.name.removeprefix(_GLOBAL), value)

    parameter.callback = take
    parameter.expose_value = False
