"""Hostile senders: whatever they ask of the engine of SRMP, it keeps its bounds, and its books agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire.errors import MalformedPacket
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.protocols.srmp.states import SrmpMessageState
from msmqwire.qm.protocols.srmp.timers import SrmpTimer
from msmqwire.qm.rules.memory_pool import Kind
from msmqwire.srmp.http_framer import parse_http
from tests.support.engine_harness import OWN_ID, PEER_ID, START_UTC, THIRD_ID
from tests.support.qm.queue_contents import bodies
from tests.support.srmp.srmp_harness import THERE, SrmpHarness
from tests.support.srmp.srmp_requests import (
    ADMIN,
    HERE,
    NEVER,
    ORDER_QUEUE,
    RECEIPTS,
    date,
    envelope,
    http_request,
    path,
)

OWN_STREAM = START_UTC << 32 | 1
"""The stream that the queue manager has begun."""
PROPERTIES = '<properties se:mustUnderstand="1"><expiresAt>{}</expiresAt><sentAt>{}</sentAt></properties>'
STREAM_RECEIPT = "<streamReceipt><streamId>uid:{}\\{}</streamId><lastOrdinal>{}</lastOrdinal></streamReceipt>"
COMMITMENT_RECEIPT = (
    "<commitmentReceipt><decidedAt>{}</decidedAt><decision>{}</decision><id>uuid:{}@{}</id>"
    "</commitmentReceipt>"
)
MSMQ = (
    '<Msmq xmlns="msmq.namespace.xml"><Class>{}</Class><Priority>3</Priority>{}<BodyType>0</BodyType>'
    "<SourceQmGuid>{}</SourceQmGuid><TTrq>{}</TTrq></Msmq>"
)
NUMBERS = st.integers(0, 4) | st.sampled_from([0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF])
ORDINALS = st.integers(0, 2) | st.sampled_from([OWN_STREAM, OWN_STREAM + 1, (1 << 64) - 1])
GUIDS = st.just(PEER_ID) | st.sampled_from([OWN_ID, PEER_ID, THIRD_ID, NULL_GUID])
TRANSACTIONAL = "http://here/msmq/private$/tx"
URLS = st.sampled_from([ADMIN, RECEIPTS]) | st.sampled_from(
    [
        HERE, TRANSACTIONAL, ORDER_QUEUE, "https://nowhere/msmq/q", "http://here/msmq/private$/admin",
        "http://x/msmq/" + "q" * 120, "http://there/msmq/private$/orders", "http://[::1]/msmq/q",
        "http://here:81/msmq/q;subqueue",
    ]
)  # fmt: skip
PLACES = URLS | st.sampled_from(["MSMQ:MULTICAST=234.1.1.1:8001", "MSMQ:MULTICAST=234.1.1.1:1"])
CLASSES = st.sampled_from([2, 0x4000, 0x8001, 0xC000, 0xC001, 0xC002, 0xC004, 0xFF, 0x100, 0xFFFF])
ADMINISTRATION_QUEUES = st.text(max_size=40) | st.sampled_from(
    ["private$/admin", "private$/tx", "private$/order_queue$?admin=private$/admin", "private$/admin;journal"]
)
DATES = st.sampled_from(
    [NEVER, date(START_UTC), date(START_UTC + 5), date(START_UTC - 10), "19700101T000000"]
)


@st.composite
def paths(draw: st.DrawFn, usual: str) -> str:
    label = draw(st.sampled_from(["label", "QM Ordering Ack", "x" * 300, "&lt;"]))
    rev = draw(st.sampled_from(["", "<rev><via>MSMQ:DIRECT=OS:a\\b</via></rev>", "<rev><via/></rev>"]))
    to = usual if draw(st.integers(0, 3)) else draw(PLACES)
    return path(to, f"uuid:{draw(NUMBERS)}@{draw(GUIDS)}", label, rev)


@st.composite
def services(draw: st.DrawFn) -> str:
    parts = ["<durable/>"] if draw(st.booleans()) else []
    if draw(st.booleans()):
        parts.append(f"<deliveryReceiptRequest><sendTo>{draw(URLS)}</sendTo></deliveryReceiptRequest>")
    if draw(st.booleans()):
        wanted = draw(st.sampled_from(["", "<positiveOnly/>", "<positiveOnly/><negativeOnly/>"]))
        uri = draw(URLS)
        parts.append(f"<commitmentReceiptRequest><sendTo>{uri}</sendTo>{wanted}</commitmentReceiptRequest>")
    return f'<services se:mustUnderstand="1">{"".join(parts)}</services>' if parts else ""


@st.composite
def streams(draw: st.DrawFn) -> str:
    before = f"<previous>{draw(NUMBERS)}</previous>" if draw(st.booleans()) else ""
    start = f"<start><sendReceiptsTo>{draw(URLS)}</sendReceiptsTo></start>" if draw(st.booleans()) else ""
    return (
        f'<stream se:mustUnderstand="1"><streamId>uid:{draw(GUIDS)}\\{draw(ORDINALS)}</streamId>'
        f"<current>{draw(NUMBERS)}</current>{before}{start}</stream>"
    )


@st.composite
def receipts(draw: st.DrawFn) -> str:
    parts = []
    if draw(st.booleans()):
        parts.append(STREAM_RECEIPT.format(draw(GUIDS), draw(ORDINALS), draw(NUMBERS)))
    if draw(st.booleans()):
        decision = draw(st.sampled_from(["positive", "negative"]))
        parts.append(COMMITMENT_RECEIPT.format(draw(DATES), decision, draw(NUMBERS), draw(GUIDS)))
    return "".join(parts)


@st.composite
def requests(draw: st.DrawFn, *, group: bool = False) -> bytes:
    stream = draw(streams()) if draw(st.booleans()) else ""
    usual = TRANSACTIONAL if stream else HERE
    groups = [
        draw(paths("MSMQ:MULTICAST=234.1.1.1:8001" if group else usual)),
        PROPERTIES.format(draw(DATES), date(START_UTC) if draw(st.booleans()) else draw(DATES)),
        draw(services()),
        stream,
        "" if draw(st.integers(0, 3)) else draw(receipts()),
    ]
    if stream or draw(st.integers(0, 9)):
        flags = draw(st.sampled_from(["", "<DeadLetter/>", "<Journal/><DeadLetter/>"]))
        message_class = 0 if draw(st.integers(0, 3)) else draw(CLASSES)
        groups.append(MSMQ.format(message_class, flags, draw(GUIDS), draw(st.just(NEVER) | DATES)))
    return http_request(envelope(*groups), draw(st.sampled_from([None, b"", b"body"])))


@st.composite
def likely_receipts(draw: st.DrawFn) -> bytes:
    """Receipts that concern the stream of the queue manager, or nearly do."""
    number = draw(st.integers(0, 5) | NUMBERS.filter(lambda number: number < 1 << 32))
    ordinal = draw(st.sampled_from([OWN_STREAM, OWN_STREAM, OWN_STREAM + 1, 0]))
    parts, message_class = STREAM_RECEIPT.format(OWN_ID, ordinal, number), 0xFF
    if draw(st.booleans()):
        message_class, decision = draw(st.sampled_from([(0x4000, "positive"), (0xC001, "negative")]))
        original = draw(st.integers(0, 6))
        parts += COMMITMENT_RECEIPT.format(date(START_UTC), decision, original, OWN_ID)
    identifier = f"uuid:{draw(st.integers(1, 3))}@{PEER_ID}"
    to = draw(st.sampled_from([ORDER_QUEUE, HERE]))
    if draw(st.booleans()):
        to = f"{ORDER_QUEUE}?admin={quote(draw(ADMINISTRATION_QUEUES), safe='$')}"
        parts, message_class = COMMITMENT_RECEIPT.format(date(START_UTC), "positive", number, OWN_ID), 0x4000
    return http_request(
        envelope(
            path(to, identifier, "QM Ordering Ack"),
            PROPERTIES.format(NEVER, date(START_UTC)),
            parts,
            MSMQ.format(message_class, "", PEER_ID, NEVER),
        )
    )


Step = Callable[[SrmpHarness], object]


def post(data: bytes) -> Step:
    def step(harness: SrmpHarness) -> None:
        try:
            parse_http(data)
        except MalformedPacket:
            return
        assert harness.post(data) in (200, 400, 500)

    return step


def answer(status: int) -> Step:
    def step(harness: SrmpHarness) -> None:
        if harness.sent:
            harness.answer(status)

    return step


def multicast(data: bytes) -> Step:
    def step(harness: SrmpHarness) -> None:
        srmp_of(harness.core).multicast_received(data, "10.9.9.9", "234.1.1.1", 8001)
        harness.run()

    return step


STEPS = st.one_of(
    requests().map(post),
    likely_receipts().map(post),
    likely_receipts().map(post),
    requests(group=True).map(multicast),
    st.sampled_from([200, 200, 202, 302, 400, 500]).map(answer),
    st.sampled_from([100, 600, 11_000, 31_000, 400_000]).map(
        lambda time: lambda harness: harness.advance(time)
    ),
    st.just(lambda harness: harness.restart()),
    st.just(lambda harness: harness.receive("DIRECT=OS:here\\private$\\orders")),
    st.just(lambda harness: harness.receive("DIRECT=OS:here\\private$\\tx")),
    st.just(lambda harness: harness.purge(harness.find_queue("tx"))),
    st.booleans().map(
        lambda wanted: (
            lambda harness: harness.send(
                b"own", transactional=True, negative_journaling_requested=wanted, time_to_reach_queue=300
            )
        )
    ),
)


def books_agree(harness: SrmpHarness) -> None:
    """What the engine says of its messages is so, and what it keeps for others is within its bounds."""
    srmp, manager = srmp_of(harness.core), harness.core.queue_manager
    for number, transfer in srmp.transfers.items():
        queue = manager.queues[number]
        assert isinstance(queue, OutgoingQueue)
        assert set(queue.positions) == set(transfer.messages)
        numbers = [(each.tx_sequence_id, each.tx_sequence_number) for each in transfer.unacknowledged]
        assert numbers == sorted(set(numbers))
        assert all(stream == transfer.stream_id for stream, _ in numbers)
        assert all(0 < current < transfer.next_number for _, current in numbers)
        states = Counter(message.state for message in transfer.messages.values())
        assert states[SrmpMessageState.DONE] == 0
        assert states[SrmpMessageState.WAIT_FOR_FINAL_RECEIPT] == len(transfer.awaiting_final)
        assert not any(message.is_done for message in transfer.unacknowledged)
        assert transfer.under_way is None or states[SrmpMessageState.WAIT_FOR_RESPONSE] <= 1
        assert queue.transfer.eod_no_ack_count == len(transfer.unacknowledged)
        assert queue.transfer.eod_no_read_count == len(transfer.awaiting_final)
        for message in transfer.unacknowledged:
            assert transfer.messages[message.position] is message
            assert message.previous_number < message.tx_sequence_number
        if transfer.unacknowledged or transfer.awaiting_final:
            assert srmp.sending.streams._by_id[transfer.stream_id] is transfer
    numbered = {
        message.position.number
        for transfer in srmp.transfers.values()
        for message in (*transfer.unacknowledged, *transfer.awaiting_final.values())
    }
    assert set(harness.rows(Table.OUTGOING)) == numbered
    pool = harness.core.messages.pool
    for kind in Kind:
        assert 0 <= pool.used[kind] <= pool.share(kind)
    assert manager.total_bytes == sum(queue.total_bytes for queue in manager.queues.values()) >= 0
    assert bodies(harness.find_queue("order_queue$")) == []
    assert len(harness.core.incoming_sequences.infos) <= harness.core.context.settings.incoming_sequences_max


@settings(max_examples=30)
@given(st.lists(STEPS, min_size=1, max_size=25), st.integers(0, 3))
def test_hostile_requests(steps, own):
    harness = SrmpHarness(
        memory=1 << 23, incoming_sequences_max=20, unreachable_per_origin_max=4, unreachable_max=6,
        remove_duplicate_size=50,
    )  # fmt: skip
    harness.queue("orders", multicast_address="234.1.1.1:8001")
    harness.queue("admin")
    harness.queue("tx", transactional=True)
    for number in range(own):
        harness.send(b"%d" % number, transactional=True, negative_journaling_requested=number == 1, to=THERE)
        if number:
            harness.answer(200)
    books_agree(harness)
    for step in steps:
        step(harness)
        books_agree(harness)
    harness.answers = lambda _: 200
    for sent in harness.take():
        harness.answer(200, sent)
    harness.advance(700_000)
    books_agree(harness)
    harness.restart()
    books_agree(harness)
    assert harness.time_left(SrmpTimer.STREAM_RECEIPT_COALESCING, None) is None
