"""Questions about signatures and session keys that the specification leaves open, each a switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from msmqwire.names.switches import Switches

ByteOrder: TypeAlias = Literal["little", "big"]
QueueNames: TypeAlias = Literal["header", "text", "text-with-null"]
FormatNameLists: TypeAlias = Literal["destination", "all"]


@dataclass(frozen=True, slots=True, repr=False)
class Readings(Switches):
    """One reading of the questions that [MS-MQMQ] 2.5 and [MS-MQQB] 2.4 leave open; both sides need the same
    one.

    No capture of a signed or encrypted message is known, so nothing has confirmed the defaults.

    Attributes:
        signature_bytes: the order of the bytes of a signature, ``little`` as CryptoAPI writes them, or
            ``big`` as [RFC8017] does.
        digest_info: whether a DigestInfo of [RFC8017] 9.2 is signed, or the bare hash.
        salted_40_bit_keys: whether the 40 bits of a key of the Base provider are followed by 11 zero bytes of
            salt, so that the cipher's key has 16 bytes, or are the cipher's key themselves.
        queue_names: the form of a queue in the hash: ``header``, the bytes of its field in the header without
            padding; ``text``, its format name in UTF-16; ``text-with-null``, the same with a null after it.
        absent_queues_as_null: whether a null character stands for an AdminQueue or ResponseQueue that is not
            there, or nothing.
        label_null: whether the null that ends Label goes into the hash.
        absent_connector_type_as_null: whether the null GUID stands for a ConnectorType that is not there, or
            nothing.
        format_name_lists: the lists of a MultiQueueFormatHeader that go into the hash of MSMQ 3.0:
            ``destination`` alone, or ``all`` three, destinations, administration and response queues.
    """

    signature_bytes: ByteOrder = "little"
    digest_info: bool = True
    salted_40_bit_keys: bool = True
    queue_names: QueueNames = "header"
    absent_queues_as_null: bool = False
    label_null: bool = True
    absent_connector_type_as_null: bool = True
    format_name_lists: FormatNameLists = "destination"


DEFAULT: Final = Readings()
