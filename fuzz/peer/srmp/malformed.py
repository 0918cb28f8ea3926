"""Messages that do not conform to [MC-MQSRM] chapter 2, or that no queue takes: they are refused with 400."""

from __future__ import annotations

import random
from collections.abc import Iterator

from fuzz.peer.srmp.cases import accepted, case, changed, refused
from fuzz.peer.srmp.messages import (
    RECEIVED,
    SENT,
    STREAM,
    date,
    envelope,
    post,
    receipts,
    stream,
    url,
    wants_receipt,
)
from fuzz.peer.srmp.taken import TAKEN, asking, number_of
from fuzz.peer.steps import IDENTITY, Case, Step
from fuzz.peer.target import Target
from msmqwire.srmp.multipart import BODY_ID, Multipart, Part, envelope_part, payload_part

TOGETHER = 5
"""The most wrong requests of one case."""
_MARK = ' se:mustUnderstand="1"'
_SOAP = "http://schemas.xmlsoap.org/soap/envelope/"


def checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, each with values that are drawn anew: wrong requests of one kind, and a right one."""
    steps = [
        *_envelopes(target, source),
        *_streams(target, source),
        *_no_xml(target, source),
        *_parts(target, source),
        *_destinations(target, source),
    ]
    by_requirement: dict[str, list[Step]] = {}
    for step in steps:
        by_requirement.setdefault(step.breaks[0], []).append(step)
    for requirement, wrong in by_requirement.items():
        source.shuffle(wrong)
        for start in range(0, len(wrong), TOGETHER):
            some = wrong[start : start + TOGETHER]
            following = accepted(TAKEN, post(target, asking(target, number_of(source))), "the next message")
            text = f"After {some[0].note}, which has to be refused, the next message is taken."
            yield case(requirement, text, *some, following)
    yield from _uncertain(target, source)


def _changes(source: random.Random) -> list[tuple[str, str, str, str]]:
    """Return requirement, fault, and the change of a correct envelope that makes the fault."""
    number = str(source.randrange(1 << 64, 1 << 80))
    body, to = "<se:Body></se:Body>", "<to>http://"
    changes = [
        (
            "SRMP-2.2.2-06",
            "another namespace of SOAP",
            f'"{_SOAP}"',
            '"http://www.w3.org/2003/05/soap-envelope"',
        ),
        ("SRMP-2.2.2-06", "no Body", body, ""),
        ("SRMP-2.2.2-06", "something between Header and Body", "</se:Header>", "</se:Header><se:Other/>"),
        ("SRMP-2.2.2-06", "Body before Header", "<se:Header>", f"{body}<se:Header>"),
        ("SRMP-2.2.2-06", "two Headers", "<se:Header>", "<se:Header></se:Header><se:Header>"),
        (
            "SRMP-2.2.4-04",
            "another namespace of path",
            "http://schemas.xmlsoap.org/rp/",
            "http://schemas.xmlsoap.org/rq/",
        ),
        ("SRMP-2.2.4.2-06", "to of another scheme", to, "<to>ftp://"),
        ("SRMP-2.2.4.2-06", "to without a scheme", to, "<to>"),
        ("SRMP-2.2.5.1-02", "properties without mustUnderstand", f"<properties{_MARK}>", "<properties>"),
        (
            "SRMP-2.2.5.1-02",
            "properties with mustUnderstand 0",
            f"<properties{_MARK}>",
            '<properties se:mustUnderstand="0">',
        ),
        ("SRMP-2.2.5.2-02", "services without mustUnderstand", f"<services{_MARK}>", "<services>"),
        ("SRMP-2.2.6.2-02", "Priority 8", "<Priority>3<", "<Priority>8<"),
        ("SRMP-2.2.6.2-02", "Priority 4294967299", "<Priority>3<", "<Priority>4294967299<"),
        ("SRMP-2.2.1.3-01", "Priority -1", "<Priority>3<", "<Priority>-1<"),
        ("SRMP-2.2.1.3-01", "Priority three", "<Priority>3<", "<Priority>three<"),
        ("SRMP-2.2.1.3-01", "an empty Class", "<Class>0<", "<Class><"),
        ("SRMP-2.2.1.3-01", "BodyType 0x8", "<BodyType>0<", "<BodyType>0x8<"),
        ("SRMP-2.2.1.3-01", "a BodyType of more than 64 bits", "<BodyType>0<", f"<BodyType>{number}<"),
        (
            "SRMP-2.2.6.13-01",
            "a SourceQmGuid of 35 characters",
            f"Guid>{IDENTITY}<",
            f"Guid>{str(IDENTITY)[1:]}<",
        ),
        (
            "SRMP-2.2.6.13-01",
            "a SourceQmGuid with no hexadecimal digits",
            f"Guid>{IDENTITY}<",
            f"Guid>zzzzzzzz{str(IDENTITY)[8:]}<",
        ),
        (
            "SRMP-2.2.6.5-02",
            "a Correlation of 19 bytes",
            "<BodyType>",
            "<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAA==</Correlation><BodyType>",
        ),
        (
            "SRMP-2.2.6.5-02",
            "a Correlation that is not base64",
            "<BodyType>",
            "<Correlation>!!!!</Correlation><BodyType>",
        ),
        ("SRMP-2.2.6.14-02", "an empty DestinationMqf", "<TTrq>", "<DestinationMqf></DestinationMqf><TTrq>"),
        ("SRMP-2.2.5.2.2-02", "a receipt request without sendTo", "<sendTo>", "<other>"),
        ("SRMP-2.2.4.4-02", "rev without via", "</path>", "<rev><other/></rev></path>"),
        (
            "SRMP-2.2.4.4-02",
            "two via",
            "</path>",
            "<rev><via>http://a/msmq/b</via><via>http://a/msmq/c</via></rev></path>",
        ),
        (
            "SRMP-2.2.4-01",
            "two path",
            "<properties",
            f'<path xmlns="http://schemas.xmlsoap.org/rp/"{_MARK}><action/>'
            f"<to>http://a/msmq/b</to><id>uuid:1@{IDENTITY}</id></path><properties",
        ),
    ]
    for wrong in (
        "2030-01-01T000000",
        "20300101T000000Z",
        "20300101T00000",
        "20301301T000000",
        "20300101T250000",
        "",
    ):
        for name, at in (("sentAt", SENT), ("expiresAt", RECEIVED)):
            changes.append(
                ("SRMP-2.2.1.2-02", f"{name} {wrong!r}", f"<{name}>{date(at)}", f"<{name}>{wrong}")
            )
    return changes


def _envelopes(target: Target, source: random.Random) -> Iterator[Step]:
    for requirement, note, old, new in _changes(source):
        text = changed(asking(target, number_of(source)), old, new)
        if "other>" in new and old == "<sendTo>":
            text = text.replace(b"</sendTo>", b"</other>")
        yield refused(requirement, post(target, text), f"a message with {note}")
    for requirement, note, groups in _missing():
        text = _without(asking(target, number_of(source)), groups)
        yield refused(requirement, post(target, text), f"a message without {note}")
    number = number_of(source)
    for identifier in (
        f"{number}@{IDENTITY}",
        f"uuid:{number}",
        f"uuid:{number}{IDENTITY}",
        f"uuid:@{IDENTITY}",
        f"uuid:x{number}@{IDENTITY}",
        f"uuid:-1@{IDENTITY}",
        f"uuid:{number}@{str(IDENTITY)[:-1]}",
        f"uuid:{1 << 64}@{IDENTITY}",
        f"uuid:{number}@{IDENTITY}@{IDENTITY}",
        "",
    ):
        text = changed(asking(target, number), f"<id>uuid:{number}@{IDENTITY}<", f"<id>{identifier}<")
        step = refused("SRMP-2.2.4.3-07", post(target, text), f"a message whose id is {identifier!r}")
        yield step
    mark = changed(asking(target, number_of(source)), f'rp/"{_MARK}', 'rp/"')
    step = refused("SRMP-2.2.4-04", post(target, mark), "a message whose path has no mustUnderstand")
    yield step


def _missing() -> list[tuple[str, str, str]]:
    """Return requirement, missing part, and the name of the element."""
    elements = [
        ("SRMP-2.2.4-04", "path"),
        ("SRMP-2.2.4.1-01", "action"),
        ("SRMP-2.2.4.2-01", "to"),
        ("SRMP-2.2.4.3-01", "id"),
        ("SRMP-2.2.5.1-01", "properties"),
        ("SRMP-2.2.5.1.1-01", "expiresAt"),
        ("SRMP-2.2.2-06", "se:Header"),
    ]
    elements += [
        ("SRMP-2.2.6-05", name) for name in ("Class", "Priority", "BodyType", "SourceQmGuid", "TTrq")
    ]
    return [(requirement, name, name) for requirement, name in elements]


def _without(text: bytes, name: str) -> bytes:
    """Return an envelope without an element, which stands there once."""
    start, end = text.index(f"<{name}".encode()), f"</{name}>".encode()
    return text[:start] + text[text.index(end) + len(end) :]


def _streams(target: Target, source: random.Random) -> Iterator[Step]:
    number, to = number_of(source), receipts(target, "streams")
    queue = target.transactional_queue or None

    def sent(requirement: str, note: str, old: str, new: str) -> Step:
        text = changed(envelope(target, number_of(source), stream(STREAM, 1, to), queue=queue), old, new)
        step = refused(requirement, post(target, text, to=url(target, queue)), f"a message with {note}")
        return step

    for wrong in (
        f"{IDENTITY}\\{number}",
        f"uid:{IDENTITY}",
        f"uid:{IDENTITY}/{number}",
        f"uid:{str(IDENTITY)[1:]}\\{number}",
        f"uid:{IDENTITY}\\{1 << 64}",
        f"uid:{IDENTITY}\\-1",
        f"uid:{IDENTITY}\\",
        "",
    ):
        old = f"<streamId>uid:{IDENTITY}\\{STREAM}<"
        yield sent("SRMP-2.2.5.3.1-05", f"streamId {wrong!r}", old, f"<streamId>{wrong}<")
    yield sent("SRMP-2.2.5.3.2-01", "no current", "<current>1</current>", "")
    yield sent("SRMP-2.2.1.3-01", "current one", "<current>1<", "<current>one<")
    yield sent(
        "SRMP-2.2.5.3.4-02", "start without sendReceiptsTo", f"<sendReceiptsTo>{to}</sendReceiptsTo>", ""
    )
    text = _without(envelope(target, number, stream(STREAM, 1, to), queue=queue), "Msmq")
    step = refused(
        "SRMP-2.2.5.3-03", post(target, text, to=url(target, queue)), "a message of a stream without Msmq"
    )
    yield step


def _no_xml(target: Target, source: random.Random) -> Iterator[Step]:
    good = asking(target, number_of(source))
    middle = source.randrange(40, len(good) - 20)
    wrong = [
        ("no entity", b""),
        ("a blank", b" "),
        ("no XML", source.randbytes(200)),
        ("a cut envelope", good[:middle]),
        ("an end tag of another name", good.replace(b"</path>", b"</bath>")),
        (
            "an undeclared prefix",
            good.replace(b"<se:Body>", b"<sx:Body>").replace(b"</se:Body>", b"</sx:Body>"),
        ),
        ("bytes that are not UTF-8", good.replace(b"MSMQ:msmqwire", b"MSMQ:\xc3\x28\xff")),
        ("an attribute twice", good.replace(_MARK.encode(), _MARK.encode() * 2, 1)),
        ("a bare ampersand", good.replace(b"MSMQ:msmqwire", b"MSMQ:a & b")),
        ("two root elements", good + good),
        ("text after the root", good + b"more"),
        ("an undeclared entity", good.replace(b"MSMQ:msmqwire", b"MSMQ:&nobody;")),
        ("a NUL", good.replace(b"MSMQ:msmqwire", b"MSMQ:\0")),
        ("another root", b"<a></a>"),
    ]
    for note, text in wrong:
        requirement = "SRMP-2.2.2-06" if note == "another root" else "SRMP-3.1.5.1.2-02"
        expects = "refused" if not text else "status 400"  # a server may want a length
        step = refused(requirement, post(target, text), f"a request with {note}", expects)
        yield step


def _parts(target: Target, source: random.Random) -> Iterator[Step]:
    text = asking(target, number_of(source))
    right = post(target, text, b"the body")
    head, _, entity = right.partition(b"\r\n\r\n")
    boundary = "MSMQ - SOAP boundary, 77077"

    def sent(
        requirement: str, note: str, content: bytes, fields: bytes = head, expects: str = "status 400"
    ) -> Step:
        lines = [line for line in fields.split(b"\r\n") if not line.startswith(b"Content-Length")]
        lines.append(b"Content-Length: %d" % len(content))
        data = b"\r\n".join(lines) + b"\r\n\r\n" + content
        return refused(requirement, data, f"a request with {note}", expects)

    rule = "SRMP-2.2.2-17"
    length = b"Content-Length: 8\r\n"
    for number in (9, 1 << 16, (1 << 32) + 8, 1 << 70):
        wrong = entity.replace(length, b"Content-Length: %d\r\n" % (number + len(entity)))
        yield sent(rule, "a part that is longer than the entity", wrong)
    for number in (-1, -8):
        wrong = entity.replace(length, b"Content-Length: %d\r\n" % number)
        yield sent(rule, f"a part of {number} bytes", wrong, expects="refused")
    yield sent(
        rule,
        "parts and no boundary",
        entity,
        head.replace(f'boundary="{boundary}"; '.encode(), b""),
        "refused",
    )
    yield sent(rule, "another boundary than that of the entity", entity, head.replace(b"77077", b"77078"))
    yield sent(rule, "parts that break off", entity[: len(entity) // 2])
    payload = Multipart(boundary, (payload_part(text, BODY_ID, IDENTITY),)).to_bytes()
    yield sent(rule, "no part of text/xml", payload)
    twice = Multipart(
        boundary, (envelope_part(text), *(payload_part(b"a", BODY_ID, IDENTITY),) * 2)
    ).to_bytes()
    yield sent(rule, "two bodies", twice, expects="answered")
    many = Multipart(boundary, (envelope_part(text), *(Part((), b""),) * 3000)).to_bytes()
    yield sent(rule, "thousands of parts", many, expects="answered")


def _destinations(target: Target, source: random.Random) -> Iterator[Step]:
    name = f"private$\\nobody{source.getrandbits(64):x}"
    text = envelope(target, number_of(source), wants_receipt(target, number_of(source)), queue=name)
    step = refused("SRMP-3.1.5.1.3-08", post(target, text), "a message for a queue that is not there")
    yield step
    given = stream(STREAM, 1, receipts(target, "streams"))
    data = post(target, envelope(target, number_of(source), given))
    step = refused("SRMP-3.1.5.1.3-09", data, "a stream message for a queue that is not transactional")
    yield step
    if target.transactional_queue:
        queue = target.transactional_queue
        text = envelope(target, number_of(source), wants_receipt(target, number_of(source)), queue=queue)
        data = post(target, text, to=url(target, queue))
        step = refused("SRMP-3.1.5.1.3-10", data, "a message of no stream for a transactional queue")
        yield step


def _uncertain(target: Target, source: random.Random) -> Iterator[Case]:
    """Destinations that a peer may forward to, or take for its own."""
    number = number_of(source)
    for to in (
        "http://elsewhere.invalid/msmq/private$/orders",
        "MSMQ:MULTICAST=234.1.1.1:8001",
        "http://",
        "http:///",
        f"http://{target.host}",
        f"{url(target)}/../../x",
        f"{url(target)}\n",
        "http://[::1/msmq/q",
    ):
        text = changed(envelope(target, number), f"<to>{url(target)}<", f"<to>{to}<")
        odd = Step("request", data=post(target, text), expects="answered", note=f"a message for {to!r}")
        following = accepted(TAKEN, post(target, asking(target, number_of(source))), "the next message")
        yield case("SRMP-3.1.5.1.3-11", f"After {odd.note} the next message is taken.", odd, following)
