"""Ping: [MS-MQQB] 2.2.7."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.ping import PING, PING_PORT
from tests.support import handmade
from tests.support.codec_checks import (
    assert_bits,
    assert_field,
    assert_refused,
    assert_same,
    differences,
    proving,
    requirement,
)

GUID = bytes.fromhex("D1 58 73 55 50 91 95 95 49 97 B6 E6 11 EA 26 C6")
BASE = handmade.ping(queue_manager=bytes(16))


def ping(data: bytes) -> Any:
    return msmqwire.parse(data, protocol="ping")


@requirement("MQQB-2.2.7-01")
@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("Cookie", 4, b"\x04\x03\x02\x01", 0x01020304, ids="MQQB-2.2.7-10"),
        proving("Cookie", 4, b"\xff\xff\xff\xff", 0xFFFFFFFF, ids="MQQB-2.2.7-10", name="Cookie-max"),
        proving("QMGuid", 8, GUID, UUID("557358d1-9150-9595-4997-b6e611ea26c6"), ids="MQQB-2.2.7-13"),
    ],
)
def test_fields(path: str, offset: int, data: bytes, value: Any) -> None:
    assert len(BASE) == 24
    assert_field(PING, BASE, path, offset, data, value)
    assert ping(BASE).schema is PING


@pytest.mark.parametrize(
    "name, mask",
    [
        proving("RC", 0x0001, ids=("MQQB-2.2.7-02", "MQQB-2.2.7-03")),
        proving("RF", 0x0002, ids=("MQQB-2.2.7-02", "MQQB-2.2.7-06")),
        *(proving(f"X{bit}", 1 << bit, ids="MQQB-2.2.7-07") for bit in range(2, 16)),
    ],
)
def test_flags(name: str, mask: int) -> None:
    assert_bits(PING, BASE, f"Flags.{name}", 0, 2, mask)


@requirement("MQQB-2.2.7-07")
@pytest.mark.parametrize("unused", [0x7D00, 0xB294, 0xFFFC])
def test_unused_bits_are_ignored(unused: int) -> None:
    before, data = ping(handmade.ping(flags=1)), handmade.ping(flags=1 | unused)
    after = ping(data)
    assert differences(before, after) == {f"Flags.X{bit}" for bit in range(2, 16) if unused >> bit & 1}
    assert msmqwire.build(after) == data


@requirement("MQQB-2.2.7-08")
def test_signature() -> None:
    assert PING.build({})[2:4] == b"\x48\x55"
    packet = assert_same(PING, handmade.ping())
    assert packet.Signature == 0x5548


@requirement("MQQB-2.2.7-08", "MQQB-2.2.7-09")
@pytest.mark.parametrize("signature", [0, 0x4855, 0x5549, 0x5648, 0xFFFF])
def test_other_signatures_are_refused(signature: int) -> None:
    assert_refused(ping, handmade.ping(signature=signature), "Signature", 2)


@requirement("MQQB-2.2.7-01")
@pytest.mark.parametrize("size", [0, 1, 3, 4, 7, 8, 23])
def test_cuts(size: int) -> None:
    names = {0: "Flags", 2: "Signature", 4: "Cookie", 8: "QMGuid"}
    name = names[max(offset for offset in names if offset <= size)]
    assert_refused(ping, handmade.ping()[:size], name, size)


@requirement("MQQB-2.2.7-01")
def test_bytes_behind_a_ping() -> None:
    assert_refused(ping, handmade.ping() + b"\0", "Ping", 24)


@requirement("MQQB-3.1.5.1.1-07", "MQQB-2.1.1-02")
def test_pings_are_apart() -> None:
    """No pings within a session, and only pings on their port."""
    assert PING_PORT == 3527
    assert_refused(msmqwire.parse, handmade.ping(), "BaseHeader.VersionNumber", 0)
    for data in (handmade.session_ack(), handmade.user_message(), handmade.establish_connection()):
        assert_refused(ping, data, "Signature", 2)


def test_json() -> None:
    data = handmade.ping(flags=0x0003, cookie=4, queue_manager=GUID)
    as_json = msmqwire.to_json(ping(data))
    fields = {
        "Flags": {"RC": True, "RF": True, **{f"X{bit}": False for bit in range(2, 16)}},
        "Signature": 0x5548,
        "Cookie": 4,
        "QMGuid": "557358d1-9150-9595-4997-b6e611ea26c6",
    }
    assert as_json == {"packet": "Ping", "size": 24, "fields": fields}
    assert msmqwire.build(as_json) == data
