"""What `help` and a console with completion say of everything public."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import fuzz
import msmqwire
import spark_udfs
from msmqwire.analysis.dissection import dissect
from msmqwire.schema.nodes import SCHEMAS
from tests.support.installed import library
from tests.support.paths import EXAMPLES

PUBLIC = [
    pytest.param(package, name, id=f"{package.__name__}.{name}")
    for package in (msmqwire, spark_udfs, fuzz)
    for name in package.__all__
    if name != "__version__"
]


def summary(thing: Any) -> str:
    """The first paragraph of a docstring of its own or of what it overrides, as one line."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


def is_sentence(text: str) -> bool:
    return len(text.split()) > 1 and text[0] in "`" + text[0].upper() and text.endswith((".", ":"))


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class that are of this project."""
    for owner in cls.__mro__:
        if owner.__module__.partition(".")[0] not in ("msmqwire", "spark_udfs", "fuzz"):
            continue
        for name, member in vars(owner).items():
            is_code = callable(member) or isinstance(member, property | classmethod | staticmethod)
            if not name.startswith("_") and is_code:
                yield name, getattr(cls, name)


@pytest.mark.parametrize("package, name", PUBLIC)
def test_it_has_a_docstring_with_a_summary(package: ModuleType, name: str) -> None:
    if package is spark_udfs:
        library("pyspark")
    thing = getattr(package, name)
    assert is_sentence(summary(thing))
    if inspect.isclass(thing):
        assert [name for name, member in members(thing) if not is_sentence(summary(member))] == []


@pytest.mark.parametrize("key", SCHEMAS)
def test_records_and_their_fields_have_docstrings(key: str) -> None:
    record = SCHEMAS[key].record
    assert is_sentence(summary(record))
    assert [name for name, member in members(record) if not is_sentence(summary(member))] == []


@pytest.mark.parametrize("package", [msmqwire, spark_udfs, fuzz], ids=lambda package: package.__name__)
def test_names_are_completed(package: ModuleType) -> None:
    assert set(package.__all__) <= set(dir(package))
    assert not hasattr(package, "no_such_name")


def test_help_on_a_packet_tells_its_fields() -> None:
    packet = next(item.packet for item in dissect(EXAMPLES / "session.pcap") if item.kind == "UserMessage")
    text = pydoc.plain(pydoc.render_doc(packet))
    assert "UserHeader\n |      Source and destination of a message." in text
    header = pydoc.plain(pydoc.render_doc(packet.UserHeader))  # type: ignore[union-attr]
    assert "SentTime\n |      When it was sent, since 1970-01-01 UTC. Unit: s." in header
    assert "ConnectorType\n |      Application-defined GUID. None if it is absent." in header


def test_help_of_functions_has_no_addresses_or_long_defaults() -> None:
    for thing in (msmqwire.dissect, msmqwire.connect, msmqwire.read_capture, msmqwire.ladder, msmqwire.Item):
        signature = str(inspect.signature(thing))
        assert " object at 0x" not in signature
    assert "readings: 'Readings' = Readings(), ncp_readings: 'NcpReadings' = Readings())" in str(
        inspect.signature(msmqwire.dissect)
    )


def test_help_on_the_package_has_everything_public() -> None:
    text = pydoc.plain(pydoc.render_doc(msmqwire))
    assert [name for name in msmqwire.__all__ if name not in text and name != "__version__"] == []
