r"""What is typed for a format name, and what the error says to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import InvalidArgument, InvalidName, QueueError
from msmqwire.names import parse_format_name
from msmqwire.names.meant import EXAMPLE, format_name_meant, wanted_format_name
from msmqwire.qm.client.properties import to_message
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.local_names import queue_name

MEANT = {
    r"private$\orders": r"DIRECT=OS:.\private$\orders",
    r".\private$\orders": r"DIRECT=OS:.\private$\orders",
    r"PRIVATE$\orders": r"DIRECT=OS:.\private$\orders",
    "orders": r"DIRECT=OS:.\private$\orders",
    r"alpha\private$\orders": r"DIRECT=OS:alpha\private$\orders",
    r"\\alpha\private$\orders": r"DIRECT=OS:alpha\private$\orders",
    r"10.0.0.5\private$\orders": r"DIRECT=TCP:10.0.0.5\private$\orders",
    "10.0.0.5/private$/orders": r"DIRECT=TCP:10.0.0.5\private$\orders",
    r"FormatName:DIRECT=TCP:10.0.0.5\private$\orders": r"DIRECT=TCP:10.0.0.5\private$\orders",
    r"FormatName:DIRECT=OS:alpha\private$orders": r"DIRECT=OS:alpha\private$\orders",
    r"DIRECT=TCP:10.0.0.5private$\orders": r"DIRECT=TCP:10.0.0.5\private$\orders",
    r"DIRECT=TCP:10.0.0.5\private$orders": r"DIRECT=TCP:10.0.0.5\private$\orders",
    r"DIRECT=OS:alpha\private$orders": r"DIRECT=OS:alpha\private$\orders",
    r"DIRECT=TCP:alpha\private$\orders": r"DIRECT=OS:alpha\private$\orders",
    r"DIRECT=tpc:10.0.0.5\private$\orders": r"DIRECT=TCP:10.0.0.5\private$\orders",
    r"DIRCT=OS:alpha\orders": r"DIRECT=OS:alpha\orders",
    r"TCP:10.0.0.5\orders": r"DIRECT=TCP:10.0.0.5\orders",
    r"DIRECT=TCP:10.0.0.5:1802\private$\orders": r"DIRECT=TCP:10.0.0.5\private$\orders",
    "http://alpha/msmq/private$/orders": r"DIRECT=HTTP://alpha/msmq\private$\orders",
    "DIRECT=HTTP://alpha/private$/orders": "DIRECT=HTTP://alpha/msmq/private$/orders",
}


@pytest.mark.parametrize("text", MEANT)
def test_the_name_that_is_meant(text: str) -> None:
    with pytest.raises(InvalidName) as caught:
        wanted_format_name(text)
    assert caught.value.near == (MEANT[text],)
    assert f"; write {MEANT[text]}" in caught.value.why
    assert str(wanted_format_name(MEANT[text])) == str(parse_format_name(MEANT[text]))


def test_a_name_that_other_computers_read_has_that_of_this_one() -> None:
    for text in (r"private$\answers", r".\private$\answers", "answers"):
        assert format_name_meant(text, "alpha") == r"DIRECT=OS:alpha\private$\answers"
    with pytest.raises(InvalidName, match=r"^response_queue, .*; write DIRECT=OS:[^.]+\\private\$\\a$"):
        to_message(b"", {"response_queue": r"private$\a"})


def test_a_port_in_a_name_goes_apart() -> None:
    with pytest.raises(InvalidName, match=r"and the port apart$"):
        wanted_format_name(r"DIRECT=TCP:10.0.0.5:1802\private$\orders")


@pytest.mark.parametrize("text", ["", "hello world!", "a=b=c", "x" * 100_000, "\\" * 50])
def test_a_text_that_means_no_queue(text: str) -> None:
    assert format_name_meant(text) is None
    with pytest.raises(InvalidName) as caught:
        wanted_format_name(text)
    assert caught.value.why.endswith(f"; as {EXAMPLE}")
    assert caught.value.near == ()


@pytest.mark.parametrize("text", ["PUBLIC=1", "DIRECT=OS:alpha", "MULTICAST=1.2.3.4:5"])
def test_a_kind_without_a_guess_is_refused_as_the_grammar_does(text: str) -> None:
    with pytest.raises(InvalidName) as plain:
        parse_format_name(text)
    with pytest.raises(InvalidName) as caught:
        wanted_format_name(text)
    assert caught.value.why == plain.value.why


@pytest.mark.parametrize(
    "text, why",
    [
        (r"private$\a\b", r"the name of a queue has no backslash; write private$\a.b"),
        (r".\private$\a\b", r"the name of a queue has no backslash; write .\private$\a.b"),
        ("private$orders", r"a backslash is missing after private$; write private$\orders"),
        (r"alpha\private$orders", r"a backslash is missing after private$; write alpha\private$\orders"),
    ],
)
def test_names_at_the_computer_of_the_queue(text: str, why: str) -> None:
    with pytest.raises(InvalidName) as caught:
        queue_name(text, "alpha")
    assert caught.value.why == why
    assert text[: caught.value.offset or 0].lower().endswith(("private$", r"\a"))


def test_programs_get_the_same_error() -> None:
    with pytest.raises(InvalidName, match=r"write DIRECT=OS:\.\\private\$\\orders"):
        msmqwire.connect(r"private$\orders")
    with pytest.raises(InvalidArgument, match="5 is not text; write a format name as DIRECT="):
        msmqwire.connect(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"^port: 99999 is not a port: 1 to 65535, as 1801"):
        msmqwire.connect(r"DIRECT=OS:alpha\private$\orders", port=99999)


def test_a_connection_that_is_not_entered_says_how() -> None:
    connection = msmqwire.connect(r"DIRECT=OS:alpha\private$\orders")
    with pytest.raises(AttributeError, match=r"write with msmqwire.connect\(...\) as queue: queue.send\("):
        connection.send(b"")  # type: ignore[attr-defined]
    assert not hasattr(connection, "_nothing")


@pytest.mark.parametrize("data", ["abc", None, 5, [1]])
def test_only_bytes_are_parsed(data: object) -> None:
    with pytest.raises(InvalidArgument, match="is not bytes") as caught:
        msmqwire.parse(data)  # type: ignore[arg-type]
    assert ("bytes.fromhex" in caught.value.why) is isinstance(data, str)


def test_a_missing_queue_is_compared_with_existing_names(tmp_path: Path) -> None:
    with attach(tmp_path, create=True) as local:
        for name in (r"private$\orders", r"private$\invoices"):
            local.call("create", queue=name)
        with pytest.raises(QueueError, match=r"there is no such queue; did you mean private\$\\orders\?$"):
            local.call("show", queue=r"private$\ordrs")
        with pytest.raises(QueueError, match=r"there is no such queue$"):
            local.call("show", queue=r"private$\zzz")
