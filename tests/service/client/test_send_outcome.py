"""``msmqwire send`` straight to another computer: what it says of messages, whatever that computer does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

import msmqwire
from msmqwire.cli import app
from msmqwire.constants import MessageClass
from msmqwire.errors import OutcomeUnknown
from msmqwire.qm.client import Outcome
from tests.support.patience import limit
from tests.support.peers.acknowledging_peer import (
    ARRIVED,
    NOT_THERE,
    Script,
    acknowledgement,
    another,
    ends_at_a_message,
    message_of,
    peer,
    says,
    takes_all,
    tell,
)
from tests.support.peers.raw_peer import PEER, Listener, ReceivedPacket, Session, answer
from tests.support.running import (
    LEDGER,
    ORDERS,
    PATIENCE_S,
    InThread,
    Run,
    called,
    options,
    peeked,
    process,
    served,
    until,
)
from tests.support.sending import connect, messages, run

NOWHERE = r"private$\nothing"
INBOX = r"private$\inbox"
REFUSED, NOT_KNOWN = 69, 75
CAUSES = (
    "perhaps the name of the queue is wrong, or its queue manager sends no negative acknowledgements (serve "
    "does with --insecure-nacks), or none can come back here (--listen); --no-confirm asks for none"
)


@pytest.fixture(scope="module")
def alpha(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """A server as ``serve`` is by default."""
    data = tmp_path_factory.mktemp("outcomes") / "alpha"
    with served(options(data, ORDERS, r"private$\full", f"{LEDGER};transactional")) as server:
        yield server


def send(at: tuple[str, int], queue: str, *arguments: str) -> Run:
    to = rf"DIRECT=TCP:{at[0]}\{queue}"
    return called("send", to, "--port", str(at[1]), *arguments)


def send_to(server: InThread, queue: str, *arguments: str) -> Run:
    return send((server.address, server.port), queue, "--timeout", str(PATIENCE_S), *arguments)


def outcomes(result: Run) -> list[Outcome]:
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert all(set(line) == {"identifier", "outcome", "reason", "acknowledgements"} for line in lines)
    assert len({line["identifier"] for line in lines}) == len(lines)
    return [Outcome(line["outcome"], line["reason"]) for line in lines]


def check(result: Run, status: int, name: str, reason: str | None = None, said: str = "") -> None:
    """Check status and outcome of a single message, and what is said on standard error."""
    assert (result.status, outcomes(result)) == (status, [Outcome(name, reason)]), result  # type: ignore[arg-type]
    lines = [json.loads(line) for line in result.err.splitlines()]
    assert [line.get("error") or line["warning"] for line in lines] == ([said] if said else [])


def refusal(result: Run, reason: str) -> None:
    identifier = json.loads(result.out)["identifier"]
    check(result, REFUSED, "refused", reason, f"{identifier}: {reason}")


TRANSFERRED = "the queue has not acknowledged it"


def silence(host: str, what: str = "the message", them: str = "it") -> str:
    return f"{host} has {what}; the queue has not acknowledged {them}: {CAUSES}"


# -- a server -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "queue, more", [(ORDERS, ()), (ORDERS, ("--recoverable",)), (LEDGER, ("--transactional",))]
)
def test_a_queue_that_is_there_confirms(alpha: InThread, queue: str, more: tuple[str, ...]) -> None:
    start = time.monotonic()
    waits = ("--confirm", f"{limit(60):.1f}")
    check(send_to(alpha, queue, "--body", "x", *more, *waits), 0, "confirmed")
    assert time.monotonic() - start < limit(60)


def test_a_queue_that_is_not_there_is_not_passed_over(alpha: InThread) -> None:
    result = send_to(alpha, NOWHERE, "--recoverable", "--confirm", "0.3")
    check(result, NOT_KNOWN, "transferred", TRANSFERRED, silence(alpha.address))


def test_it_is_waited_for_five_seconds(alpha: InThread) -> None:
    start = time.monotonic()
    assert send_to(alpha, NOWHERE, "--recoverable").status == NOT_KNOWN
    assert 5 <= time.monotonic() - start < limit(20)


def test_a_server_that_says_why_refuses(tmp_path: Path) -> None:
    with process(tmp_path / "beta", "--insecure-nacks") as server:
        result = called("send", rf"DIRECT=TCP:{server.address}\{NOWHERE}", "--port", str(server.port))
        refusal(result, "NACK_BAD_DST_Q: there is no such queue")


@pytest.mark.parametrize(
    "queue, more, reason",
    [
        (LEDGER, (), "NACK_NOT_TRANSACTIONAL_MSG: the queue is transactional, and it is not"),
        (LEDGER, ("--recoverable",), "NACK_NOT_TRANSACTIONAL_MSG: the queue is transactional, and it is not"),
        (ORDERS, ("--transactional",), "NACK_NOT_TRANSACTIONAL_Q: it is transactional, and the queue is not"),
        (NOWHERE, ("--transactional",), "NACK_BAD_DST_Q: there is no such queue"),
    ],
)
def test_a_queue_that_does_not_take_it_refuses(
    alpha: InThread, queue: str, more: tuple[str, ...], reason: str
) -> None:
    refusal(send_to(alpha, queue, *more), reason)


def test_a_queue_that_is_full_refuses(alpha: InThread) -> None:
    called("queue", "set", r"private$\full", "--quota", "1", "--data", alpha.data)
    refusal(send_to(alpha, r"private$\full", "--body", "x" * 2000), "NACK_Q_EXCEED_QUOTA: the queue is full")


@pytest.mark.parametrize("more", [(), ("--recoverable",), ("--no-confirm",)])
def test_a_computer_whose_quota_is_used_up_refuses(tmp_path: Path, more: tuple[str, ...]) -> None:
    with served(options(tmp_path / "alpha", ORDERS, quota=100)) as server:
        result = send((server.address, server.port), ORDERS, "--timeout", "5", "--body", "x" * 2000, *more)
        why = "ends the session each time it gets the message: its quota may be used up, or its disk full"
        refusal(result, f"{server.address} {why}")


def test_several_are_waited_for_once(alpha: InThread) -> None:
    start = time.monotonic()
    wait_s = round(limit(2), 1)
    result = send_to(alpha, NOWHERE, "--count", "3", "--confirm", str(wait_s))
    assert wait_s <= time.monotonic() - start < 2.5 * wait_s
    assert outcomes(result) == [Outcome("transferred", TRANSFERRED)] * 3
    assert result.status == NOT_KNOWN
    assert json.loads(result.err)["warning"] == silence(alpha.address, "3 messages", "them")
    assert outcomes(send_to(alpha, ORDERS, "--count", "3")) == [Outcome("confirmed")] * 3


def test_the_status_of_several_is_the_worst(alpha: InThread, tmp_path: Path) -> None:
    """The quota of the queue lets one of three in."""
    called("queue", "create", r"private$\small", "--quota", "1", "--data", alpha.data)
    result = send_to(alpha, r"private$\small", "--count", "3", "--body", "x" * 300)
    full = Outcome("refused", "NACK_Q_EXCEED_QUOTA: the queue is full")
    assert sorted(set(outcomes(result))) == [Outcome("confirmed"), full]
    refused = [line for line in map(json.loads, result.out.splitlines()) if line["outcome"] == "refused"]
    assert result.status == REFUSED
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    assert json.loads(result.err)["error"] == f"{refused[0]['identifier']}: {full.reason}{more}"


@pytest.mark.parametrize(
    "more",
    [
        ("--no-confirm",),
        ("--ack", "none"),
        ("--admin-queue", r"DIRECT=OS:x\private$\a"),
        ("--ack", "neg_arrival"),
    ],
)
def test_what_asks_for_nothing_is_transferred(alpha: InThread, more: tuple[str, ...]) -> None:
    before = len(messages(alpha))
    start = time.monotonic()
    check(send_to(alpha, ORDERS, *more), 0, "transferred")
    check(send_to(alpha, NOWHERE, *more), 0, "transferred")
    assert time.monotonic() - start < limit(5)
    assert len(messages(alpha)) == before + 1


def test_an_acknowledgement_that_is_asked_for_counts(alpha: InThread) -> None:
    check(send_to(alpha, ORDERS, "--ack", "pos_arrival"), 0, "confirmed")
    result = send_to(alpha, NOWHERE, "--ack", "pos_arrival", "--confirm", "0.3")
    check(result, NOT_KNOWN, "transferred", TRANSFERRED, silence(alpha.address))
    result = send((alpha.address, alpha.port), NOWHERE, "--ack", "full_receive", "--timeout", "1")
    check(result, NOT_KNOWN, "transferred", TRANSFERRED, silence(alpha.address))
    result = send_to(alpha, NOWHERE, "--ack", "pos_arrival", "--no-confirm")
    check(result, 0, "transferred", TRANSFERRED)


def test_what_was_not_received_in_time_is_said(alpha: InThread) -> None:
    arguments = ("--ack", "full_reach_queue", "--ack", "pos_receive", "--timeout", "1")
    result = send((alpha.address, alpha.port), ORDERS, *arguments)
    reason = "its queue has it; it was not received in 1 s"
    check(result, NOT_KNOWN, "transferred", reason, silence(alpha.address))
    assert json.loads(result.out)["acknowledgements"] == ["ACK_REACH_QUEUE"]


def test_a_folder_stores(alpha: InThread) -> None:
    result = called("send", rf"DIRECT=TCP:127.0.0.99\{ORDERS}", "--data", alpha.data, "--count", "2")
    assert (result.status, result.err) == (0, "")
    assert outcomes(result) == [Outcome("stored")] * 2


def test_options_that_do_not_go_together(alpha: InThread) -> None:
    result = send_to(alpha, ORDERS, "--confirm", "1", "--no-confirm")
    assert result.status == 2
    assert "--confirm and --no-confirm do not go together" in " ".join(result.err.replace("│", "").split())


# -- nobody, and peers that say nothing -----------------------------------------------------------------


@pytest.mark.parametrize("count, what", [("1", "the message was"), ("3", "3 messages were")])
def test_nobody_listens(count: str, what: str) -> None:
    error = send((PEER, 9), INBOX, "--timeout", "0.5", "--count", count).error(REFUSED)
    assert error["error"] == f"{what} not sent: nobody listens at {PEER}:9"


def test_no_address() -> None:
    error = called("send", rf"DIRECT=OS:nowhere.invalid\{INBOX}", "--timeout", "3").error(REFUSED)
    assert error["error"] == "the message was not sent: nowhere.invalid has no address"


@pytest.mark.parametrize("more", [(), ("--recoverable",), ("--no-confirm",), ("--ack", "none")])
def test_a_peer_that_acknowledges_nothing(more: tuple[str, ...]) -> None:
    with peer(takes_all) as at:
        result = send(at, INBOX, "--timeout", "1.5", *more)
    said = f"it is not known whether the queue has the message: not acknowledged by {PEER}"
    check(result, NOT_KNOWN, "unknown", f"not acknowledged by {PEER}", said)


def test_a_time_that_is_over_before_anybody_has_acknowledged_it() -> None:
    with peer(takes_all) as at:
        result = send(at, INBOX, "--reach-within", "1", "--timeout", str(PATIENCE_S))
    reason = "its time was over before it was acknowledged"
    said = f"it is not known whether the queue has the message: {reason}"
    check(result, NOT_KNOWN, "unknown", reason, said)


def test_a_peer_that_acknowledges_the_packet_alone() -> None:
    with peer(says()) as at:
        result = send(at, INBOX, "--confirm", "0.3", "--timeout", str(PATIENCE_S))
    check(result, NOT_KNOWN, "transferred", TRANSFERRED, silence(PEER))


def test_a_peer_that_is_gone_with_the_message() -> None:
    """One that has ended the session once, and is not there any more: it may have the message."""
    with peer(ends_at_a_message, sessions=1) as at:
        result = send(at, INBOX, "--timeout", "4")
    reason = f"nobody listens at {PEER}:{at[1]}"
    said = f"it is not known whether the queue has the message: {reason}"
    check(result, NOT_KNOWN, "unknown", reason, said)


def test_a_peer_that_ends_each_session() -> None:
    with peer(ends_at_a_message) as at:
        result = send(at, INBOX, "--timeout", "5")
    why = "ends the session each time it gets the message: its quota may be used up, or its disk full"
    refusal(result, f"{PEER} {why}")


def test_a_peer_that_refuses_the_session() -> None:
    def refuses(session: Session) -> None:
        session.send(answer(session.take(), cs=True))
        session.ended()

    with peer(refuses, accept=Listener.ring) as at:
        result = send(at, INBOX, "--timeout", "2.5")
    refusal(result, f"{PEER} refuses the session")


# -- peers that say too much ----------------------------------------------------------------------------


def forged(message: ReceivedPacket) -> list[bytes]:
    """Acknowledgements of messages that were not sent."""
    others = [another(message), (message.SourceQueueManager, message.MessageID + 1)]
    return [acknowledgement(message, ARRIVED, of=other) for other in others]


@pytest.mark.parametrize(
    "script, status, outcome",
    [
        (says(ARRIVED), 0, Outcome("confirmed")),
        (says(ARRIVED, ARRIVED, ARRIVED), 0, Outcome("confirmed")),
        (says(ARRIVED, NOT_THERE), 0, Outcome("confirmed")),
        (says(NOT_THERE), REFUSED, Outcome("refused", "NACK_BAD_DST_Q: there is no such queue")),
        (says(NOT_THERE, ARRIVED), REFUSED, Outcome("refused", "NACK_BAD_DST_Q: there is no such queue")),
        (says(0x8123), REFUSED, Outcome("refused", "0x8123: it is refused")),
        (says(after=forged), NOT_KNOWN, Outcome("transferred", TRANSFERRED)),
        (says(MessageClass.MQMSG_CLASS_NACK_Q_PURGED), NOT_KNOWN, Outcome("transferred", TRANSFERRED)),
        (says(0, 1, 0x00FF), NOT_KNOWN, Outcome("transferred", TRANSFERRED)),
    ],
    ids=[
        "yes", "three times", "yes, then no", "no", "no, then yes", "a class of nobody", "of others",
        "what was not asked for", "no acknowledgements",
    ],
)  # fmt: skip
def test_the_first_word_of_the_queue_counts(script: Script, status: int, outcome: Outcome) -> None:
    with peer(script) as at:
        result = send(at, INBOX, "--confirm", "1", "--timeout", str(PATIENCE_S))
    assert (result.status, outcomes(result)) == (status, [outcome])


def test_an_acknowledgement_before_that_of_the_packet_counts() -> None:
    def script(session: Session) -> None:
        tell(session, acknowledgement(message_of(session), ARRIVED))
        session.ended()

    with peer(script) as at:
        check(send(at, INBOX, "--timeout", str(PATIENCE_S)), 0, "confirmed")


def test_a_session_that_ends_before_the_queue_has_spoken() -> None:
    """The packet is acknowledged, and the session ended: that says nothing of the queue."""

    def script(session: Session) -> None:
        message_of(session)
        session.acknowledge()

    with peer(script) as at:
        result = send(at, INBOX, "--confirm", "0.5", "--timeout", str(PATIENCE_S))
    check(result, NOT_KNOWN, "transferred", TRANSFERRED, silence(PEER))


def test_no_peer_speaks_for_the_queue_of_another_one(alpha: InThread) -> None:
    """It acknowledges twice what goes to it and to a queue elsewhere that is not there."""
    names = rf"DIRECT=OS:peer\{INBOX},DIRECT=OS:alpha\{NOWHERE}"
    good = rf"DIRECT=OS:peer\{INBOX},DIRECT=OS:alpha\{ORDERS}"
    with peer(says(ARRIVED, ARRIVED)) as at:
        hosts = ("--host", f"peer={at[0]}:{at[1]}", "--host", f"alpha={alpha.address}:{alpha.port}")
        waits = ("--confirm", "1", "--timeout", str(PATIENCE_S))
        check(
            called("send", names, *hosts, *waits),
            NOT_KNOWN,
            "transferred",
            TRANSFERRED,
            silence("peer and alpha"),
        )
        check(called("send", good, *hosts, *waits), 0, "confirmed")


def test_a_peer_can_not_fill_the_memory() -> None:
    async def work(at: tuple[str, int]) -> int:
        async with msmqwire.connect(rf"DIRECT=TCP:{at[0]}\{INBOX}", port=at[1]) as queue:
            sent = await queue.send(b"x", acknowledge="full_reach_queue")
            await sent.acknowledged(MessageClass.MQMSG_CLASS_ACK_RECEIVE)
            assert await sent.outcome() == Outcome("refused", "NACK_BAD_DST_Q: there is no such queue")
            return len(sent.acknowledgements)

    def script(session: Session) -> None:
        message = message_of(session)
        session.acknowledge()
        tell(session, *[acknowledgement(message, NOT_THERE) for _ in range(60)])
        tell(session, acknowledgement(message, MessageClass.MQMSG_CLASS_ACK_RECEIVE))
        session.ended()

    with peer(script) as at:
        assert run(work(at)) == 2


# -- Python ---------------------------------------------------------------------------------------------


def test_python_waits_and_does_not_raise(alpha: InThread) -> None:
    async def work() -> None:
        async with connect(alpha, NOWHERE) as queue:
            asking = await queue.send(b"x", acknowledge="full_reach_queue")
            assert await asking.outcome(timeout=0.5) == Outcome("transferred", TRANSFERRED)
            assert await asking.outcome(timeout=60, confirm=0.1) == Outcome("transferred", TRANSFERRED)
            plain = await queue.send(b"x")
            assert await plain.outcome() == Outcome("transferred")
            refused = await queue.send(b"x", transactional=True)
            assert (await refused.outcome()).name == "refused"
        assert (await asking.outcome()).name == "transferred"  # the connection was left

    run(work())
    with connect(alpha) as queue:
        sent = queue.send(b"x", acknowledge="full_reach_queue")
        assert sent.outcome(PATIENCE_S) == Outcome("confirmed", None)
        assert sent.transmitted
    assert sent.outcome().name == "confirmed"


def test_python_aborts(alpha: InThread) -> None:
    with connect(alpha, LEDGER) as queue:
        with suppress(KeyError), queue.transaction() as transaction:
            sent = transaction.send(b"x", acknowledge="full_reach_queue")
            raise KeyError
        assert sent.outcome() == Outcome("refused", "its transaction was aborted")


def test_python_without_a_peer() -> None:
    with msmqwire.connect(rf"DIRECT=TCP:{PEER}\{INBOX}", port=9, drain=0) as queue:
        sent = queue.send(b"x", time_to_reach_queue=2)
        assert sent.outcome(0.3) == Outcome("unknown", f"nobody listens at {PEER}:9")
        assert not sent.transmitted
        why = f"its time to reach the queue was over: nobody listens at {PEER}:9"
        assert sent.outcome() == Outcome("refused", why)


def test_python_through_a_folder(alpha: InThread) -> None:
    with msmqwire.attach(alpha.data) as manager:
        assert manager.queue(ORDERS).send(b"x").outcome() == Outcome("stored")


# -- HTTP -----------------------------------------------------------------------------------------------


@contextmanager
def http(status: int, text: str, wait_s: float = 0.0) -> Iterator[str]:
    """A server of HTTP that answers each request with a status and a text; gives the name of its queue."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            over.wait(wait_s)
            self.send_response(status, text)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    over = threading.Event()
    with ThreadingHTTPServer((PEER, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"DIRECT=HTTP://{PEER}:{server.server_address[1]}/msmq/private$/inbox"
        over.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("status", [200, 202])
@pytest.mark.parametrize("more", [(), ("--recoverable",), ("--no-confirm",)])
def test_http_accepts(status: int, more: tuple[str, ...]) -> None:
    with http(status, "OK") as queue:
        check(called("send", queue, *more), 0, "confirmed")


@pytest.mark.parametrize(
    "status, text, shown",
    [
        (400, "Bad Request", "HTTP 400 Bad Request"),
        (403, "only for friends", "HTTP 403 only for friends"),
        (500, "Internal Server Error", "HTTP 500 Internal Server Error"),
        (503, "The queue is full", "HTTP 503 The queue is full"),
        (404, "", "HTTP 404"),
        (404, "\x1b]0;owned\x07" + "x" * 500, "HTTP 404 \\x1b]0;owned\\x07" + "x" * 83 + "…"),
    ],
    ids=["400", "403", "500", "503", "no text", "hostile"],
)
def test_http_refuses(status: int, text: str, shown: str) -> None:
    with http(status, text) as queue:
        refusal(called("send", queue, "--timeout", "1.5"), shown)


def test_http_does_not_answer() -> None:
    with http(200, "OK", wait_s=PATIENCE_S) as queue:
        result = called("send", queue, "--timeout", "1")
        reason = f"no answer from {queue.removeprefix('DIRECT=').replace('HTTP', 'http')}"
        said = f"it is not known whether the queue has the message: {reason}"
        check(result, NOT_KNOWN, "unknown", reason, said)


def test_http_nobody() -> None:
    error = called("send", f"DIRECT=HTTP://{PEER}:9/msmq/q", "--timeout", "1").error(REFUSED)
    assert error["error"] == f"the message was not sent: nobody listens at {PEER}:9"


def test_the_log_of_a_server_has_the_text_too(tmp_path: Path) -> None:
    with http(403, "only for friends") as queue, process(tmp_path / "beta", "--ping", "off") as server:
        called("send", queue, "--data", server.data)
        until(lambda: "HTTP 403 only for friends" in server.log_text(), "the log has the text")


# -- multicast, and several kinds -----------------------------------------------------------------------


def test_multicast_is_transferred() -> None:
    result = called("send", "MULTICAST=234.1.1.1:8001", "--pgm", "udp", "--pgm-interface", "127.0.0.1")
    check(result, 0, "transferred")


def test_several_kinds_can_not_be_asked(alpha: InThread) -> None:
    to = rf"DIRECT=TCP:{alpha.address}\{ORDERS}"
    with http(200, "OK") as queue:
        arguments = (f"{to},{queue}", "--port", str(alpha.port), "--timeout", str(PATIENCE_S))
        result = called("send", *arguments)
        assert (result.status, outcomes(result)) == (NOT_KNOWN, [Outcome("transferred")])
        warning = json.loads(result.err)["warning"]
        assert warning.endswith(
            "as one of its queues is reached by HTTP or multicast; --no-confirm expects none"
        )
        check(called("send", *arguments, "--no-confirm"), 0, "transferred")


def test_a_message_that_is_confirmed_is_there(alpha: InThread) -> None:
    body = f"{time.monotonic()}"
    check(send_to(alpha, ORDERS, "--body", body), 0, "confirmed")
    assert body.encode() in peeked(alpha.data, ORDERS)


def test_an_outcome_is_unknown_if_the_server_is_lost_meanwhile(
    alpha: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control channel was lost after the request had been sent: perhaps the message is stored."""
    from msmqwire.cli import send as command

    real = command.attach

    @contextmanager
    def attach(data: Path) -> Iterator[object]:
        with real(data) as local:
            call = local.call

            def lost(op: str, **request: object) -> object:
                if op == "send":
                    raise OutcomeUnknown("the server has gone; whether it did this is not known: send")
                return call(op, **request)

            monkeypatch.setattr(local, "call", lost)
            yield local

    monkeypatch.setattr(command, "attach", attach)
    result = CliRunner().invoke(
        app, ["send", rf"DIRECT=OS:alpha\{ORDERS}", "--data", str(alpha.data), "--body", "x"]
    )
    assert result.exit_code == NOT_KNOWN, result.output
    assert "whether it did this is not known" in result.stderr
    assert result.stdout == ""
