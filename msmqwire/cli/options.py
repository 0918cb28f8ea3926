"""Commands made from functions: ``Annotated[int, Option("--port", help=...)]`` is an option of click."""

from __future__ import annotations

import inspect
import math
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])
_HELP: Final = ["-h", "--help"]
_DIGITS_MAX: Final = 40
"""No option takes a number of more digits; Python refuses to read thousands."""


class _Declared:
    """An annotation of a parameter.

    Args:
        names: ``--name`` and ``-n``; by default that of the parameter.
        help: its purpose, for the help.
        metavar: its value in the help; by default one of its type: PATH, N, SECONDS, TEXT.
        min, max: the least and the greatest number.
        complete: the values that a shell offers.
        choices: returns the only values of a text.
    """

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        complete: Callable[[], Iterable[str]] | None = None,
        choices: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        self.names, self.help, self.metavar = names, help, metavar
        self.min, self.max, self.complete, self.choices = min, max, complete, choices

    def attributes(self) -> dict[str, Any]:
        """Return its attributes for click, besides its names and type."""
        attributes = {"help": _filled(self.help), "metavar": self.metavar}
        if self.complete is None:
            return attributes
        words = self.complete

        def found(_context: Any, _parameter: Any, begun: str) -> list[str]:
            return [word for word in words() if word.startswith(begun)]

        return {**attributes, "shell_complete": found}


class Option(_Declared):
    """An option of a command."""


class Argument(_Declared):
    """An argument of a command."""


class MoreOptions:
    """The annotation of ``**options``: options that protocols add to a command.

    Args:
        declared: returns their annotations by name; without a value they are None.
    """

    def __init__(self, declared: Callable[[], Mapping[str, Any]]) -> None:
        self.declared = declared


def _filled(text: str) -> str:
    """Return a text of help with words in place of its marks, as ``{over}``."""
    if "{" not in text:
        return text
    from msmqwire.cli.protocols.texts import filled

    return filled(text)


# -- types ------------------------------------------------------------------------------------------------


class Number(click.ParamType):  # type: ignore[type-arg]
    """A number between two limits, each of which may be missing; `kind` is int or float."""

    def __init__(self, kind: type[int] | type[float], least: float | None, most: float | None) -> None:
        self.kind, self.least, self.most = kind, least, most
        self.name = "N" if kind is int else "SECONDS"

    @property
    def range(self) -> str:
        """The numbers that are accepted, in words; empty for all."""
        if self.least is None and self.most is None:
            return ""
        if self.most is None:
            return f"at least {self.least:g}"
        return f"at most {self.most}" if self.least is None else f"{self.least:g} to {self.most}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Raises click.BadParameter."""
        number = self._number(value)
        if number is None:
            what = "a whole number, as 10" if self.kind is int else "a number, as 2.5"
            self.fail(f"{value!r:.80} is not {what}", param, ctx)
        low = self.least is not None and number < self.least
        if low or (self.most is not None and number > self.most):
            self.fail(f"{value} is not {self.range}", param, ctx)
        return number

    def _number(self, value: Any) -> float | None:
        if isinstance(value, str) and not (
            value.isascii() and len(value) <= _DIGITS_MAX and "_" not in value
        ):
            return None
        try:
            number: float = self.kind(value)
        except ValueError:
            return None
        return number if math.isfinite(number) else None


class _Parsed(click.ParamType):  # type: ignore[type-arg]
    """The result of a function of a text; its ValueError is wrong usage."""

    def __init__(self, name: str, parse: Callable[[Any], Any], what: str) -> None:
        self.name, self._parse, self._what = name, parse, what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value. Raises click.BadParameter."""
        try:
            return self._parse(value)
        except ValueError:
            self.fail(f"{value!r:.80} is not {self._what}", param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the completions that a shell offers: the values of a set, or files."""
        from click.shell_completion import CompletionItem

        if self.name == "PATH":
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(word) for word in self.name.split("|") if word.startswith(incomplete)]


def _choices(words: Iterable[str]) -> type[StrEnum]:
    members = {word.upper(): word for word in words}
    return cast(type[StrEnum], StrEnum("Choices", members))


def _guid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else UUID(value)


def _type(kind: Any, declared: _Declared) -> click.ParamType:  # type: ignore[type-arg]
    if kind in (int, float):
        return Number(kind, declared.min, declared.max)
    if kind is Path:
        return _Parsed("PATH", Path, "a path")
    if kind is UUID:
        return _Parsed("GUID", _guid, "a GUID, as 6f9619ff-8b86-d011-b42d-00c04fc964ff")
    if isinstance(kind, type) and issubclass(kind, Enum):
        words = [str(member.value) for member in kind]
        return _Parsed("|".join(words), kind, f"one of {', '.join(words)}")
    return click.STRING


# -- commands ---------------------------------------------------------------------------------------------


class _Option(click.Option):
    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        if isinstance(self.type, Number) and self.type.range:
            extra["range"] = self.type.range
        return extra


