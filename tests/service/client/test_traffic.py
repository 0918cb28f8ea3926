"""The traffic of two servers and a client, captured on the loopback and checked like any other capture."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msmqwire
from msmqwire.qm.runtime.local import attach
from tests.support.loopback import captured
from tests.support.running import LEDGER, ORDERS, PATIENCE_S, Process, command, listed, process, until

ALPHA, BETA = "127.0.0.21", "127.0.0.22"


def until_empty(data: Path, queue: str) -> None:
    """Wait until an outgoing queue is empty or has been removed."""
    until(lambda: not listed(data).get(queue, {"messages": 0})["messages"], f"{queue} becomes empty")


def talk(beta: Process, alpha: Process) -> None:
    """Send messages of every kind, from a client to Beta and from Alpha to Beta."""
    name = rf"DIRECT=TCP:{BETA}\private$"
    with msmqwire.connect(rf"{name}\orders", port=beta.port) as client:
        for size in (0, 1, 1000, 70_000):
            sent = client.send(b"x" * size, label=f"order {size} \N{SNOWMAN}", acknowledge="full_reach_queue")
            assert sent.arrived(PATIENCE_S).class_name == "ACK_REACH_QUEUE"
        client.send(
            "text",
            body_type=31,  # VT_LPWSTR: VT_BSTR is not in the list of [MS-MQMQ] 2.2.12
            recoverable=True,
            priority=7,
            extension=b"more",
            correlation=bytes(range(20)),
            response_queue=r"DIRECT=OS:alpha\private$\answers",
            application=7,
            dead_letter=True,
            time_to_be_received=3600,
        ).transferred(PATIENCE_S)
        for _ in range(200):
            last = client.send(b"many", recoverable=True)
        last.transferred(PATIENCE_S)
    with msmqwire.connect(rf"{name}\ledger", port=beta.port) as client:
        with client.transaction() as transaction:
            for number in range(5):
                transaction.send(b"entry %d" % number, label="entry", acknowledge="full_receive")
        last = client.send(b"one more", transactional=True)
        last.transferred(PATIENCE_S)
    forwarded = r"DIRECT=OS:beta\private$\ledger"
    with attach(alpha.data) as local:
        for delivery in ("transactional",) * 3:
            local.call(
                "send",
                to=forwarded,
                messages=[{"body": "bW9yZQ==", "delivery": delivery, "journal": True, "dead_letter": True}]
                * 4,
            )
        local.call("send", to=r"DIRECT=OS:beta\private$\nothing", messages=[{"delivery": "express"}])
    with attach(beta.data) as local:
        receipts: list[int] = []
        while len(receipts) < 18:
            messages = local.call("receive", queue=LEDGER, count=100, wait_ms=10_000)["messages"]
            assert messages, f"only {len(receipts)} messages have arrived"
            receipts += [message["receipt"] for message in messages]
            local.call("end", done=[message["receipt"] for message in messages])
    until_empty(alpha.data, r"DIRECT=OS:beta\PRIVATE$\ledger")


def test_what_two_servers_and_a_client_send_breaks_no_rule(tmp_path: Path) -> None:
    capture = tmp_path / "loopback.pcap"
    queues = ("--queue", ORDERS, "--queue", f"{LEDGER};transactional")
    with (
        captured(capture, (ALPHA, BETA)),
        process(tmp_path / "beta", *queues, address=BETA, name="beta") as beta,
    ):
        host_option = ("--host", f"beta={BETA}:{beta.port}")
        with process(tmp_path / "alpha", *host_option, address=ALPHA) as alpha:
            talk(beta, alpha)
        with process(tmp_path / "alpha", *host_option, address=ALPHA) as alpha:
            with attach(alpha.data) as local:
                local.call("send", to=rf"DIRECT=OS:beta\{ORDERS}", messages=[{"delivery": "recoverable"}] * 3)
            until_empty(alpha.data, r"DIRECT=OS:beta\PRIVATE$\orders")
    items = command("dissect", "--json", "--port", str(beta.port), capture).lines
    broken = [
        (item["packet"], finding)
        for item in items
        for finding in item["findings"]
        if finding["severity"] == "MUST"
    ]
    assert broken == []
    kinds = Counter(item["packet"] for item in items)
    assert set(kinds) == {
        "EstablishConnection", "ConnectionParameters", "SessionAck", "UserMessage", "OrderAck", "FinalAck",
    }  # fmt: skip
    assert kinds["UserMessage"] > 230
