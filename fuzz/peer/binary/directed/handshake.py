"""Opening of a session, and the packets that are valid in each state: [MS-MQQB] 3.1.5.3 to 3.1.5.8."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import MALFORMED, OPENED, Draw, case, opened, send
from fuzz.peer.binary.live import with_counts
from fuzz.peer.steps import IDENTITY, Case, Step

_STATE: Final = {
    "EstablishConnection": "MQQB-3.1.5.3-01",
    "ConnectionParameters": "MQQB-3.1.5.4-01",
    "SessionAck": "MQQB-3.1.5.5-01",
    "OrderAck": "MQQB-3.1.5.6-01",
    "FinalAck": "MQQB-3.1.5.7-01",
    "UserMessage": "MQQB-3.1.5.8-01",
}
"""The requirement that a packet of this kind ends the session in a state in which it is not valid."""
_RESERVED_BASE: Final = {
    "Reserved": 0xC3,
    "Flags": {f"X{number}": 1 for number in (0, 1, 2, 3, 4, 5, 6, 8, 9)},
}


def handshakes(draw: Draw) -> Iterator[Case]:
    """Return the cases of this module."""
    yield from _states(draw)
    yield from _answers(draw)
    yield from _parameters(draw)
    yield from _limits(draw)
    yield from _tolerated(draw)
    yield from _internal(draw)


def _each(draw: Draw) -> dict[str, bytes]:
    """Return a packet of each kind."""
    identifier = draw.sequence()
    return {
        "UserMessage": draw.message().to_bytes(),
        "EstablishConnection": messages.establish().to_bytes(),
        "ConnectionParameters": messages.parameters().to_bytes(),
        "SessionAck": with_counts(messages.session_ack().to_bytes()),
        "OrderAck": messages.order_ack(identifier, 1).to_bytes(),
        "FinalAck": messages.final_ack(identifier, 1).to_bytes(),
    }


def _states(draw: Draw) -> Iterator[Case]:
    """A packet in a state in which it is not valid ends the session; in a valid state it does not."""
    states = {
        "before the session is asked for": (OPENED[:1], {"EstablishConnection"}),
        "before ConnectionParameters": (OPENED[:2], {"ConnectionParameters"}),
        "in an open session": (OPENED, {"SessionAck", "OrderAck", "FinalAck", "UserMessage"}),
    }
    for state, (steps, valid) in states.items():
        for kind, data in _each(draw).items():
            ids, note = (_STATE[kind],), f"{_article(kind)} {state}"
            if kind not in valid:
                text = f"{note[0].upper()}{note[1:]} ends the session."
                yield case(ids, text, *steps, send(data, "closed", note, ids))
            elif steps is OPENED:
                text = f"The session goes on after {note}."
                expects = "taken" if kind == "UserMessage" else "open"
                yield case(("MQQB-3.1.5.4.1-03",), text, *steps, send(data, expects, note))
    early = draw.message(recoverable=True, wants=messages.PA)
    ids = ("MQQB-3.1.5.8-01",)
    yield case(
        ids,
        "A UserMessage that comes at once, with the whole handshake after it, ends the session.",
        OPENED[0],
        send(
            early.to_bytes() + OPENED[1].data + OPENED[2].data,
            "closed",
            "a UserMessage before the handshake",
            ids,
        ),
    )


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'EO' else 'a'} {kind}" if kind != "ConnectionParameters" else kind


def _established(fields: Mapping[str, Any], note: str, ids: tuple[str, ...] = (), expects: str = "") -> Step:
    packet = messages.establish(fields)
    return Step("establish", data=packet.to_bytes(), breaks=ids, expects=expects, note=note)


def _answers(draw: Draw) -> Iterator[Case]:
    """The answer to EstablishConnection: [MS-MQQB] 3.1.5.3.1."""
    source = draw.source
    for pinged in (0, 1):
        header = {
            "TimeStamp": source.randrange(1 << 32),
            "OperatingSystem": {"SE": pinged, "OS": source.randrange(2), "QS": source.randrange(2)},
        }
        yield case(
            ("MQQB-3.1.5.3.1-04", "MQQB-3.1.5.3.1-06", "MQQB-3.1.5.3.1-07"),
            "ClientGuid, TimeStamp and SE of a request come back in the answer.",
            OPENED[0],
            _established({"EstablishConnectionHeader": header}, "EstablishConnection"),
            OPENED[2],
        )
    ids = ("MQQB-3.1.5.3.1-09",)
    for name, guid in {
        "a foreign ServerGuid": UUID(int=source.getrandbits(128) | 1, version=4),
        "the client's own GUID as ServerGuid": IDENTITY,
    }.items():
        refused = _established({"EstablishConnectionHeader": {"ServerGuid": guid}}, name, ids, "refused")
        yield case(ids, f"A request with {name} is answered with CS.", OPENED[0], refused)
    message = send(
        draw.message(), "closed", "a UserMessage in a session that is not open", ("MQQB-3.1.5.8-01",)
    )
    foreign = {"EstablishConnectionHeader": {"ServerGuid": UUID(int=source.getrandbits(128) | 1, version=4)}}
    yield case(
        ("MQQB-3.1.5.8-01",),
        "No message is taken in a session that was refused.",
        OPENED[0],
        _established(foreign, "a foreign ServerGuid", ids, "refused"),
        message,
    )
    own = {"EstablishConnectionHeader": {"ServerGuid": messages.PEER}}
    ids = ("MQQB-3.1.5.3.1-08",)
    yield case(
        ids,
        "A request with the peer's own GUID is accepted.",
        *OPENED,
        Step("close"),
        OPENED[0],
        _established(own, "the peer's own GUID as ServerGuid", ids),
        OPENED[2],
        send(draw.message(wants=messages.PA), "taken", "a message"),
    )


def _parameters(draw: Draw) -> Iterator[Case]:
    """The answer to ConnectionParameters: [MS-MQQB] 3.1.5.4.1."""
    source = draw.source
    for recoverable, ack, window in (
        (500, 20_000, 1),
        (120_000, 120_000, 0xFFFF),
        (source.randrange(500, 120_001), source.randrange(20_000, 120_001), source.randrange(1, 256)),
    ):
        header = {"RecoverableAckTimeout": recoverable, "AckTimeout": ack, "WindowSize": window}
        agreed = messages.parameters({"ConnectionParametersHeader": header})
        yield case(
            ("MQQB-3.1.5.4.1-02",),
            "RecoverableAckTimeout and AckTimeout of a request come back in the answer.",
            *OPENED[:2],
            Step("agree", data=agreed.to_bytes(), note="ConnectionParameters"),
            send(draw.message(wants=messages.PA), "taken", "a message"),
        )


def _limits(draw: Draw) -> Iterator[Case]:
    """WindowSize of any value, and timeouts outside their range: the text does not cover the reaction."""
    ids: tuple[str, ...] = ("MQQB-3.1.5.4.1-02", "MQQB-2.2.2.1-06")
    text = "The WindowSize of the answer is the peer's own, whatever that of the request is."
    steps: list[Step] = []
    for number, window in enumerate((0, draw.source.randrange(1000, 0xFFFF))):
        packet = messages.parameters({"ConnectionParametersHeader": {"WindowSize": window}})
        note = f"ConnectionParameters with a WindowSize of {window}"
        steps += [*opened(number)[:2], Step("agree", number, packet.to_bytes(), breaks=ids, note=note)]
    last = send(draw.message(recoverable=True, wants=messages.PA), "taken", "a message", ids)
    yield case(ids, text, *steps, last, Step("acknowledged", breaks=ids, note="a message"))
    template = messages.parameters()
    text = "After a timeout outside its range the session ends or goes on, and other sessions go on."
    for requirement, name, least in (
        ("MQQB-2.2.2.1-02", "RecoverableAckTimeout", 500),
        ("MQQB-2.2.2.1-04", "AckTimeout", 20_000),
    ):
        for value in (0, 1, least - 1, 120_001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
            data = messages.changed(template, f"ConnectionParametersHeader.{name}", value)
            ids, note = (requirement,), f"{name} of {value}"
            yield case(
                ids,
                text,
                *OPENED[:2],
                Step("agree", data=data, breaks=ids, expects="either", note=note),
                send(draw.message(recoverable=True), "", "a message in this session", ids),
                *opened(1),
                send(draw.message(wants=messages.PA), "taken", "a message in another session", ids, 1),
            )


def _tolerated(draw: Draw) -> Iterator[Case]:
    """Fields that a receiver is to ignore in the packets of the handshake."""
    source = draw.source
    base = {"BaseHeader": _RESERVED_BASE}
    establish: list[tuple[str, str, dict[str, Any]]] = [
        ("MQMQ-2.2.19.1-17", "reserved bits of BaseHeader.Flags", base),
        ("MQQB-2.2.1-01", "InternalHeader.Reserved", {"InternalHeader": {"Reserved": 0xA5A5}}),
        (
            "MQQB-2.2.3.1-19",
            "padding of any bytes",
            {"EstablishConnectionHeader": {"Padding": source.randbytes(512)}},
        ),
        (
            "MQQB-2.2.3.1-16",
            "EstablishConnectionHeader.Reserved",
            {"EstablishConnectionHeader": {"Reserved": source.randrange(1, 1 << 16)}},
        ),
    ]
    for requirement, what, fields in establish:
        ids = (requirement,)
        yield case(
            ids,
            f"A request with {what} is answered like another.",
            OPENED[0],
            _established(fields, f"EstablishConnection with {what}", ids),
            OPENED[2],
            send(draw.message(wants=messages.PA), "taken", "a message"),
        )
    agree: list[tuple[str, str, dict[str, Any]]] = [
        ("MQMQ-2.2.19.1-17", "reserved bits of BaseHeader.Flags", base),
        (
            "MQQB-2.2.2.1-05",
            "ConnectionParametersHeader.Reserved",
            {"ConnectionParametersHeader": {"Reserved": source.randrange(1, 1 << 16)}},
        ),
    ]
    for requirement, what, fields in agree:
        packet = messages.parameters(fields)
        yield case(
            (requirement,),
            f"A request with {what} is answered like another.",
            *OPENED[:2],
            Step("agree", data=packet.to_bytes(), note=f"ConnectionParameters with {what}"),
            send(draw.message(wants=messages.PA), "taken", "a message"),
        )


def _internal(draw: Draw) -> Iterator[Case]:
    """Internal packets that are none of the three kinds, or shorter than their kind."""
    source = draw.source
    ids: tuple[str, ...] = ("MQQB-2.2.1-05",)
    text = "An internal packet of no known type ends the session."
    states = ((OPENED[:1], messages.establish()), (OPENED[:2], messages.parameters()), (OPENED, None))
    for steps, packet in states:
        number = source.choice([0, *range(4, 16)])
        template = packet or messages.session_ack()
        data = bytearray(template.to_bytes())
        at = messages.place(template, "InternalHeader.Flags")
        data[at] = data[at] & 0xF0 | number
        note = f"an internal packet with PT {number:#x}"
        yield case(ids, text, *steps, _closed(data, note, ids))
    ids = (MALFORMED, "MQMQ-2.2.19.1-19")
    for steps, template in (
        (OPENED[:1], messages.establish()),
        (OPENED[:2], messages.parameters()),
        (OPENED, messages.session_ack()),
    ):
        whole = template.to_bytes()
        size = source.randrange(16, len(whole) - 1) & ~3
        data = bytearray(messages.changed(template, "BaseHeader.PacketSize", size)[:size])
        note = f"{_article(template.schema.name)} of {size} bytes instead of {len(whole)}"
        text = "A packet that is too short for its headers ends the session."
        yield case(ids, text, *steps, _closed(data + whole, note, ids))


def _closed(data: bytearray, note: str, ids: tuple[str, ...]) -> Step:
    return send(bytes(data), "closed", note, ids)
