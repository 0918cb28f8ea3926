"""The bytes of PGM packets, written out by hand from the diagrams of RFC 3208 sections 8, 9 and 14."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address

import pytest

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.pgm import (
    Data,
    Nak,
    Nla,
    Opaque,
    OptFin,
    OptFragment,
    OptionFlags,
    OptJoin,
    OptLength,
    OptNakList,
    OptRst,
    OptSyn,
    PgmPacket,
    PgmType,
    Poll,
    Polr,
    Spm,
    UnknownOption,
    build_pgm,
    checksum_is_right,
    parse_pgm,
)

GSI = bytes.fromhex("a1a2a3a4a5a6")
V4, V6 = Nla(ip_address("10.1.2.3")), Nla(ip_address("fd00::7"), Reserved=0x0102)
NLA_4 = "0001 0000 0a010203"
NLA_6 = "0002 0102 fd000000000000000000000000000007"


def packet(kind, body, *options, data=b"", **more):
    return PgmPacket(kind, 8001, 50_000, GSI, body, options, data, Checksum=0, **more)


def on_the_wire(kind, flags, after, size=0):
    return bytes.fromhex(f"1f41 c350 {kind:02x} {flags:02x} 0000 a1a2a3a4a5a6 {size:04x}" + after)


CASES = {
    "SPM": (
        packet(PgmType.SPM, Spm(1, 2, 3, V4)),
        on_the_wire(0x00, 0, "00000001 00000002 00000003" + NLA_4),
    ),
    "SPM, OPT_JOIN": (
        packet(PgmType.SPM, Spm(1, 2, 3, V6), OptJoin(5)),
        on_the_wire(
            0x00, 1, "00000001 00000002 00000003" + NLA_6 + "0004 000c" + "8308 0000 00000005"
        ),
    ),
    "SPM, OPT_FIN, OPT_RST": (
        packet(PgmType.SPM, Spm(1, 2, 3, V4), OptFin(), OptRst(U=0x45)),
        on_the_wire(
            0x00, 1, "00000001 00000002 00000003" + NLA_4 + "0004 000c" + "0e04 0000" + "8f04 0045"
        ),
    ),
    "POLL": (
        packet(PgmType.POLL, Poll(1, 2, 3, V4, 4, 5, 6)),
        on_the_wire(0x01, 0, "00000001 0002 0003" + NLA_4 + "00000004 00000005 00000006"),
    ),
    "POLR": (packet(PgmType.POLR, Polr(1, 2)), on_the_wire(0x02, 0, "00000001 0002 0000")),
    "ODATA": (
        packet(PgmType.ODATA, Data(0xFFFFFFFF, 0xFFFFFFF0), data=b"abc"),
        on_the_wire(0x04, 0, "ffffffff fffffff0 616263", 3),
    ),
    "ODATA, OPT_FRAGMENT, OPT_SYN": (
        packet(PgmType.ODATA, Data(9, 8), OptFragment(9, 0, 70), OptSyn(), data=b"abc"),
        on_the_wire(
            0x04, 1, "00000009 00000008 0004 0018 0110 0000 00000009 00000000 00000046 8d04 0000 616263", 3
        ),
    ),
    "RDATA": (packet(PgmType.RDATA, Data(9, 8)), on_the_wire(0x05, 0, "00000009 00000008")),
    "NAK": (
        packet(PgmType.NAK, Nak(9, V4, V6)),
        on_the_wire(0x08, 0, "00000009" + NLA_4 + NLA_6),
    ),
    "NNAK": (packet(PgmType.NNAK, Nak(9, V4, V4)), on_the_wire(0x09, 0, "00000009" + NLA_4 + NLA_4)),
    "NCF, OPT_NAK_LIST": (
        packet(PgmType.NCF, Nak(9, V4, V4), OptNakList((10, 12))),
        on_the_wire(
            0x0A, 3, "00000009" + NLA_4 + NLA_4 + "0004 0010" + "820c 0000 0000000a 0000000c"
        ),
    ),
    "an unknown option": (
        packet(PgmType.ODATA, Data(9, 8), UnknownOption(0x7E, b"\1\2\3\4"), data=b"abc"),
        on_the_wire(0x04, 1, "00000009 00000008 0004 000a fe06 01020304 616263", 3),
    ),
    "an unknown type": (packet(0x0D, Opaque(b"anything")), on_the_wire(0x0D, 0, b"anything".hex())),
}  # fmt: skip
CHAIN = on_the_wire(0x04, 1, "00000009 00000008 0004 0008 8d04 0000 616263", 3)


@pytest.mark.parametrize("name", CASES)
def test_layout(name):
    value, data = CASES[name]
    assert build_pgm(value) == data
    parsed = parse_pgm(data)
    assert replace(parsed, options=(), Options=None, TSDULength=None) == replace(value, options=())
    assert len(parsed.options) == len(value.options) + bool(value.options)
    for option, made in zip(parsed.options[1:], value.options, strict=True):
        assert type(option) is type(made)
        assert replace(option, E=None, OptionLength=None) == made
    assert build_pgm(parsed) == data


@pytest.mark.parametrize("name", CASES)
def test_each_cut_is_refused(name):
    data = CASES[name][1]
    for cut in range(16 if name == "an unknown type" else len(data)):
        with pytest.raises(MalformedPacket) as caught:
            parse_pgm(data[:cut])
        assert caught.value.offset is not None
        assert caught.value.offset <= max(cut, 16)


@pytest.mark.parametrize(
    "data, path, offset",
    [
        (CHAIN[:14] + b"\0\4" + CHAIN[16:], "TSDULength", 14),
        (CHAIN + b"x", "TSDULength", 14),
        (CHAIN[:24] + b"\1" + CHAIN[25:], "options.0.OptionLength", 25),
        (CHAIN[:24] + b"\x0d" + CHAIN[25:], "options.0", 24),
        (CHAIN[:25] + b"\3" + CHAIN[26:], "options.0.OptionLength", 25),
        (CHAIN[:26] + b"\xff\xff" + CHAIN[28:], "options.0.TotalLength", 26),
        (CHAIN[:26] + b"\0\3" + CHAIN[28:], "options.0.TotalLength", 26),
        (CHAIN[:26] + b"\0\x09" + CHAIN[28:], "options", 32),
        (CHAIN[:26] + b"\0\x06" + CHAIN[28:], "options.1", 30),
        (CHAIN[:28] + b"\x0d" + CHAIN[29:], "options.2", 32),
        (CHAIN[:29] + b"\0" + CHAIN[30:], "options.1.OptionLength", 29),
        (CHAIN[:29] + b"\5" + CHAIN[30:], "options.1.OptionLength", 29),
        (CHAIN[:28] + b"\x82\6" + CHAIN[30:], "options.1.OptionLength", 29),
        (CASES["NAK"][1][:20] + b"\0\3" + CASES["NAK"][1][22:], "body.SourceNLA.AFI", 20),
        (b"\0" * 0x10000, "", 0xFFFF),
        (
            on_the_wire(0x04, 1, "00000009 00000008 0004 0200" + "0d04 0000" * 127, 0),
            "options",
            24 + 4 * 64,
        ),
    ],
)
def test_malformed(data, path, offset):
    with pytest.raises(MalformedPacket) as caught:
        parse_pgm(data)
    assert (caught.value.path, caught.value.offset) == (path, offset)


@pytest.mark.parametrize(
    "change, path",
    [
        ({"GSI": b"short"}, "GSI"),
        ({"SourcePort": 0x10000}, "SourcePort"),
        ({"Type": -1}, "Type"),
        ({"TSDULength": 0x10000}, "TSDULength"),
        ({"body": Spm(1, 2, 1 << 32, V4)}, "body.LeadingEdgeSequenceNumber"),
        ({"options": (OptJoin(-1),)}, "options.1.MinimumSequenceNumber"),
        ({"options": (OptNakList((1, 1 << 32)),)}, "options.1.SequenceNumbers"),
        ({"options": (OptNakList((1,) * 64),)}, "options.1.OptionLength"),
        ({"options": (UnknownOption(0x80, b""),)}, "options.1.OptionType"),
        ({"data": bytes(0xFFFF)}, "data"),
    ],
)
def test_what_cannot_be_built(change, path):
    with pytest.raises(InvalidValue) as caught:
        build_pgm(replace(CASES["SPM"][0], **change))
    assert caught.value.path == path


def test_given_lengths_stay():
    """Even wrong ones: a tester of other programs wants them."""
    value = packet(
        PgmType.ODATA, Data(9, 8), OptLength(99, E=True), OptSyn(E=False, OptionLength=7),
        data=b"abc", TSDULength=1, Options=OptionFlags.P,
    )  # fmt: skip
    assert build_pgm(value) == on_the_wire(0x04, 0x80, "00000009 00000008 8004 0063 0d07 0000 616263", 1)


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc"])
def test_checksum(data):
    built = build_pgm(replace(packet(PgmType.ODATA, Data(9, 8), data=data), Checksum=None))
    assert checksum_is_right(built)
    assert parse_pgm(built).data == data
    for at in range(len(built)):
        broken = built[:at] + bytes([built[at] ^ 0x10]) + built[at + 1 :]
        assert not checksum_is_right(broken)


def test_a_packet_without_a_checksum():
    """Only data must have one: section 8."""
    assert checksum_is_right(CASES["SPM"][1])
    assert not checksum_is_right(CASES["ODATA"][1])
    assert not checksum_is_right(CASES["RDATA"][1])
    assert not checksum_is_right(b"\xff\xff")


def test_a_checksum_of_zero_is_sent_as_ones():
    value = PgmPacket(PgmType.ODATA, 0, 0, bytes(6), Data(0xFBFF, 0), data=b"\0\0", TSDULength=0)
    built = build_pgm(value)
    assert built[6:8] == b"\xff\xff"
    assert checksum_is_right(built)
