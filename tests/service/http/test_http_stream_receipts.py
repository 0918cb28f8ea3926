"""A first message of a stream between two servers: what its application has asked for comes to its queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.running import ADDRESS, ORDERS, called, peeked, process, until

OTHER = "127.0.0.32"
ADMIN = r"private$\admin"


@pytest.mark.requirement("SRMP-3.1.5.1.1-28", "SRMP-2.2.5.3.4-04")
def test_the_first_message_of_a_stream_is_acknowledged(tmp_path: Path) -> None:
    """Its receiver sends all receipts to sendReceiptsTo, at the order queue of the sender."""
    known = ("--host", f"beta={OTHER}")
    alpha = ("--queue", f"{ORDERS};transactional", "--http", f"{ADDRESS}:0", *known)
    beta = ("--queue", ADMIN, "--http", f"{OTHER}:0", "--host", f"alpha={ADDRESS}")
    with (
        process(tmp_path / "alpha", *alpha) as receiver,
        process(tmp_path / "beta", *beta, address=OTHER, name="beta") as sender,
    ):
        to = f"DIRECT=HTTP://alpha:{receiver.http_port}/msmq/private$/orders"
        admin = f"DIRECT=HTTP://beta:{sender.http_port}/msmq/private$/admin"
        for count in (1, 2):
            sent = called(
                "send", to, "--body", f"{count}", "--transactional", "--ack", "full_reach_queue",
                "--admin-queue", admin, "--data", sender.data,
            )  # fmt: skip
            assert sent.status == 0, sent
            until(lambda count=count: len(peeked(sender.data, ADMIN)) == count, "acknowledgements")
        assert peeked(receiver.data, ORDERS) == [b"1", b"2"]
