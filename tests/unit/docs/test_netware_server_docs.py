"""docs/netware-server.md: its options and calls are those of the code."""

from __future__ import annotations

import re

from msmqwire.cli.netware.serve import command
from msmqwire.cli.options import command as made
from msmqwire.ncp.calls import FUNCTION_23
from msmqwire.ncp.packets import CALLS
from msmqwire.netware.protocol.dispatch import OPERATIONS
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "netware-server.md").read_text(encoding="utf-8")
QUEUE_CALLS = range(100, 139)


def test_every_option_with_its_default() -> None:
    serve = made("serve", command)
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `--")]
    told: dict[str, str] = {}
    for row in rows:
        names = re.findall(r"`(--[a-z-]+)", row[1])
        values = row[3].strip().replace(",", "").split("; ")
        told |= dict(zip(names, values if len(values) == len(names) else ["?"] * len(names), strict=True))
    known = {
        parameter.opts[0]: ""
        if parameter.required or parameter.default in (None, ())
        else f"{parameter.default:g}"
        if isinstance(parameter.default, float)
        else str(parameter.default)
        for parameter in serve.params
        if parameter.name != "help"
    }
    assert told == known


def test_every_call_beside_those_of_queues() -> None:
    section = PAGE[PAGE.index("| calls | |") : PAGE.index("Everything else is refused")]
    firsts = [row.split("|")[1] for row in section.splitlines()[2:] if row.startswith("|")]
    told = {int(number) for first in firsts for number in re.findall(r"\d+", first)}
    performed = {
        number
        for (function, number), call in CALLS.items()
        if call.name in OPERATIONS and not (function == FUNCTION_23 and number in QUEUE_CALLS)
    }
    assert told == performed
