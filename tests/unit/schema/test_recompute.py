"""Changed records made consistent again: sizes, counts, presence bits, padding."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import assume, given

import msmqwire
from fuzz.strategies import packets
from msmqwire.headers import SECURITY_HEADER, TRANSACTION_HEADER
from msmqwire.headers.srmp import SRMP_ENVELOPE_HEADER
from msmqwire.schema import Record
from tests.support.paths import VECTORS

FRAME_7 = bytes.fromhex((VECTORS / "MS-MQQB-4.1.7-UserMessage.hex").read_text(encoding="ascii"))


def test_a_changed_body_has_its_sizes_and_padding() -> None:
    packet = msmqwire.parse(FRAME_7)
    packet.MessagePropertiesHeader.MessageBody = b"abcde"
    packet.MessagePropertiesHeader.Label = "new"
    fitting = msmqwire.parse(msmqwire.build(packet.recomputed()))
    properties = fitting.MessagePropertiesHeader
    assert (properties.MessageSize, properties.AllocationBodySize, properties.LabelLength) == (5, 5, 4)
    assert len(properties.Padding) == -(56 + 8 + 5) % 4
    assert fitting.BaseHeader.PacketSize == len(msmqwire.build(fitting))
    assert fitting.UserHeader == packet.UserHeader


def test_headers_put_in_and_taken_out_have_their_bits() -> None:
    packet = msmqwire.parse(FRAME_7)
    packet.TransactionHeader, packet.SecurityHeader = TRANSACTION_HEADER.make(), None
    flags = packet.recomputed().UserHeader.Flags
    assert (flags.TH, flags.SH, flags.DQ, flags.MP) == (True, False, 7, True)


def test_sizes_of_nested_items_are_computed() -> None:
    header = SECURITY_HEADER.parse(FRAME_7[92:136])
    header.SecurityData.Signature = b"x" * 65
    fitting = header.recomputed()
    assert (fitting.SenderIdSize, fitting.SignatureSize) == (28, 65)
    assert fitting.SecurityData.SignaturePadding == bytes(3)


@pytest.mark.parametrize("bits", [{"RQ": 1}, {"AQ": 2}, {"AQ": 3}])
def test_bits_that_say_more_than_presence_stay(bits: dict[str, int]) -> None:
    queue = {"AdminQueue": {"PrivateQueueIdentifier": 9}} if "AQ" in bits else {}
    packet = msmqwire.from_json({"packet": "UserMessage", "fields": {"UserHeader": {"Flags": bits, **queue}}})
    assert packet.recomputed() == packet


def test_a_queue_of_another_form_has_its_type() -> None:
    packet = msmqwire.parse(FRAME_7)
    packet.UserHeader.DestinationQueue = {"PublicQueueIdentifier": UUID(int=7)}
    packet.UserHeader = packet.UserHeader.recomputed()
    assert packet.UserHeader.Flags.DQ == 5


def test_a_length_in_bytes_stays_if_characters_would_differ() -> None:
    """Bytes that are not text, and of which half, the length in characters, would be one."""
    data = "00000000140000003000300030003000000036003000300030000000"
    header = SRMP_ENVELOPE_HEADER.parse(bytes.fromhex(data))
    assert (header.DataLength, header.recomputed()) == (20, header)
    header.Data = "<a/>"
    assert header.recomputed().DataLength == 5


@given(packets())
def test_what_fits_stays_readable(packet: Record) -> None:
    """A recomputed record is well-formed, and recomputing it again changes nothing.

    But for an SRMP envelope that is not text: its length counts characters or bytes, by what ends on a null,
    and the bytes after it, which may be others now, have a say in that.
    """
    envelope = packet.get("SRMPEnvelopeHeader")
    assume(envelope is None or isinstance(envelope.Data, str))
    fitting = packet.recomputed()
    assert msmqwire.parse(msmqwire.build(fitting)) == fitting
    assert fitting.recomputed() == fitting
