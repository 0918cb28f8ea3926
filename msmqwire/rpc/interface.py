"""Interfaces of DCE/RPC as values: their procedures, and the stubs of calls and answers.

The arguments of a call are a value with an attribute for each parameter, under its name in the IDL; the
results too, with the return value as ``status``. Besides such values, building takes mappings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.rpc.constants import SyntaxId
from msmqwire.rpc.ndr import Member, Stub, Syntax, build_stub, parse_stub


@dataclass(frozen=True, eq=False)
class Procedure:
    """A procedure of an interface.

    hBind, the first parameter of each, is the binding handle and has no bytes.

    Attributes:
        sent: the parameters that the client sends.
        returned: those that the server returns.
        status: the return value, the last of the results; a void procedure has none and fails with a fault.
        req: ids of the requirements on the layout of both.
    """

    opnum: IntEnum
    section: str
    meaning: str
    sent: tuple[Member, ...] = ()
    returned: tuple[Member, ...] = ()
    status: Member | None = None
    req: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.opnum.name

    @cached_property
    def request(self) -> Stub:
        return Stub(self.name, self.section, self.sent, self.meaning)

    @cached_property
    def response(self) -> Stub:
        status = () if self.status is None else (self.status,)
        return Stub(self.name, self.section, (*self.returned, *status), self.meaning)


def by_opnum(procedures: Iterable[Procedure]) -> Mapping[int, Procedure]:
    """Return procedures by their numbers."""
    return MappingProxyType({procedure.opnum: procedure for procedure in procedures})


class Interface:
    """An interface: the identifier by which a bind and the endpoint mapper name it, and its procedures.

    Attributes:
        name: its name in the IDL.
        unknown_opnum: the requirement that an opnum without a procedure breaks.
    """

    def __init__(
        self, name: str, identifier: SyntaxId, procedures: Mapping[int, Procedure], unknown_opnum: str
    ) -> None:
        self.name, self.identifier, self.procedures = name, identifier, procedures
        self.unknown_opnum = unknown_opnum

    def __repr__(self) -> str:
        return f"<Interface {self.name}>"

    def parse_request(self, opnum: int, stub: bytes, syntax: Syntax) -> Any:
        """Return the arguments of a call.

        Raises MalformedPacket with path and offset, also for an opnum that the interface has not.
        """
        return parse_stub(self._known(opnum).request, stub, syntax)

    def parse_response(self, opnum: int, stub: bytes, syntax: Syntax) -> Any:
        """Return the results of a call.

        Raises MalformedPacket with path and offset, also for an opnum that the interface has not.
        """
        return parse_stub(self._known(opnum).response, stub, syntax)

    def build_request(self, opnum: int, arguments: Any, syntax: Syntax) -> bytes:
        """Return the stub of a call. Raises InvalidValue with the path of the value that does not fit."""
        return build_stub(self._procedure(opnum).request, arguments, syntax)

    def build_response(self, opnum: int, results: Any, syntax: Syntax) -> bytes:
        """Return the stub of an answer. Raises InvalidValue with the path of the value that does not fit."""
        return build_stub(self._procedure(opnum).response, results, syntax)

    def _known(self, opnum: int) -> Procedure:
        if opnum not in self.procedures:
            raise MalformedPacket(
                f"there is no procedure {opnum}", path="opnum", requirement=self.unknown_opnum
            )
        return self.procedures[opnum]

    def _procedure(self, opnum: int) -> Procedure:
        if opnum not in self.procedures:
            raise InvalidValue(f"there is no procedure {opnum}", path="opnum")
        return self.procedures[opnum]
