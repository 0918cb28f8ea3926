"""Method calls and returns of .NET Remoting: [MS-NRBF] 2.2."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from msmqwire.bodies import plain
from msmqwire.bodies.body import Plain
from msmqwire.bodies.limits import Budget
from msmqwire.bodies.nrbf.cursor import ENDS, Fault, length, primitive, string
from msmqwire.bodies.nrbf.records import ARGS, CONTEXT, EXCEPTION, RETURN, SIGNATURE, Message, Primitive
from msmqwire.names.printable import counted

CALL, RETURN_NAME = "$call", "$return"
_VALUE_COST: Final = 300
_CONTEXT_TYPE: Final = "System.Runtime.Remoting.Messaging.CallContextRemotingData"
_int32: Final = struct.Struct("<i")

_CALL_ITEMS: Final = (  # NRBF-2.2.3.2-01
    (Message.ARGS_IN_ARRAY, "args"),  # NRBF-2.2.3.2-02
    (Message.GENERIC_METHOD, "generic"),  # NRBF-2.2.3.2-03
    (Message.METHOD_SIGNATURE_IN_ARRAY, "signature"),  # NRBF-2.2.3.2-05
    (Message.CONTEXT_IN_ARRAY, "context"),  # NRBF-2.2.3.2-07 and NRBF-2.2.3.2-08
    (Message.PROPERTIES_IN_ARRAY, "properties"),  # NRBF-2.2.3.2-09
)
_RETURN_ITEMS: Final = (  # NRBF-2.2.3.4-01
    (Message.RETURN_VALUE_IN_ARRAY, RETURN_NAME),  # NRBF-2.2.3.4-02
    (Message.ARGS_IN_ARRAY, "args"),  # NRBF-2.2.3.4-03
    (Message.EXCEPTION_IN_ARRAY, "exception"),  # NRBF-2.2.3.4-04
    (Message.CONTEXT_IN_ARRAY, "context"),  # NRBF-2.2.3.4-05
    (Message.PROPERTIES_IN_ARRAY, "properties"),  # NRBF-2.2.3.4-06
)
"""Items of the array that follows, in their order: 2.2.3.2 and 2.2.3.4."""
_APART: Final = (
    (ARGS, EXCEPTION),  # NRBF-2.2.1.1-02
    (RETURN, EXCEPTION),  # NRBF-2.2.1.1-03
    (RETURN, SIGNATURE),  # NRBF-2.2.1.1-04
    (EXCEPTION, SIGNATURE),  # NRBF-2.2.1.1-05
)
_CATEGORIES: Final = ((ARGS, "arguments"), (CONTEXT, "the context"), (RETURN, "the return value"))


Wrong = tuple[str, str, int]
"""The fault, its place and its offset."""


@dataclass(slots=True)
class Method:
    """A method call or return.

    Attributes:
        flags: the places of its parts.
        value: the value in the record itself.
        end: the offset after the record.
    """

    flags: Message
    value: dict[str, Any]
    end: int

    @property
    def has_array(self) -> bool:
        """Return whether an array follows."""
        items = _CALL_ITEMS if CALL in self.value else _RETURN_ITEMS
        return any(flag & self.flags for flag, _ in (*items, (Message.ARGS_IS_ARRAY, "args")))

    def whole(self, root: int, array: Any) -> tuple[dict[str, Any], str]:
        """Return the method with the contents of the array, references in it as they are, and the faults."""
        value = dict(self.value)
        if not self.has_array:
            # NRBF-2.6.1-03 and NRBF-2.6.1-04
            return value, f"the RootId is {root}, though no array follows" if root else ""
        if not isinstance(array, list):
            return value, "the array that the flags announce is missing"
        if self.flags & Message.ARGS_IS_ARRAY:
            value["args"] = _int32.pack(root)
            return value, ""
        items = _CALL_ITEMS if CALL in value else _RETURN_ITEMS
        names = [name for flag, name in items if flag & self.flags]  # NRBF-2.2.3.2-01 and NRBF-2.2.3.4-01
        # NRBF-2.2.3.2-01 and NRBF-2.2.3.4-01
        value |= dict(zip(names, array, strict=False))
        wrong = "" if len(names) == len(array) else f"the array has {len(array)} items, not {len(names)}"
        return value, wrong


def read_call(body: bytes, at: int, budget: Budget, faults: list[Wrong]) -> Method:
    """Read a BinaryMethodCall, 2.2.3.1, from its MessageEnum; faults are added to those found before.

    Raises Fault, LimitExceeded and struct.error.
    """
    flags = Message(_int32.unpack_from(body, at)[0] & 0xFFFF_FFFF)
    faults += [(why, "BinaryMethodCall.MessageEnum", at) for why in _wrong(flags)]
    if flags & (RETURN | EXCEPTION):  # NRBF-2.2.3.1-02
        faults.append(("a call has flags of a return", "BinaryMethodCall.MessageEnum", at))
    name, at = _text(body, at + 4, "BinaryMethodCall.MethodName", budget)
    type_, at = _text(body, at, "BinaryMethodCall.TypeName", budget)
    value: dict[str, Any] = {CALL: name, "type": type_, "args": [], "context": None}
    value, at = _context_and_args(body, at, flags, value, budget, faults)
    return Method(flags, value, at)


def read_return(body: bytes, at: int, budget: Budget, faults: list[Wrong]) -> Method:
    """Read a BinaryMethodReturn, 2.2.3.3, as `read_call` does a call."""
    flags = Message(_int32.unpack_from(body, at)[0] & 0xFFFF_FFFF)
    faults += [(why, "BinaryMethodReturn.MessageEnum", at) for why in _wrong(flags)]
    if flags & (SIGNATURE | Message.GENERIC_METHOD):  # NRBF-2.2.3.3-02
        faults.append(("a return has flags of a call", "BinaryMethodReturn.MessageEnum", at))
    value: dict[str, Any] = {RETURN_NAME: None}
    at += 4
    if flags & Message.RETURN_VALUE_INLINE:  # NRBF-2.2.3.3-03
        value[RETURN_NAME], at = _value(body, at, "BinaryMethodReturn.ReturnValue", budget, faults)
    value, at = _context_and_args(body, at, flags, value, budget, faults)
    return Method(flags, value, at)


def _context_and_args(
    body: bytes,
    at: int,
    flags: Message,
    value: dict[str, Any],
    budget: Budget,
    faults: list[Wrong],
) -> tuple[dict[str, Any], int]:
    if flags & Message.CONTEXT_INLINE:  # NRBF-2.2.3.1-03 and NRBF-2.2.3.3-04
        value["context"], at = _context(body, at, budget)
    if flags & Message.ARGS_INLINE:  # NRBF-2.2.3.1-06 and NRBF-2.2.3.3-05
        value["args"], at = _args(body, at, budget, faults)
    return value, at


def _context(body: bytes, at: int, budget: Budget) -> tuple[dict[str, Any], int]:
    call, at = _text(body, at, "CallContext", budget)
    # NRBF-2.2.3.1-04
    return {"__RemotingData": {plain.TYPE: _CONTEXT_TYPE, "logicalCallID": call}}, at


def _args(body: bytes, at: int, budget: Budget, faults: list[Wrong]) -> tuple[list[Any], int]:
    count, at = length(body, at, "Args.Length")
    if count > len(body) - at:
        raise Fault(f"{counted(count, 'argument', 'do')} not fit into the body", "Args.Length", at - 4)
    budget.items(count)
    args: list[Any] = []
    for number in range(count):
        argument, at = _value(body, at, f"Args[{number}]", budget, faults)
        args.append(argument)  # NRBF-2.2.2.3-01 and NRBF-2.2.3.1-05
    return args, at


def _wrong(flags: Message) -> Iterator[str]:
    """Yield the violations of 2.2.1.1."""
    for category, name in _CATEGORIES:
        if (flags & category).bit_count() > 1:  # NRBF-2.2.1.1-01
            yield f"the flags have more than one place for {name}"
    # NRBF-2.2.1.1-02, NRBF-2.2.1.1-03, NRBF-2.2.1.1-04 and NRBF-2.2.1.1-05
    if any(flags & one and flags & other for one, other in _APART):
        yield "the flags are of categories that exclude each other"


def _text(body: bytes, at: int, path: str, budget: Budget) -> tuple[str, int]:
    """Read a StringValueWithCode, 2.2.2.2."""
    if at >= len(body):
        raise Fault(ENDS, path, len(body))
    if body[at] != Primitive.STRING:  # NRBF-2.2.2.2-01
        raise Fault(f"the primitive type is {body[at]}, not 18", path, at)
    text, at = string(body, at + 1, path)
    budget.text(len(text))
    return text, at


def _value(body: bytes, at: int, path: str, budget: Budget, faults: list[Wrong]) -> tuple[Plain, int]:
    """Read a ValueWithCode, 2.2.2.1."""
    if at >= len(body):
        raise Fault(ENDS, path, len(body))
    if body[at] == Primitive.STRING:
        return _text(body, at, path, budget)
    if body[at] == Primitive.NULL:  # NRBF-2.2.2.1-02
        return None, at + 1
    budget.spend(_VALUE_COST)
    value, end, wrong = primitive(body, at + 1, body[at], path)  # NRBF-2.2.2.1-01
    if wrong:
        faults.append((wrong, path, at + 1))
    return value, end
