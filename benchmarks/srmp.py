"""Benchmark of SRMP requests: parsed and built a second, against plain reading and writing of the same ones.

    python benchmarks/srmp.py [ROUNDS]

The plain side is `benchmarks/support/srmp_plain.py`: lxml and `email`, without any check. Ours checks, limits
and keeps everything, and its bytes come back. Both take turns in one process and must give the same values;
the best of 100 short rounds counts, in processor time. Then the worst requests of a hostile client, in sizes
that double: the nanoseconds for a byte do not grow if the cost is linear.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import UUID

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.support import srmp_plain as plain  # noqa: E402
from benchmarks.support.turns import best  # noqa: E402
from msmqwire.errors import MalformedPacket  # noqa: E402
from msmqwire.names import parse_format_name  # noqa: E402
from msmqwire.qm.model.enumerations import AcknowledgementsRequested, DeliveryGuarantee  # noqa: E402
from msmqwire.qm.model.message import Message, ObjectId  # noqa: E402
from msmqwire.qm.protocols.srmp.deserializing import deserialize  # noqa: E402
from msmqwire.qm.protocols.srmp.serializing import serialize  # noqa: E402
from msmqwire.srmp.fields import FIELD_COUNT_MAX, HEAD_SIZE_MAX  # noqa: E402
from msmqwire.srmp.message import build_message, parse_message  # noqa: E402
from msmqwire.srmp.request import make_request, request_address  # noqa: E402
from msmqwire.srmp.scan import DEPTH_MAX, ELEMENTS_MAX, TAG_MAX  # noqa: E402

AIM: Final = 1.2
SENDER: Final = UUID("32221eda-9376-46df-b6ed-783091123831")
BOUNDARY: Final = 26500
SENT: Final = 1_182_300_000
ARRIVAL: Final = SENT + 60


def example(name: str) -> bytes:
    return (ROOT / f"tests/vectors/srmp/{name}.http").read_bytes()


def messages() -> dict[str, Message]:
    """Messages as applications send them."""
    common = Message(
        identifier=ObjectId(SENDER, 26626),
        source_machine_identifier=SENDER,
        label="order 7",
        body=bytes(1024),
        destination=parse_format_name("DIRECT=http://machine2/msmq/private$/orders"),
        sent_time=SENT,
    )
    queue = parse_format_name("DIRECT=http://machine1/msmq/private$/admin")
    receipts = common.copy(
        delivery_guarantee=DeliveryGuarantee.RECOVERABLE,
        negative_journaling_requested=True,
        response=queue,
        administration=queue,
        acknowledgements_requested=(
            AcknowledgementsRequested.ACK_POS_ARRIVAL
            | AcknowledgementsRequested.ACK_POS_RECEIVE
            | AcknowledgementsRequested.ACK_NEG_RECEIVE
        ),
        final_ack_required=True,
    )
    several = receipts.copy(destinations=(queue,) * 20, responses=(queue,) * 20)
    return {"usual, body of 1 KiB": common, "with receipts": receipts, "with 40 names of queues": several}


def write(message: Message) -> bytes:
    envelope, body, extension = serialize(message, queue_manager=SENDER)
    target, host = request_address(envelope.path.to)
    request = make_request(
        envelope, target, host, boundary=BOUNDARY, queue_manager=SENDER, body=body, extension=extension
    )
    return build_message(request)


def same(ours: Any, theirs: Any) -> bool:
    """Whether the plain reader has all values of ours, which may have more: attributes, and the presence of
    elements.
    """
    if isinstance(ours, Mapping):
        others = {name[:1].lower() + name[1:]: value for name, value in theirs.items()}
        return all(same(value, others[name[:1].lower() + name[1:]]) for name, value in ours.items())
    return tuple(ours) == tuple(theirs) if isinstance(theirs, tuple | list) else ours == theirs


def parse_rows(rounds: int) -> None:
    names = ["4.1", "4.2", "4.3-1", "4.3-3", "4.3-5", "4.4-1", "4.4-2", "4.5"]
    requests = {f"example of {name}": example(name) for name in names}
    requests |= {name: write(message) for name, message in messages().items()}
    totals = [0.0] * 3
    print(
        f"{'parsing, µs a request':<28} {'bytes':>6} {'plain':>8} {'ours':>8} {'ratio':>6} {'and mapped':>11}"
    )
    for name, data in requests.items():
        assert same(parse_message(data).envelope.header, plain.read(data))
        actions = [
            lambda data=data: plain.read(data),
            lambda data=data: parse_message(data).envelope,
            lambda data=data: deserialize(parse_message(data), ARRIVAL),
        ]
        if name in ("example of 4.3-3", "example of 4.3-5"):  # receipts
            del actions[2]
        found = best(actions, rounds)
        totals = [total + one for total, one in zip(totals, (*found, 0.0), strict=False)]
        mapped = f"{found[2]:>11.1f}" if len(found) > 2 else ""
        cells = f"{found[0]:>8.1f} {found[1]:>8.1f} {found[1] / found[0]:>6.2f}"
        print(f"{name:<28} {len(data):>6} {cells} {mapped}")
    summary("parsing", *totals[:2], len(requests))


def build_rows(rounds: int) -> None:
    totals = [0.0, 0.0]
    sent = messages()
    print(f"\n{'building, µs a request':<28} {'bytes':>6} {'plain':>8} {'ours':>8} {'ratio':>6}")
    for name, message in sent.items():
        data = write(message)
        other = parse_message(plain.write(message, SENDER, BOUNDARY))
        assert other.envelope == parse_message(data).envelope
        assert other.body == message.body
        actions = [lambda m=message: plain.write(m, SENDER, BOUNDARY), lambda m=message: write(m)]
        found = best(actions, rounds)
        totals = [total + one for total, one in zip(totals, found, strict=True)]
        print(f"{name:<28} {len(data):>6} {found[0]:>8.1f} {found[1]:>8.1f} {found[1] / found[0]:>6.2f}")
    summary("building", *totals, len(sent))


def summary(what: str, plain_us: float, ours_us: float, count: int) -> None:
    ratio = ours_us / plain_us
    print(
        f"{what}: {count / plain_us * 1e6:,.0f} a second plainly, {count / ours_us * 1e6:,.0f} by msmqwire: "
        f"{ratio:.2f} times the time, aim {AIM}: {'reached' if ratio <= AIM else 'missed'}"
    )


def hostile() -> dict[str, Callable[[float], bytes]]:
    """The worst envelopes within the limits, by their share of the limits."""
    data = parse_message(example("4.1")).envelope_bytes or b""

    def inside(text: bytes) -> bytes:
        return data.replace(b"</se:Header>", text + b"</se:Header>")

    def label(text: bytes) -> bytes:
        return data.replace(b"<action>", b"<action>" + text)

    room = ELEMENTS_MAX - 100
    attributes = b" ".join(b"a%d='1'" % number for number in range(TAG_MAX // 10))
    spaces = b" ".join(b"xmlns:a%d='u:%d'" % (number, number) for number in range(TAG_MAX // 23))
    deep = DEPTH_MAX - 3
    return {
        "unknown elements": lambda part: inside(b"<x/>" * int(part * room)),
        "unknown, deeply nested": lambda part: inside(
            (b"<x>" * deep + b"</x>" * deep) * int(part * room / deep)
        ),
        "unknown, many attributes": lambda part: inside(b"<x %b/>" % attributes * int(part * 400)),
        "unknown, many namespaces": lambda part: inside(b"<x %b/>" % spaces * int(part * 400)),
        "unknown, a new name each": lambda part: inside(
            b"".join(b"<x%d%b/>" % (number, b"x" * 900) for number in range(int(part * room)))
        ),
        "comments": lambda part: inside(b"<!---->" * int(part * room)),
        "long text": lambda part: label(b"x" * int(part * 4_000_000)),
        "references": lambda part: label(b"&#97;" * int(part * 800_000)),
        "white space": lambda part: inside(b" \n" * int(part * 2_000_000)),
        "digits": lambda part: data.replace(b"<id>uuid:", b"<id>uuid:" + b"1" * int(part * 4_000_000)),
        "a name of a queue": lambda part: data.replace(b"</to>", b"/" * int(part * 4_000_000) + b"</to>"),
    }


def hostile_heads() -> dict[str, Callable[[float], bytes]]:
    data = example("4.2")
    return {
        "header fields": lambda part: data.replace(
            b"Host:", b"A: %b\r\n" % (b"b" * 120) * int(part * (FIELD_COUNT_MAX - 10)) + b"Host:"
        ),
        "a long header field": lambda part: data.replace(
            b"Host:", b"A: " + b" b" * int(part * (HEAD_SIZE_MAX // 2 - 200)) + b"\r\nHost:"
        ),
        "folded header fields": lambda part: data.replace(
            b"Host:", b"A: b\r\n" + b" c\r\n" * int(part * (HEAD_SIZE_MAX // 4 - 200)) + b"Host:"
        ),
    }


def read_hostile(data: bytes) -> None:
    with suppress(MalformedPacket):
        deserialize(parse_message(data), ARRIVAL)


def hostile_rows() -> None:
    columns = f"{'bytes at most':>14} {'ns a byte, in sizes that double':>32} {'MB/s':>8}"
    print(f"\n{'the worst inputs':<28} {columns}")
    for name, make in {**hostile(), **hostile_heads()}.items():
        cells = []
        for part in (0.25, 0.5, 1.0):
            data = make(part)
            cells.append(best([lambda data=data: read_hostile(data)], 3)[0] * 1e3 / len(data))
        numbers = "".join(f"{cell:>10.1f}" for cell in cells)
        print(f"{name:<28} {len(data):>14} {numbers:>32} {1e3 / cells[-1]:>8.1f}")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"Python {sys.version.split()[0]}")
    parse_rows(rounds)
    build_rows(rounds)
    hostile_rows()


if __name__ == "__main__":
    main()
