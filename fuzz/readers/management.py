"""Targets for calls of queue management: stubs, and the values of properties in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fuzz.readers.registry import target
from fuzz.readers.stub_checks import SYNTAXES, comes_back, is_a_name_or_refused, stub_seeds
from msmqwire.constants import ManagementMachineProperty, ManagementQueueProperty
from msmqwire.management.constants import ObjectType
from msmqwire.management.management_packet import plain_json
from msmqwire.management.procedures import PROCEDURES
from msmqwire.management.reports import machine_report, queue_report
from msmqwire.rpc.ndr import Stub

STUBS: tuple[Stub, ...] = tuple(
    stub for each in PROCEDURES.values() for stub in (each.request, each.response)
)


def _seeds() -> Iterator[bytes]:
    yield from stub_seeds("management.pcap", STUBS)


def _words() -> Iterator[bytes]:
    yield from (b"\0\0\2\0", b"\1\0\1\0", b"\2\0\2\0", b"\xff\xff\xff\xff")
    for vt in (0x1F, 0x41, 0x48, 0x100C, 0x101F, 0x1013, 0x1003, 0x1015, 0x1048):
        number = vt.to_bytes(2, "little")
        yield number + bytes(6) + number
    yield from (name.encode("utf-16-le") for name in ("PAUSE\0", "TCP:10.0.0.1\\q\0"))


@target(seeds=_seeds, words=_words, size_max=2048)
def stubs(data: bytes) -> None:
    """A stub is the same to both of its readers, and builds to its bytes; any values make reports."""
    if len(data) < 2:
        return
    stub, syntax = STUBS[data[0] % len(STUBS)], SYNTAXES[data[1] % len(SYNTAXES)]
    value = comes_back(stub, syntax, data[2:])
    if value is None:
        return
    wanted = getattr(value, "pObjectFormat", None)
    if wanted is not None and wanted.type == ObjectType.MGMT_QUEUE and wanted.arm is not None:
        is_a_name_or_refused(wanted.arm)
    for number, variant in enumerate(getattr(value, "apVar", ())):
        shown = plain_json(variant)
        assert json.loads(json.dumps(shown)) == shown
        _is_reported(number, variant)


def _is_reported(number: int, variant: Any) -> None:
    """Check that a value is reported, or said to be none, of any property."""
    machine = list(ManagementMachineProperty)[number % len(ManagementMachineProperty)]
    queue = list(ManagementQueueProperty)[number % len(ManagementQueueProperty)]
    for report in (machine_report("host", {machine: variant}), queue_report("q", {queue: variant})):
        assert json.dumps(report.to_json())
        assert len(report.unavailable) <= 1
