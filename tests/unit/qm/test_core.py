"""What the core has for its owner, and what its protocols take of it."""

from __future__ import annotations

import ast

import pytest

from msmqwire.qm.model.enumerations import EnqueueStatus
from msmqwire.qm.model.message import Message
from tests.support.engine_harness import EngineHarness
from tests.support.paths import ROOT
from tests.support.qm.queue_contents import bodies

PROTOCOLS = ROOT / "msmqwire/qm/protocols"


@pytest.fixture
def harness() -> EngineHarness:
    return EngineHarness()


def test_nothing_is_enqueued_while_the_core_is_throttled(harness: EngineHarness) -> None:
    queue, core = harness.queue(), harness.core
    core.throttle(on=True)
    assert core.messages.enqueue(queue, Message(body=b"refused")) is not EnqueueStatus.OK
    core.throttle(on=False)
    assert core.messages.enqueue(queue, Message(body=b"taken")) is EnqueueStatus.OK
    assert bodies(queue) == [b"taken"]


def test_arrivals_grow_with_each_message_and_with_nothing_else(harness: EngineHarness) -> None:
    queue, core = harness.queue(), harness.core
    before = core.arrivals
    harness.enqueue(queue, b"1")
    assert core.arrivals == before + 1
    core.throttle(on=True)
    core.messages.enqueue(queue, Message(body=b"refused"))
    core.throttle(on=False)
    assert harness.receive(queue) == b"1"
    assert core.arrivals == before + 1
    harness.enqueue(queue, b"2")
    assert core.arrivals == before + 2


@pytest.mark.parametrize("protocol", ["binary", "srmp"])
def test_a_protocol_names_no_more_of_the_core_than_it_takes(protocol: str) -> None:
    needs, engine = (
        ast.parse((PROTOCOLS / protocol / name).read_text(encoding="utf-8"))
        for name in ("needs.py", "engine.py")
    )
    named = {node.target.id for node in ast.walk(needs) if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    named |= {node.name for node in ast.walk(needs) if isinstance(node, ast.FunctionDef)}
    taken = {
        node.attr
        for node in ast.walk(engine)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "core"
    }
    assert taken == named


@pytest.mark.parametrize("protocol", ["binary", "srmp"])
def test_only_a_protocols_engine_gets_all_of_its_needs(protocol: str) -> None:
    module = f"msmqwire.qm.protocols.{protocol}.needs"
    paths = (PROTOCOLS / protocol).glob("*.py")
    assert {path.name for path in paths if module in path.read_text(encoding="utf-8")} == {"engine.py"}
