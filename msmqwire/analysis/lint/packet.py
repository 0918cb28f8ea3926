"""One packet against the specifications."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Final

# Imported for the checks that they register.
from msmqwire.analysis.lint import (
    acks,
    base,
    bodies,
    compound,
    measured,
    message,
    parts,
    remote,
    security,
    tail,
)
from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import REGISTER, Check, FieldOffsets, Runner
from msmqwire.names.printable import agreed, counted
from msmqwire.schema import Record

assert all((acks, base, bodies, compound, measured, message, parts, remote, security, tail))
_RUNNER: Final = Runner()
RULES: Final = {check.id: check for check in REGISTER if check.severity == "MUST"}
ATTACKS: Final = {check.id: check for check in REGISTER if check.severity == "ATTACK"}


def lint_packet(
    packet: Record, data: bytes | None = None, offsets: FieldOffsets | None = None
) -> list[Finding]:
    """Departures of a packet from the specifications, in the order of its bytes.

    Args:
        packet: a parsed packet, or one that was made up; fields left out of it are filled in.
        data: the bytes that it was read from. Without them sizes and presence bits are measured as well,
            which can be wrong only in a packet that was made up.
        offsets: the offsets of its fields, if they are known.
    """
    if any(not hasattr(packet, name) for name in packet.schema.fields):
        packet = packet.schema.make(packet)
    offsets = offsets or FieldOffsets(packet)
    findings = [
        check.at(path, offsets.of(path), message)
        for check, path, message in _RUNNER.run(packet, acks.meant_as(packet), measured=data is None)
    ]
    findings.extend(_ambiguous_length(packet, offsets, data))
    findings.sort(key=lambda finding: finding.offset)
    return findings


def _ambiguous_length(packet: Record, offsets: FieldOffsets, data: bytes | None) -> Iterator[Finding]:
    """Check for a DataLength that fits as bytes, but in characters reaches past the packet."""
    header = packet.get("SRMPEnvelopeHeader")
    if header is None:
        return
    at = offsets.of("SRMPEnvelopeHeader.DataLength")
    end = min(offsets.packet_size() if data is None else len(data), packet.BaseHeader.PacketSize)
    size = 2 * header.DataLength
    if at + 4 + size > end:
        message = (
            f"{counted(header.DataLength, 'character', 'take')} {counted(size, 'byte')}"
            f" and {agreed(max(0, end - at - 4), 'are')} left"
        )
        yield parts.DATA_PAST_PACKET.at("SRMPEnvelopeHeader.DataLength", at, message)


def checks() -> Iterator[Check]:
    """Yield every rule of lint, sorted by id: those of a packet, of a session and of malformed bytes.

    One about several fields is yielded once, without a path and `judge`.
    """
    for _, group in groupby(sorted(REGISTER, key=lambda check: check.id), key=lambda check: check.id):
        first, *others = group
        kinds = first.kinds.union(*(other.kinds for other in others))
        path = "" if any(other.path != first.path for other in others) else first.path
        yield replace(first, path=path, kinds=kinds, judge=None, holds=None) if others else first
