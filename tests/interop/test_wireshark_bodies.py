"""Bodies in tshark: format and text are what `msmqwire.bodies` finds, as far as the dissector reads them."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest

from msmqwire.bodies import inspect_body
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import wireshark as w
from tests.support.paths import ROOT

NETMSMQ = bytes.fromhex((ROOT / "tests" / "vectors" / "bodies" / "wcf_body_netmsmq.hex").read_text())
NRBF = b"\0\1\0\0\0\xff\xff\xff\xff\1\0\0\0\0\0\0\0\6\1\0\0\0\5hello\x0b"
BODIES = [
    (b"hello", 0, "text"), ("grüße €".encode(), 0, "text"), ("wide ö".encode("utf-16-le"), 8, "activex"),
    ("wide".encode("utf-16-le"), 0, "text"), (b"\xff\xfe" + "marked".encode("utf-16-le"), 0, "text"),
    (b"<?xml version='1.0'?>\n<string>x</string>", 0, "xml"), (b'{"Number": 7}', 0, "json"),
    (b'{"messageId": "1", "messageType": ["urn:message:A"], "message": {"a": 1}}', 0, "masstransit"),
    (b"[1, 2]", 1, "json"), (b"[not json", 0, "text"), (b"\x07\0\0\0", 3, "activex"),
    (b"\xff\xff", 11, "activex"), (struct.pack("<d", 1.5), 5, "activex"), (b"ansi", 30, "activex"),
    (b"\0\xff\1\2", 0, "bytes"), (b"\xc3\x28", 0, "bytes"), (b"a\x01b", 0, "bytes"),
    (NETMSMQ, 0, "wcf"), (NRBF, 0x300, "nrbf"), (gzip.compress(b"x" * 100, mtime=0), 0, "gzip"),
    (b"\0" * 16, 72, "activex"),
]  # fmt: skip
"""A body, its type, and the format that is told."""
WITH_TEXT = {"activex", "text", "xml", "json", "masstransit"}
WORDS = {"activex", "text"}
"""Formats of which the text is shown as `msmqwire.bodies` has it."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return w.written(tmp_path_factory.mktemp("wireshark"))


def shown(script: Path, tmp_path: Path, *messages: bytes) -> list[dict[str, str]]:
    """The generated fields of each message, by name."""
    talk = c.TcpConversation((c.CLIENT, 20_000), start_ns=c.START_NS).handshake()
    for message in messages:
        talk = talk.send(message)
    (tmp_path / "capture.pcap").write_bytes(c.pcap_bytes(talk.close().frames))
    frames = w.shown(script, tmp_path / "capture.pcap")
    return [{name: show for name, show, _ in one.generated} for items in frames.values() for one in items]


def test_formats_and_texts(script: Path, tmp_path: Path) -> None:
    packets = [
        h.user_message(properties=h.properties_header(body=body, body_type=kind)) for body, kind, _ in BODIES
    ]
    told = shown(script, tmp_path, *packets)
    assert [one["msmq.body.format"] for one in told] == [name for _, _, name in BODIES]
    for (body, kind, name), one in zip(BODIES, told, strict=True):
        found = inspect_body(body, body_type=kind)
        assert found.format == name
        if name in WORDS and kind != 72:
            assert one["msmq.body.text"] == found.text
        assert ("msmq.body.text" in one) == (name in WITH_TEXT and kind != 72)


def test_a_long_text_is_cut_at_a_character(script: Path, tmp_path: Path) -> None:
    packet = h.user_message(properties=h.properties_header(body=("a" + "€" * 40_000).encode()))
    (told,) = shown(script, tmp_path, packet)
    assert told["msmq.body.text"] == "a" + "€" * 66 + "…"


def test_an_encrypted_body_is_not_looked_at(script: Path, tmp_path: Path) -> None:
    security = h.security_header(flags=1 << 5)
    packet = h.user_message(security=security, properties=h.properties_header(body=b"hello"))
    (told,) = shown(script, tmp_path, packet)
    assert "msmq.body.format" not in told


@pytest.mark.parametrize(
    ("extension", "name"),
    [
        (b"\xef\xbb\xbf<?xml version=\"1.0\"?><ArrayOfHeaderInfo><HeaderInfo><Key>a</Key><Value>b</Value>"
         b"</HeaderInfo></ArrayOfHeaderInfo>", "nservicebus"),
        (json.dumps({"rbs2-msg-id": "1"}).encode(), "rebus"),
        (b"anything", None),
    ],
)  # fmt: skip
def test_headers_of_frameworks(script: Path, tmp_path: Path, extension: bytes, name: str | None) -> None:
    packet = h.user_message(properties=h.properties_header(body=b"{}", extension=extension))
    (told,) = shown(script, tmp_path, packet)
    assert told.get("msmq.headers.format") == name
