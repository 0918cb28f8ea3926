"""The question before a whole queue of messages is deleted, or the loss of some is accepted."""

from __future__ import annotations

import sys
from typing import Annotated, Final

from click import BadParameter
from click.exceptions import Exit

from msmqwire.cli.options import Option

Yes = Annotated[bool, Option("--yes", "-y", help="Delete its messages without asking.")]
_ANSWERS: Final = {"y": True, "yes": True, "n": False, "no": False, "": False}


def confirm(question: str, why: str, effect: str = "deletes them") -> None:
    """Ask on a terminal whether to go on.

    Args:
        question: without its mark.
        why: the obstacle where nobody can be asked.
        effect: the effect of --yes.

    Raises Exit with the status 1 for no, BadParameter where nobody can be asked.
    """
    if sys.stdin is None or sys.stderr is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadParameter(f"{why}; --yes {effect}", param_hint="--yes")
    answer = None
    while answer is None:
        print(f"{question}? [y/N] ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:  # Ctrl-D
            print(file=sys.stderr)
        answer = _ANSWERS.get(line.strip().lower())
    if not answer:
        raise Exit(1)
