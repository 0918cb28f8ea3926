"""The rules of `msmqwire.analysis.lint.session` on the packets of a connection, compiled: whether, not why.

A connection has a row of integers in place of a `SessionLint`: the same state after each packet. `step` takes
a packet and says whether a rule is broken; `SessionLint.resumed` makes a linter of the row as it was before,
which says why. Transactional sequences are left to `Sequences`.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.lint.counters import HALF, MASK
from msmqwire.analysis.lint.session import State
from msmqwire.capture.record import NO_TIME
from msmqwire.headers import ESTABLISH_CONNECTION_HEADER, INTERNAL_HEADER, USER_HEADER
from msmqwire.schema import field_offset
from msmqwire.tables.compiled.decorators import inlined, jit
from msmqwire.tables.compiled.generated import FIELD_SLOTS
from msmqwire.tables.compiled.memory import u16, u32
from msmqwire.tables.compiled.packet import ACK, ESTABLISH, FINAL, PARAMETERS, USER

NONE: Final = -(1 << 62)
"""In place of a number that is not known."""

(
    STREAM, GAPS, BREAKS, CLIENT, STATE, IS_WHOLE, IS_FIRST, HAS_REQUEST, TIME_STAMP, SE, HAS_PARAMETERS,
    RECOVERABLE_TIMEOUT, ASKED_TIMEOUT, ACK_TIMEOUT, SILENCE_REPORTED,
) = range(15)  # fmt: skip
SILENT_SINCE, HAS_OWN, CLIENT_GUID, SERVER_GUID, LATEST_GUIDS, SIDES = 15, 17, 19, 23, 27, 35
SENT, RECOVERABLE, ACKED, WHOLE, DRIFT, RECOVERABLE_DRIFT, SURPLUS, WINDOW, FULL = range(9)
SIDE: Final = 9
SESSION: Final = SIDES + 2 * SIDE
"""The state of a session, by index: see `SessionLint`.

