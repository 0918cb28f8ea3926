"""Wrong usage of a command, reported as all errors are: its place, its reason and the right usage."""

from __future__ import annotations

from typing import Final

import click
from click.exceptions import NoArgsIsHelpError

from msmqwire.cli.common import say
from msmqwire.cli.options import Helpful

_SETTINGS: Final = {
    "--max-connections-per-peer": "connections_per_peer=100",
    "--max-partial": "partial_bytes=268435456",
    "--max-pings": "pings=1000",
    "--max-pings-per-network": "pings_per_network=100",
    "--max-resolutions": "resolutions=16",
    "--max-sessions": "max_in_sessions=1000",
    "--max-packet": "packet_size_max=1048576",
    "--max-unacknowledged": "unacknowledged_bytes_max=16777216",
    "--idle": "session_cleanup_ms=300000",
    "--half-open": "session_initialization_ms=20000",
    "--unreachable": "unreachable_per_origin_max=100",
    "--bind-senders": "bind_senders=true",
}
"""Former options of ``serve`` that are settings now: an example of each."""


class WrongText(click.BadParameter):
    """A value that is wrong at one place. People are shown the place, programs get its offset."""

    def __init__(self, why: str, text: str, position: int, *, param_hint: str) -> None:
        """`position` is the character at which it is wrong, from 0."""
        super().__init__(f"{why} (at character {position + 1:,})", param_hint=param_hint)
        shown = "".join(char if char.isprintable() else "?" for char in text)
        self.place = f"  {shown}\n  {' ' * position}^"


def report(error: click.ClickException) -> None:
    """Print wrong usage to standard error."""
    if isinstance(error, NoArgsIsHelpError):
        error.show()
        return
    context = error.ctx if isinstance(error, click.UsageError) else None
    see = "" if context is None else f"{context.command_path} --help shows how it is used."
    if isinstance(error, WrongText):
        see = f"{error.place}\n{see}"
    say({"error": _why(error, context), "path": _path(error), "offset": None}, see=see)


def _path(error: click.ClickException) -> str:
    """Return the option, or the argument, that is wrong; empty if it is none."""
    if isinstance(error, click.NoSuchOption | click.BadOptionUsage):
        return error.option_name
    if not isinstance(error, click.BadParameter):
        return ""
    if error.param_hint:
        return error.param_hint if isinstance(error.param_hint, str) else " ".join(error.param_hint)
    return "" if error.param is None else _name(error.param)


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.human_readable_name


def _why(error: click.ClickException, context: click.Context | None) -> str:
    if isinstance(error, click.MissingParameter) and error.param is not None:
        if isinstance(error.param, click.Option):
            return f"it is missing, as {_with_value(error.param)}"
        example = _example(context)
        return f"it is missing, as in {example}" if example else "it is missing"
    if isinstance(error, click.NoSuchOption):
        from msmqwire.names.nearest import nearest

        options = _options(context)
        if "--set" in options and error.option_name in _SETTINGS:
            return f"it is a setting: --set {_SETTINGS[error.option_name]}; docs/settings.md has all"
        names = {option.lstrip("-"): option for option in options}  # dashes are like each other
        near = nearest(error.option_name.lstrip("-"), names)
        return f"there is no such option{f'; did you mean {names[near[0]]}?' if near else ''}"
    if isinstance(error, click.BadOptionUsage):
        of = None if context is None else _options(context).get(error.option_name)
        if of is None or of.is_flag:
            return "it takes no value"
        return f"its value is missing, as in {_with_value(of, error.option_name)}"
    return error.message


def _example(context: click.Context | None) -> str:
    """Return the first example of a command, which has all its arguments; empty without one."""
    if context is None or not isinstance(context.command, Helpful):
        return ""
    return next(iter(context.command.examples(context)), "")


def _options(context: click.Context | None) -> dict[str, click.Option]:
    given = [] if context is None else context.command.get_params(context)
    return {
        name: one
        for one in given
        if isinstance(one, click.Option)
        for name in (*one.opts, *one.secondary_opts)
    }


def _with_value(option: click.Option, name: str = "") -> str:
    return f"{name or _name(option)} {option.metavar or option.type.name.upper()}"
