"""The packets and skipped ranges of a direction add up to the bytes that tshark follows."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from msmqwire.analysis.dissection import Item, dissect
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.tshark import DISORDERS, followed


def content(rng: random.Random, clean: bool) -> bytes:
    """Packets with other bytes between them; each range is identified by its bytes."""
    parts = [
        h.establish_connection(),
        h.connection_parameters(),
        h.session_ack(),
        h.user_message(session=h.session_header(), properties=h.properties_header(body=rng.randbytes(9))),
        h.user_message(properties=h.properties_header(body=rng.randbytes(rng.randrange(5000)))),
        h.order_ack(),
    ]
    bad = [h.base_header(0), h.base_header(50).ljust(50, b"\xff"), rng.randbytes(rng.randint(1, 400))]
    pool = parts if clean else parts + bad
    return b"".join(rng.choice(pool) for _ in range(rng.randint(1, 6)))


def conversations(rng: random.Random, *, clean: bool) -> list[c.TcpConversation]:
    talks = []
    for number in range(4):
        ends = (c.CLIENT_6, c.SERVER_6) if number == 3 else (c.CLIENT, c.SERVER)
        talk = c.TcpConversation(
            (ends[0], 50_000 + number), (ends[1], 1801),
            client_isn=2**32 - rng.randrange(5000), server_isn=rng.randrange(2**32),
            mss=rng.randint(100, 1460), start_ns=c.START_NS + number * 250_000,
        ).handshake()  # fmt: skip
        for _ in range(rng.randint(2, 5)):
            talk.send(content(rng, clean), by_client=rng.random() < 0.5, acknowledged=rng.random() < 0.5)
        if number != 2:
            talk.close(rng.random() < 0.5)
        talks.append(talk)
    return talks


def directions(items: list[Item]) -> dict[int, dict[str, list[Item]]]:
    streams: dict[int, dict[str, list[Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        assert item.stream is not None
        src = f"[{item.src}]" if ":" in item.src else item.src
        streams[item.stream][f"{src}:{item.src_port}"].append(item)
    return streams


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("name", DISORDERS)
def test_items_stand_at_their_places_in_the_stream(tmp_path, name, clean, seed):
    rng = random.Random(seed)
    # tshark reports data that arrives after its own acknowledgement as lost.
    talks = [
        c.disorder(talk.frames, rng, behind_acks=False, **DISORDERS[name])
        for talk in conversations(rng, clean=clean)
    ]
    path = tmp_path / "a.pcapng"
    path.write_bytes(c.pcapng_bytes(c.merged(*talks)))
    streams = directions(list(dissect(path)))
    assert len(streams) == 4
    for stream, nodes in streams.items():
        expected = followed(path, stream)
        assert {node for node in nodes if expected[node]} == {node for node in expected if expected[node]}
        for node, items in nodes.items():
            offset = 0
            for item in items:
                assert item.raw in (expected[node][offset : offset + item.size], b"")
                assert item.raw or item.kind == "Skipped"
                assert not clean or item.packet is not None
                offset += item.size
            assert offset == len(expected[node])
