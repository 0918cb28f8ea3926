"""Cases that each test one requirement of remote read."""

from __future__ import annotations

import random
from collections.abc import Iterator

from fuzz.peer.binary import messages
from fuzz.peer.remote_read import pdus
from fuzz.peer.remote_read.length_checks import length_checks
from fuzz.peer.remote_read.message_checks import message_checks
from fuzz.peer.remote_read.ndr_checks import ndr_checks
from fuzz.peer.remote_read.opening_checks import opening_checks
from fuzz.peer.remote_read.rpc_checks import BIND, CONNECT, PORT, case, port_call, rpc_checks
from fuzz.peer.remote_read.transaction_checks import transaction_checks
from fuzz.peer.remote_read.waiting_checks import waiting_checks
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.errors import MalformedPacket
from msmqwire.remote_read.constants import Opnum
from msmqwire.rpc.constants import PduType
from msmqwire.rpc.pdu import parse_header
from msmqwire.rpc.pdus import COMMON_HEADER_SIZE, PDUS


def fresh(target: Target) -> Case:
    """Return the case of a fresh association, which every peer that is up answers."""
    return case((PORT,), "A fresh association is answered.", CONNECT, BIND, port_call(2))


def has_queue(target: Target) -> Case:
    """Return the case by which a peer says that it does not have a queue of the target."""
    names = filter(None, (target.queue, target.transactional_queue))
    opened = [
        Step("persist", data=pdus.open_queue(slot, target, name), note=f"R_OpenQueue of {name}")
        for slot, name in enumerate(names, 2)
    ]
    return case((), "The queues of the run can be opened.", CONNECT, BIND, *opened)


def checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, each with values that are drawn anew."""
    yield from rpc_checks(target, source)
    yield from length_checks(target, source)
    yield from ndr_checks(target, source)
    yield from opening_checks(target, source)
    yield from waiting_checks(target, source)
    yield from message_checks(target, source)
    yield from transaction_checks(target, source)


def kind(data: bytes) -> str:
    """Return the kind of a PDU, of several that of the first, or of a message of the binary protocol."""
    try:
        ptype = parse_header(data)["PTYPE"]
    except MalformedPacket:
        return messages.kind(data)
    if ptype != PduType.REQUEST:
        return PDUS[ptype].name
    opnum = int.from_bytes(data[COMMON_HEADER_SIZE + 6 : COMMON_HEADER_SIZE + 8], "little")
    return f"{Opnum(opnum).name} request" if opnum in {*Opnum} else "request"
