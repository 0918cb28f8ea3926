"""Captures of SRMP over HTTP and PGM, from the messages of [MC-MQSRM] chapter 4."""

from __future__ import annotations

from ipaddress import ip_address

from msmqwire.pgm import Data, Nak, Nla, OptFragment, PgmPacket, PgmType, Spm, build_pgm
from tests.support import captures as c
from tests.support.paths import ROOT

VECTORS = ROOT / "tests" / "vectors" / "srmp"
SOURCE, GROUP = "10.0.0.1", "224.1.2.3"
PGM_PORT = 3055
GSI = bytes.fromhex("a1a2a3a4a5a6")


def published(name: str) -> bytes:
    """One HTTP message of chapter 4: ``4.2``, ``4.3-1``."""
    return (VECTORS / f"{name}.http").read_bytes()


def chunked(message: bytes, *sizes: int) -> bytes:
    """An HTTP message with its entity in chunks of these sizes, the rest in one more."""
    head, _, entity = message.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
    out = [b"\r\n".join(lines), b"\r\nTransfer-Encoding: chunked\r\n\r\n"]
    for size in sizes:
        out += [b"%x\r\n" % size, entity[:size], b"\r\n"]
        entity = entity[size:]
    out += [b"%x\r\n" % len(entity), entity, b"\r\n0\r\n\r\n"]
    return b"".join(out)


def without_field(message: bytes, name: bytes) -> bytes:
    """An HTTP message without a header field."""
    head, separator, entity = message.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(name.lower() + b":")]
    return b"\r\n".join(lines) + separator + entity


def http(port: int = 80, **more) -> c.TcpConversation:
    """A conversation with a web server, after its handshake."""
    return c.TcpConversation(server=(c.SERVER, port), **more).handshake()


RESPONSE = published("4.3-2")
GET = b"GET /index.html HTTP/1.1\r\nHost: machine2\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"


# --- PGM ---------------------------------------------------------------------------------------------------


def spm(number: int, trail: int, lead: int) -> bytes:
    body = Spm(number, trail, lead, Nla(ip_address(SOURCE)))
    return build_pgm(PgmPacket(PgmType.SPM, 50_001, PGM_PORT, GSI, body))


def data_packets(apdu: bytes, first: int, size: int, trail: int = 1) -> list[bytes]:
    """The ODATA packets of an APDU, in fragments of this size if it is longer."""
    cuts = range(0, len(apdu), size)
    return [
        build_pgm(
            PgmPacket(
                PgmType.ODATA, 50_001, PGM_PORT, GSI, Data(first + number, trail),
                (OptFragment(first, at, len(apdu)),) if len(apdu) > size else (), apdu[at : at + size],
            )
        )
        for number, at in enumerate(cuts)
    ]  # fmt: skip


def as_rdata(odata: bytes) -> bytes:
    """The repair of a data packet."""
    data = odata[:4] + bytes([PgmType.RDATA]) + odata[5:6] + b"\0\0" + odata[8:]
    return data[:6] + c.checksum(data).to_bytes(2, "big") + data[8:]


def nak(number: int) -> bytes:
    body = Nak(number, Nla(ip_address(SOURCE)), Nla(ip_address(GROUP)))
    return build_pgm(PgmPacket(PgmType.NAK, PGM_PORT, 50_001, GSI, body))


def over_udp(packets: list[bytes], port: int = PGM_PORT) -> list[c.Frame]:
    """PGM in UDP datagrams to the group."""
    return c.timed([c.ethernet(c.udp_packet(data, SOURCE, 50_001, GROUP, port)) for data in packets])


def over_ip(packets: list[bytes]) -> list[c.Frame]:
    """PGM as IP protocol 113."""
    return c.timed([c.ethernet(c.ip(data, SOURCE, GROUP, protocol=113)) for data in packets])


def multicast_with_a_repair() -> list[bytes]:
    """Two messages in fragments of 400 bytes: the second fragment of the first is lost and repaired."""
    message = published("4.5")
    first = data_packets(message, 1, 400)
    second = data_packets(message, 1 + len(first), 400)
    lost = first[1]
    return [
        spm(0, 1, 0), first[0], *first[2:], nak(2), second[0], as_rdata(lost), *second[1:], second[1],
        spm(1, 1, len(first) + len(second)),
    ]  # fmt: skip


# --- samples -----------------------------------------------------------------------------------------------


def samples() -> dict[str, list[c.Frame]]:
    """Captures of one kind each, as `msmqwire dissect` finds them."""
    pipelined = (
        http(client=(c.CLIENT, 50_000))
        .send(published("4.2") + published("4.4-1"))
        .send(RESPONSE * 2, by_client=False)
    )
    pipelined.send(published("4.4-3")).send(RESPONSE, by_client=False).close()
    in_chunks = (
        http(mss=300, client=(c.CLIENT, 50_001))
        .send(chunked(published("4.3-1"), 100, 1, 900))
        .send(RESPONSE, by_client=False)
    )
    malformed = published("4.2").replace(b"<path", b"<pith")
    middle = (
        http(client=(c.CLIENT, 50_002))
        .send(published("4.2") + malformed + published("4.4-1"))
        .send(RESPONSE, by_client=False)
    )
    middle.send(RESPONSE.replace(b"200 OK", b"400 Bad Request") + RESPONSE, by_client=False).close()
    other = (
        http(8080).send(GET).send(PAGE, by_client=False).send(published("4.1").replace(b"/msmq/", b"/MSMQ/"))
    )
    other.send(RESPONSE, by_client=False).send(GET).send(PAGE, by_client=False).close()
    return {
        "pipelined": pipelined.frames,
        "chunked": in_chunks.close().frames,
        "malformed": middle.frames,
        "other port": other.frames,
        "pgm over udp": list(over_udp(multicast_with_a_repair())),
        "pgm over ip": list(over_ip(multicast_with_a_repair())),
    }
