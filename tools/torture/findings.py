"""Compares the findings of the compiled judge with those of lint, on random sessions.

    python tools/torture/findings.py --packets 10000000 --seed 1

The sessions are nearly right: most counts are those of the packets sent; some fields have values that are
not allowed, or just allowed; bytes are changed, segments lost. Each finding that the compiled judge misses,
or has in excess, ends the run with the seed of its capture and the place; the last line says how many packets
were looked at in vain.
"""

from __future__ import annotations

import argparse
import io
import random
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from msmqwire.analysis.dissection import dissect  # noqa: E402
from msmqwire.headers.session import SESSION_HEADER_SIZE  # noqa: E402
from msmqwire.packets import build  # noqa: E402
from msmqwire.tables.item_reader import ItemReader  # noqa: E402
from tests.support import captures  # noqa: E402

SESSIONS: Final = 60
"""Sessions of a capture."""
_COUNTS: Final = struct.Struct("<HHIHHHH")
_WINDOW: Final = 64


def _guid(rng: random.Random) -> str:
    return f"0000000{rng.randrange(4)}-0000-0000-0000-000000000001"


NULL: Final = "00000000-0000-0000-0000-000000000000"
ODD: Final = 0.03
"""The probability of a value that breaks a rule, or nearly does."""


def _value(rng: random.Random, usual: Sequence[Any], odd: Sequence[Any]) -> Any:
    return rng.choice(odd if rng.random() < ODD else usual)


def _properties(rng: random.Random, *, acknowledged: bool) -> dict[str, Any]:
    return {
        "Label": _value(rng, ["", "label", "x" * 124], ["x\0y", "x" * 126]),
        "MessageClass": _value(rng, [0, 0, 0, 2, 0x4000, 0x8000, 0xC000], [0xFF, 0x1E00]),
        "BodyType": _value(rng, [0, 8, 0x0300, 0x2011, 0x1008], [12, 77, 0x3001]),
        "MessageBody": _value(rng, BODIES[:4], BODIES[4:]).hex(),
        "PrivacyLevel": _value(rng, [0], [1, 2, 3, 5]),
        "HashAlgorithm": _value(rng, [0, 0x8003, 0x800E], [1]),
        "EncryptionAlgorithm": _value(rng, [0, 0x6602, 0x6610], [0x6801, 1]),
        "Flags": {"PA": int(acknowledged), "NR": int(acknowledged and rng.random() < 0.5)},
    }


