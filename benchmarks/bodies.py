"""Benchmark of decoding and encoding message bodies of about 1 KiB.

    python benchmarks/bodies.py [FORMAT ...]

Prints for each format how many bodies a second one core decodes (processor time, best of several rounds),
the time of a peer that does some of the same where there is one, and the ratio to it. The peer only parses;
`decode` also chooses the reader and makes plain data of it. `Body.text` is made on demand, which the next
column shows; the last column is the number of bodies encoded.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msmqwire.bodies import decode, encode

VECTORS = Path(__file__).resolve().parents[1] / "tests" / "vectors" / "bodies"
ROUNDS = 5
SECONDS = 0.2
"""The shortest duration of a round."""


@dataclass(frozen=True)
class Case:
    """A body, and the work of a peer on it."""

    name: str
    body: bytes
    body_type: int = 0
    extension: bytes = b""
    peer: str = ""
    call: Callable[[], object] | None = None
    write: Callable[[], object] | None = None


ORDER = {
    "Id": 12345,
    "Customer": "Northwind Traders",
    "Placed": {"$date": "2026-11-28T08:00:00.123456700Z"},
    "Lines": [
        {"Product": f"product {n}", "Quantity": n, "Price": round(9.99 + n, 2), "Discount": False}
        for n in range(13)
    ],
}
HEADERS = {
    "NServiceBus.ConversationId": "2b8a1d7e-2f5c-4f0e-9d0a-b1f500a3c2d1",
    "NServiceBus.OriginatingMachine": "WEB01",
    "NServiceBus.OriginatingEndpoint": "Shop.Web",
    "NServiceBus.ReplyToAddress": "Shop.Web@WEB01",
    "NServiceBus.Version": "7.8.0",
}


def activex() -> Iterator[Case]:
    """Bodies of ActiveXMessageFormatter: a text and a vector."""
    text = "Grüße aus Lübeck, " * 28
    body = text.encode("utf-16-le")
    yield Case(
        "activex text", body, 8, b"", "str.decode", lambda: body.decode("utf-16-le"),
        lambda: encode(text, "activex"),
    )  # fmt: skip
    numbers = [n * 7919 % 100_000 for n in range(256)]
    vector, kind, _ = encode(numbers, "activex")
    yield Case("activex vector", vector, kind, write=lambda: encode(numbers, "activex"))


def xml() -> Iterator[Case]:
    """Bodies of XmlMessageFormatter: an array and an object."""
    from lxml import etree

    numbers = [n * 7919 % 100_000 for n in range(53)]
    order = {**ORDER, "Lines": ORDER["Lines"][:7]}
    for name, value, kind in (("xml ArrayOfInt", numbers, "ArrayOfInt"), ("xml object", order, "Order")):
        body = _indented(encode(value, "xml", type=kind)[0])
        yield Case(
            name, body, 0, b"", "lxml", lambda body=body: etree.fromstring(body),
            lambda value=value, kind=kind: encode(value, "xml", type=kind),
        )  # fmt: skip


def _indented(body: bytes) -> bytes:
    """Return XML as XmlSerializer writes it to a stream: indented, with line ends of Windows."""
    from lxml import etree

    root = etree.fromstring(body)
    etree.indent(root)
    text = etree.tostring(root, encoding="unicode").replace("\n", "\r\n")
    return f'<?xml version="1.0"?>\r\n{text}'.encode()


def json_bodies() -> Iterator[Case]:
    """JSON alone, and with the wrapping of frameworks."""
    body = encode(ORDER, "json")[0]
    yield Case("json", body, 0, b"", "json.loads", lambda: json.loads(body), lambda: encode(ORDER, "json"))
    packed = gzip.compress(body)
    yield Case("gzip", packed, 0, b"", "gzip + json", lambda: json.loads(gzip.decompress(packed)))
    envelope = {
        "messageId": "557358d1-9150-9595-4997-0c1a2b3c4d5e",
        "destinationAddress": "msmq://web01/orders",
        "messageType": ["urn:message:Shop:PlaceOrder"],
        "message": {**ORDER, "Lines": ORDER["Lines"][:10]},
        "sentTime": "2026-11-28T08:00:00.1234567Z",
    }
    mass = encode(envelope, "json")[0]
    yield Case("masstransit", mass, 0, b"", "json.loads", lambda: json.loads(mass))
    text = ("a line of a log, as people write it\r\n" * 27).encode()
    yield Case("text", text, 0, b"", "str.decode", text.decode, lambda: encode(text.decode(), "text"))


def headers() -> Iterator[Case]:
    """Headers of NServiceBus and Rebus with a small body."""
    from lxml import etree

    body, kind, extension = encode({"Id": 5}, "nservicebus", type="Shop.PlaceOrder, Shop", headers=HEADERS)
    yield Case(
        "nservicebus", body, kind, extension, "lxml", lambda: etree.fromstring(extension),
        lambda: encode({"Id": 5}, "nservicebus", type="Shop.PlaceOrder, Shop", headers=HEADERS),
    )  # fmt: skip
    body, kind, rebus = encode(ORDER, "rebus", type="Shop.PlaceOrder, Shop", headers={"rbs2-corr-id": "a"})
    yield Case(
        "rebus", body, kind, rebus, "json.loads", lambda: (json.loads(rebus), json.loads(body)),
        lambda: encode(ORDER, "rebus", type="Shop.PlaceOrder, Shop"),
    )  # fmt: skip


def wcf() -> Iterator[Case]:
    """A message of WCF: an envelope with ten simple members, with the strings of its session."""
    from msmqwire.bodies.wcf.writing import write_document

    members = {
        "OrderId": "12345", "Customer": "Northwind Traders, 20 King Street, London", "Total": "1234.50",
        "Placed": "2026-11-28T08:00:00.1234567Z", "Paid": "true", "Mail": "orders@northwind.example",
        "Reference": "6f9619ff-8b86-d011-b42d-00c04fc964ff", "Lines": "17", "Currency": "GBP",
        "Note": "please deliver before noon, and ring twice; " * 9,
    }  # fmt: skip
    inside = "".join(f"<b:{name}>{text}</b:{name}>" for name, text in members.items())
    xml = (
        '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" '
        'xmlns:a="http://www.w3.org/2005/08/addressing"><s:Header>'
        '<a:Action s:mustUnderstand="1">http://tempuri.org/IOrders/Submit</a:Action>'
        "<a:MessageID>urn:uuid:6f9619ff-8b86-d011-b42d-00c04fc964ff</a:MessageID>"
        '<a:To s:mustUnderstand="1">net.msmq://web01/private/orders</a:To></s:Header><s:Body>'
        '<Submit xmlns="http://tempuri.org/"><order xmlns:b="http://schemas.datacontract.org/2004/07/Shop" '
        'xmlns:i="http://www.w3.org/2001/XMLSchema-instance">'
        f"{inside}</order></Submit></s:Body></s:Envelope>"
    )
    peer, call = "", None
    with contextlib.suppress(ImportError):
        from pynettcp.nbfx import BinaryXmlReader  # elements and values, no XML

        records = write_document(xml)
        peer, call = "pynettcp", lambda: BinaryXmlReader(records).read()
    for name, encoding in (("wcf 8", 8), ("wcf 7", 7), ("wcf text", 3)):
        value = {"via": "net.msmq://web01/private/orders", "encoding": encoding, "xml": xml}
        body = encode(value, "wcf")[0]
        beside = call if encoding == 7 else None
        yield Case(
            name, body, 0, b"", peer, beside, lambda value=value: encode(value, "wcf"),
        )  # fmt: skip


def nrbf() -> Iterator[Case]:
    """Bodies of BinaryMessageFormatter: an order with its items, and arrays."""
    try:
        import nrbf as peer  # of the extra dev
    except ImportError:
        peer = None

    def beside(data: bytes) -> Callable[[], object] | None:
        return None if peer is None else lambda: peer.loads(data)

    body = bytes.fromhex((VECTORS / "nrbf_order.hex").read_text())
    yield Case("nrbf order", body, 0x300, b"", "nrbf", beside(body))
    texts = [f"line {n} of an order" for n in range(40)]
    numbers = [n * 7919 % 100_000 for n in range(250)]
    for name, value in (("nrbf texts", texts), ("nrbf numbers", numbers)):
        array, kind, _ = encode(value, "nrbf")
        yield Case(
            name, array, kind, b"", "nrbf", beside(array),
            lambda value=value: encode(value, "nrbf"),
        )  # fmt: skip


CASES = (activex, xml, json_bodies, headers, wcf, nrbf)


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of one call, the best of several rounds."""
    count = 1
    while _timed(call, count) < SECONDS / 4:
        count *= 2
    return min(_timed(call, count) for _ in range(ROUNDS)) / count


def _timed(call: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - start


def row(case: Case) -> str:
    """Measure a case."""
    read = decode(case.body, body_type=case.body_type, extension=case.extension)
    assert not read.problems, read.problems
    ours = seconds(lambda: decode(case.body, body_type=case.body_type, extension=case.extension))
    text = seconds(lambda: read.text)
    peer = seconds(case.call) if case.call else 0.0
    written = f"{1 / seconds(case.write):10,.0f}" if case.write else ""
    beside = f"{case.peer:>12} {peer * 1e6:7.1f} {ours / peer:6.1f}" if case.call else f"{'':27}"
    size = len(case.body) + len(case.extension)
    return f"{case.name:16} {size:6} {1 / ours:10,.0f} {ours * 1e6:7.1f} {text * 1e6:7.1f} {beside} {written}"


def main(wanted: list[str]) -> None:
    """Print the table."""
    peer = f"{'peer':>12} {'us':>7} {'ratio':>6}"
    print(f"{'format':16} {'bytes':>6} {'decoded/s':>10} {'us':>7} {'text us':>7} {peer} {'encoded/s':>10}")
    for cases in CASES:
        for case in cases():
            if not wanted or any(case.name.startswith(name) for name in wanted):
                print(row(case), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
