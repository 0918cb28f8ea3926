"""``msmqwire export``: files for other tools, made from the schemas and the commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msmqwire.cli.options import Argument, Group

app = Group(
    "export", "Write files for other tools: a dissector for Wireshark, a manual page, shell completion."
)


@app.command("wireshark")
def wireshark() -> None:
    """Write a dissector for Wireshark and tshark (4.0 or later) to standard output: one script in Lua.

    To install it: msmqwire export wireshark > ~/.local/lib/wireshark/plugins/msmq.lua
    """
    from msmqwire.plugins.wireshark import dissector

    print(dissector(), end="")


@app.command("man")
def man() -> None:
    """Write the manual page of all commands to standard output, for man(1).

    To install it: msmqwire export man > ~/.local/share/man/man1/msmqwire.1
    """
    from msmqwire.cli import app as whole
    from msmqwire.cli.man_page import man_page

    print(man_page(whole), end="")


class Shell(StrEnum):
    """The shells that can complete words."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command("completion")
def completion(
    shell: Annotated[Shell, Argument(metavar="bash|zsh|fish", help="The shell.")],
) -> None:
    """Write a script that makes a shell complete commands, options and their values.

    To install it: msmqwire export completion bash > ~/.local/share/bash-completion/completions/msmqwire
    """
    from click.shell_completion import get_completion_class

    from msmqwire.cli import app as whole

    made = get_completion_class(shell.value)
    assert made is not None, "click knows these shells"
    print(made(whole, {}, "msmqwire", "_MSMQWIRE_COMPLETE").source(), end="")
