"""A connection to the queue manager of another computer that is administered: [MS-MQMR] 3.2."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from msmqwire.constants import (
    MQ_OK,
    HResult,
    ManagementMachineProperty,
    ManagementQueueProperty,
    hresult_name,
)
from msmqwire.errors import MalformedPacket, MsmqError, ProtocolViolation, QueueError, RpcFault, Unreachable
from msmqwire.management.constants import Action, ObjectType, Opnum
from msmqwire.management.interface import INTERFACE, build_request, parse_response
from msmqwire.management.objects import machine_object, queue_object
from msmqwire.management.procedures import PROCEDURES
from msmqwire.management.variants import NULL
from msmqwire.names import FormatName
from msmqwire.names.printable import counted
from msmqwire.qm.client.remote_options import RemoteOptions
from msmqwire.qm.runtime.rpc.client import RpcClient, find_port, open_rpc
from msmqwire.rpc.constants import NDR20, NDR64
from msmqwire.rpc.ndr import SYNTAXES, Stub, Syntax, build_stub

CALLS_MAX: Final = 64
"""Calls that are under way at a time; where a server takes one at a time, the others wait for it."""
ANSWER_MAX: Final = 0x80_0000
"""Bytes of an answer, and of all answers that have begun: some 30,000 names of queues."""
_LONG: Final = 0x8000
"""Bytes of an answer that takes some 10 ms to read; a hostile one of ANSWER_MAX takes ten seconds."""
_MQ_FACILITY: Final = 0xC00E
_ALIGNED: Final = 8
"""The largest alignment of NDR."""
_GET_INFO: Final = PROCEDURES[Opnum.R_QMMgmtGetInfo].request
_OBJECT: Final = Stub(
    _GET_INFO.name, _GET_INFO.section, _GET_INFO.members[:1], "The object that is asked for."
)
_MACHINE_IDS: Final = tuple(map(int, ManagementMachineProperty))
_QUEUE_IDS: Final = tuple(map(int, ManagementQueueProperty))
Properties = tuple[Mapping[int, Any], Mapping[str, str]]
"""The PROPVARIANT of each property; for attributes that could not be asked for, the reasons."""
_M, _Q = ManagementMachineProperty, ManagementQueueProperty
_NEWER: Final[Mapping[ObjectType, Mapping[int, str]]] = MappingProxyType(
    {
        ObjectType.MGMT_MACHINE: {_M.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES: "bytes_all_queues"},
        ObjectType.MGMT_QUEUE: {
            _Q.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO: "sources",
            _Q.PROPID_MGMT_QUEUE_CONNECTION_HISTORY: "connection_history",
            _Q.PROPID_MGMT_QUEUE_SUBQUEUE_COUNT: "subqueues",
            _Q.PROPID_MGMT_QUEUE_SUBQUEUE_NAMES: "subqueues",
        },
    }
)
"""Properties that old systems lack, and the attributes of reports that they are for: MQMR-1.3-03."""
_LACKED: Final = "the computer does not know this property"
_DENIED: Final = "access is denied: Windows admits administrators, msmqwire serve those of its --rpc-manage"
_TEXTS: Final[Mapping[int, str]] = MappingProxyType(
    {
        5: _DENIED,  # Win32 errors come too: MQMR-3-05
        0x8007_0005: _DENIED,
        HResult.MQ_ERROR_ACCESS_DENIED: _DENIED,
        HResult.MQ_ERROR: "it fails, for a reason that is not told",
        HResult.MQ_ERROR_ILLEGAL_FORMATNAME: "the name means no queue",
        HResult.MQ_ERROR_INVALID_PARAMETER: "this can't be done with such a queue",
        HResult.MQ_ERROR_QUEUE_NOT_FOUND: "there is no such queue",
    }
)


class ManagementConnection:
    """A connection to one computer; any number of tasks may call at a time: MQMR-3.2.1-01."""

    def __init__(self, client: RpcClient, host: str) -> None:
        """Take a connection that is bound, and the name of the computer in errors."""
        self._client, self._host = client, host
        self._syntax = SYNTAXES[client.transfer_syntax]
        self._slots = asyncio.Semaphore(CALLS_MAX)
        self._older: set[ObjectType] = set()
        self._tails: dict[tuple[tuple[int, ...], int], bytes] = {}
        self.computer: str | None = None
        """The name of the computer, once it is known."""

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._client.closed

    def end(self, error: MsmqError) -> None:
        """Close it; calls without an answer raise `error`."""
        self._client.end(error)

    # -- methods ------------------------------------------------------------------------------------------

    async def machine_properties(self, *ids: int) -> Properties:
        """Return properties of the computer, by default all that it knows. Raises as `queue_properties`."""
        if ids:
            return await self._info(machine_object(), ids, self._host), {}
        return await self._known(ObjectType.MGMT_MACHINE, _MACHINE_IDS, machine_object(), self._host)

    async def queue_properties(self, name: FormatName) -> Properties:
        """Return all properties of a queue that the computer knows.

        Raises:
            QueueError: the queue manager refuses, with its code.
            RpcFault: the call was refused before it came there.
            InvalidName: the name can't be asked for.
            ProtocolViolation: the answer is not one.
            Unreachable: the connection has ended.
        """
        return await self._known(ObjectType.MGMT_QUEUE, _QUEUE_IDS, queue_object(name), str(name))

    async def act(self, action: Action, name: FormatName | None = None) -> None:
        """Perform an action on a queue, or on the computer. Raises as `queue_properties`."""
        arguments = {
            "pObjectFormat": machine_object() if name is None else queue_object(name),
            "lpwszAction": action.value,  # MQMR-3.1.4.2-05
        }
        stub = build_request(Opnum.R_QMMgmtAction, arguments, self._syntax)
        await self._call(Opnum.R_QMMgmtAction, stub, self._host if name is None else str(name))

    # -- calls --------------------------------------------------------------------------------------------

    async def _known(self, kind: ObjectType, ids: tuple[int, ...], about: Any, named: str) -> Properties:
        """Ask for all properties, and again without the newer ones where they fail the call."""
        newer = _NEWER[kind]
        if kind not in self._older:
            try:
                return await self._info(about, ids, named), {}
            except QueueError as exc:
                if exc.hresult != HResult.MQ_ERROR_ILLEGAL_PROPID:
                    raise
        older = tuple(number for number in ids if number not in newer)
        values = await self._info(about, older, named)  # MQMR-3.1.4.1-18, MQMR-1.3-03
        self._older.add(kind)
        return values, dict.fromkeys(newer.values(), _LACKED)

    async def _info(self, about: Any, ids: tuple[int, ...], named: str) -> Mapping[int, Any]:
        answer = await self._call(Opnum.R_QMMgmtGetInfo, self._request(about, ids), named)
        values = answer.apVar
        if len(values) != len(ids):  # MQMR-3.2.4-04
            counts = f"{counted(len(values), 'value')} for {counted(len(ids), 'property')}"
            raise self._wrong(Opnum.R_QMMgmtGetInfo, counts)
        return dict(zip(ids, values, strict=True))

    def _request(self, about: Any, ids: tuple[int, ...]) -> bytes:
        """Return the stub that asks for properties of an object.

        Behind the object it is the same for all objects of a list, but for their ends: it is built once.
        """
        head = build_stub(_OBJECT, {"pObjectFormat": about}, self._syntax)
        key = ids, len(head) % _ALIGNED
        if key not in self._tails:
            arguments = {
                "pObjectFormat": about,
                "cp": len(ids),
                "aProp": ids,  # MQMR-3.1.4.1-05
                "apVar": (NULL,) * len(ids),  # MQMR-3.1.4.1-06
            }
            whole = build_request(Opnum.R_QMMgmtGetInfo, arguments, self._syntax)
            self._tails[key] = whole[len(head) :]
        return head + self._tails[key]

    async def _call(self, opnum: Opnum, stub: bytes, named: str) -> Any:
        async with self._slots:
            call = self._client.begin(opnum, stub, wait=None)  # the method has a limit
            try:
                answered = await self._client.answer(call)
            except RpcFault as fault:
                if fault.status >> 16 == _MQ_FACILITY:
                    raise refused(named, fault.status) from None
                raise
            except asyncio.CancelledError:
                self.end(Unreachable(f"{self._host}: the connection was left in the middle of a call"))
                raise
        try:
            syntax = SYNTAXES[answered.transfer_syntax].ordered(big_endian=answered.big_endian)
            answer = await _parsed(opnum, answered.stub, syntax)
        except MalformedPacket as exc:  # MQMR-3.2.4-04, MQMR-3.2.4-05
            raise self._wrong(opnum, str(exc)) from None
        if answer.status != MQ_OK:  # MQMR-3-05, MQMR-3.2.4-03
            raise refused(named, answer.status)
        return answer

    def _wrong(self, opnum: Opnum, why: str) -> ProtocolViolation:
        """Return the exception for an answer that breaks the protocol; other calls are not affected."""
        return ProtocolViolation(f"{self._host} answers {opnum.name} wrongly: {why}")


async def _parsed(opnum: Opnum, stub: bytes, syntax: Syntax) -> Any:
    """Return the results of a call. A long stub is read beside the loop, whose other tasks go on meanwhile.

    Raises MalformedPacket.
    """
    if len(stub) <= _LONG:
        return parse_response(opnum, stub, syntax)
    return await asyncio.get_running_loop().run_in_executor(_reader(), parse_response, opnum, stub, syntax)


@cache
def _reader() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "msmq-answers")


def refused(named: str, status: int) -> QueueError:
    """Return the exception of a call about this queue or computer that has failed."""
    return QueueError(f"{named}: {refusal_text(status)}", status)


def refusal_reason(error: QueueError) -> str:
    """Return why a queue could not be asked, with the name of the code, without that of the queue."""
    text = refusal_text(error.hresult)
    return text if error.name in text else f"{text} ({error.name})"


def refusal_text(status: int) -> str:
    """Describe the status of a call that has failed, for users."""
    code = hresult_name(status)
    return _TEXTS.get(status) or (f"error {code}" if code.startswith("0x") else code)


async def open_management(options: RemoteOptions, *, ndr64: bool = False) -> ManagementConnection:
    """Return a connection to the management interface of a computer: MQMR-3.2.3-01, MQMR-1.5-01.

    `ndr64` offers NDR64 alone, which peers are to refuse.

    Raises as `open_rpc` and `find_port` do.
    """
    port = options.port
    if port is None:  # MQMR-2.1-02
        port = await find_port(options.host, INTERFACE, options.mapper_port)
    client = await open_rpc(
        options.host,
        port,
        INTERFACE,
        options.credentials,
        transfer_syntaxes=(NDR64,) if ndr64 else (NDR20,),  # MQMR-2.2-01
        stub_max=ANSWER_MAX,
        held_max=ANSWER_MAX,
    )
    return ManagementConnection(client, options.host)
