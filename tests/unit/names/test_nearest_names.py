"""Which known name is meant by a mistyped one, and the error that says so."""

from __future__ import annotations

import copy
import pickle

import pytest

from msmqwire.errors import InvalidArgument, InvalidValue
from msmqwire.names.nearest import LISTED_MAX, nearest, unknown_name

KINDS = ["SessionAck", "UserMessage", "OrderAck", "FinalAck", "Ping", "R_StartReceive request"]


@pytest.mark.parametrize(
    "wrong, near",
    [
        ("usermessage", ("UserMessage",)),
        (" PING ", ("Ping",)),
        ("UserMesage", ("UserMessage",)),
        ("Final", ("FinalAck",)),
        ("User", ("UserMessage",)),
        ("startreceive", ("R_StartReceive request",)),
        ("Ak", ()),
        ("", ()),
        ("x" * 1_000_000, ()),
    ],
)
def test_the_names_that_may_be_meant(wrong: str, near: tuple[str, ...]) -> None:
    assert nearest(wrong, KINDS) == near


def test_no_more_names_than_asked_for() -> None:
    assert nearest("Ack", KINDS, 2) == ("SessionAck", "OrderAck")
    assert len(nearest("Ack", [f"Ack{number}" for number in range(1000)])) == 3


def test_few_names_are_all_listed() -> None:
    error = unknown_name("tpc", ("tcp", "udp", "pgm"), "transport", path="where")
    assert isinstance(error, InvalidValue)
    assert (error.why, error.path, error.near) == (
        "'tpc' is not a transport; did you mean tcp? There are tcp, udp and pgm",
        "where",
        ("tcp",),
    )


def test_of_many_names_the_place_of_the_list_is_named() -> None:
    known = [f"KIND-{number}" for number in range(LISTED_MAX + 1)]
    assert unknown_name("X", known, "kind", see="docs/kinds.md has all").why == (
        "'X' is not a kind: docs/kinds.md has all"
    )
    assert unknown_name("kind", known, "kind", see="docs/kinds.md has all").why == (
        "'kind' is not a kind; did you mean KIND-9, KIND-8 or KIND-7? (docs/kinds.md has all)"
    )
    assert unknown_name("kind-12", known, "kind").why == "'kind-12' is not a kind; did you mean KIND-12?"


def test_nothing_known_is_said() -> None:
    assert unknown_name("a", [], "port").why == "'a' is not a port: there are none"
    assert unknown_name("a", ["b"], "port").why == "'a' is not a port: there is b"


def test_a_long_wrong_name_is_cut() -> None:
    assert len(unknown_name("x\n" * 100_000, KINDS[:2], "kind").why) < 200


@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_the_error_can_be_sent_to_another_process(again: object) -> None:
    error = unknown_name("tpc", ("tcp", "udp"), "transport", path="where")
    same = again(error)  # type: ignore[operator]
    assert isinstance(same, InvalidArgument)
    assert (str(same), same.why, same.path, same.near) == (str(error), error.why, error.path, error.near)
