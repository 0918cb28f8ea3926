"""Benchmark of message security in captures: the cost of a signed or encrypted message, and of a hostile one.

    python benchmarks/captured_security.py

First the columns of a capture of 20,000 plain messages, all of them and without ``signature_status`` and
``decrypted``, which must cost next to nothing there. Then, in processor time for a packet that is parsed
already, the messages of examples/protected.pcap with keys and certificates seen before, and the worst known.
"""

from __future__ import annotations

import io
import random
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

import msmqwire
from msmqwire.analysis.dissection import message_security
from msmqwire.analysis.dissection.message_security import Examiner
from msmqwire.schema import Record
from msmqwire.tables.columns import EXAMINED, UNJUDGED
from tests.support.capture.protected_captures import ALICE, QM_KEY, capture_of, packets, secured

MESSAGES: Final = 20_000
ROUNDS: Final = 7
COUNT: Final = 20


def best(run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Seconds of processor time, in the best round."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def forged(bits: int, exponent: int, rng: random.Random) -> Record:
    """A message with a certificate of a key without a known private key, and a signature for it."""
    modulus = rng.getrandbits(bits) | 1 << (bits - 1) | 1
    key = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    builder = x509.CertificateBuilder(x509.Name([]), x509.Name([]), key, 1)
    builder = builder.not_valid_before(datetime(2026, 1, 1)).not_valid_after(datetime(2027, 1, 1))
    certificate = builder.sign(SIGNER, SHA256()).public_bytes(Encoding.DER)
    signature = rng.randbytes(bits // 8 - 1) + b"\0"
    return secured(packets()["signed by alice"], SenderCert=certificate, Signature=signature)


def read(data: bytes, columns: list[str]) -> None:
    for _ in msmqwire.read_capture(io.BytesIO(data), columns=columns, batch_rows=1 << 16):
        pass


SIGNER: Final = rsa.generate_private_key(65537, 1024)


def figures() -> Iterator[tuple[str, float, int]]:
    """Yield the name of a measurement, seconds a packet, and the bytes of the packet."""
    examiner = Examiner.from_files(QM_KEY, ALICE)

    def examine(packet: Record, before: Callable[[], object] = lambda: None) -> float:
        def run() -> None:
            for _ in range(COUNT):
                before()
                examiner._examine(packet, cut=False)

        return best(run) / COUNT

    for label in ("signed by alice", "AES-256", "RC2 with 40 bits", "RC4 with 128 bits", "signed, AES-128"):
        packet = packets()[label]
        yield label, examine(packet), len(packet.to_bytes())
    packet = packets()["AES-256"]
    yield "wrapped key never seen", examine(packet, examiner._session_keys.clear), len(packet.to_bytes())
    rng = random.Random(1801)
    for bits in (2048, 4096, 16384):
        for exponent in (65537, 0xFFFFFFFF):
            packet = forged(bits, exponent, rng)
            size, name = len(packet.to_bytes()), f"forged, {bits} bits, exponent {exponent:#x}"
            yield name, examine(packet), size
            yield (
                f"{name}, certificate never seen",
                examine(packet, message_security.key_of.cache_clear),
                size,
            )
    body, properties = bytes(1 << 22), packets()["signed by alice"].MessagePropertiesHeader
    for algorithm, name in ((0x8001, "MD2"), (0x800E, "SHA-512")):
        changed = properties.replace(MessageBody=body, MessageSize=len(body), HashAlgorithm=algorithm)
        packet = packets()["signed by alice"].replace(MessagePropertiesHeader=changed)
        yield f"4 MiB of body under {name}", best(lambda: examiner._examine(packet, cut=False), 2), len(body)  # noqa: B023


def main() -> None:
    data = capture_of(*[packets()["neither signed nor encrypted"].to_bytes()] * MESSAGES).getvalue()
    names = [column.name for column in UNJUDGED]
    fewer = [name for name in names if name not in EXAMINED]
    print(f"ns a row of {MESSAGES} plain messages")
    for title, chosen in (("all columns", names), ("without the two", fewer), ("all columns", names)):
        seconds = best(lambda: read(data, chosen))  # noqa: B023
        print(f"{title:<64} {seconds * 1e9 / MESSAGES:>9.0f} ns")
    for name, seconds, size in figures():
        print(f"{name:<64} {seconds * 1e6:>9.0f} µs {size:>8} bytes {seconds * 1e9 / size:>7.0f} ns a byte")


if __name__ == "__main__":
    main()
