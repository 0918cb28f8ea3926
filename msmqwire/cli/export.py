"""``msmqwire export``: what other tools take from the schemas."""

from __future__ import annotations

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Write what makes other tools understand the protocols.",
)


@app.callback()
def _group() -> None:
    """Options of all its commands."""


@app.command("wireshark")
def wireshark() -> None:
    """Write a dissector for Wireshark and tshark (4.0 or later) to standard output: one script in Lua.

    To install it: msmqwire export wireshark > ~/.local/lib/wireshark/plugins/msmq.lua
    """
    from msmqwire.wireshark import dissector

    print(dissector(), end="")


@app.command("man")
def man() -> None:
    """Write the manual page of all commands to standard output, for man(1).

    To install it: msmqwire export man > ~/.local/share/man/man1/msmqwire.1
    """
    import typer.main

    from msmqwire.cli import app as whole
    from msmqwire.cli.man_page import man_page

    print(man_page(typer.main.get_command(whole)), end="")
