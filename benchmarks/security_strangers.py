"""The worst messages of unknown senders to a queue manager with message security, and its service meanwhile.

    python benchmarks/security_strangers.py [--seconds S] [--origins N] [--lines TEXT]

Each attack is sent by one origin, and then by several, to a queue for authenticated messages as fast as they
are taken; who is disconnected for too much work comes back after ten milliseconds. An honest sender, also of
an origin that nobody has told the queue manager of, sends a signed and encrypted message each 50 ms, and when
it is disconnected again after 100 ms. Time is that of the processor in the queue manager, and that in which
nobody sends; each unknown_peer has a network of 1 Gbit/s. Printed are, for each second, the messages of the
attack that were taken, and the milliseconds of processor time that they and their connections took, of these
for security; and of the honest messages, how many were served at once or later, and the longest wait for one.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import count, repeat
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import NoDigestInfo
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from msmqwire.constants import CryptographicProvider
from msmqwire.crypto.ciphers import encrypt, new_session_key
from msmqwire.qm.model.access import sid_bytes
from tests.support import handmade as h
from tests.support.engine_harness import START_UTC, EngineHarness
from tests.support.peers.handwritten_peer import HandwrittenPeer
from tests.support.qm.message_security import DAY, Sealed, certificate, rsa_key
from tests.support.qm.secured_harness import ALICE, OTHER_SID, configuration, secured

LARGE: Final = (4 << 20) - (64 << 10)
MD2, RC2 = 0x8001, 0x6602
MD2_HEAD: Final = bytes.fromhex("3020300c06082a864886f70d020205000410")
HONEST_MS, RETRY_MS, BACK_MS = 50, 100, 10
MS_PER_BYTE: Final = 8e-6
"""The bytes a second of a network of 1 Gbit/s."""
EXCHANGE: Final = "exchange"
Fields = dict[str, Any]


@cache
def vast_certificate(bits: int, exponent: int) -> bytes:
    """Return a certificate for a modulus with unknown factors."""
    modulus = int.from_bytes(os.urandom(bits // 8)) | 1 << bits - 1 | 1
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mallory")])
    builder = (
        x509.CertificateBuilder(name, name, RSAPublicNumbers(exponent, modulus).public_key(), 1)
        .not_valid_before(datetime.fromtimestamp(START_UTC - DAY, UTC))
        .not_valid_after(datetime.fromtimestamp(START_UTC + DAY, UTC))
    )
    return builder.sign(rsa_key("mallory"), hashes.SHA256()).public_bytes(Encoding.DER)


def _sealed(**fields: Any) -> Fields:
    return Sealed(**{"sid": OTHER_SID} | fields).fields()


def plain() -> Iterator[Fields]:
    yield from repeat(_sealed())


def unknown_senders() -> Iterator[Fields]:
    """Right signatures, each of another user, whom the directory does not have."""
    for number in count():
        yield _sealed(signer="mallory", sid=sid_bytes(f"S-1-5-21-1-2-3-{number + 5000}"))


def wrong_signatures(bits: int, exponent: int) -> Callable[[], Iterator[Fields]]:
    """Numbers that are not signatures, with a certificate of this size."""

    def make() -> Iterator[Fields]:
        fields, shown = _sealed(), vast_certificate(bits, exponent)
        for _ in count():
            signature = os.urandom(bits // 8 - 1) + b"\0"
            yield fields | {"security": _security(signature, shown)}

    return make


def _security(signature: bytes, certificate: bytes) -> bytes:
    return h.security_header(flags=1, security_id=OTHER_SID, signature=signature, certificate=certificate)


def slow_hashes() -> Iterator[Fields]:
    """Signatures by an own key over the hash of something else, with MD2: both versions are tried."""
    for _ in count():
        digest = rsa_key("mallory").sign(MD2_HEAD + os.urandom(16), PKCS1v15(), NoDigestInfo())
        security = _security(digest[::-1], certificate("mallory"))
        yield _sealed(body=bytes(LARGE)) | {"security": security, "hash_algorithm": MD2}


def large_bodies() -> Iterator[Fields]:
    """Valid signatures with SHA-512, of an unknown sender."""
    yield from repeat(_sealed(signer="mallory", body=bytes(LARGE)))


def wrong_keys() -> Iterator[Fields]:
    """Session keys that were never encrypted."""
    good = Sealed(recipient=rsa_key(EXCHANGE, 2048).public_key(), kind=0)
    head = good.wrapped()[:12]
    for _ in count():
        good.blob = head + os.urandom(255) + b"\0"
        yield good.fields()


def new_keys() -> Iterator[Fields]:
    """A new session key each time, and a body that it decrypts."""
    for _ in count():
        yield Sealed(
            recipient=rsa_key(EXCHANGE, 2048).public_key(), kind=0, session_key=os.urandom(32)
        ).fields()


def wrong_bodies() -> Iterator[Fields]:
    """Bodies with a wrong padding, under a key that may be in the cache."""
    good = Sealed(recipient=rsa_key(EXCHANGE, 2048).public_key(), kind=0)
    good.blob = good.wrapped()
    fields = good.fields()
    yield fields
    for _ in count():
        yield fields | {"body": os.urandom(16)}


def slow_ciphers() -> Iterator[Fields]:
    """Bodies under RC2, with a key that may be in the cache."""
    key = new_session_key(RC2, 128, os.urandom)
    body = encrypt(key, bytes(LARGE - 8))
    sealed = Sealed(
        recipient=rsa_key(EXCHANGE, 2048).public_key(),
        kind=0,
        algorithm=0x6610,
        session_key=key.key.ljust(32),
    )
    fields = sealed.fields()
    blob = h.simpleblob(sealed.recipient.encrypt(key.key, PKCS1v15())[::-1], RC2)  # type: ignore[union-attr]
    fields["security"] = h.security_header(flags=0x20, encryption_key=blob)
    yield from repeat(fields | {"body": body, "algorithm": RC2, "privacy": 3})


ATTACKS: Final[dict[str, Callable[[], Iterator[Fields]]]] = {
    "no signature": plain,
    "wrong signatures, 2048 bits": wrong_signatures(2048, 65537),
    "wrong signatures, 16384 bits": wrong_signatures(16384, 65537),
    "wrong signatures, 16384 bits, e = 2^32 - 1": wrong_signatures(16384, 0xFFFFFFFF),
    "right signatures, a new SID each": unknown_senders,
    "4 MiB, SHA-512": large_bodies,
    "4 MiB, MD2, wrong hash": slow_hashes,
    "session keys that nobody made": wrong_keys,
    "a new session key each": new_keys,
    "wrong padding": wrong_bodies,
    "4 MiB, RC2": slow_ciphers,
}


@dataclass
class Client:
    """A sender."""

    address: str
    messages: Iterator[Fields]
    ms_per_byte: float = 0.0
    peer: HandwrittenPeer | None = None
    ready: float = 0.0


@dataclass
class Run:
    """One attack. Times are milliseconds.

    Attributes:
        now: processor time of the queue manager, and time without a sender. used: processor time that the
            attack took; security: of it for signatures and decryption.
        taken: its messages.
        waits: of honest messages that were served.
    """

    harness: EngineHarness
    now: float = 0.0
    used: float = 0.0
    security: float = 0.0
    taken: int = 0
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        protection = self.harness.core.protection
        refusal = protection.refusal

        def timed_refusal(*args: Any) -> int | None:
            start = time.process_time()
            try:
                return refusal(*args)
            finally:
                self.security += (time.process_time() - start) * 1e3

        protection.refusal = timed_refusal  # type: ignore[method-assign]

    def timed(self, call: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = call()
        self.now += (time.process_time() - start) * 1e3
        return result

    def send(self, client: Client, pause: float) -> bool:
        """Send the next message of a client; return whether it was taken."""
        if client.peer is None or client.peer.closed:
            connect = lambda: self.harness.accept_session(address=client.address)  # noqa: E731
            client.peer = self.timed(connect)
        packet = client.peer.message(**next(client.messages))
        peer = client.peer
        self.timed(lambda: peer.send(packet))
        client.ready = self.now + (pause if peer.closed else len(packet) * client.ms_per_byte)
        return not peer.closed


def honest_messages() -> Iterator[Fields]:
    sealed = Sealed(
        signer="alice", sid=ALICE, recipient=rsa_key(EXCHANGE, 2048).public_key(), body=bytes(1024)
    )
    sealed.blob = sealed.wrapped()
    yield from repeat(sealed.fields())


def run(attack: Callable[[], Iterator[Fields]], origins: int, seconds: float) -> Run:
    """Run an attack from a number of origins."""
    keys = {provider: (rsa_key(EXCHANGE, 2048),) for provider in CryptographicProvider}
    harness = secured(
        security=configuration(exchange_keys=keys), queue={"authentication": True}, send_insecure_nacks=False
    )
    here = Run(harness)
    attackers = [Client(f"10.0.1.{number}", attack(), MS_PER_BYTE) for number in range(1, origins + 1)]
    honest = Client("10.0.2.1", honest_messages())
    due = 0.0
    while here.now < seconds * 1e3:
        before = here.now
        for client in attackers:
            if here.now >= client.ready:
                start = here.now
                here.taken += here.send(client, BACK_MS)
                here.used += here.now - start
        while here.now >= max(due, honest.ready):
            if here.send(honest, RETRY_MS):
                here.waits.append(here.now - due)
                due += HONEST_MS
        if here.now == before:
            here.now = min(max(due, honest.ready), *(client.ready for client in attackers))
        harness.advance(int(here.now) - harness.now)
    return here


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each attack")
    parser.add_argument("--origins", type=int, default=3, help="that attack together")
    parser.add_argument("--lines", default="", help="only attacks that contain this")
    given = parser.parse_args()
    print(f"Python {platform.python_version()}")
    print(
        f"{'':44}{'origins':>8}{'messages/s':>12}{'ms/s':>7}{'security':>10}"
        f"{'honest':>8}{'of':>4}{'worst wait, ms':>16}"
    )
    for name, attack in ATTACKS.items():
        if given.lines not in name:
            continue
        for origins in (1, given.origins):
            here = run(attack, origins, given.seconds)
            total = int(here.now / HONEST_MS)
            longest = max(here.waits, default=float("inf"))
            print(
                f"{name:44}{origins:>8}{here.taken / here.now * 1e3:>12.0f}{here.used / here.now * 1e3:>7.0f}"
                f"{here.security / here.now * 1e3:>10.0f}{len(here.waits):>8}{total:>4}{longest:>16.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
