"""A hand-made server of [MS-MQMR] with a few queues, which a test lets answer honestly or not.

It knows nothing of the queue manager: its answers are made of stubs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from msmqwire.constants import HResult, VarEnum
from msmqwire.constants import ManagementMachineProperty as M
from msmqwire.constants import ManagementQueueProperty as Q
from msmqwire.management.constants import Opnum
from msmqwire.management.interface import INTERFACE, build_response, parse_request
from msmqwire.management.variants import NULL, variant
from msmqwire.names import FormatName
from msmqwire.rpc.constants import AuthLevel, SyntaxId
from msmqwire.rpc.events import Called, ServerEvent
from msmqwire.rpc.ndr import SYNTAXES
from msmqwire.rpc.queue_format import name_of
from msmqwire.rpc.server_association import ServerAssociation
from tests.support.rpc.rpc_server import RpcServer, rpc_server

HOST = "server7"
BREAK, SILENCE = object(), object()
"""Substitutes of an answer: the connection breaks, or no answer comes."""
NEWER = {"machine": {6}, "queue": {24, 25, 26, 27}}
_TEXT, _NUMBER = VarEnum.VT_LPWSTR, VarEnum.VT_UI4
_TEXTS = VarEnum.VT_LPWSTR | VarEnum.VT_VECTOR

Twist = Callable[[Callable[[], Any], Any], Any]
"""Answers a call, with what answers it honestly and its arguments: with results, the status of a fault, the
bytes of a stub, BREAK or SILENCE."""


def local(path: str, messages: int = 0, **more: Any) -> dict[int, Any]:
    """The values of a local queue of this path, without its computer."""
    return {
        Q.PROPID_MGMT_QUEUE_PATHNAME: variant(_TEXT, f"{HOST}\\{path}"),
        Q.PROPID_MGMT_QUEUE_FORMATNAME: variant(_TEXT, f"DIRECT=OS:{HOST}\\{path}"),
        Q.PROPID_MGMT_QUEUE_TYPE: variant(_TEXT, "PRIVATE" if path.startswith("private$") else "PUBLIC"),
        Q.PROPID_MGMT_QUEUE_LOCATION: variant(_TEXT, "LOCAL"),
        Q.PROPID_MGMT_QUEUE_XACT: variant(_TEXT, "NO"),
        Q.PROPID_MGMT_QUEUE_FOREIGN: variant(_TEXT, "NO"),
        Q.PROPID_MGMT_QUEUE_MESSAGE_COUNT: variant(_NUMBER, messages),
        Q.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE: variant(_NUMBER, 100 * messages),
        Q.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT: variant(_NUMBER, 0),
        Q.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL: variant(_NUMBER, 0),
        Q.PROPID_MGMT_QUEUE_STATE: variant(_TEXT, "LOCAL CONNECTION"),
        **more,
    }


def outgoing(path: str, messages: int = 0, state: str = "WAITING", **more: Any) -> dict[int, Any]:
    """The values of a queue of messages on their way to a path with its computer."""
    return {
        **local(path, messages),
        Q.PROPID_MGMT_QUEUE_PATHNAME: variant(_TEXT, path),
        Q.PROPID_MGMT_QUEUE_FORMATNAME: variant(_TEXT, f"DIRECT=OS:{path}"),
        Q.PROPID_MGMT_QUEUE_LOCATION: variant(_TEXT, "REMOTE"),
        Q.PROPID_MGMT_QUEUE_STATE: variant(_TEXT, state),
        Q.PROPID_MGMT_QUEUE_NEXTHOPS: variant(_TEXTS, ["IP=10.0.0.9"]),
        Q.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME: variant(VarEnum.VT_I4, 0),
        Q.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT: variant(_NUMBER, messages),
        Q.PROPID_MGMT_QUEUE_CONNECTION_HISTORY: history((1_700_000_000, 0x8000_0004, 0xC00E0027, "10.0.0.9")),
        **more,
    }


def history(*events: tuple[int, int, int, str]) -> Any:
    """A connection history: time, status, error and address of each event."""
    columns = list(zip(*events, strict=True)) or [(), (), (), ()]
    vector = int(VarEnum.VT_VECTOR)
    signed = [number - (1 << 32) if number >> 31 else number for number in columns[2]]
    return variant(
        vector | VarEnum.VT_VARIANT,
        [
            variant(vector | VarEnum.VT_UI4, columns[1]),
            variant(vector | VarEnum.VT_I4, columns[0]),
            variant(vector | VarEnum.VT_I4, signed),
            variant(vector | VarEnum.VT_VARIANT, [variant(_TEXTS, [address]) for address in columns[3]]),
        ],
    )


@dataclass
class ManagedMachine:
    """The computer.

    Attributes:
        private, active: the names of its queues that it lists.
        queues: the values of each queue, by its name in small letters. machine: more of the computer's own.
        twists: other answers, by the method. calls: the methods that were called, with their arguments.
        stubs: the arguments as bytes. actions: those that were done, with the name of the queue.
        old: whether properties that newer systems have fail a call. denied: whether everything is refused.
        in_flight, most: the calls that wait for `release`, and the most of them so far.
    """

    private: list[str] = field(default_factory=list)
    active: list[Any] = field(default_factory=list)
    queues: dict[str, dict[int, Any]] = field(default_factory=dict)
    machine: dict[int, Any] = field(default_factory=dict)
    twists: dict[Opnum, Twist] = field(default_factory=dict)
    calls: list[tuple[Opnum, Any]] = field(default_factory=list)
    stubs: list[bytes] = field(default_factory=list)
    syntaxes: set[SyntaxId] = field(default_factory=set)
    callers: set[tuple[str, AuthLevel]] = field(default_factory=set)
    actions: list[tuple[str, str | None]] = field(default_factory=list)
    old: bool = False
    denied: int = 0
    port: int = 0
    waiting: list[tuple[ServerAssociation, Called]] = field(default_factory=list)
    server: RpcServer | None = None

    def add(self, name: str, values: Mapping[int, Any]) -> None:
        """Have a queue of this name."""
        self.queues[name.lower()] = dict(values)

    def has_private(self, queue: str, messages: int = 0, **more: Any) -> None:
        """Have and list a private queue."""
        self.private.append(f"{HOST}\\private$\\{queue}")
        self.add(f"DIRECT=OS:{HOST}\\private$\\{queue}", local(f"private$\\{queue}", messages, **more))

    def has_outgoing(self, path: str, messages: int = 0, state: str = "WAITING", **more: Any) -> None:
        """Have and list an outgoing queue."""
        self.active.append(f"DIRECT=OS:{path}")
        self.add(f"DIRECT=OS:{path}", outgoing(path, messages, state, **more))

    def asked(self, opnum: Opnum = Opnum.R_QMMgmtGetInfo) -> list[Any]:
        """The arguments of the calls of a method."""
        return [arguments for called, arguments in self.calls if called == opnum]

    def names(self) -> list[str]:
        """The queues that were asked for, in order."""
        found = [one.pObjectFormat for one in self.asked() if one.pObjectFormat.type == 2]
        return [str(name_of(each.arm)) for each in found]

    # -- calls --------------------------------------------------------------------------------------------

    def perform(self, association: ServerAssociation, event: ServerEvent) -> None:
        """Answer a call."""
        if not isinstance(event, Called):
            return
        syntax, opnum = SYNTAXES[event.transfer_syntax], Opnum(event.opnum)
        self.syntaxes.add(event.transfer_syntax)
        self.callers.add((str(event.identity), event.level))
        self.stubs.append(event.stub)
        arguments = parse_request(opnum, event.stub, syntax)
        self.calls.append((opnum, arguments))

        def honest() -> Any:
            return self._answer(opnum, arguments)

        twist = self.twists.get(opnum)
        result = honest() if twist is None else twist(honest, arguments)
        if result is SILENCE:
            self.waiting.append((association, event))
        elif result is BREAK:
            association.closed = True
        elif isinstance(result, int):
            association.fault(event.call, result)
        elif isinstance(result, bytes):
            association.answer(event.call, result)
        else:
            association.answer(event.call, build_response(opnum, result, syntax))

    def _answer(self, opnum: Opnum, arguments: Any) -> Any:
        about = arguments.pObjectFormat
        name: FormatName | None = name_of(about.arm) if about.type == 2 else None
        values = self._values(name) if about.type == 2 else self._of_machine()
        status = self._status(opnum, arguments, values)
        if opnum == Opnum.R_QMMgmtAction:
            if not status:
                self.actions.append((arguments.lpwszAction, None if name is None else str(name)))
            return {"status": status}
        if status:
            return {"apVar": tuple(arguments.apVar), "status": status}
        assert values is not None, "it is there"
        return {"apVar": tuple(values.get(number, NULL) for number in arguments.aProp), "status": 0}

    def _status(self, opnum: Opnum, arguments: Any, values: Mapping[int, Any] | None) -> int:
        if self.denied:
            return self.denied
        if values is None:
            return int(HResult.MQ_ERROR_QUEUE_NOT_FOUND)
        newer = NEWER["queue" if arguments.pObjectFormat.type == 2 else "machine"]
        if opnum == Opnum.R_QMMgmtGetInfo and self.old and newer & set(arguments.aProp):
            return int(HResult.MQ_ERROR_ILLEGAL_PROPID)
        return 0

    def _values(self, name: FormatName | None) -> Mapping[int, Any] | None:
        return self.queues.get(str(name).lower())

    def _of_machine(self) -> Mapping[int, Any]:
        return {
            M.PROPID_MGMT_MSMQ_ACTIVEQUEUES: variant(_TEXTS, self.active),
            M.PROPID_MGMT_MSMQ_PRIVATEQ: variant(_TEXTS, self.private),
            M.PROPID_MGMT_MSMQ_CONNECTED: variant(_TEXT, "CONNECTED"),
            M.PROPID_MGMT_MSMQ_TYPE: variant(_TEXT, "Windows 7, MSMQ 5.0"),
            M.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES: variant(VarEnum.VT_I8, 1 << 40),
            **self.machine,
        }


@contextmanager
def managed_machine(**options: Any) -> Iterator[ManagedMachine]:
    """A computer with a server; `options` are of the RPC server."""
    machine = ManagedMachine()
    with rpc_server(interfaces={INTERFACE: 2}, perform=machine.perform, **options) as server:
        machine.port, machine.server = server.port, server
        yield machine
