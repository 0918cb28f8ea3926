"""HTTP around the messages: segments, pipelining, connections, halves, and faults.

A server that finds fault with the HTTP of a request may answer with any status, or end the connection: SRMP
does not cover this. But it must not stop answering other requests.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from fuzz.peer.srmp.cases import accepted, case
from fuzz.peer.srmp.messages import envelope, post, url
from fuzz.peer.srmp.taken import TAKEN, asking, number_of
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target
from msmqwire.srmp.fields import CONTENT_LENGTH, TRANSFER_ENCODING, Field
from msmqwire.srmp.http_message import Chunking
from msmqwire.srmp.message import build_message, parse_message

HTTP = "SRMP-2.1.1-01"
HALVES = 3
"""Connections with half a request: a server may serve no more than some at once."""
PIPELINED = 16
TOGETHER = 4
"""The most faults of one case."""
CONNECTIONS = 8
_NEXT = 30
"""The connection of the message after a fault."""


def checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, each with values that are drawn anew."""
    yield from _segments(target, source)
    yield from _connections(target, source)
    yield from _halves(target, source)
    faults = [*_heads(target, source), *_lengths(target, source), *_large(target, source)]
    faults += _entities(target, source)
    source.shuffle(faults)
    for start in range(0, len(faults), TOGETHER):
        yield _after(target, source, faults[start : start + TOGETHER])
    yield from _forms(target, source)
    yield from _chunked(target, source)


def _after(target: Target, source: random.Random, faults: list[Step]) -> Case:
    """Return the case of some faults, each of which must not keep the peer from taking other messages."""
    steps: list[Step] = []
    for fault in faults:
        note = f"a message after {fault.note}"
        following = accepted(TAKEN, plain(target, source), note, _NEXT)
        steps += [fault, following, Step("close"), replace(following, data=plain(target, source))]
    return case(HTTP, f"After {faults[0].note} the next message is taken.", *steps)


def request(target: Target, source: random.Random, size: int = 20) -> bytes:
    """Return a message that asks for a receipt, with a body."""
    return post(target, asking(target, number_of(source)), source.randbytes(size))


def plain(target: Target, source: random.Random, size: int = 20) -> bytes:
    """Return a message that asks for nothing: its outcome is unknown."""
    return post(target, envelope(target, number_of(source)), source.randbytes(size))


def _segments(target: Target, source: random.Random) -> Iterator[Case]:
    text = "Segments of TCP say nothing: the message is taken."
    for _ in range(4):
        data = request(target, source)
        cuts = tuple(sorted(source.sample(range(1, len(data)), 5)))
        yield case(HTTP, text, accepted(HTTP, data, "a message in six segments", cuts=cuts))
    data = request(target, source)
    end = data.index(b"\r\n\r\n")
    for cuts in (
        tuple(range(1, 60)),
        (end, end + 1, end + 2, end + 3, end + 4),
        (len(data) - 1,),
        (len(data) - 2,),
    ):
        step = accepted(HTTP, request(target, source), "a message in small segments", cuts=cuts)
        yield case(HTTP, text, step)


def _connections(target: Target, source: random.Random) -> Iterator[Case]:
    text = "Each of two messages in one segment is answered and taken."
    both = request(target, source) + request(target, source)
    yield case(HTTP, text, accepted(HTTP, both, "two messages in one segment"))
    text = "Messages that do not wait for the responses before them are answered in their order."
    several = [request(target, source) for _ in range(PIPELINED)]
    yield case(HTTP, text, accepted(HTTP, b"".join(several), f"{PIPELINED} messages at once"))
    steps = [replace(accepted(HTTP, data, "pipelined messages"), action="queue") for data in several]
    yield case(HTTP, text, *steps, Step("await"))
    wrong = post(target, envelope(target, number_of(source)).replace(b"<Priority>3<", b"<Priority>8<"))
    refusal = Step("queue", data=wrong, breaks=("SRMP-2.2.6.2-02",), expects="status 400", note="Priority 8")
    yield case(HTTP, text, steps[0], refusal, steps[1], refusal, refusal, steps[2], Step("await"))
    cut = len(several[0]) + len(several[1]) // 2
    step = accepted(HTTP, several[0] + several[1], "one and a half messages, and the rest", cuts=(cut,))
    yield case(HTTP, text, step)
    text = "A connection serves one message after the other."
    yield case(HTTP, text, *(accepted(HTTP, request(target, source), "a message") for _ in range(5)))
    text = "Many connections are served at once."
    steps = [
        replace(accepted(HTTP, request(target, source), "messages on many connections", at), action="queue")
        for at in range(CONNECTIONS)
    ]
    yield case(HTTP, text, *steps, Step("await"))
    text = "A peer that ends its own direction gets its response."
    yield case(
        HTTP,
        text,
        replace(accepted(HTTP, request(target, source), "a message"), action="queue"),
        Step("await"),
        Step("shutdown"),
        accepted(HTTP, request(target, source), "a message", _NEXT),
    )
    text = "Connections that are given up leave other connections alone."
    queued = [Step("queue", at, request(target, source), note="a message") for at in range(8)]
    ends = [Step(source.choice(("close", "reset")), at) for at in range(8)]
    yield case(HTTP, text, *queued, *ends, accepted(HTTP, request(target, source), "a message", _NEXT))


