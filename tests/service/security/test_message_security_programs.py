"""Messages that programs sign and encrypt with ``Queue.send``, and what they see of those that they read."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire import InvalidValue, NotDelivered, QueueError, ReceivedMessage
from msmqwire.qm.runtime.addresses import AddressOverrides
from tests.support.qm.secured_servers import BITS, SID, Pair, done, protection, secured_pair
from tests.support.running import ORDERS, PATIENCE_S, called, served
from tests.support.sending import run


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with secured_pair(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


def signer(pair: Pair) -> msmqwire.Signer:
    return msmqwire.load_signer(pair.cert, pair.key, SID)


def receive(pair: Pair, remote: bool = False) -> ReceivedMessage:
    """Receive the message, which has to come."""
    if not remote:
        with msmqwire.attach(pair.there.data) as manager:
            return manager.queue(ORDERS).receive(PATIENCE_S)
    rpc = pair.there.server.rpc_network
    assert rpc is not None
    name = rf"DIRECT=TCP:{pair.there.address}\{ORDERS}"
    with msmqwire.connect(name, rpc_port=rpc.listen[1]) as queue:
        return queue.receive(PATIENCE_S)


def seen(message: ReceivedMessage) -> tuple[bytes, bool, str | None, str | None]:
    return message.body, message.authenticated, message.signature, message.encrypted


def test_a_connection_signs_and_encrypts(pair: Pair) -> None:
    options: dict[str, Any] = {"sign": signer(pair), "encrypt": "aes256", "peer_key": pair.peer_key}
    with msmqwire.connect(pair.to, hosts=pair.hosts) as queue:
        queue.send(b"one", recoverable=True, **options).transferred(PATIENCE_S)
        assert seen(receive(pair)) == (b"one", True, "2.0", "aes256")
        with queue.transaction() as transaction, pytest.raises(InvalidValue) as wrong:
            transaction.send(b"no", sign=signer(pair), hash="sha3")
        assert wrong.value.path == "hash"
        queue.send("two", label="3.0", sign=signer(pair), signature="3.0", hash="sha256")
        message = receive(pair)
    assert (message.text, message.signature, message.encrypted) == ("two", "3.0", None)
    assert (message.sender, message.sender_certificate) == (SID, pair.cert.read_bytes())


def test_a_connection_with_asyncio(pair: Pair) -> None:
    async def send() -> None:
        async with msmqwire.connect(pair.to, hosts=pair.hosts) as queue:
            sent = await queue.send(
                b"async", recoverable=True, sign=signer(pair), signature="1.0", encrypt="rc4", legacy=True,
                peer_key=pair.peer_key.read_bytes(),
            )  # fmt: skip
            await sent.transferred(PATIENCE_S)

    run(send())
    assert seen(receive(pair)) == (b"async", True, "1.0", "rc4")


def test_an_attached_program_signs_with_its_folders_certificate(pair: Pair) -> None:
    with msmqwire.attach(pair.here.data) as manager:
        queue = manager.queue(pair.to)
        queue.send(
            b"attached", sign=manager.signer(), encrypt="aes128", peer_key=str(pair.peer_key)
        ).transferred(0)
        assert seen(receive(pair)) == (b"attached", True, "2.0", "aes128")
        with pytest.raises(InvalidValue, match="has no certificate to sign with"):
            manager.signer("S-1-5-21-9-9-9-9")
        with pytest.raises(QueueError, match="rc2 is broken and switched off"):
            queue.send(b"x", encrypt="rc2", legacy=True)


@pytest.mark.parametrize("to", [ORDERS, rf"DIRECT=OS:.\{ORDERS}", ""])
def test_messages_to_own_queues_are_verified(pair: Pair, to: str) -> None:
    """They are not encrypted: they do not leave the computer."""
    with msmqwire.attach(pair.here.data) as manager:
        own = manager.queue(ORDERS)
        queue = manager.queue(to or done("queue", "show", ORDERS, "--data", pair.here.data)["format_name"])
        queue.send(b"own", sign=manager.signer(), encrypt="aes256")
        assert seen(own.receive(PATIENCE_S)) == (b"own", True, "2.0", None)
        other = signer(pair)
        queue.send(b"other", sign=msmqwire.Signer(other.private_key, other.certificate, b""))
        assert seen(own.receive(PATIENCE_S)) == (b"other", False, "2.0", None)


def test_an_unserved_folder_verifies_and_stores_signed_messages(tmp_path: Path) -> None:
    done("cert", "create", "--data", tmp_path, *BITS)
    done("queue", "create", ORDERS, "--data", tmp_path, "--authenticated")
    to = ("send", rf"DIRECT=OS:.\{ORDERS}", "--data", tmp_path, "--recoverable", "--body", "kept")
    assert called(*to).error(69)["name"] == "MQ_ERROR_MESSAGE_NOT_AUTHENTICATED"
    assert done(*to, "--sign")["identifier"]
    assert protection(done("receive", ORDERS, "--data", tmp_path)) == (b"kept", True, "2.0", None)


def test_an_attached_program_with_asyncio_sends_in_a_transaction(pair: Pair) -> None:
    ledger = r"private$\ledger"
    to = done("queue", "create", ledger, "--data", pair.there.data, "--transactional")["format_name"]

    async def send() -> None:
        async with (
            msmqwire.attach(pair.here.data) as manager,
            manager.queue(to).transaction() as transaction,
        ):
            for body in (b"1", b"2"):
                transaction.send(
                    body, sign=manager.signer(SID), encrypt="aes192", peer_key=pair.peer_key, priority=5
                )

    run(send())
    assert protection(pair.received(ledger)) == (b"1", True, "2.0", "aes192")
    assert protection(pair.received(ledger)) == (b"2", True, "2.0", "aes192")


@pytest.mark.parametrize(
    "wrong, path",
    [
        ({"sign": "me"}, "sign"),
        ({"signature": "2.0"}, "signature"),
        ({"hash": "sha512"}, "hash"),
        ({"peer_key": b""}, "peer_key"),
        ({"encrypt": "des"}, "encrypt"),
        ({"encrypt": 5}, "encrypt"),
        ({"encrypt": "rc2"}, "encrypt"),
        ({"encrypt": "aes256", "legacy": 1}, "legacy"),
        ({"encrypt": "aes256", "peer_key": 1}, "peer_key"),
        ({"encrypt": "aes256", "peer_key": "/nothing/here"}, "peer_key"),
        ({"encrypt": "aes256", "peer_key": b"no key"}, ""),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_sent(pair: Pair, wrong: dict[str, Any], path: str) -> None:
    with msmqwire.connect(pair.to, hosts=pair.hosts) as queue, pytest.raises(InvalidValue) as direct:
        queue.send(b"x", **wrong)
    with msmqwire.attach(pair.here.data) as manager, pytest.raises(InvalidValue) as local:
        manager.queue(pair.to).send(b"x", **wrong)
    assert (direct.value.path, local.value.path) == (path, path)


def test_what_can_not_be_signed_or_encrypted_is_refused(pair: Pair) -> None:
    direct = rf"DIRECT=TCP:{pair.there.address}\{ORDERS}"
    both = f"{direct},{pair.to}"
    with msmqwire.connect(both, port=pair.there.port, hosts=pair.hosts) as queue:
        with pytest.raises(InvalidValue, match=r"a signature 3\.0"):
            queue.send(b"x", sign=signer(pair), signature="2.0")
        with pytest.raises(QueueError, match="PRIVATE= or PUBLIC="):
            queue.send(b"x", encrypt="aes256")
        queue.send(b"both", sign=signer(pair))
    for _ in range(2):
        assert seen(receive(pair)) == (b"both", True, "3.0", None)
    with msmqwire.connect(direct, port=pair.there.port) as queue, pytest.raises(QueueError) as refused:
        queue.send(b"x", encrypt="aes256", peer_key=pair.peer_key)
    assert refused.value.name == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"


def test_a_message_that_cannot_be_decrypted_is_nacked(pair: Pair) -> None:
    wrong = called("key", "create", "--data", pair.here.data, "--bits", "1024")
    assert wrong.status == 0
    own = called("key", "show", "--public", "--data", pair.here.data).out.encode()
    with msmqwire.connect(pair.to, hosts=pair.hosts) as queue:
        sent = queue.send(b"x", acknowledge="full_reach_queue", encrypt="aes256", peer_key=own)
        with pytest.raises(NotDelivered, match="NACK_BAD_ENCRYPTION"):
            sent.arrived(PATIENCE_S)


def test_remote_readers_learn_what_they_can_verify_themselves(pair: Pair) -> None:
    options: dict[str, Any] = {"encrypt": "aes256", "peer_key": pair.peer_key}
    for version in ("1.0", "2.0", "3.0"):
        with msmqwire.connect(pair.to, hosts=pair.hosts) as queue:
            queue.send(b"remote", sign=signer(pair), signature=version, **options)
        message = receive(pair, remote=True)
        assert (message.body, message.signature, message.encrypted) == (b"remote", version, "aes256")
        assert message.sender_certificate == pair.cert.read_bytes()
    with msmqwire.connect(pair.to, hosts=pair.hosts) as queue:
        queue.send(b"plain")
    assert seen(receive(pair, remote=True)) == (b"plain", False, None, None)


def test_what_a_restart_keeps(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder alone, and the next server, tell of a message what the server told that took it."""
    with secured_pair(tmp_path_factory.mktemp("kept")) as pair:
        for _ in range(3):
            pair.sent_directly(
                "--body", "kept", "--recoverable", *pair.signing, "--encrypt", "rc4", "--peer-key",
                pair.peer_key, "--legacy",
            )  # fmt: skip
        here, there = pair.here.server.options, pair.there.server.options
        peeked = ("peek", ORDERS, "--data", there.data, "--count", "9")
        before = called(*peeked).lines
    _assert_one_warning(caplog, "legacy rc4: a message of 127.0.0.1 is encrypted")
    assert [protection(message) for message in before] == [(b"kept", True, "2.0", "rc4")] * 3
    assert before[0]["sender_certificate"] == b64encode(pair.cert.read_bytes()).decode()
    assert called(*peeked).lines == before
    pair.sent(
        "--recoverable", "--body", "alone", "--sign", "--encrypt", "aes256", "--peer-key", pair.peer_key
    )
    with served(there) as second:
        assert called(*peeked).lines == before
        assert done("queue", "purge", ORDERS, "--yes", "--data", there.data)["purged"] == 3
        hosts = dict.fromkeys(pair.hosts, (second.address, second.port))
        with served(replace(here, overrides=AddressOverrides(hosts=hosts))):
            assert protection(pair.received()) == (b"alone", True, "2.0", "aes256")


def _assert_one_warning(caplog: pytest.LogCaptureFixture, text: str) -> None:
    records = [record for record in caplog.records if record.getMessage().startswith(text)]
    assert [record.levelname for record in records] == ["WARNING"], "one for many messages"
