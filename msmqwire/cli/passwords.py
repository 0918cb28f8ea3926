"""Passwords for commands: asked for on a terminal without echo, or read from a file or standard input.

They are no arguments, which other users of a computer can see in its list of processes.
"""

from __future__ import annotations

import sys
from getpass import getpass
from pathlib import Path
from typing import Final

from click.exceptions import Exit

from msmqwire.cli.common import NoInput, standard_input
from msmqwire.errors import InvalidValue
from msmqwire.service.credential_files import PASSWORD_SIZE_MAX, password_text, read_password

STANDARD_INPUT: Final = "-"


def password_of(file: str | Path, option: str = "password-file") -> str:
    """Return the password in a file, or for ``-`` as the terminal or standard input gives it.

    A newline at its end is not part of it. Raises NoInput, InvalidValue with the option as its path, and Exit
    after Ctrl-D.
    """
    if str(file) == STANDARD_INPUT and _is_terminal():
        return _asked("Password: ")
    try:
        if str(file) == STANDARD_INPUT:
            data = standard_input().read(PASSWORD_SIZE_MAX + 1)
            if len(data) > PASSWORD_SIZE_MAX:
                raise InvalidValue(f"more than {PASSWORD_SIZE_MAX:,} bytes", path=option)
            return password_text(data)
        return read_password(Path(file), option)
    except OSError as exc:
        raise NoInput(f"{file}: {exc.strerror or exc}") from None
    except UnicodeDecodeError:
        raise InvalidValue("not a text in UTF-8", path=option) from None


def new_password(whose: str) -> str:
    """Return a new password: a terminal is asked for it twice, else standard input has it.

    Raises as `password_of`, and InvalidValue if both differ.
    """
    if not _is_terminal():
        return password_of(STANDARD_INPUT, "password")
    first = _asked(f"New password of {whose}: ")
    if _asked("The same again: ") != first:
        raise InvalidValue("the two differ; nothing has changed", path="password")
    return first


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _asked(question: str) -> str:
    try:
        return getpass(question, stream=sys.stderr)
    except EOFError:  # Ctrl-D
        print(file=sys.stderr)
        raise Exit(1) from None
