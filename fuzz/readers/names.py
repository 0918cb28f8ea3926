"""Targets for names of queues: as text, and in the structures of calls and headers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from fuzz.readers.registry import target
from msmqwire.errors import InvalidName
from msmqwire.names import (
    FormatName,
    from_mqf_element,
    from_queue_format,
    from_user_header_queue,
    kind_of,
    parse_format_name,
    parse_path_name,
    split_elements,
    to_mqf_element,
    to_queue_format,
)
from msmqwire.names.header_names import Role

GUID = "557358d1-9150-9595-4997-0c1a2b3c4d5e"
NAMES = (
    r"DIRECT=OS:host\PRIVATE$\q",
    r"DIRECT=TCP:10.1.2.3\q;JOURNAL",
    r"DIRECT=OS:host\SYSTEM$;DEADXACT",
    r"DIRECT=OS:host\q;sub",
    r"DIRECT=HTTP://[::1]:80/MSMQ\private$\q",
    r"DIRECT=HTTPS://host/MSMQ/q",
    r"DIRECT=IPX:0000000a:00a0c91234ff\q",
    f"PUBLIC={GUID};JOURNAL",
    rf"PRIVATE={GUID}\0000000c",
    f"MACHINE={GUID};DEADLETTER",
    f"CONNECTOR={GUID};XACTONLY",
    f"DL={GUID}@domain",
    "MULTICAST=234.1.2.3:8001",
    rf"PUBLIC={GUID},DIRECT=OS:host\q",
    r"host\private$\orders",
    r"host\system$;journal",
    r"host\q;sub",
)
ROLES: tuple[Role, ...] = ("destination", "admin", "response")


def _words() -> Iterator[bytes]:
    for name in NAMES:
        yield name.partition("=")[0].encode() + b"="
    yield GUID.encode()
    for word in ("OS:", "TCP:", "HTTP://", "HTTPS://", "IPX:", "SPX:", "PRIVATE$\\", "SYSTEM$;", ";JOURNAL"):
        yield word.encode()
    for word in (";DEADLETTER", ";DEADXACT", ";XACTONLY", "/MSMQ", "[::1]", "224.0.0.1", "\u0130", "\u017f"):
        yield word.encode()


@target(seeds=lambda: map(str.encode, NAMES), words=_words, size_max=600)
def texts(data: bytes) -> None:
    """A text is a name whose own spelling is read as the same name, or refused at a character."""
    text = data.decode("utf-8", "surrogateescape")
    for parse in (parse_format_name, parse_path_name):
        try:
            name: Any = parse(text)
        except InvalidName as refusal:
            assert refusal.why
            assert refusal.offset is not None
            assert 0 <= refusal.offset <= len(text)
            continue
        assert name.text == text
        again: Any = parse(name.canonical)
        assert again == name
        assert again.canonical == name.canonical
        if parse is parse_format_name:
            assert kind_of(text) == name.kind
            _in_structures(name)
    assert ",".join(split_elements(text)) == text


def _in_structures(name: Any) -> None:
    """A name that a structure can hold comes back from it."""
    if name.kind != "multiple":
        try:
            form = to_queue_format(name)
        except InvalidName:
            assert name.kind == "machine"
            assert name.suffix is None
        else:
            assert from_queue_format(form) == name
    try:
        element = to_mqf_element(name)
    except InvalidName:
        return
    again = from_mqf_element(element)
    assert again == name or (name.kind == again.kind == "dl" and again.guid == name.guid)  # type: ignore[union-attr]


def _field_seeds() -> Iterator[bytes]:
    direct = r"OS:host\private$\q"
    for value in (
        {"m_qft": 3, "m_SuffixAndFlags": 0, "m_pDirectID": direct},
        {"m_qft": 8, "m_SuffixAndFlags": {"SuffixType": 0, "Flags": 0}, "m_pDirectSubqueueID": direct + ";s"},
        {"m_qft": 6, "m_SuffixAndFlags": 0, "m_DlID": {"m_DlGuid": GUID, "m_pwzDomain": "d"}},
        {"m_qft": 7, "m_SuffixAndFlags": 0, "m_MulticastID": {"m_address": 225, "m_port": 80}},
        {"m_qft": 2, "m_SuffixAndFlags": 1, "m_oPrivateID": {"Lineage": GUID, "Uniquifier": 9}},
        {"FormatType": 3, "FormatName": {"DirectFormatName": direct}},
        {"DirectFormatName": direct},
        {"SourceQueueManager": GUID, "PrivateQueueIdentifier": 7},
    ):
        yield b"\1" + json.dumps(value).encode()


@target(
    seeds=_field_seeds, words=lambda: (GUID.encode(), b'"m_qft":', b"\\\\private$\\\\", b"null"), size_max=400
)
def fields(data: bytes) -> None:
    """Any value in place of a structure is a name or refused with a path."""
    try:
        value = json.loads(data[1:])
    except (ValueError, RecursionError):
        return
    choice = data[0]
    role = ROLES[choice % 3]
    kind = choice // 3 % 9
    readers: tuple[Callable[[], FormatName | None], ...] = (
        lambda: from_queue_format(value),
        lambda: from_mqf_element(value),
        lambda: from_user_header_queue(kind, value, role=role, source_qm=None, destination_qm=None),
    )
    for read in readers:
        try:
            name = read()
        except InvalidName as refusal:
            assert refusal.path
            continue
        assert name is None or parse_format_name(name.canonical) == name
