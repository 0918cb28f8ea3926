"""Message security between two queue managers: messages a second, and the cost of reception alone.

    python benchmarks/secured_engines.py [MESSAGES] [--rounds N] [--profile KIND]

Two queue managers connected in memory, in one process and one thread, as in `engine.py`: express messages of
1 KiB with stores in memory, recoverable ones with SQLite. They are plain, signed (2.0, SHA-512, RSA of 2048
bits, a registered certificate), encrypted (AES-256) or both; the kinds take turns, the best round of each
counts. The application makes its signatures itself, which is part of the messages a second and stands apart
besides. Microseconds are of processor time, which other work on
the machine disturbs less.

Then reception alone: from the packet to a message that the queue may take, in microseconds of processor
time, beside the calls of `cryptography` that it can't do without ("security" is what a message takes more
than a plain one); with a certificate and a session key that
the caches have, and with new ones in each message. ``--profile`` prints where the time of a kind goes.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import platform
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.hashes import SHA512

from benchmarks.engine import BATCH, BODY, UTC, ManagerPair
from benchmarks.support.turns import best
from msmqwire.constants import CryptographicProvider
from msmqwire.crypto.certificates import SenderCertificate, create_self_signed
from msmqwire.headers.security_descriptor import sid_bytes
from msmqwire.names import PrivateName
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.directory_objects import User
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import DeliveryGuarantee, QueueAccessType
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules import serialization
from msmqwire.qm.security.configuration import SecurityConfiguration
from msmqwire.qm.security.signing import Signer, signed
from msmqwire.qm.security.user_certificates import register
from msmqwire.qm.store import memory_store, open_store
from msmqwire.service.store import Store

KINDS: Final = {
    "plain": (False, False),
    "signed": (True, False),
    "encrypted": (False, True),
    "both": (True, True),
}
SENDER, RECEIVER = UUID(int=0xA1), UUID(int=0xB2)
SID: Final = sid_bytes("S-1-5-21-1-2-3-1001")
BITS: Final = 2048
DAY: Final = 86_400
AES_PROVIDER: Final = CryptographicProvider.AES


class Keys:
    """The key and certificate of a user, and the key of the receiving queue manager."""

    def __init__(self) -> None:
        self.exchange = rsa.generate_private_key(65537, BITS)
        key = rsa.generate_private_key(65537, BITS)
        certificate = SenderCertificate.read(create_self_signed(key, "alice", UTC - DAY, UTC + 10 * DAY, 1))
        self.signer = Signer(key, certificate, SID)
        self.users = EmbeddedDirectory()
        user = User(UUID(int=1), security_identifier=SID)
        register(user, certificate.der, UUID(int=2))
        self.users.create_directory_object(user)

    def pair(self, make_store: Callable[[str], Store]) -> ManagerPair:
        """Return two queue managers that can do it; the sender is known to the receiver, without limits."""
        sending = SecurityConfiguration(
            random_bytes=os.urandom, peer_keys={RECEIVER: {AES_PROVIDER: self.exchange.public_key()}}
        )
        receiving = SecurityConfiguration(exchange_keys={AES_PROVIDER: [self.exchange]}, users=self.users)
        return ManagerPair(
            make_store,
            {"identifier": SENDER, "security": sending, "routes": {RECEIVER: ["beta"]}},
            {"identifier": RECEIVER, "security": receiving, "known_hosts": ["10.0.0.1"]},
        )


def message(keys: Keys, name: PrivateName, kind: str, guarantee: DeliveryGuarantee) -> Message:
    """Return a message as an application makes it."""
    is_signed, is_encrypted = KINDS[kind]
    made = Message(body=BODY, label="order 7", destination=name, delivery_guarantee=guarantee)
    if is_encrypted:
        made.privacy_level = 5
    if is_signed:
        signed(made, keys.signer, queue_manager=SENDER)
    return made


def transfer(
    pair: ManagerPair, keys: Keys, queue: Queue, kind: str, count: int
) -> tuple[float, float, float]:
    """Transfer messages; return the seconds, those of the processor, and those to make the messages."""
    guarantee = (
        DeliveryGuarantee.EXPRESS if queue.pathname.endswith("express") else DeliveryGuarantee.RECOVERABLE
    )
    name = PrivateName(RECEIVER, queue.private_queue_number)
    text = name.text
    sending = pair.open(pair.sender, text, QueueAccessType.SEND_ACCESS, "")
    receiving = pair.open(pair.receiver, text, QueueAccessType.RECEIVE_ACCESS, "")
    core, receiver = pair.sender.core, pair.receiver.core
    sent = received = 0
    making = 0.0
    start, used = time.perf_counter(), time.process_time()
    while received < count:
        before = time.process_time()
        batch = [message(keys, name, kind, guarantee) for _ in range(min(BATCH, count - sent))]
        making += time.process_time() - before
        for made in batch:
            core.send(sending, made)
        sent += len(batch)
        pair.settle()
        progress = received
        while (found := receiver.messages.dequeue(receiving, timeout=0).message) is not None:
            assert found.body == BODY
            assert (bool(found.authentication_level), found.decrypted) == KINDS[kind]
            received += 1
        if received == progress:
            pair.advance(100)
    pair.advance(10_000)
    used, seconds = time.process_time() - used, time.perf_counter() - start
    core.queues.close(sending)
    receiver.queues.close(receiving)
    return seconds, used, making


def rates(keys: Keys, count: int, rounds: int, folder: Path) -> None:
    """Print the messages a second of each kind, with its ratios to the plain one."""
    print(
        f"{'':13}{'kind':>10}{'messages/s':>12}{'µs each':>9}{'ratio':>7}"
        f"{'signing':>9}{'without':>9}{'ratio':>7}"
    )
    for what, make_store in (
        ("express", lambda name: memory_store()),
        ("recoverable", lambda name: open_store(folder / f"{name}.msmq")),
    ):
        pair = keys.pair(make_store)
        queue = pair.create_queue(what, transactional=False)
        found: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in KINDS}
        for number in range(rounds + 1):
            for kind, times in found.items():
                taken = transfer(pair, keys, queue, kind, count if number else BATCH)
                if number:
                    times.append(taken)
        plain = min(used for _, used, _ in found["plain"])
        plain_rest = min(used - making for _, used, making in found["plain"])
        for kind, times in found.items():
            seconds, used = min(times)[0], min(used for _, used, _ in times)
            making, rest = (
                min(making for *_, making in times),
                min(used - making for _, used, making in times),
            )
            print(
                f"{what:13}{kind:>10}{count / seconds:>12.0f}{1e6 * used / count:>9.1f}{used / plain:>7.2f}"
                f"{1e6 * making / count:>9.1f}{1e6 * rest / count:>9.1f}{rest / plain_rest:>7.2f}"
            )
        for manager in (pair.sender, pair.receiver):
            manager.store.close()


# -- reception alone ----------------------------------------------------------------------------------------


class Reception:
    """A receiving queue manager, and packets for it."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        pair = keys.pair(lambda name: memory_store())
        self.queue = pair.create_queue("express", transactional=False)
        self.name = PrivateName(RECEIVER, self.queue.private_queue_number)
        self.sender, self.receiver = pair.sender.core, pair.receiver.core

    def packet(self, kind: str) -> bytes:
        """Return a packet as it goes over a session."""
        made = message(self.keys, self.name, kind, DeliveryGuarantee.EXPRESS)
        self.sender.identity.stamp(made)
        self.sender.identity.identify(made)
        return serialization.to_packet(self.sender.protection.protected(made, RECEIVER, {}))

    def receive(self, data: bytes, *, new: bool = False) -> None:
        """Judge a packet; with nothing in the caches if `new`."""
        protection = self.receiver.protection
        if new:
            protection.authentication.user_cert_cache.clear()
            protection.decryption.receive_symmetric_key_cache.clear()
        packet = USER_MESSAGE.parse(data)
        received = serialization.deserialize(packet, data)
        received.origin = "10.0.0.1"
        assert protection.refusal(received, self.queue, packet) is None

    def bare(self, kind: str, *, new: bool) -> Callable[[], Any]:
        """Return the calls of `cryptography` that a message takes."""
        is_signed, is_encrypted = KINDS[kind]
        certificate, exchange = self.keys.signer.certificate, self.keys.exchange
        signature = self.keys.signer.private_key.sign(BODY, PKCS1v15(), SHA512())
        session = os.urandom(32)
        wrapped = exchange.public_key().encrypt(session, PKCS1v15())
        body = Cipher(AES(session), CBC(bytes(16))).encryptor().update(BODY)

        def calls() -> None:
            if is_encrypted:
                key = exchange.decrypt(wrapped, PKCS1v15()) if new else session
                Cipher(AES(key), CBC(bytes(16))).decryptor().update(body)
            if is_signed:
                certificate.key.verify(signature, BODY, PKCS1v15(), SHA512())

        return calls