def _halves(target: Target, source: random.Random) -> Iterator[Case]:
    text = "Requests that are not complete keep no other waiting, and are answered once they are."
    full = [request(target, source) for _ in range(HALVES)]
    halves = [
        Step(
            "half",
            at,
            data,
            (source.randrange(1, len(data)),),
            expects=f"accepted {HTTP}",
            note="half a message",
        )
        for at, data in enumerate(full)
    ]
    following = accepted(HTTP, request(target, source), "a message beside halves", _NEXT)
    rests = [Step("rest", at) for at in range(HALVES)]
    yield case(HTTP, text, *halves, following, *rests)
    text = "Half a request, and the end of the connection, is not a message."
    for how in ("close", "reset", "shutdown"):
        yield case(HTTP, text, halves[0], Step(how), following)
    for at in range(6):
        data = request(target, source)
        end = data.index(b"\r\n\r\n")
        cut = (3, end + 1, end + 2, end + 4, len(data) - 1, end + 60)[at]
        half = Step("half", 0, data, (cut,), expects=f"accepted {HTTP}", note=f"{cut} bytes of a message")
        yield case(HTTP, text, half, following, Step("rest"))


def _fault(data: bytes, note: str) -> Step:
    """Return the step of a fault of HTTP, which a server may answer or not."""
    return Step("bytes", data=data, breaks=(HTTP,), note=note)


def _answered(data: bytes, note: str) -> Step:
    """Return the step of a complete request that may be answered so or so."""
    return Step("request", data=data, breaks=(HTTP,), expects="answered", note=note)


