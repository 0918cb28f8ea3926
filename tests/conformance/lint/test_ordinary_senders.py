"""Ordinary programs break no rule: captures of what they send, made from public descriptions of each."""

from __future__ import annotations

from collections import Counter

import pytest
from click.testing import CliRunner

import msmqwire
from msmqwire.cli import app
from tests.support.peers.ordinary_senders import FOLDER, PROGRAMS

BODY_TYPES = {
    "com": {3, 5, 6, 7, 8, 11, 68, 69, 0x2011},
    "nservicebus": {0},
    "rebus": {0},
    "system_messaging": {0, 1, 4, 6, 7, 11, 18, 20, 30, 31, 68, 0x300, 0x1011},
    "wcf": {0x1011},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ordinary_senders_have_no_finding(name: str) -> None:
    path = FOLDER / f"{name}.pcap"
    assert path.read_bytes() == PROGRAMS[name]()
    result = CliRunner().invoke(app, ["lint", "--check", str(path)])
    assert (result.exit_code, result.stdout) == (0, "0 findings\n")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_captures_are_whole_sessions(name: str) -> None:
    items = list(msmqwire.dissect(FOLDER / f"{name}.pcap"))
    kinds = Counter(item.kind for item in items)
    assert kinds["Ping"] == kinds["EstablishConnection"] == kinds["ConnectionParameters"] == 2
    assert kinds["SessionAck"] >= 1
    assert not kinds.keys() & {"Malformed", "Skipped"}
    messages = [item.packet for item in items if item.kind == "UserMessage"]
    assert {packet.MessagePropertiesHeader.BodyType for packet in messages} == BODY_TYPES[name]  # type: ignore[union-attr]
    transactional = [packet for packet in messages if packet.TransactionHeader is not None]  # type: ignore[union-attr]
    assert (kinds["OrderAck"], kinds["FinalAck"] > 0) == ((1, True) if transactional else (0, False))