def reception(keys: Keys, rounds: int) -> None:
    """Print the cost of reception."""
    print(f"\n{'reception, µs a message':27}{'whole':>8}{'security':>10}{'bare':>8}{'ratio':>7}")
    receiver = Reception(keys)
    packets = {kind: receiver.packet(kind) for kind in KINDS}
    for kind, data in packets.items():
        for new in (False, True) if kind != "plain" else (False,):
            whole, bare, plain = best(
                [
                    lambda data=data, new=new: receiver.receive(data, new=new),
                    receiver.bare(kind, new=new),
                    lambda: receiver.receive(packets["plain"]),
                ],
                rounds,
            )
            name = kind if kind == "plain" else f"{kind}, {'nothing' if new else 'all'} cached"
            ratio = (
                ""
                if kind == "plain"
                else f"{(whole - plain):>10.1f}{bare:>8.1f}{(whole - plain) / bare:>7.2f}"
            )
            print(f"{name:27}{whole:>8.1f}{ratio}")


# -- profile ------------------------------------------------------------------------------------------------


def profile(keys: Keys, kind: str, count: int) -> None:
    """Print where the time of express messages of a kind goes."""
    pair = keys.pair(lambda name: memory_store())
    queue = pair.create_queue("express", transactional=False)
    transfer(pair, keys, queue, kind, BATCH)
    with cProfile.Profile() as found:
        transfer(pair, keys, queue, kind, count)
    pstats.Stats(found).strip_dirs().sort_stats("tottime").print_stats(45)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("messages", nargs="?", type=int, default=2_560)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", choices=KINDS)
    given = parser.parse_args()
    keys = Keys()
    if given.profile:
        profile(keys, given.profile, given.messages)
        return
    print(f"Python {platform.python_version()}, {given.messages} messages of {len(BODY)} bytes")
    with tempfile.TemporaryDirectory() as folder:
        rates(keys, given.messages, given.rounds, Path(folder))
    reception(keys, given.rounds * 20)


if __name__ == "__main__":
    main()
