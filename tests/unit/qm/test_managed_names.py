"""Names of the queues of a managed computer: path names in all forms, and format names as they are."""

from __future__ import annotations

import pytest

from msmqwire.errors import InvalidName
from msmqwire.qm.client.managed_names import (
    computer_of,
    is_of_asked,
    listed_queue,
    managed_queue,
    of_computer,
)

NAMES = [
    (r"private$\orders", r"DIRECT=OS:server7\PRIVATE$\orders"),
    (r".\private$\orders", r"DIRECT=OS:server7\PRIVATE$\orders"),
    ("orders", r"DIRECT=OS:server7\orders"),
    (r"private$\orders;journal", r"DIRECT=OS:server7\PRIVATE$\orders;JOURNAL"),
    (r"private$\orders;poison", r"DIRECT=OS:server7\PRIVATE$\orders;poison"),
    (r"private$\orders\Journal$", r"DIRECT=OS:server7\PRIVATE$\orders;JOURNAL"),
    (r".\orders\journal$", r"DIRECT=OS:server7\orders;JOURNAL"),
    (r"beta\private$\orders", r"DIRECT=OS:beta\PRIVATE$\orders"),
    (r"beta\orders", r"DIRECT=OS:beta\orders"),
    (r"beta.example.com\orders", r"DIRECT=OS:beta.example.com\orders"),
    (r"10.0.0.5\private$\orders", r"DIRECT=TCP:10.0.0.5\PRIVATE$\orders"),
    (";deadletter", r"DIRECT=OS:server7\SYSTEM$;DEADLETTER"),
    (";DEADXACT", r"DIRECT=OS:server7\SYSTEM$;DEADXACT"),
    ("system$;journal", r"DIRECT=OS:server7\SYSTEM$;JOURNAL"),
    (r".\;deadxact", r"DIRECT=OS:server7\SYSTEM$;DEADXACT"),
    (r"beta\;deadxact", r"DIRECT=OS:beta\SYSTEM$;DEADXACT"),
    (r"beta\DeadLetter$", r"DIRECT=OS:beta\SYSTEM$;DEADLETTER"),
    (r".\XactDeadLetter$", r"DIRECT=OS:server7\SYSTEM$;DEADXACT"),
    ("Journal$", r"DIRECT=OS:server7\SYSTEM$;JOURNAL"),
    (r"DIRECT=OS:.\private$\orders", r"DIRECT=OS:server7\PRIVATE$\orders"),
    (r"DIRECT=OS:10.0.0.5\private$\orders", r"DIRECT=OS:10.0.0.5\PRIVATE$\orders"),
    (r"direct=tcp:10.0.0.5\orders;journal", r"DIRECT=TCP:10.0.0.5\orders;JOURNAL"),
    (
        "PUBLIC=01020304-0506-0708-090a-0b0c0d0e0f10;JOURNAL",
        "PUBLIC=01020304-0506-0708-090a-0b0c0d0e0f10;JOURNAL",
    ),
    (
        "MACHINE=01020304-0506-0708-090a-0b0c0d0e0f10;DEADLETTER",
        "MACHINE=01020304-0506-0708-090a-0b0c0d0e0f10;DEADLETTER",
    ),
    ("MULTICAST=234.1.1.1:8001", "MULTICAST=234.1.1.1:8001"),
]


@pytest.mark.parametrize("text, expected", NAMES)
def test_a_name_means_a_queue(text: str, expected: str) -> None:
    assert str(of_computer(managed_queue(text), "server7")) == expected
    assert str(of_computer(listed_queue(text), "server7")) == expected


def test_a_computer_known_by_its_address() -> None:
    assert str(of_computer(managed_queue("orders"), "10.0.0.5")) == r"DIRECT=TCP:10.0.0.5\orders"
    other = managed_queue(r"beta\orders")
    assert not is_of_asked(other)
    assert of_computer(other, "10.0.0.5") is other


@pytest.mark.parametrize(
    "text",
    ["", " ", "private$orders", r"private$\a\b", r"a\b\c", "DIRECT=x", ";trash", r"\orders", "x" * 3000],
)
def test_what_means_no_queue(text: str) -> None:
    with pytest.raises(InvalidName):
        managed_queue(text)


@pytest.mark.parametrize(
    "text, expected",
    [
        (r"FormatName:DIRECT=OS:beta\private$\orders", r"DIRECT=OS:beta\PRIVATE$\orders"),
        (r"OS:beta\private$\orders", r"DIRECT=OS:beta\PRIVATE$\orders"),
        (r"DIRECT=OS:beta/private$/orders", r"DIRECT=OS:beta\PRIVATE$\orders"),
    ],
)
def test_lists_may_spell_nearly(text: str, expected: str) -> None:
    assert str(listed_queue(text)) == expected
    with pytest.raises(InvalidName):
        managed_queue(text)


def test_the_computer_of_a_path() -> None:
    assert computer_of(r"server7\private$\orders") == "server7"
    assert computer_of("orders") is None
