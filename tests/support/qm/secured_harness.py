"""A queue manager with keys and users, and the outcome of messages signed and encrypted by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmqwire.constants import CryptographicProvider
from msmqwire.qm.model.access import sid_bytes
from msmqwire.qm.model.directory_objects import User
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.security.configuration import SecurityConfiguration
from tests.support.engine_harness import EngineHarness, harness_with_peer
from tests.support.peers.handwritten_peer import NA, HandwrittenPeer, direct
from tests.support.qm.directory_recorder import DirectoryRecorder
from tests.support.qm.message_security import Sealed, certificate, rsa_key, user_certificates
from tests.support.qm.queue_contents import message_classes

ALICE = sid_bytes("S-1-5-21-1-2-3-1001")
"""A user whose certificate, of the key with her name, is registered."""
OTHER_SID = sid_bytes("S-1-5-21-1-2-3-1002")
BASE, ENHANCED, AES = CryptographicProvider
OPEN_NACKS = {"send_insecure_nacks": True}
TAKEN = "taken"
_POOL = b"0123456789abcdef"


def random_bytes(size: int) -> bytes:
    """Random bytes that are always the same."""
    return (_POOL * 8)[:size]


def configuration(**fields: Any) -> SecurityConfiguration:
    """Own keys for the three providers, named base, enhanced and aes."""
    keys = {provider: (rsa_key(provider.name.lower()),) for provider in CryptographicProvider}
    return SecurityConfiguration(**{"random_bytes": random_bytes, "exchange_keys": keys} | fields)


def secured(
    *, users: bool = True, queue: dict[str, Any] | None = None, security: Any = None, **options: Any
) -> EngineHarness:
    """A queue manager with a directory, the user ALICE and a queue.

    Args:
        users: whether ALICE is in the directory.
        queue: attributes of the queue ``orders``.
        security: its configuration; own keys by default.
        options: of `harness_with_peer`, and settings. Refusals are acknowledged by default.
    """
    directory = DirectoryRecorder()
    if users:
        directory.publish(
            User(UUID(int=7), security_identifier=ALICE, certificates=user_certificates(certificate("alice")))
        )
    harness = harness_with_peer(
        **{"security": security or configuration(), "directory": directory, "settings": Settings()}
        | OPEN_NACKS | options
    )  # fmt: skip
    if queue is not None or "orders" not in options:
        harness.queue(**queue or {})
    harness.queue("adm")
    directory.log.clear()
    return harness


def recorder(harness: EngineHarness) -> DirectoryRecorder:
    """The directory of a `secured` queue manager."""
    directory = harness._core_options["directory"]
    assert isinstance(directory, DirectoryRecorder)
    return directory


def verdict(harness: EngineHarness, sealed: Sealed, peer: HandwrittenPeer | None = None) -> str:
    """The outcome of a message: TAKEN, or the class of the acknowledgement of its refusal."""
    queue, admin = harness.find_queue(), harness.find_queue("adm")
    before, acknowledged = len(queue.positions), len(message_classes(admin))
    sealed.acks, sealed.admin = NA, direct("adm")
    (peer or harness.accept_session()).send_message(**sealed.fields())
    if len(queue.positions) > before:
        assert len(message_classes(admin)) == acknowledged
        return TAKEN
    return f"{message_classes(admin)[-1]:04x}" if len(message_classes(admin)) > acknowledged else "nothing"


def last(harness: EngineHarness, queue: Queue | None = None) -> Any:
    """The last message in a queue."""
    positions = list((queue or harness.find_queue()).positions)
    return positions[-1].message
