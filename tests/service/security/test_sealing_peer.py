"""A peer written by hand exchanges signed and encrypted messages with a server."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.server import SETTINGS
from tests.support import handmade as h
from tests.support.peers.raw_peer import GUID, NACK_ARRIVAL, Listener, Session, new_id
from tests.support.peers.sealing_peer import (
    AES128,
    AES256,
    RC2,
    SHA256,
    SHA512,
    SealedMessage,
    opened,
    public_blob,
    public_key,
    verify,
)
from tests.support.qm.secured_servers import BITS, SID, certificate_of, done, protection
from tests.support.running import ORDERS, InThread, called, options, served

ADDRESS = "127.0.0.34"
NAMES = {AES128: "aes128", AES256: "aes256", RC2: "rc2"}
QUEUE = h.private_id(9)
TO_PEER = f"PRIVATE={UUID(bytes_le=GUID)}\\9"
SID_BYTES = bytes.fromhex("0105000000000005 15000000 01000000 02000000 03000000 e9030000")


@dataclass
class Meeting:
    """A server with keys, and what the peer has of it."""

    server: InThread
    listener: Listener
    identifier: bytes
    queue: int
    blob: bytes
    signer: RSAPrivateKey
    certificate: bytes
    peer_key: RSAPrivateKey


@pytest.fixture(scope="module")
def meeting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Meeting]:
    folder = tmp_path_factory.mktemp("peer")
    data = folder / "alpha"
    called("key", "create", "--data", data, *BITS)
    shown = called("key", "show", "--public", "--data", data).out.splitlines()
    blob = bytes.fromhex(next(line.split()[2] for line in shown if line.startswith("aes exchange ")))
    cert, key = certificate_of(data, folder)
    signer = load_pem_private_key(key.read_bytes(), None)
    assert isinstance(signer, RSAPrivateKey)
    peer_key = generate_private_key(65537, 1024)
    (folder / "peer.hex").write_text(public_blob(peer_key).hex())
    with Listener() as listener:
        hosts = {str(UUID(bytes_le=GUID)): listener.at}
        settings = replace(SETTINGS, send_insecure_nacks=True, send_rc2=True)
        base = options(
            data, ORDERS, address=ADDRESS, settings=settings, overrides=AddressOverrides(hosts=hosts)
        )
        with served(base) as server:
            name = done("queue", "show", ORDERS, "--data", data)["format_name"]
            identifier, _, number = name.removeprefix("PRIVATE=").partition("\\")
            peer = str(UUID(bytes_le=GUID))
            imported = called("key", "import", folder / "peer.hex", "--peer", peer, "--data", data)
            assert [row["peer"] for row in imported.lines] == [peer] * 3
            yield Meeting(
                server, listener, UUID(identifier).bytes_le, int(number, 16), blob, signer, cert.read_bytes(),
                peer_key,
            )  # fmt: skip


@pytest.fixture(scope="module")
def inbox(meeting: Meeting) -> Iterator[Session]:
    """The session over which the server sends to the peer."""
    done("send", TO_PEER, "--data", meeting.server.data, "--body", "hello")
    with meeting.listener.accept() as peer:
        assert peer.until("UserMessage").body == b"hello"
        peer.acknowledge()
        yield peer


def sealed(meeting: Meeting, **fields: object) -> SealedMessage:
    base = SealedMessage(
        b"secret body", (3, h.private_id(meeting.queue)), address=meeting.identifier, label="order",
        signer=meeting.signer, certificate=meeting.certificate, sid=SID_BYTES,
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("cipher", [AES128, AES256, RC2])
@pytest.mark.parametrize("version, algorithm", [(2, SHA512), (2, SHA256), (3, SHA512)])
def test_what_the_peer_has_sealed_is_opened_and_verified(
    meeting: Meeting, version: int, algorithm: int, cipher: int
) -> None:
    message = sealed(
        meeting, version=version, hash_algorithm=algorithm, cipher=cipher, recipient=public_key(meeting.blob)
    )
    with Session.opened((ADDRESS, meeting.server.port)) as peer:
        peer.push(message)
        peer.until_acknowledged()
    received = done("receive", ORDERS, "--data", meeting.server.data)
    assert protection(received) == (b"secret body", True, f"{version}.0", NAMES[cipher])
    assert received["sender"] == SID
    assert b64decode(received["sender_certificate"]) == meeting.certificate


@pytest.mark.parametrize("cipher", [AES128, AES256, RC2])
@pytest.mark.parametrize("version, algorithm", [(2, SHA512), (2, SHA256), (3, SHA512)])
def test_the_peer_opens_and_verifies_what_is_sealed_for_it(
    meeting: Meeting, inbox: Session, version: int, algorithm: int, cipher: int
) -> None:
    done(
        "send", TO_PEER, "--data", meeting.server.data, "--sign", "--body", "secret body",
        "--signature", f"{version}.0", "--hash", "sha512" if algorithm == SHA512 else "sha256",
        "--encrypt", NAMES[cipher], "--legacy", "--label", "order", "--priority", "5",
    )  # fmt: skip
    packet = inbox.until("UserMessage")
    inbox.acknowledge()
    body = opened(packet, meeting.peer_key)
    assert body == b"secret body"
    assert b"secret body" not in packet
    assert packet.EncryptionAlgorithm == cipher
    assert packet.security.security_id == SID_BYTES
    verify(packet, body, version, QUEUE)
    with pytest.raises(InvalidSignature):
        verify(packet, b"Secret body", version, QUEUE)


def test_a_changed_message_of_the_peer_is_refused(meeting: Meeting, inbox: Session) -> None:
    class Changed(SealedMessage):
        def bytes(self, *, session: bytes = b"") -> bytes:
            return super().bytes(session=session).replace(b"secret body", b"Secret body")

    intact = sealed(meeting, wants=NACK_ARRIVAL, admin=(2, h.private_id(9)))
    with Session.opened((ADDRESS, meeting.server.port)) as peer:
        peer.push(intact, Changed(**vars(replace(intact, message_id=new_id()))))
        peer.until_acknowledged()
    refusal = inbox.until("UserMessage")
    inbox.acknowledge()
    assert refusal.MessageClass == 0x8006
    (received,) = called("receive", ORDERS, "--data", meeting.server.data, "--count", "9").lines
    assert protection(received) == (b"secret body", True, "2.0", None)
