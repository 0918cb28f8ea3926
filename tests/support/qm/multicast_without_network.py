"""Multicast in a separate network namespace whose only interface comes and goes: run there as a module.

Prints a JSON object: messages received, sent and failed, in each phase.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

from msmqwire.qm.runtime.multicast import parse_pgm_options
from msmqwire.qm.runtime.multicast.network import MulticastNetwork
from tests.support.patience import happens

GROUP = ("234.9.8.3", 8001)
PHASES: dict[str, tuple[int, tuple[str, ...]]] = {
    "no route": (1, ()),
    "up": (2, ("link set wire up", "address add 10.84.0.1/24 dev wire", "route add 224.0.0.0/4 dev wire")),
    "down": (1, ("link set wire down",)),
    "up again": (2, ("link set wire up", "route replace 224.0.0.0/4 dev wire")),
}
"""How many reports there are of each, and the commands that bring it about."""


async def run(mode: str) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    raised: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
    phase = ""
    network = MulticastNetwork(
        parse_pgm_options(mode),
        received=lambda apdu, *_: seen[phase].append(["received", apdu.decode()]),
        sent=lambda number: seen[phase].append(["sent", number]),
        failed=lambda number, why: seen[phase].append(["failed", number, why]),
        refused=lambda number: seen[phase].append(["refused", number]),
    )
    network.begin()
    for number, (phase, (count, commands)) in enumerate(PHASES.items()):
        seen[phase] = []
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True)
        network.set_groups(frozenset({GROUP}))  # joins the groups that could not be joined
        network.send(number, *GROUP, phase.encode())
        await happens(lambda: len(seen[phase]) >= count, f"{count} reports of the phase {phase!r}")  # noqa: B023
        await asyncio.sleep(0.1)  # in which no other comes
    await network.close()
    assert raised == []
    return seen


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(sys.argv[1]))))
