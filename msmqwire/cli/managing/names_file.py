"""Files with the names of queues: one a line, comments behind ``#``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from click import BadParameter

from msmqwire.cli.common import NoInput
from msmqwire.errors import InvalidName
from msmqwire.names.printable import counted
from msmqwire.qm.client.managed_names import managed_queue

_SIZE_MAX: Final = 0x40_0000
OPTION: Final = "--queues"


def names_in(file: Path) -> list[str]:
    """Return the names in a file. Raises NoInput, and BadParameter with the line of a wrong one."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_SIZE_MAX + 1)
    except OSError as exc:
        raise NoInput(f"{file}: {exc.strerror or exc}") from None
    if len(data) > _SIZE_MAX:
        raise BadParameter(f"{file}: more than {counted(_SIZE_MAX, 'byte')}", param_hint=OPTION)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        at = data.count(b"\n", 0, exc.start) + 1
        raise BadParameter(f"{file}, line {at}: not a text in UTF-8", param_hint=OPTION) from None
    names = []
    for number, line in enumerate(text.splitlines(), 1):
        name = line.partition("#")[0].strip()
        if not name:
            continue
        try:
            managed_queue(name)
        except InvalidName as exc:
            raise BadParameter(f"{file}, line {number}: {exc.why}", param_hint=OPTION) from None
        names.append(name)
    return names
