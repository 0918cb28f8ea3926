"""The columns of calls of queue management and their answers."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import InvalidArgument
from msmqwire.management.management_packet import KINDS
from msmqwire.rpc.constants import AuthLevel
from tests.support import captures as c
from tests.support.capture import management_captures as m
from tests.support.capture import rpc_captures as r
from tests.support.paths import EXAMPLES

OWN = [
    "managed_object", "managed_queue", "management_action", "property_ids", "property_names",
    "property_values", "management_status", "management_user",
]  # fmt: skip


def rows(talk: r.Talk, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msmqwire.read_capture(
        io.BytesIO(c.pcap_bytes(talk.frames)), **options
    ).to_pylist()
    return found


def own(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in OWN if name != "property_values")


@pytest.mark.parametrize("syntax", r.SYNTAXES.values(), ids=r.SYNTAXES)
def test_calls_and_answers(syntax: Any) -> None:
    found = rows(m.session(syntax), columns=["kind", *OWN])
    assert [own(row) for row in found[:2]] == [(None,) * 7] * 2
    names = "ACTIVEQUEUES,PRIVATEQ,CONNECTED,BYTES_IN_ALL_QUEUES"
    assert own(found[2]) == ("machine", None, None, "1,2,4,6", names, None, None)
    assert own(found[3]) == ("machine", None, None, "1,2,4,6", names, 0, None)
    assert json.loads(found[3]["property_values"])["BYTES_IN_ALL_QUEUES"] == 1 << 33
    values = json.loads(found[5]["property_values"])
    assert (values["MESSAGE_COUNT"], values["STATE"]) == (42, "WAITING")
    assert "SUBQUEUE_NAMES" not in values  # VT_NULL
    assert own(found[6]) == ("queue", m.CANONICAL, "PAUSE", None, None, None, None)
    assert own(found[7]) == ("queue", m.CANONICAL, "PAUSE", None, None, 0, None)
    missing = "DIRECT=OS:beta\\PRIVATE$\\missing"
    assert own(found[9]) == ("queue", missing, None, "7,11", "MESSAGE_COUNT,STATE", 0xC00E0003, None)
    assert found[9]["property_values"] is None


def test_the_user_of_the_connection() -> None:
    talk = m.ManagementTalk(level=AuthLevel.PKT_INTEGRITY)
    talk.act(m.queue(), "RESUME")
    found = rows(talk, columns=["kind", *OWN])[-1]
    assert own(found) == ("queue", m.CANONICAL, "RESUME", None, None, 0, r.USER)


def test_calls_of_remote_read_have_none_of_them() -> None:
    for row in rows(r.session(), columns=OWN):
        assert set(row.values()) == {None}
    for row in rows(m.session(), columns=["queue_handle", "read_queue", "call_status"]):
        assert set(row.values()) == {None}


def test_conditions_on_them() -> None:
    frames = io.BytesIO(c.pcap_bytes(m.session().frames))
    paused = msmqwire.read_capture(frames, where=[("management_action", "==", "PAUSE")])
    assert paused["kind"].to_pylist() == ["R_QMMgmtAction request", "R_QMMgmtAction response"]
    with pytest.raises(InvalidArgument, match="machine, queue and session"):
        msmqwire.read_capture(io.BytesIO(b""), where=[("managed_object", "==", "computer")])


def test_the_example_is_read_to_rows_as_to_items() -> None:
    example = EXAMPLES / "management.pcap"
    table, items = msmqwire.read_capture(example), list(msmqwire.dissect(example))
    assert table["kind"].to_pylist() == [item.kind for item in items]
    assert {item.kind for item in items} >= set(KINDS)
    assert not any(item.findings for item in items)
    states = [json.loads(text).get("STATE") for text in table["property_values"].to_pylist() if text]
    assert "WAITING" in states
    assert "ONHOLD" in states
