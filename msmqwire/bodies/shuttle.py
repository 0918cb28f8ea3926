"""Transport messages of Shuttle.Esb: an object in XML or JSON whose ``Message`` is the message in base64."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace

from msmqwire.bodies import gzip, plain
from msmqwire.bodies.body import Content, Plain, Problem
from msmqwire.bodies.limits import Budget, LimitExceeded

_FORMAT = "shuttle"
_NAMES = frozenset(("Message", "MessageId", "AssemblyQualifiedName"))


def of_content(
    content: Content, budget: Budget, decode: Callable[[bytes, Budget], Content]
) -> Content | None:
    """Return JSON or XML as the transport message that it is, with its message decoded; None if it is none.

    Args:
        content: the data read.
        budget: the rest of the limits.
        decode: the decoder of the message, by its content.
    """
    value = content.value
    if not isinstance(value, dict) or not value.keys() >= _NAMES:
        return None
    inner, problems = _message(value, budget, decode)
    value = {**value, "Message": inner}
    return Content(_FORMAT, value, None, (*content.problems, *problems))


def _message(
    value: dict[str, Plain], budget: Budget, decode: Callable[[bytes, Budget], Content]
) -> tuple[Plain, tuple[Problem, ...]]:
    """Return the message as plain data, as bytes where it is encrypted or no base64."""
    message = value["Message"]
    if not isinstance(message, str):
        return message, ()
    try:
        budget.inside = True
        budget.spend(4 * len(message))
        data = base64.b64decode("".join(message.split()), validate=True)
    except ValueError:
        return message, (Problem("is not base64", "Message"),)
    except LimitExceeded as exc:
        return message, (Problem(exc.why, "Message"),)
    if value.get("EncryptionAlgorithm"):
        return plain.raw(data), ()
    content = gzip.read(data, budget, decode) if gzip.recognises(data) else decode(data, budget)
    problems = (replace(fault, path=f"Message.{fault.path}".rstrip(".")) for fault in content.problems)
    return content.value, tuple(problems)