class _Argument(click.Argument):
    def __init__(self, names: list[str], *, help: str, **attributes: Any) -> None:
        super().__init__(names, **attributes)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.metavar or self.make_metavar(ctx).replace("[", "").replace("]", ""), self.help or ""


class Helpful(click.Command):
    """The base of a command and a group: options for help, and styles on a terminal."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises click.UsageError, which knows the command."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as exc:
            exc.ctx = exc.ctx or ctx
            raise

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the options that show the help."""
        return _HELP

    def get_help(self, ctx: click.Context) -> str:
        """Return the help, for a terminal with styles."""
        if sys.stdout is None or not sys.stdout.isatty():
            return super().get_help(ctx)
        from msmqwire.cli.styled_help import styled_help

        return styled_help(self, ctx)

    def examples(self, ctx: click.Context) -> tuple[str, ...]:
        """Return examples, each a line for a shell; a group has none."""
        from msmqwire.cli.examples import EXAMPLES

        return EXAMPLES.get(ctx.command_path.removeprefix("msmqwire "), ())


class Command(Helpful):
    """A command whose help lists its arguments, its options and examples."""

    allow_extra_args = True  # `parse_args` refuses them

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises click.UsageError."""
        left = super().parse_args(ctx, args)
        if left and not ctx.resilient_parsing:
            raise click.UsageError(f"{left[0]!r:.80} is one argument too many", ctx)
        return left

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments and the options."""
        for title, kind in (("Arguments", click.Argument), ("Options", click.Option)):
            given = [one for one in self.get_params(ctx) if isinstance(one, kind)]
            rows = [row for one in given if (row := one.get_help_record(ctx)) is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: `format_options` has them, as not every version of click asks for them."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each in a line of its own, as it can be pasted."""
        lines = self.examples(ctx)
        if lines:
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Group(Helpful, click.Group):
    """A group of commands; `command` adds a function."""

    def __init__(self, name: str, help: str, **attributes: Any) -> None:
        super().__init__(name, help=help, no_args_is_help=True, **attributes)

    def command(self, name: str) -> Callable[[F], F]:  # type: ignore[override]
        """Add a function as a command of this name; it stays a function."""

        def add(function: F) -> F:
            self.add_command(command(name, function))
            return function

        return add

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that arguments name, and the remaining arguments. Raises click.UsageError."""
        if not ctx.resilient_parsing and not args[0].startswith("-") and args[0] not in self.commands:
            from msmqwire.names.nearest import unknown_name

            raise click.UsageError(unknown_name(args[0], self.list_commands(ctx), "command").why, ctx)
        return super().resolve_command(ctx, args)

    def sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the parts of the list of commands: a title, and names with their summaries."""
        yield "Commands", [(name, summary(self.commands[name])) for name in self.list_commands(ctx)]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in their order."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lists of commands."""
        sections = list(self.sections(ctx))
        width = max(len(name) for _, rows in sections for name, _ in rows)
        for title, rows in sections:
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def command(name: str, function: Callable[..., Any], kind: type[Command] = Command) -> Command:
    """Return a function as a command, of a class of commands: its docstring is the help."""
    hints = get_type_hints(function, include_extras=True)
    parameters = []
    for one in inspect.signature(function).parameters.values():
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            _, more = get_args(hints[one.name])
            for own, hint in more.declared().items():
                added = inspect.Parameter(own, inspect.Parameter.KEYWORD_ONLY, default=None)
                parameters.append(_parameter(added, hint))
        else:
            parameters.append(_parameter(one, hints[one.name]))
    return kind(name, callback=function, params=parameters, help=_filled(inspect.getdoc(function) or ""))


def summary(command: click.Command) -> str:
    """Return the first paragraph of the help of a command."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _parameter(parameter: inspect.Parameter, hint: Any) -> click.Parameter:
    kind, declared = get_args(hint)
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (one for one in get_args(kind) if one is not type(None))
    attributes = declared.attributes()
    missing = parameter.default is inspect.Parameter.empty
    default: Any = None if missing else parameter.default
    if declared.choices is not None:
        kind = _choices(declared.choices())
        default = None if default is None else kind(default)
    several = get_origin(kind) is list
    if several:
        (kind,) = get_args(kind)
        attributes["callback"] = lambda _context, _parameter, values: list(values) if values else default
        attributes["default"] = None
    elif not missing:
        whole = isinstance(default, float) and default.is_integer()
        attributes["default"] = int(default) if whole else default  # [default: 10], not 10.0
    if isinstance(declared, Argument):
        attributes |= {"required": missing, "nargs": -1 if several else 1}
        return _Argument([parameter.name], type=_type(kind, declared), **attributes)
    if kind is bool:
        attributes["is_flag"] = True
    else:
        attributes |= {"type": _type(kind, declared), "required": missing, "multiple": several}
    names = declared.names or _names(parameter.name, negated=kind is bool)
    return _Option([parameter.name, *names], show_default=True, **attributes)


def _names(parameter: str, *, negated: bool) -> tuple[str]:
    name = parameter.replace("_", "-")
    return (f"--{name}/--no-{name}" if negated else f"--{name}",)
