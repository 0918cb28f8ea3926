"""Fields of PGM packets are those that tshark finds in them, in IP and in UDP."""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path

import pytest

from msmqwire.pgm import (
    Data,
    Nak,
    Nla,
    OptFin,
    OptFragment,
    OptJoin,
    OptNakList,
    OptRst,
    OptSyn,
    PgmPacket,
    PgmType,
    Poll,
    Polr,
    Spm,
    build_pgm,
)
from tests.support import captures as c
from tests.support.capture.tshark import tshark

PGM = 113
GSI = bytes.fromhex("0a0b0c0d0e0f")
V4, V6 = Nla(ip_address("10.1.2.3")), Nla(ip_address("fd00::7"))
GROUP, GROUP_6 = Nla(ip_address("234.1.1.1")), Nla(ip_address("ff15::1"))
TOP = 0xFFFFFFF0


def packet(kind, body, *options, data=b"", checksum=None):
    return PgmPacket(kind, 8001, 0x1234, GSI, body, options, data, Checksum=checksum)


# A packet, and what tshark has to say of it.
CASES = {
    "SPM": (
        packet(PgmType.SPM, Spm(7, TOP, 5, V4)),
        {"spm.sqn": "7", "spm.trail": str(TOP), "spm.lead": "5", "spm.pathafi": "1",
         "spm.path.ipv4": "10.1.2.3"},
    ),
    "SPM of IPv6 with OPT_FIN": (
        packet(PgmType.SPM, Spm(7, 1, 5, V6), OptFin()),
        {"spm.pathafi": "2", "spm.path.ipv6": "fd00::7", "hdr.opts": "0x01", "opts.tlen": "8",
         "options": "Fin 4"},
    ),
    "SPM with OPT_RST": (
        packet(PgmType.SPM, Spm(7, 1, 5, V4), OptRst(U=3)), {"opts.tlen": "8", "options": "Rst 4"},
    ),
    "SPM with OPT_JOIN": (
        packet(PgmType.SPM, Spm(7, 1, 5, V4), OptJoin(77)),
        {"opts.join.min_join": "77", "opts.tlen": "12", "options": "Join 8"},
    ),
    "ODATA": (packet(PgmType.ODATA, Data(9, 2), data=b"hello"), {"hdr.tsdulen": "5", "hdr.opts": "0x00"}),
    "ODATA with OPT_SYN and OPT_FRAGMENT": (
        packet(PgmType.ODATA, Data(9, 2), OptFragment(9, 1400, 60000), OptSyn(), data=b"x" * 1000),
        {"hdr.tsdulen": "1000", "opts.tlen": "24", "opts.fragment.first_sqn": "9",
         "opts.fragment.fragment_offset": "1400", "opts.fragment.total_length": "60000",
         "options": "Fragment 16, Syn 4"},
    ),
    "RDATA": (packet(PgmType.RDATA, Data(9, 2), data=b"odd"), {"hdr.tsdulen": "3"}),
    "NAK": (
        packet(PgmType.NAK, Nak(TOP, V4, GROUP)),
        {"nak.sqn": str(TOP), "nak.srcafi": "1", "nak.src.ipv4": "10.1.2.3", "nak.grpafi": "1",
         "nak.grp.ipv4": "234.1.1.1"},
    ),
    "NAK with OPT_NAK_LIST": (
        packet(PgmType.NAK, Nak(3, V4, GROUP), OptNakList((4, 6))),
        {"hdr.opts": "0x03", "opts.tlen": "16", "options": "NakList 12",
         "opts.nak.list": b"0x4 0x6 ".hex(),  # tshark 4.0 has the text of the list in this field
        },
    ),
    "NNAK": (
        packet(PgmType.NNAK, Nak(3, V6, GROUP_6)), {"nak.src.ipv6": "fd00::7", "nak.grp.ipv6": "ff15::1"},
    ),
    "NCF": (
        packet(PgmType.NCF, Nak(3, V4, GROUP_6)), {"nak.src.ipv4": "10.1.2.3", "nak.grp.ipv6": "ff15::1"},
    ),
    "POLL": (
        packet(PgmType.POLL, Poll(1, 2, 1, V4, 4, 5, 6)),
        {"poll.sqn": "1", "poll.round": "2", "poll.subtype": "1", "poll.path.ipv4": "10.1.2.3",
         "poll.backoff_ivl": "4", "poll.rand_str": "5", "poll.matching_bmask": "6"},
    ),
    "POLR": (packet(PgmType.POLR, Polr(1, 2, 3)), {"polr.sqn": "1", "polr.round": "2", "polr.res": "3"}),
}  # fmt: skip


def plain(text: str) -> str:
    """Numbers in decimal, however tshark prints a field."""
    return str(int(text, 16)) if re.fullmatch("0x[0-9a-f]+", text) else text


def read(path: Path, names: list[str]) -> dict[str, str]:
    names = [name for name in names if name != "options"]
    arguments = [argument for name in names for argument in ("-e", f"pgm.{name}")]
    as_pgm = ("-d", "udp.port==3055,pgm", "-o", "pgm.check_checksum:TRUE")
    line = tshark(path, *as_pgm, "-T", "fields", *arguments)
    values = dict(zip(names, map(plain, line.rstrip("\n").split("\t")), strict=True))
    options = re.findall(r"Option: (\w+), Length: (\d+)", tshark(path, *as_pgm, "-V"))
    if options:
        values["options"] = ", ".join(map(" ".join, options))
    # tshark 4.0 fills this field a second time, with the length of the packet as it seems.
    values["hdr.cksum.status"] = values["hdr.cksum.status"].rpartition(",")[2]
    return values


@pytest.mark.parametrize("encapsulated", [False, True], ids=["IP", "UDP"])
@pytest.mark.parametrize("name", CASES)
def test_fields(tmp_path, name, encapsulated):
    value, expected = CASES[name]
    data = build_pgm(value)
    inside = c.udp(data, dst="234.1.1.1", dst_port=3055) if encapsulated else data
    frame = c.ethernet(c.ipv4(inside, dst="234.1.1.1", protocol=17 if encapsulated else PGM))
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes(c.timed([frame])))
    common = {
        "hdr.sport": "8001", "hdr.dport": str(0x1234), "hdr.type": f"0x{value.Type:02x}",
        "hdr.gsi": GSI.hex(), "hdr.cksum.status": "1",
    }  # fmt: skip
    wanted = {name: plain(text) for name, text in {**common, **expected}.items()}
    assert read(path, [*wanted]) == wanted


def test_a_wrong_checksum_is_seen(tmp_path):
    data = build_pgm(packet(PgmType.ODATA, Data(9, 2), data=b"hello", checksum=0x1234))
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes(c.timed([c.ethernet(c.ipv4(data, dst="234.1.1.1", protocol=PGM))])))
    assert read(path, ["hdr.cksum.status"]) == {"hdr.cksum.status": "0"}
