"""The help of a command on a terminal, in panels and colours; elsewhere it is plain text."""

from __future__ import annotations

from typing import Any

import click
from rich_click import RichCommand, RichContext, RichGroup, RichHelpConfiguration
from rich_click.rich_panel import RichCommandPanel, RichOptionPanel

from msmqwire.cli.options import Group, Helpful

_LOOK: Any = {
    "text_markup": None,
    "text_emojis": False,
    "max_width": 110,
    "text_paragraph_linebreaks": "\n\n",
}


def styled_help(command: Helpful, context: click.Context) -> str:
    """Return the help of a command."""
    attributes: dict[str, Any] = {"params": command.params, "help": command.help}
    if isinstance(command, Group):
        sections = list(command.sections(context))
        twins: Any = {name: RichCommand(name=name, help=text) for _, rows in sections for name, text in rows}
        panels: list[Any] = [RichCommandPanel(title, [name for name, _ in rows]) for title, rows in sections]
        twin: RichCommand = RichGroup(name=command.name, commands=twins, panels=panels, **attributes)
    else:
        arguments = [one.name for one in command.params if isinstance(one, click.Argument)]
        panels = [RichOptionPanel("Arguments", [name for name in arguments if name])] if arguments else []
        twin = RichCommand(name=command.name, panels=panels, **attributes)
    styled = RichContext(
        twin,
        info_name=context.info_name,
        parent=context.parent,
        rich_help_config=RichHelpConfiguration(**_LOOK),
        help_option_names=command.get_help_option_names(context),
    )
    text = twin.get_help(styled)
    examples = "".join(f"   {line}\n" for line in command.examples(context))
    return f"{text.rstrip()}\n\n Examples:\n{examples}" if examples else text
