"""Calls of administrators at other computers: [MS-MQMR] 3.1, at the port of remote read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Final

from msmqwire.constants import MQ_OK
from msmqwire.errors import InvalidName, MalformedPacket, RpcFault
from msmqwire.management.constants import REQUEST_MAX, ObjectType, Opnum, action_of
from msmqwire.management.interface import INTERFACE, parse_request
from msmqwire.names.printable import counted, cut, safe
from msmqwire.qm.model.effects import RpcAnswer
from msmqwire.qm.model.enumerations import ManageAccess
from msmqwire.qm.protocols.management.engine import Results
from msmqwire.qm.protocols.management.standing import Standing, admits
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.rpc.constants import NDR20, FaultStatus, SyntaxId
from msmqwire.rpc.events import Called
from msmqwire.rpc.ndr import SYNTAXES
from msmqwire.rpc.queue_format import name_of
from msmqwire.service.logs import log

METHODS: Final = max(Opnum) + 1
TRANSFER_SYNTAXES: Final[dict[SyntaxId, tuple[SyntaxId, ...]]] = {INTERFACE: (NDR20,)}  # MQMR-2.2-01
"""NDR alone: a bind for NDR64 is refused for this interface."""
DENIED_MAX: Final = 8 << 10
"""Bytes of the arguments of a caller without rights that are read at all, so that it costs little."""
_TEXT_MAX: Final = 200
_OBJECTS: Final[dict[int, str]] = {
    ObjectType.MGMT_MACHINE: "machine",
    ObjectType.MGMT_SESSION: "session",
}
_QUESTION: Final = "properties"
_UNKNOWN_ACTION: Final = "unknown action"


class ManagementCalls:
    """Carries out the calls of the interface, and leaves a line in the log about each.

    Args:
        users: the names of the users that the administrator lists, in capitals.
        may_call: returns whether calls of a named caller are taken at all.

    Attributes:
        calls: the numbers of calls by what was asked and the status of the answer.
        faults: the number of calls whose arguments could not be read.
    """

    def __init__(
        self,
        driver: EngineDriver,
        access: ManageAccess,
        *,
        users: Collection[str],
        may_call: Callable[[str], bool],
    ) -> None:
        self._driver, self._engine = driver, driver.core.management
        self._engine.access = access
        self._users, self._may_call = users, may_call
        self.calls: Counter[tuple[str, int]] = Counter()
        self.faults = 0

    def arguments(self, event: Called) -> Any:
        """Return the arguments of a call. Raises RpcFault with the status to answer."""
        if len(event.stub) > (REQUEST_MAX if self.admits(event.identity) else DENIED_MAX):
            self.faults += 1
            raise RpcFault(
                FaultStatus.NCA_S_FAULT_REMOTE_NO_MEMORY, f"{counted(len(event.stub), 'byte')} of arguments"
            )
        syntax = SYNTAXES[event.transfer_syntax].ordered(big_endian=event.big_endian)
        try:
            return parse_request(event.opnum, event.stub, syntax)  # MQMR-3.1.4-01, MQMR-3.1.4-02
        except MalformedPacket as exc:
            self.faults += 1
            raise RpcFault(FaultStatus.RPC_X_BAD_STUB_DATA, str(exc)) from exc

    def standing(self, user: str) -> Standing:
        """Return what is known of a caller, whose name is empty if it is anonymous: MQMR-3-03."""
        return Standing(not user or self._may_call(user), bool(user) and user.upper() in self._users)

    def admits(self, user: str) -> bool:
        """Return whether a caller may ask and act."""
        return admits(self._engine.access, self.standing(user))

    def info(self, user: str, peer: str, arguments: Any) -> Results:
        """Answer R_QMMgmtGetInfo.

        It is answered at once, also while the disk refuses commits: that is when administrators ask.
        """
        results = self.results(user, arguments)
        self._note(user, peer, _QUESTION, arguments, results)
        return results

    def results(self, user: str, arguments: Any) -> Results:
        """Return the results of R_QMMgmtGetInfo as they are now."""
        results: Results = self._driver.read(self._engine.get_info, self.standing(user), arguments)
        return results

    def act(self, number: int, user: str, peer: str, arguments: Any) -> None:
        """Carry out R_QMMgmtAction; an `RpcAnswer` follows once its changes are durable."""
        self._driver.notify(self._perform, number, user, peer, arguments)

    def _perform(self, number: int, user: str, peer: str, arguments: Any) -> None:
        results = self._engine.act(self.standing(user), arguments)
        action = action_of(arguments.lpwszAction)
        self._note(user, peer, _UNKNOWN_ACTION if action is None else action.value, arguments, results)
        self._driver.core.context.effects.append(RpcAnswer(number, results))

    def _note(self, user: str, peer: str, what: str, arguments: Any, results: Results) -> None:
        """Count a call, and leave its line in the log.

        Lines with the same text come once a second, with the number of those left out: a caller without
        rights makes one, whatever it names; a user has a line of each action on each queue.
        """
        status = int(results["status"])
        self.calls[what, status] += 1
        shown, managed = _shown(user), _object(arguments.pObjectFormat)
        if not self.admits(user):
            event = "management: a caller without rights is refused"
        elif what == _QUESTION or status != MQ_OK:
            event = f"management: {what}, asked by {shown or 'an anonymous caller'}"
        else:
            event = f"management: {what} of {managed} by {shown or 'an anonymous caller'}"
        extra = {"peer": peer, "user": shown, "object": managed, "action": what, "status": f"0x{status:08X}"}
        log.info(event.replace("%", "%%"), extra=extra)


def _object(managed: Any) -> str:
    """Return the object of a call for people."""
    if managed.type != ObjectType.MGMT_QUEUE:
        return _OBJECTS[managed.type]
    try:
        name = None if managed.arm is None else name_of(managed.arm)
    except InvalidName:
        return "an invalid queue name"
    return "no queue" if name is None else _shown(name.canonical)


def _shown(text: str) -> str:
    return cut(safe(text), _TEXT_MAX)
