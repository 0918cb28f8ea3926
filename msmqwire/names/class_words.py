"""The meaning of negative acknowledgements, in words: [MS-MQMQ] 2.2.18.1.6."""

from __future__ import annotations

from typing import Final

_WORDS: Final = {
    "NACK_BAD_DST_Q": "there is no such queue",
    "NACK_DELETED": "it was deleted before it got there",
    "NACK_REACH_QUEUE_TIMEOUT": "its time to reach the queue was over",
    "NACK_Q_EXCEED_QUOTA": "the queue is full",
    "NACK_ACCESS_DENIED": "its sender may not send to the queue",
    "NACK_HOP_COUNT_EXCEEDED": "it was passed on too often",
    "NACK_BAD_SIGNATURE": "its signature is not valid",
    "NACK_BAD_ENCRYPTION": "it can't be decrypted",
    "NACK_NOT_TRANSACTIONAL_Q": "it is transactional, and the queue is not",
    "NACK_NOT_TRANSACTIONAL_MSG": "the queue is transactional, and it is not",
    "NACK_UNSUPPORTED_CRYPTO_PROVIDER": "its cryptographic provider is not supported",
    "NACK_Q_DELETED": "the queue was deleted with it",
    "NACK_Q_PURGED": "the queue was purged",
    "NACK_RECEIVE_TIMEOUT": "nobody has read it in time",
    "NACK_RECEIVE_REJECTED": "the application has rejected it",
}


def class_words(name: str) -> str:
    """Return the meaning of a class of negative acknowledgements in words; `name` is that of `class_name`."""
    return _WORDS.get(name, "it is refused")


def class_with_words(name: str) -> str:
    """Return the name of such a class and its meaning: ``NACK_BAD_DST_Q: there is no such queue``."""
    return f"{name}: {class_words(name)}"
