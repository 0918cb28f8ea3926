"""NCP and NetWare's queue services on the command line: packets in files, and commands of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

from msmqwire.cli.options import Option
from msmqwire.cli.protocols.protocol import CliProtocol, CommandGroup, Format, Refusals

if TYPE_CHECKING:
    from msmqwire.errors import NcpRefused


def _parse(
    data: bytes, *, call: str | None = None, reading: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the packet, or those of units over TCP. Raises MalformedPacket, BadParameter."""
    from click import BadParameter

    from msmqwire.cli.captures.readings import named_values
    from msmqwire.cli.errors import usage
    from msmqwire.names.nearest import unknown_name
    from msmqwire.ncp.packet_json import parse_sent
    from msmqwire.ncp.packets import CALLS_BY_NAME
    from msmqwire.ncp.readings import Readings

    if call is not None and call not in CALLS_BY_NAME:
        wrong = unknown_name(call, CALLS_BY_NAME, "call of NCP", see="docs/columns.md#values lists all")
        raise BadParameter(wrong.why, param_hint="--call")
    values = named_values(reading)
    with usage("--reading"):
        readings = Readings.of(values)
    answered = None if call is None else CALLS_BY_NAME[call]
    for packet in parse_sent(data, answered, readings):
        yield packet.to_json()


def _build(packet: dict[str, Any]) -> bytes:
    from msmqwire.ncp import packet_json

    return packet_json.from_json(packet).to_bytes()


def _is_missing(refusal: NcpRefused) -> bool:
    from msmqwire.cli.netware.refusals import is_missing

    return is_missing(refusal)


def _shown(refusal: NcpRefused) -> dict[str, object]:
    from msmqwire.cli.netware.refusals import shown

    return shown(refusal)


PROTOCOL: Final = CliProtocol(
    name="ncp",
    order=40,
    words={
        "also": (
            "The queue services of NetWare are dissected, too: requests and replies of NCP over TCP and UDP."
        ),
        "calls": "NCP",
        "parsed": "NCP each unit",
        "bytes": "units of NCP",
        "port": "NCP",
        "readings": "NCP fields whose byte order is disputed (job_number=big)",
    },
    commands=CommandGroup(
        name="netware",
        place=("netware.app", "app"),
        summary=(
            "Run, administer and use NetWare's queue services: a server with its bindery and queues, and a "
            "client."
        ),
        title="NetWare",
        examples="msmqwire.cli.netware.examples:EXAMPLES",
    ),
    format=Format(
        name="ncp",
        title="NCP",
        parse=_parse,
        options={
            "call": Annotated[
                str | None,
                Option(
                    metavar="NAME", help="The call that a reply of NCP answers, such as ReadQueueJobEntry."
                ),
            ],
            "reading": Annotated[
                list[str] | None,
                Option(metavar="NAME=VALUE", help="Byte order of a field of NCP on which sources disagree."),
            ],
        },
        build=_build,
        is_built=lambda name: name.endswith((" request", " reply")),
    ),
    refusals=Refusals("NcpRefused", _is_missing, _shown),
)