def _heads(target: Target, source: random.Random) -> Iterator[Step]:
    data = plain(target, source)
    line, rest = data.split(b"\r\n", 1)
    path = line.split()[1]
    for method in (b"GET", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"M-POST", b"post"):
        yield _answered(method + line[4:] + b"\r\n" + rest, f"a {method.decode()} request")
    for version in (
        b"HTTP/1.0",
        b"HTTP/1.2",
        b"HTTP/2.0",
        b"HTTP/0.9",
        b"http/1.1",
        b"HTTP/1.1 ",
        b"HTTP/1",
        b"",
    ):
        changed = b" ".join((b"POST", path, version)) + b"\r\n" + rest
        yield _fault(changed, f"a request of version {version.decode()!r}")
    for other in (
        b"/",
        b"/other",
        b"*",
        url(target).encode(),
        b"/msmq/private$/%00",
        b"/" + b"a" * 9000,
        b"//",
    ):
        changed = b" ".join((b"POST", other, b"HTTP/1.1")) + b"\r\n" + rest
        yield _fault(changed, f"a request for {other[:40].decode()!r}")
    for field, value in (
        (b"SOAPAction", b'"Other"'),
        (b"SOAPAction", b""),
        (b"Proxy-Accept", b"x"),
        (b"Expect", b"100-continue"),
        (b"Expect", b"miracles"),
        (b"Content-Encoding", b"gzip"),
        (b"Connection", b"close"),
        (b"Connection", b"upgrade"),
        (b"Transfer-Encoding", b"gzip"),
        (b"Host", b""),
        (b"Content-Type", b"text/plain"),
        (b"Content-Type", b""),
        (b"Upgrade", b"h2c"),
        (b"Trailer", b"Host"),
        (b"Range", b"bytes=0-1"),
    ):
        lines = [
            item for item in rest.split(b"\r\n\r\n")[0].split(b"\r\n") if not item.startswith(field + b":")
        ]
        entity = rest.split(b"\r\n\r\n", 1)[1]
        changed = b"\r\n".join((line, *lines, field + b": " + value)) + b"\r\n\r\n" + entity
        note = f"a request with {field.decode()} {value.decode()!r}"
        yield _fault(changed, note)
    for old, new, note in (
        (b"\r\n", b"\n", "lines that end with LF"),
        (b"Host: ", b"Host : ", "a blank before a colon"),
        (b"Host: ", b"Host ", "a field without a colon"),
        (b"Host: ", b" Host: ", "a folded field"),
        (b"SOAPAction", b"SOAP\0Action", "a NUL in a name"),
        (b"SOAPAction", b"SOAP\xffAction", "a name of no ASCII"),
    ):
        head, entity = data.split(b"\r\n\r\n", 1)
        changed = head.replace(old, new) + (b"\n\n" if new == b"\n" else b"\r\n\r\n") + entity
        yield _fault(changed, note)
    hello = bytes.fromhex("160301002f0100002b0303") + source.randbytes(32) + bytes.fromhex("000002002f0100")
    for junk in (
        hello,
        source.randbytes(500),
        b"\0" * 100,
        b"\r\n\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ):
        yield _fault(junk, "bytes that are not HTTP")


def _lengths(target: Target, source: random.Random) -> Iterator[Step]:
    data = plain(target, source)
    head, entity = data.split(b"\r\n\r\n", 1)
    right = b"Content-Length: %d" % len(entity)
    values = [
        b"-1",
        b"0",
        b"1",
        b"abc",
        b"+%d" % len(entity),
        b"%d" % (1 << 31),
        b"%d" % (1 << 63),
        b"9" * 40,
        b"",
        b"%d" % (len(entity) - 1),
        b"%d" % (len(entity) + 1),
        b"%d, %d" % (len(entity), 7),
        b"0x20",
    ]
    for value in values:
        changed = head.replace(right, b"Content-Length: " + value) + b"\r\n\r\n" + entity
        yield _fault(changed, f"a request with the Content-Length {value.decode()!r}")
    second = head + b"\r\nContent-Length: 5\r\n\r\n" + entity
    yield _fault(second, "a request with two Content-Lengths")
    without = head.replace(right + b"\r\n", b"") + b"\r\n\r\n" + entity
    yield _fault(without, "a request without Content-Length")
    both = head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + entity
    yield _fault(both, "a request with Content-Length and chunks")
    coded = head.replace(right, b"Transfer-Encoding: chunked") + b"\r\n\r\n"
    for chunks in (
        b"zz\r\n",
        b"-5\r\n",
        b"FFFFFFFF\r\nab",
        b"F" * 30 + b"\r\n",
        b"5\r\nabcdefgh\r\n",
        b"5;" + b"a" * 20_000,
        b"0\r\n" + b"X: y\r\n" * 5000,
        b"1\r\na\r\n" * 400 + b"0\r\n\r\n",
        b"0\r\n\r\n",
    ):
        yield _fault(coded + chunks, "chunks that are none")


def _large(target: Target, source: random.Random) -> Iterator[Step]:
    data = plain(target, source)
    head, entity = data.split(b"\r\n\r\n", 1)
    for size in (20_000, 200_000):
        changed = head + b"\r\nX-Large: " + b"a" * size + b"\r\n\r\n" + entity
        yield _fault(changed, f"a header field of {size} bytes")
    many = b"".join(b"\r\nX-%d: y" % number for number in range(4000))
    yield _fault(head + many + b"\r\n\r\n" + entity, "thousands of header fields")
    yield _fault(b"POST /" + b"a" * 300_000, "a request line without end")
    yield _fault(head + b"\r\n" + b"Y: z\r\n" * 20_000, "a head without end")
    large = plain(target, source, 1 << 20)
    yield _answered(large, "a message of a megabyte")
    huge = head.replace(b"Content-Length: %d" % len(entity), b"Content-Length: 6000000")
    yield _fault(huge + b"\r\n\r\n" + b"a" * 6_000_000, "six million bytes")


def _entities(target: Target, source: random.Random) -> Iterator[Step]:
    """XML that takes more than it seems to."""

    def sent(note: str, old: bytes, new: bytes, before: bytes = b"") -> Step:
        text = before + envelope(target, number_of(source)).replace(old, new)
        return _answered(post(target, text), f"a message with {note}")

    label = b"MSMQ:msmqwire"
    laughs = b"".join(b'<!ENTITY l%d "%b">' % (n + 1, b"&l%d;" % n * 10) for n in range(9))
    yield sent("entities that expand", label, b"&l9;", b'<!DOCTYPE x [<!ENTITY l0 "ha">' + laughs + b"]>")
    outside = b'<!DOCTYPE x [<!ENTITY l SYSTEM "file:///etc/hostname">]>'
    yield sent("an external entity", label, b"MSMQ:&l;", outside)
    yield sent("a DTD of elsewhere", label, label, b'<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">')
    yield sent("a recursive entity", label, b"&a;", b'<!DOCTYPE x [<!ENTITY a "&b;"><!ENTITY b "&a;">]>')
    inside = b"<se:Body></se:Body>"
    for depth in (300, 20_000):
        deep = b"<a>" * depth + b"</a>" * depth
        yield sent(f"{depth} elements inside each other", inside, b"<se:Body>" + deep + b"</se:Body>")
    yield sent(
        "thousands of attributes",
        b"<se:Header>",
        b"<se:Header %b>" % b" ".join(b'a%d="b"' % n for n in range(5000)),
    )
    yield sent("thousands of elements", inside, b"<se:Body>" + b"<a/>" * 50_000 + b"</se:Body>")
    yield sent("thousands of header entries", b"</se:Header>", b"<other/>" * 20_000 + b"</se:Header>")
    yield sent(
        "an entry that must be understood",
        b"</se:Header>",
        b'<x:other xmlns:x="urn:x" se:mustUnderstand="1"/></se:Header>',
    )
    yield sent("a long name", inside, b"<se:Body><" + b"n" * 300_000 + b"/></se:Body>")
    yield sent("a long label", label, b"MSMQ:" + b"l" * 200_000)
    yield sent("a declaration of another encoding", label, label, b'<?xml version="1.0" encoding="UTF-7"?>')
    utf16 = envelope(target, number_of(source)).decode().encode("utf-16")
    yield _answered(post(target, utf16), "an envelope in UTF-16")
    empty = envelope(target, number_of(source)).replace(b"</path>", b"<rev><via/></rev></path>")
    yield _answered(post(target, empty), "an empty via")


def _forms(target: Target, source: random.Random) -> Iterator[Case]:
    """Requests in other words of HTTP."""
    names = request(target, source)
    head, entity = names.split(b"\r\n\r\n", 1)
    first, *fields = head.split(b"\r\n")
    source.shuffle(fields)
    lower = [field.split(b":", 1)[0].lower() + b":" + field.split(b":", 1)[1] for field in fields]
    shuffled = b"\r\n".join((first, *lower, b"X-Other: field")) + b"\r\n\r\n" + entity
    text = "Header fields stand in any order and case, with unknown ones beside them."
    yield case(
        "SRMP-2.1.1-05",
        text,
        accepted("SRMP-2.1.1-05", shuffled, "a message with its fields in another order"),
    )


def _chunked(target: Target, source: random.Random) -> Iterator[Case]:
    """Requests in chunks."""
    text = "Chunks may be cut anywhere: the message is taken, or chunks refused altogether."
    for share in (1, 2, 3, 7):
        message = parse_message(request(target, source))
        content = message.content
        left = len(content if isinstance(content, bytes) else content.to_bytes())
        sizes = []
        while left:
            sizes.append(max(1, left // share))
            left -= sizes[-1]
        fields = tuple(field for field in message.fields if field.name != CONTENT_LENGTH)
        chunking = Chunking((*(f"{size:x}" for size in sizes), "0"))
        chunked = replace(message, fields=(*fields, Field(TRANSFER_ENCODING, "chunked")), chunking=chunking)
        step = Step("request", data=build_message(chunked), expects="answered", note="a message in chunks")
        following = accepted(TAKEN, request(target, source), "a message after chunks", _NEXT)
        yield case(HTTP, text, step, following)
