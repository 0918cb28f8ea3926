"""`inspect_body`: the content of any message, for programs that show messages."""

from __future__ import annotations

from dataclasses import replace

from msmqwire.bodies import plain
from msmqwire.bodies.body import Body, Problem
from msmqwire.bodies.decoding import decode
from msmqwire.bodies.limits import DEFAULT, Limits
from msmqwire.errors import MalformedBody


def inspect_body(
    body: bytes, *, body_type: int = 0, extension: bytes = b"", limits: Limits = DEFAULT
) -> Body:
    """Return the decoded body of a message; a body that is not of its type is decoded by its content.

    No bytes make this raise: the error of `decode` is the first problem.

    Args:
        body: MessagePropertiesHeader.MessageBody, decrypted.
        body_type: MessagePropertiesHeader.BodyType, 0 if unknown.
        extension: MessagePropertiesHeader.ExtensionData, where NServiceBus and Rebus have their headers.
        limits: the limits of decoding; the rest is a problem.
    """
    try:
        return decode(body, body_type=body_type, extension=extension, limits=limits)
    except MalformedBody as exc:
        fault = Problem(exc.why, exc.path, exc.offset)
    if body_type:
        try:
            found = decode(body, extension=extension, limits=limits)
        except MalformedBody:
            pass  # the first reason is that of the type, which is reported
        else:
            return replace(found, problems=(fault, *found.problems))
    found = decode(b"", extension=extension, limits=limits)  # its headers are read all the same
    return replace(found, value=plain.raw(body), problems=(fault, *found.problems))