WORDS: Final = (0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
"""Words that are negative where the sign is mistaken, or nearly so."""
BODIES: Final = (
    b"body", b"", b"<?xml version='1.0'?>\r\n<!-- a -->\n<a/>", bytes(60),
    b"<!DOCTYPE a [", b"<?x?><!DOCTYPE a>", b"\0" + bytes(8) + b"\1" + bytes(8),
)  # fmt: skip


def _message(rng: random.Random) -> dict[str, Any]:
    is_direct, is_acknowledgement = rng.random() < 0.7, rng.random() < 0.2
    kind = rng.choice(["OrderAck", "FinalAck"]) if is_acknowledgement else "UserMessage"
    name, number = ("order_queue$", 4) if is_acknowledgement else ("q", 7)
    queue: dict[str, Any] = {"PrivateQueueIdentifier": _value(rng, [number], [4, 7])}
    if is_direct:
        queue = {"DirectFormatName": f"TCP:10.0.0.2\\PRIVATE$\\{name}"}
    is_transactional = kind == "UserMessage" and rng.random() < 0.3
    user: dict[str, Any] = {
        "SourceQueueManager": _guid(rng), "MessageID": _value(rng, range(1, 9), WORDS),
        "DestinationQueue": queue,
        "QueueManagerAddress": NULL if is_direct != (rng.random() < ODD) else _guid(rng),
        "Flags": {
            "DM": _value(rng, [1] if is_transactional or is_acknowledgement else [0, 1], [0, 2]),
            "RC": _value(rng, [0, 0, 1, 29], [30]),
        },
    }  # fmt: skip
    acknowledged = kind == "UserMessage" and rng.random() < 0.3
    if acknowledged != (rng.random() < ODD):
        user["AdminQueue"] = {"DirectFormatName": "TCP:10.0.0.1\\private$\\admin"}
    fields: dict[str, Any] = {"UserHeader": user, "SessionHeader": {"WindowSize": _value(rng, [64], [0])}}
    sequence = {"TimeStamp": _value(rng, [0, 1], WORDS), "Ordinal": _value(rng, [0, 1], WORDS)}
    last = rng.randrange(1, 6)
    if kind == "UserMessage":
        fields["MessagePropertiesHeader"] = _properties(rng, acknowledged=acknowledged)
        if is_transactional:
            fields["TransactionHeader"] = {
                "TxSequenceID": sequence, "TxSequenceNumber": _value(rng, [last], WORDS),
                "PreviousTxSequenceNumber": _value(rng, [last - 1], [last, last + 1, *WORDS]),
            }  # fmt: skip
        if rng.random() < 0.3:
            sid = _value(rng, ["010100000000000512000000"], ["", "11" * 16, "0102"])
            fields["SecurityHeader"] = {
                "Flags": {"ST": _value(rng, [1], [0, 2, 3])}, "SecurityData": {"SecurityID": sid},
            }  # fmt: skip
        for rare in ("SoapHeader", "DebugHeader"):
            if rng.random() < 0.01:
                fields[rare] = {}
    else:
        fields[f"{kind}Body"] = {
            "TxSequenceID": sequence, "TxSequenceNumber": last,
            "TxPreviousSequenceNumber": _value(rng, [last - 1], [last, *WORDS]),
        }  # fmt: skip
    return {"packet": kind, "fields": fields}


def _opening(rng: random.Random) -> dict[str, Any]:
    refused = {"Flags": {"CS": int(rng.random() < 0.05)}}
    if rng.random() < 0.5:
        header: dict[str, Any] = {
            "ClientGuid": _guid(rng), "ServerGuid": _guid(rng), "TimeStamp": _value(rng, [0, 1], WORDS),
            "Padding": rng.choice(["5a" * 512, "00" * 512]),
        }  # fmt: skip
        return {
            "packet": "EstablishConnection",
            "fields": {"InternalHeader": refused, "EstablishConnectionHeader": header},
        }
    header = {
        "RecoverableAckTimeout": _value(rng, [499, 500], WORDS), "AckTimeout": _value(rng, [20_000], WORDS),
        "WindowSize": _value(rng, [_WINDOW], [0, 1, 0xFFFF]),
    }  # fmt: skip
    return {
        "packet": "ConnectionParameters",
        "fields": {"InternalHeader": refused, "ConnectionParametersHeader": header},
    }


class Pool:
    """Packets that sessions are put together from, with what counts of each."""

    def __init__(self, rng: random.Random, count: int = 1500) -> None:
        self.openings = [build(_opening(rng)) for _ in range(count // 10)]
        made = [_message(rng) for _ in range(count)]
        self.messages = [(build(one), _is_recoverable(one)) for one in made]
        self.ack = build({"packet": "SessionAck", "fields": {"SessionHeader": {"WindowSize": _WINDOW}}})
        header = {"ClientGuid": _guid(rng), "ServerGuid": _guid(rng), "Padding": "5a" * 512}
        establish = {"packet": "EstablishConnection", "fields": {"EstablishConnectionHeader": header}}
        self.greeting = [build(establish)] * 2 + [build({"packet": "ConnectionParameters"})] * 2


def _is_recoverable(message: dict[str, Any]) -> bool:
    fields = message["fields"]
    return fields["UserHeader"]["Flags"]["DM"] == 1 or "TransactionHeader" in fields


def _session(rng: random.Random, pool: Pool, number: int) -> list[captures.Frame]:
    talk = captures.TcpConversation(
        (f"10.1.{rng.randrange(3)}.{rng.randrange(9)}", 40_000 + number), ("10.0.0.2", 1801),
        start_ns=captures.START_NS + rng.randrange(10**9), mss=rng.choice([400, 1460, 9000]),
    )  # fmt: skip
    if rng.random() < 0.9:
        talk.handshake()
    sent, stored = {True: 0, False: 0}, {True: 0, False: 0}
    is_usual = rng.random() < 0.9
    for turn, packet in enumerate(pool.greeting if is_usual else rng.choices(pool.openings, k=4)):
        talk.send(packet, by_client=turn % 2 == 0 if is_usual else rng.random() < 0.5)
    for _ in range(rng.randrange(1, 40)):
        by_client, recoverable = rng.random() < 0.7, False
        if rng.random() < 0.8:
            packet, recoverable = rng.choice(pool.messages)
            sent[by_client] += 1
            stored[by_client] += recoverable
        else:
            packet = pool.ack if rng.random() < 0.9 else rng.choice(pool.openings)
        data = bytearray(packet)
        if len(data) > SESSION_HEADER_SIZE and packet not in pool.openings and rng.random() < 0.97:
            peer = stored[not by_client]
            _COUNTS.pack_into(
                data, len(data) - SESSION_HEADER_SIZE, sent[not by_client] & 0xFFFF, peer & 0xFFFF,
                int(peer > 0), sent[by_client] & 0xFFFF, stored[by_client] & 0xFFFF, _WINDOW, 0,
            )  # fmt: skip
        if rng.random() < 0.02:
            data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 0x10, 0x20, 0x40, 0x80, 0xFF])
        talk.send(bytes(data), by_client=by_client)
        if rng.random() < 0.02:
            talk.wait(rng.choice([1_500_000_000, 41_000_000_000]))
    frames = talk.frames
    if rng.random() < 0.1:
        del frames[rng.randrange(len(frames))]
    return frames


def capture(seed: int) -> bytes:
    """Return a capture of random sessions."""
    rng = random.Random(seed)
    pool = Pool(random.Random(seed // 50), 1500)
    talks = [_session(rng, pool, number) for number in range(SESSIONS)]
    return captures.pcapng_bytes(captures.merged(*talks))


def _found(items: Any) -> Iterator[tuple[Any, ...]]:
    return ((item.frames, item.kind, item.findings) for item in items if item.findings)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--packets", type=int, metavar="N", default=100_000, help="how many, at least")
    parser.add_argument("--seed", type=int, metavar="S", default=1, help="of the first capture")
    options = parser.parse_args()
    packets = findings = looked_at = in_vain = 0
    seed, started = options.seed, time.monotonic()
    while packets < options.packets:
        data = capture(seed)
        reader = ItemReader(dissect(io.BytesIO(data)), only_findings=True)
        actual = list(_found(reader.items()))
        everything = list(dissect(io.BytesIO(data)))
        expected = list(_found(everything))
        if actual != expected:
            place = next(
                i for i, pair in enumerate(zip(actual, expected, strict=False)) if pair[0] != pair[1]
            )
            print(f"seed {seed}:\n  compiled {actual[place]}\n  lint     {expected[place]}")
            return 1
        assert reader.judge is not None
        packets += len(everything)
        findings += sum(len(found) for *_, found in expected)
        looked_at += reader.judge.looked_at
        in_vain += reader.judge.in_vain
        seed += 1
        if seed % 50 == 0:
            print(
                f"{time.monotonic() - started:6.0f} s  {packets:,} packets, {findings:,} findings", flush=True
            )
    print(
        f"{packets:,} packets of {seed - options.seed:,} captures, {findings:,} findings, all equal; "
        f"{looked_at:,} packets looked at, {in_vain:,} of them in vain ({in_vain / packets:.1%} of all)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
