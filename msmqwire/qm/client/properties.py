"""The properties of messages to be sent, as programs give them."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable
from typing import Any, Final, TypedDict

from msmqwire.errors import InvalidValue
from msmqwire.qm.client import protecting
from msmqwire.qm.model.message import Message
from msmqwire.qm.runtime.deliveries import RECOVERABLE, TRANSACTIONAL
from msmqwire.qm.runtime.message_json import message_from
from msmqwire.qm.security.signing import Signer

VT_BSTR: Final = 8
_BYTES: Final = (bytes, bytearray, memoryview)


class Properties(TypedDict, total=False):
    r"""The properties of a message to be sent.

    Attributes:
        label: up to 249 characters.
        recoverable: it survives failures of both sides.
        acknowledge: acknowledgements requested: ``full_reach_queue``, ``full_receive``, ``nack_receive``, or
            ``pos_arrival``, ``pos_receive``, ``neg_arrival``, ``neg_receive`` one by one.
        admin_queue: format name of a queue for them; without one they come back to this connection.
        response_queue: format name of a queue for answers.
        correlation: the identifier (``guid\number``) of another message, or 20 bytes.
        priority: 0 to 7, 3 by default; for messages that are not transactional.
        body_type: VARENUM of the body; 0 by default for bytes, and 8, VT_BSTR, for a text.
        message_class: a class that an application may set.
        application: a number of the application.
        extension: further bytes besides the body.
        journal: keep a copy in the journal of this side.
        dead_letter: keep it in the dead-letter queue of this side if it can't be delivered.
        time_to_reach_queue, time_to_be_received: seconds from now.
        sign: its signer: see `msmqwire.load_signer` and `QueueManager.signer`.
        signature: the version of MSMQ that its signature follows: ``1.0``; ``2.0``, the default; ``3.0``, for
            several queues.
        hash: the hash of the signature: ``sha512`` by default, ``sha256``, or the broken ``sha1`` and
            ``md5``.
        encrypt: the cipher of the body: ``aes256``, ``aes192``, ``aes128``, or the broken ``rc2`` and
            ``rc4``. The queue must have a name ``PRIVATE=`` or ``PUBLIC=``.
        peer_key: the public key of the queue manager of the queue, a file or its content, if no directory has
            it: the output of ``msmqwire key show --public`` there, a PUBLICKEYBLOB, or PEM or DER.
        legacy: whether ``md5``, ``rc2`` and ``rc4`` may be asked for.
    """

    label: str
    recoverable: bool
    acknowledge: str | Iterable[str]
    admin_queue: str
    response_queue: str
    correlation: str | bytes
    priority: int
    body_type: int
    message_class: int
    application: int
    extension: bytes
    journal: bool
    dead_letter: bool
    time_to_reach_queue: int
    time_to_be_received: int
    sign: Signer
    signature: str
    hash: str
    encrypt: str
    peer_key: bytes | str | os.PathLike[str]
    legacy: bool


_NAMES: Final = frozenset(Properties.__annotations__)
_AS_THEY_ARE: Final = frozenset({"delivery", "label", "priority", "body_type", "application"})
"""The common properties, which a request has in the same form: most messages have no further ones."""


def as_request(properties: Properties, *, transactional: bool = False) -> dict[str, Any]:
    """Return properties with the names and values that `message_json.message_from` reads.

    Protection is left to `protecting`.
    """
    request: dict[str, Any] = dict(properties)
    if not request.keys() <= _NAMES:
        unknown = next(name for name in request if name not in _NAMES)
        raise InvalidValue("not a property of a message that is sent", path=unknown)
    if not request.keys().isdisjoint(protecting.PROPERTIES):
        for name in protecting.PROPERTIES:
            request.pop(name, None)
    recoverable = request.pop("recoverable", False)
    if not isinstance(recoverable, bool):
        raise InvalidValue(f"{recoverable!r:.100} is neither true nor false", path="recoverable")
    if transactional or recoverable:
        request["delivery"] = TRANSACTIONAL if transactional else RECOVERABLE
    if not request.keys() <= _AS_THEY_ARE:
        _convert(request)
    return request


def _convert(request: dict[str, Any]) -> None:
    """Give properties the values that a request has."""
    if isinstance(request.get("correlation"), bytes):
        request["correlation"] = request["correlation"].hex()
    if isinstance(request.get("acknowledge"), Iterable) and not isinstance(request["acknowledge"], str):
        request["acknowledge"] = list(request["acknowledge"])
    if "message_class" in request:
        request["class"] = request.pop("message_class")
    extension = request.get("extension")
    if extension is not None:
        if not isinstance(extension, _BYTES):
            raise InvalidValue(f"{extension!r:.100} is not bytes", path="extension")
        request["extension"] = b64encode(extension).decode()


def to_message(body: bytes | str, properties: Properties) -> Message:
    """Return the message to send. Raises InvalidValue and InvalidName with the name of the property."""
    request = as_request(properties)
    try:
        message = message_from(request)
    except InvalidValue as exc:
        if exc.path != "class":
            raise
        raise InvalidValue(exc.why, path="message_class") from None
    if isinstance(body, str):
        message.body = body.encode("utf-16-le", "surrogatepass")
        if properties.get("body_type") is None:
            message.body_type = VT_BSTR
    elif isinstance(body, _BYTES):
        message.body = bytes(body)
    else:
        raise InvalidValue(f"{body!r:.100} is neither bytes nor a text", path="body")
    return message
