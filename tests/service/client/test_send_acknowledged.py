"""``msmqwire send`` straight to another computer: the outcome of the messages, and the exit status."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from msmqwire.names.class_words import class_with_words
from msmqwire.qm.runtime.server import SETTINGS
from tests.support.running import PATIENCE_S, InThread, Run, called, command, options, served
from tests.support.sending import LEDGER, ORDERS, messages, receive_one

NOWHERE = r"private$\nothing"


@pytest.fixture
def outspoken(tmp_path: Path) -> Iterator[InThread]:
    """A server that tells unknown senders why it refuses a message."""
    settings = replace(SETTINGS, send_insecure_nacks=True)
    with served(options(tmp_path / "alpha", ORDERS, f"{LEDGER};transactional", settings=settings)) as server:
        yield server


def send(server: InThread, queue: str, *arguments: str) -> Run:
    to = rf"DIRECT=TCP:{server.address}\{queue}"
    return called("send", to, "--port", str(server.port), "--timeout", str(PATIENCE_S), *arguments)


@pytest.mark.parametrize(
    "queue, arguments, name",
    [
        (NOWHERE, ("--ack", "full_reach_queue"), "NACK_BAD_DST_Q"),
        (NOWHERE, ("--ack", "full_reach_queue", "--recoverable"), "NACK_BAD_DST_Q"),
        (NOWHERE, ("--ack", "full_receive"), "NACK_BAD_DST_Q"),
        (LEDGER, ("--ack", "full_reach_queue", "--recoverable"), "NACK_NOT_TRANSACTIONAL_MSG"),
    ],
)
def test_a_negative_acknowledgement_is_printed_and_is_a_failure(
    outspoken: InThread, queue: str, arguments: tuple[str, ...], name: str
) -> None:
    result = send(outspoken, queue, *arguments)
    assert result.status == 69, result
    (line,) = result.out.splitlines()
    message = json.loads(line)
    assert message["acknowledgements"] == [name]
    assert json.loads(result.err)["error"] == f"{message['identifier']}: {class_with_words(name)}"


@pytest.mark.parametrize("queue, name", [(NOWHERE, "NACK_BAD_DST_Q"), (ORDERS, "NACK_NOT_TRANSACTIONAL_Q")])
def test_what_a_final_acknowledgement_refuses_has_its_reason(server: InThread, queue: str, name: str) -> None:
    result = send(server, queue, "--transactional")
    assert result.status == 69
    assert json.loads(result.err)["error"].endswith(f"\\1: {class_with_words(name)}")


def test_what_is_given_up_ends_with_unavailable() -> None:
    arguments = ("--port", "1", "--reach-within", "1", "--timeout", str(PATIENCE_S))
    by_session, by_http = r"DIRECT=TCP:127.0.0.99\private$\x", "DIRECT=HTTP://127.0.0.99:1/msmq/private$/x"
    for to, more in ((by_session, ("--recoverable",)), (by_session, ()), (by_http, ())):
        result = called("send", to, *arguments, *more)
        reason = "its time to reach the queue was over: nobody listens at 127.0.0.99:1"
        assert (result.status, json.loads(result.out)["reason"]) == (69, reason)
        assert json.loads(result.err)["error"].endswith(f"\\1: {reason}")


def test_every_acknowledgement_that_is_asked_for_is_waited_for(server: InThread) -> None:
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(
            command, "send", rf"DIRECT=TCP:{server.address}\{ORDERS}", "--port", str(server.port),
            "--ack", "full_reach_queue", "--ack", "pos_receive", "--timeout", str(PATIENCE_S),
        )  # fmt: skip
        receive_one(server)
        assert sent.result().one["acknowledgements"] == ["ACK_REACH_QUEUE", "ACK_RECEIVE"]


@pytest.mark.parametrize("acknowledge", ["neg_arrival", "nack_receive", "neg_receive"])
def test_negative_ones_need_not_come(server: InThread, acknowledge: str) -> None:
    start = time.monotonic()
    assert send(server, ORDERS, "--ack", acknowledge).one["acknowledgements"] == []
    assert time.monotonic() - start < PATIENCE_S
    assert len(messages(server)) == 1


def test_all_messages_are_waited_for_when_some_are_refused(outspoken: InThread) -> None:
    result = send(outspoken, NOWHERE, "--ack", "full_reach_queue", "--count", "3")
    assert result.status == 69
    printed = [json.loads(line) for line in result.out.splitlines()]
    assert [message["acknowledgements"] for message in printed] == [["NACK_BAD_DST_Q"]] * 3
    reason = f"{class_with_words('NACK_BAD_DST_Q')} (and 2 more)"
    assert json.loads(result.err)["error"] == f"{printed[0]['identifier']}: {reason}"


def test_an_address_that_is_not_of_this_computer_is_said(server: InThread) -> None:
    error = send(server, ORDERS, "--listen", "192.0.2.1:5").error(69)
    assert error["error"].startswith("can't listen at 192.0.2.1:5: ")