STREAM is its connection. GAPS were counted in it when its last row was written; after BREAKS of any kind
packets may be missing. CLIENT is 0 or 1 for the flow of the initiator, -1 before it is known. Timeouts are
milliseconds. SILENT_SINCE and HAS_OWN have an entry for each side, the initiator's first: HAS_OWN says that
its queue manager was shown when the session was opened. A GUID takes four entries: those of the request, and
the one that a message of each side has shown last. From SIDES on there are the counts of both sides: see
`Counters`.
"""

_START, _EC_ASKED, _EC_ANSWERED, _CP_ASKED, _OPEN, _REFUSED, _UNKNOWN = (state.value for state in State)
_MESSAGE: Final = FIELD_SLOTS["UserMessage"]
_FLAGS_AT: Final = _MESSAGE["UserHeader.Flags"][1]
_SOURCE_AT: Final = _MESSAGE["UserHeader.SourceQueueManager"][1]
_DELIVERY, _HOPS = USER_HEADER.bits("Flags.DM"), USER_HEADER.bits("Flags.RC")
_DM_SHIFT, _DM_MASK = _DELIVERY.shift, (1 << _DELIVERY.width) - 1
_RC_MASK: Final = _HOPS.mask
TRANSACTION_SLOT: Final = _MESSAGE["TransactionHeader.Flags"][0]
_SESSION_SLOT: Final = _MESSAGE["SessionHeader.WindowSize"][0]
_SESSION_AT: Final = FIELD_SLOTS["SessionAck"]["SessionHeader.AckSequenceNumber"][1]
_INTERNAL_AT: Final = FIELD_SLOTS["SessionAck"]["InternalHeader.Flags"][1]
_CS: Final = INTERNAL_HEADER.bits("Flags.CS").mask
_ESTABLISH: Final = FIELD_SLOTS["EstablishConnection"]
_CLIENT_AT: Final = _ESTABLISH["EstablishConnectionHeader.ClientGuid"][1]
_SERVER_AT: Final = _ESTABLISH["EstablishConnectionHeader.ServerGuid"][1]
_TIME_AT: Final = _ESTABLISH["EstablishConnectionHeader.TimeStamp"][1]
_SYSTEM_AT: Final = _ESTABLISH["EstablishConnectionHeader.OperatingSystem"][1]
_SE: Final = ESTABLISH_CONNECTION_HEADER.bits("OperatingSystem.SE").mask
_PADDING_AT: Final = (
    _CLIENT_AT
    - field_offset(ESTABLISH_CONNECTION_HEADER, "ClientGuid")
    + field_offset(ESTABLISH_CONNECTION_HEADER, "Padding")
)
_PADDED: Final = 0x5A
_PARAMETERS: Final = FIELD_SLOTS["ConnectionParameters"]
_RECOVERABLE_TIMEOUT_AT: Final = _PARAMETERS["ConnectionParametersHeader.RecoverableAckTimeout"][1]
_ACK_TIMEOUT_AT: Final = _PARAMETERS["ConnectionParametersHeader.AckTimeout"][1]
_WINDOW_AT: Final = _PARAMETERS["ConnectionParametersHeader.WindowSize"][1]
_ACK, _STORED_ACK, _STORED_FLAGS, _SENT, _STORED, _WINDOW = (
    _MESSAGE[f"SessionHeader.{name}"][1]
    for name in (
        "AckSequenceNumber", "RecoverableMsgAckSeqNumber", "RecoverableMsgAckFlags", "UserMsgSequenceNumber",
        "RecoverableMsgSeqNumber", "WindowSize",
    )
)  # fmt: skip
_MS: Final = 1_000_000


@jit
def begin(session: Any, stream: int, client: int, midstream: bool) -> None:
    """Begin the session of a connection; ``client`` is the flow of the initiator, -1 if it is unknown."""
    for i in range(SESSION):
        session[i] = 0
    session[STREAM], session[CLIENT] = stream, client
    session[STATE] = _UNKNOWN if midstream else _START
    session[IS_WHOLE], session[IS_FIRST] = 0 if midstream else 1, 1
    session[ACK_TIMEOUT] = NONE
    session[SILENT_SINCE] = session[SILENT_SINCE + 1] = NONE
    for side in range(2):
        session[SIDES + SIDE * side + WHOLE] = 1
    if midstream:
        _forget(session)


@jit
def _forget(session: Any) -> None:
    """Forget the counts, but for the windows: `Counters.forget`."""
    for side in range(2):
        at = SIDES + SIDE * side
        session[at + SENT] = session[at + RECOVERABLE] = session[at + ACKED] = NONE
        session[at + WHOLE] = session[at + FULL] = 0
        session[at + DRIFT] = session[at + RECOVERABLE_DRIFT] = session[at + SURPLUS] = 0


@jit
def _restart(session: Any) -> None:
    """Begin a session in which nothing was sent: `Counters.restart`."""
    _forget(session)
    for side in range(2):
        at = SIDES + SIDE * side
        session[at + SENT] = session[at + RECOVERABLE] = session[at + ACKED] = 0
        session[at + WHOLE] = 1


@inlined
def _miss(session: Any) -> None:
    session[STATE], session[IS_WHOLE] = _UNKNOWN, 0


@jit
def take_break(session: Any) -> None:
    """Note that bytes of the connection were missed: `SessionLint.gap`."""
    if session[STATE] != _OPEN:
        _miss(session)
    _forget(session)
    session[SILENT_SINCE] = session[SILENT_SINCE + 1] = NONE
    session[BREAKS] += 1


# -- opening ---------------------------------------------------------------------------------------------


@jit
def _learn(session: Any, initiator: bool, kind: int, memory: Any, start: int) -> None:
    if kind == ESTABLISH or kind == PARAMETERS:
        if session[IS_WHOLE]:
            _restart(session)
        else:
            _forget(session)
    if kind == ESTABLISH:
        session[STATE] = _EC_ASKED if initiator else _EC_ANSWERED
        session[HAS_REQUEST] = 0
        if initiator:
            _keep_request(session, memory, start)
    elif kind == PARAMETERS:
        session[STATE] = _CP_ASKED if initiator else _OPEN
        session[HAS_PARAMETERS] = 0
        _take_parameters(session, initiator, memory, start)
    else:
        session[STATE] = _OPEN


@jit
def _keep_guid(session: Any, at: int, memory: Any, start: int) -> None:
    for i in range(4):
        session[at + i] = u32(memory, start + 4 * i)


@jit
def _has_guid(session: Any, at: int, memory: Any, start: int) -> bool:
    """Whether these bytes are the GUID that is kept there."""
    for i in range(4):
        if session[at + i] != u32(memory, start + 4 * i):
            return False
    return True


@jit
def _keep_request(session: Any, memory: Any, start: int) -> None:
    session[HAS_REQUEST] = 1
    _keep_guid(session, CLIENT_GUID, memory, start + _CLIENT_AT)
    _keep_guid(session, SERVER_GUID, memory, start + _SERVER_AT)
    session[TIME_STAMP] = u32(memory, start + _TIME_AT)
    session[SE] = u16(memory, start + _SYSTEM_AT) & _SE


@jit
def _take_parameters(session: Any, initiator: bool, memory: Any, start: int) -> None:
    """`SessionLint._take`; those of the initiator are kept."""
    _announce_window(session, 0 if initiator else 1, u16(memory, start + _WINDOW_AT))
    if initiator:
        session[HAS_PARAMETERS] = 1
        session[RECOVERABLE_TIMEOUT] = u32(memory, start + _RECOVERABLE_TIMEOUT_AT)
        session[ACK_TIMEOUT] = session[ASKED_TIMEOUT] = u32(memory, start + _ACK_TIMEOUT_AT)


@inlined
def _announce_window(session: Any, side: int, size: int) -> None:
    at = SIDES + SIDE * side + WINDOW
    session[at] = max(session[at], size)


@jit
def _establish(session: Any, initiator: bool, refused: bool, memory: Any, start: int, stop: int) -> bool:
    """`SessionLint._established`."""
    if initiator:
        _keep_request(session, memory, start)
        return refused
    found = False
    for p in range(start + _PADDING_AT, stop):
        if memory[p] != _PADDED:
            found = True
            break
    if not session[HAS_REQUEST]:
        return found
    if not _has_guid(session, CLIENT_GUID, memory, start + _CLIENT_AT):
        found = True
    if u32(memory, start + _TIME_AT) != session[TIME_STAMP]:
        found = True
    if u16(memory, start + _SYSTEM_AT) & _SE != session[SE]:
        found = True
    if not refused:
        asked_null = True
        for i in range(4):
            asked_null = asked_null and session[SERVER_GUID + i] == 0
        # A null GUID is to be answered with another one, which is the own one, any other with itself.
        if _has_guid(session, SERVER_GUID, memory, start + _SERVER_AT) == asked_null:
            found = True
    return found


@jit
def _agree(session: Any, initiator: bool, refused: bool, memory: Any, start: int) -> bool:
    """`SessionLint._agreed`."""
    _take_parameters(session, initiator, memory, start)
    if initiator or refused or not session[HAS_PARAMETERS]:
        return refused
    return (
        u32(memory, start + _RECOVERABLE_TIMEOUT_AT) != session[RECOVERABLE_TIMEOUT]
        or u32(memory, start + _ACK_TIMEOUT_AT) != session[ASKED_TIMEOUT]
    )


@jit
def _take_order(session: Any, initiator: bool, kind: int, memory: Any, start: int, stop: int) -> bool:
    """`SessionLint._order`."""
    is_first, state = session[IS_FIRST] != 0, session[STATE]
    session[IS_FIRST] = 0
    if not session[IS_WHOLE]:
        session[IS_WHOLE] = 1 if is_first and initiator and kind == ESTABLISH else 0
        _learn(session, initiator, kind, memory, start)
        return False
    if state == _REFUSED:
        return True
    following = -1
    if kind == ESTABLISH:
        if state == _START and initiator:
            following = _EC_ASKED
        elif state == _EC_ASKED and not initiator:
            following = _EC_ANSWERED
    elif kind == PARAMETERS:
        if state == _EC_ANSWERED and initiator:
            following = _CP_ASKED
        elif state == _CP_ASKED and not initiator:
            following = _OPEN
    if following < 0:
        if state != _OPEN:
            _learn(session, initiator, kind, memory, start)
            return True
        return kind == ESTABLISH or kind == PARAMETERS
    refused = u16(memory, start + _INTERNAL_AT) & _CS != 0
    if kind == ESTABLISH:
        found = _establish(session, initiator, refused, memory, start, stop)
    else:
        found = _agree(session, initiator, refused, memory, start)
    session[STATE] = _REFUSED if refused and not initiator else following
    return found


# -- counts ----------------------------------------------------------------------------------------------


@jit
def _count_message(session: Any, side: int, is_recoverable: bool) -> bool:
    """`Counters.message`."""
    at, other = SIDES + SIDE * side, SIDES + SIDE * (1 - side)
    if session[at + SENT] != NONE:
        session[at + SENT] += 1
    if session[at + RECOVERABLE] != NONE and is_recoverable:
        session[at + RECOVERABLE] += 1
    if session[at + SENT] == NONE or session[at + ACKED] == NONE:
        return False
    waiting, own, least = session[at + SENT] - session[at + ACKED], session[at + WINDOW], 0
    least = session[other + WINDOW]
    if own and (least == 0 or own < least):
        least = own
    if least == 0 or waiting <= least:
        session[at + FULL] = 0
        return False
    found = session[at + FULL] == 0
    session[at + FULL] = 1
    return found


@jit
def _claim_counts(session: Any, side: int, memory: Any, header: int) -> bool:
    """`Counters._claims`."""
    at, found = SIDES + SIDE * side, False
    claimed = u16(memory, header + _SENT)
    if session[at + SENT] == NONE:
        session[at + SENT] = claimed + MASK + 1
    elif claimed != (session[at + SENT] + session[at + DRIFT]) & MASK:
        session[at + DRIFT] = claimed - session[at + SENT]
        found = True
    claimed = u16(memory, header + _STORED)
    if session[at + RECOVERABLE] == NONE:
        session[at + RECOVERABLE] = claimed + MASK + 1
    elif claimed != (session[at + RECOVERABLE] + session[at + RECOVERABLE_DRIFT]) & MASK:
        session[at + RECOVERABLE_DRIFT] = claimed - session[at + RECOVERABLE]
        found = True
    return found


@jit
def _acknowledge(session: Any, side: int, claimed: int) -> bool:
    """`Counters._acknowledges`."""
    at = SIDES + SIDE * side
    if session[at + SENT] == NONE:
        return False
    sent, acked = session[at + SENT] + session[at + SURPLUS], session[at + ACKED]
    behind = (sent - claimed) & MASK
    most = HALF - 1 if acked == NONE else sent - acked
    if behind <= most:
        session[at + ACKED] = sent - behind
        return False
    ahead = (claimed - sent) & MASK
    if acked == NONE or behind - most > ahead or sent < behind:
        session[at + SURPLUS] += ahead
        session[at + ACKED] = sent + ahead
    return True


@jit
def _store(session: Any, side: int, number: int, flags: int) -> bool:
    """`Counters._stored`."""
    at = SIDES + SIDE * side
    count = session[at + RECOVERABLE]
    if count == NONE:
        return False
    most = min(count, HALF) if session[at + WHOLE] else HALF
    if number and (count - number) & MASK >= most:
        return True
    if not flags:
        return False
    highest = number - 1
    while flags:
        highest += 1
        flags >>= 1
    if not number and session[at + WHOLE] and count <= MASK:
        return True
    return (count - highest) & MASK >= most


@inlined
def _is_waiting(session: Any, side: int) -> bool:
    """`Counters.waiting`."""
    at = SIDES + SIDE * side
    return (
        session[at + SENT] != NONE
        and session[at + ACKED] != NONE
        and session[at + SENT] > session[at + ACKED]
    )


@inlined
def has_session_header(kind: int, field_offsets: Any, r: int) -> bool:
    """Whether a packet has a SessionHeader."""
    return kind == ACK or (kind <= FINAL and field_offsets[r, _SESSION_SLOT] >= 0)


@jit
def step(
    session: Any, initiator: bool, kind: int, memory: Any, start: int, stop: int, field_offsets: Any, r: int,
    time_ns: int, is_behind: bool,
) -> bool:  # fmt: skip
    """Take the next packet of a session: `SessionLint.packet`; return whether it breaks a rule."""
    side = 0 if initiator else 1
    if is_behind and session[STATE] != _OPEN:
        _miss(session)
    found = _take_order(session, initiator, kind, memory, start, stop)
    if is_behind:
        session[SIDES + ACKED] = session[SIDES + SIDE + ACKED] = NONE
    since, limit = session[SILENT_SINCE + side], session[ACK_TIMEOUT]
    if time_ns != NO_TIME and since != NONE and limit != NONE and not session[SILENCE_REPORTED]:
        silent_ns = time_ns - since  # below 0 if it is too long for 64 bits
        if time_ns > since and (silent_ns < 0 or silent_ns > 2 * limit * _MS):
            session[SILENCE_REPORTED] = 1
            found = True
    if kind <= FINAL:
        flags = u32(memory, start + _FLAGS_AT)
        is_recoverable = flags >> _DM_SHIFT & _DM_MASK == 1 or field_offsets[r, TRANSACTION_SLOT] >= 0
        if _count_message(session, side, is_recoverable):
            found = True
    if has_session_header(kind, field_offsets, r):
        header = start + (_SESSION_AT if kind == ACK else field_offsets[r, _SESSION_SLOT])
        if _claim_counts(session, side, memory, header):
            found = True
        if not is_behind:
            if _acknowledge(session, 1 - side, u16(memory, header + _ACK)):
                found = True
            number, flags = u16(memory, header + _STORED_ACK), u32(memory, header + _STORED_FLAGS)
            if _store(session, 1 - side, number, flags):
                found = True
        _announce_window(session, side, u16(memory, header + _WINDOW))
    if time_ns != NO_TIME:
        if session[SILENT_SINCE + side] == NONE and _is_waiting(session, side):
            session[SILENT_SINCE + side] = time_ns
        session[SILENT_SINCE + 1 - side] = time_ns if _is_waiting(session, 1 - side) else NONE
    return found


@jit
def shows_queue_manager(session: Any, initiator: bool, kind: int, memory: Any, start: int) -> bool:
    """Whether a packet may show a queue manager that this side has not shown: see `ShownQueueManagers`.

    Once it has shown its own, its messages show no other.
    """
    side = 0 if initiator else 1
    at = LATEST_GUIDS + 4 * side
    if kind == ESTABLISH:
        guid, is_null = start + (_CLIENT_AT if initiator else _SERVER_AT), True
        for i in range(4):
            is_null = is_null and u32(memory, guid + 4 * i) == 0
        if not is_null and u16(memory, start + _INTERNAL_AT) & _CS == 0:
            session[HAS_OWN + side] = 1
        return True
    if kind != USER or session[HAS_OWN + side] or u32(memory, start + _FLAGS_AT) & _RC_MASK:
        return False
    if _has_guid(session, at, memory, start + _SOURCE_AT):
        return False
    _keep_guid(session, at, memory, start + _SOURCE_AT)
    return True
