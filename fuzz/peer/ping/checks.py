"""Cases that each test one requirement of pings."""

from __future__ import annotations

import random
from collections.abc import Iterator

from fuzz.peer.ping.datagrams import DATAGRAM_MAX, NO_GUID, request
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.names.printable import agreeing, counted
from msmqwire.ping import PING, PING_SIGNATURE, PING_SIZE
from msmqwire.schema import field_offset

NAME = "ping"
AWAIT = Step("await")
BURST = 24
"""Pings at once; a peer may take no more than a number of them in a second."""
_SIGNATURE = field_offset(PING, "Signature")
_ANSWERED = "A Ping Request gets one Ping Response at the port that it came from."
_COOKIES = (0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF)


def fresh(target: Target) -> Case:
    """Return the case of one ping."""
    return Case(NAME, (_ping(0x6D73_6D71), AWAIT), ("MQQB-2.1.2-02",), _ANSWERED)


def checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, each with values that are drawn anew."""
    yield from _requests(source)
    yield from _several(source)
    yield from _wrong_signatures(source)
    yield from _wrong_sizes(source)
    yield from _with_sessions(source)


def _cookie(source: random.Random) -> int:
    """Return a cookie as a queue manager has them that counts its requests."""
    return source.randrange(1, 0x4000_0000)


def _ping(cookie: int, requirement: str = "MQQB-2.1.2-02", connection: int = 0, **flags: int) -> Step:
    note = f"a Ping Request with Cookie {cookie:#x}"
    if flags:
        note += " and Flags " + ", ".join(f"{name} {value}" for name, value in flags.items())
    data = request(cookie, Flags=flags)
    return Step("send", connection, data, expects=f"answer {requirement}", note=note)


def _wrong(data: bytes, requirement: str, note: str) -> Step:
    return Step("send", data=data, breaks=(requirement,), note=note)


def _case(requirement: str, text: str, *steps: Step) -> Case:
    return Case(NAME, steps, (requirement,), text)


def _requests(source: random.Random) -> Iterator[Case]:
    for cookie in (*_COOKIES, source.getrandbits(32), source.getrandbits(32)):
        text = "The response has the Cookie of the request, whatever that is."
        yield _case("MQQB-2.2.7-11", text, _ping(cookie, "MQQB-2.2.7-10"))
    for kind in (0, 1):
        yield _case("MQQB-2.2.7-04", "The response copies RC.", _ping(_cookie(source), RC=kind))
    yield _case(
        "MQQB-2.2.7-04", "Each response copies RC of its own request.",
        *(_ping(_cookie(source), RC=kind) for kind in (0, 1, 1, 0)),
    )  # fmt: skip
    for unused in (range(2, 16), (source.randrange(2, 16),), source.sample(range(2, 16), 7)):
        flags = {f"X{bit}": 1 for bit in unused}
        text = "What stands in the unused bits is ignored."
        step = _ping(_cookie(source), "MQQB-2.2.7-07", RC=source.randrange(2), **flags)
        yield _case("MQQB-2.2.7-07", text, step)
    response = _wrong(request(_cookie(source), Flags={"RF": 1}), "MQQB-2.2.7-05", "a request with RF set")
    text = "After a packet that is not a request (RF is set) the next request is answered."
    yield _case("MQQB-2.2.7-05", text, response, _ping(_cookie(source)))
    nobody = Step("send", data=request(_cookie(source), QMGuid=NO_GUID), note="a request with a zero QMGuid")
    yield _case("MQQB-2.2.7-13", "QMGuid of a response is that of the peer.", nobody, _ping(_cookie(source)))


def _several(source: random.Random) -> Iterator[Case]:
    cookies = [_cookie(source) for _ in range(BURST)]
    text = "Each of many requests at once gets its response."
    yield _case("MQQB-2.1.2-02", text, *map(_ping, cookies))
    text = "Each response goes to the port that its request came from."
    steps = [_ping(cookie, "MQQB-2.1.2-07", at % 8) for at, cookie in enumerate(cookies)]
    yield _case("MQQB-2.1.2-07", text, *steps)
    steps = [_ping(cookies[0], "MQQB-2.1.2-07", at, RC=at % 2) for at in range(6)]
    yield _case("MQQB-2.1.2-07", "Requests of several ports with one Cookie are answered each.", *steps)
    same = [_ping(cookies[1])] * 3
    yield _case("MQQB-2.1.2-02", "A request that comes again is answered once at least.", *same)
    text = "QMGuid is that of the peer in all responses."
    yield _case(
        "MQQB-2.2.7-13", text, *(_ping(cookie, connection=at) for at, cookie in enumerate(cookies[:4]))
    )


def _wrong_signatures(source: random.Random) -> Iterator[Case]:
    swapped = int.from_bytes(PING_SIGNATURE.to_bytes(2, "little"), "big")
    drawn = source.randrange(1 << 16)
    near = PING_SIGNATURE ^ 1 << source.randrange(16)
    for signature in {0, 0xFFFF, swapped, near, drawn, PING_SIGNATURE + 1, PING_SIGNATURE ^ 0x0100}:
        if signature == PING_SIGNATURE:
            continue
        data = bytearray(request(_cookie(source), Flags={"RC": source.randrange(2)}))
        data[_SIGNATURE : _SIGNATURE + 2] = signature.to_bytes(2, "little")
        wrong = _wrong(bytes(data), "MQQB-3.1.7.7-01", f"a Ping Packet with the signature {signature:#06x}")
        text = "A datagram whose signature is wrong is not answered; the next right one is."
        yield _case("MQQB-3.1.7.7-01", text, wrong, _ping(_cookie(source)))


def _wrong_sizes(source: random.Random) -> Iterator[Case]:
    text = "A datagram that is not a Ping Packet is not answered; the next one is."
    for size in range(PING_SIZE):
        short = request(_cookie(source))[:size]
        wrong = _wrong(short, "MQQB-3.1.5.1.1-07", f"a Ping Request cut to {size} of {PING_SIZE} bytes")
        yield _case("MQQB-3.1.5.1.1-07", text, wrong, _ping(_cookie(source)))
    for size in (PING_SIZE + 1, 2 * PING_SIZE, source.randrange(26, 1500), 8192, DATAGRAM_MAX):
        data = request(_cookie(source)) + source.randbytes(size - PING_SIZE)
        longer = _wrong(data, "MQQB-2.2.7-01", f"a Ping Request with {size - PING_SIZE} bytes behind it")
        yield _case("MQQB-2.2.7-01", "After a datagram that is too long the next ping is answered.",
                    longer, _ping(_cookie(source)))  # fmt: skip
    for size in (source.randrange(1, 512), 4096, DATAGRAM_MAX):
        data = bytes(4) + source.randbytes(max(size, 4))[4:]
        wrong = _wrong(
            data, "MQQB-3.1.7.7-01", f"{counted(size, 'byte')} that {agreeing(size, 'are')} not a Ping Packet"
        )
        yield _case("MQQB-3.1.7.7-01", text, wrong, _ping(_cookie(source)))
    junk = [_wrong(bytes(source.randrange(24)), "MQQB-3.1.5.1.1-07", "zeroes") for _ in range(BURST)]
    yield _case("MQQB-3.1.5.1.1-07", text, *junk, _ping(_cookie(source)))


def _with_sessions(source: random.Random) -> Iterator[Case]:
    text = "QMGuid and RF say what a session with the peer shows."
    yield _case("MQQB-2.2.7-13", text, _ping(_cookie(source)), Step("session"))
    yield _case("MQQB-2.2.7-06", text, Step("session"), _ping(_cookie(source)))
