"""The HTTP message inside a binary packet is decoded whole."""

from __future__ import annotations

import pytest

import msmqwire
from msmqwire.srmp import message_json
from msmqwire.srmp.compound import parse_compound
from msmqwire.srmp.message import parse_message
from tests.support.paths import VECTORS
from tests.support.running import called

EXAMPLE = VECTORS.joinpath("srmp", "4.2.http").read_bytes()
SCANNER = VECTORS.joinpath("srmp", "usermsg_srmp_msf_raw_v1.hex").read_bytes()


def packet_with(data: bytes) -> bytes:
    packet = msmqwire.from_json(
        {
            "packet": "UserMessage",
            "fields": {
                "UserHeader": {"DestinationQueue": {"DirectFormatName": "http://machine2/msmq/private$/q"}},
                "MessagePropertiesHeader": {},
                "SRMPEnvelopeHeader": {"Data": "<a/>"},
                "CompoundMessageHeader": {"Data": data},
            },
        }
    )
    return msmqwire.build(packet)


@pytest.mark.requirement("MQRR-2.2.5.1.2.2-07")
@pytest.mark.parametrize("behind", [b"", b"\0--\0"])
def test_parse_shows_the_message_and_what_is_behind_it(behind):
    data = packet_with(EXAMPLE + behind)
    shown = called("parse", data=data).one
    inner = shown["srmp"]
    assert inner["fields"] == message_json.to_json(parse_message(EXAMPLE))["fields"]
    assert inner.get("behind", "") == behind.hex()
    assert parse_compound(EXAMPLE + behind)[1] == behind
    assert msmqwire.build(shown) == data


def test_what_can_not_be_read_says_why():
    shown = called("parse", "--hex", data=SCANNER).one["srmp"]
    assert shown == {
        "error": "no delimiter there",
        "path": "Multipart.Parts[0].HeaderFields.Content-Length",
        "offset": 916,
    }
    assert called("parse", data=packet_with(b"<x")).one["srmp"]["offset"] is not None
    assert "srmp" not in called("parse", "--protocol", "session", data=_plain()).one


def _plain() -> bytes:
    fields = {
        "UserHeader": {"DestinationQueue": {"DirectFormatName": "OS:a\\b"}},
        "MessagePropertiesHeader": {},
    }
    return msmqwire.build(msmqwire.from_json({"packet": "UserMessage", "fields": fields}))
