"""``msmqwire policy`` and ``queue set --quota default``, in a folder with and without a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import ORDERS, called, options, served


@pytest.fixture(params=["served", "in the store"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    if request.param == "served":
        with served(options(folder, ORDERS)):
            yield folder
    else:
        assert called("queue", "create", ORDERS, "--data", folder).status == 0
        yield folder


def shown(data: Path) -> tuple[Any, Any]:
    queue = called("queue", "show", ORDERS, "--data", data).one
    return queue["quota"], queue["policies"]


def test_a_policy_holds_until_it_is_deleted(data: Path) -> None:
    words = (
        "--pattern",
        r"PRIVATE$\o*",
        "--order",
        "7",
        "--quota",
        "100",
        "--no-journal",
        "--poison",
        "dead-letters",
    )
    expected = {
        "name": "limits", "pattern": r"PRIVATE$\o*", "order": 7, "journal": False, "poison": "dead-letters",
        "quota": 100,
    }  # fmt: skip
    assert called("policy", "set", "limits", *words, "--data", data).one == expected
    assert called("policy", "list", "--data", data, "--json").lines == [expected]
    assert called("policy", "show", "limits", "--data", data).one == expected
    governed = {"journal": "limits", "poison": "limits", "quota": "limits"}
    assert shown(data) == (100, governed)
    assert called("queue", "set", ORDERS, "--quota", "none", "--data", data).status == 0
    assert shown(data) == (None, {"journal": "limits", "poison": "limits"})
    assert called("queue", "set", ORDERS, "--quota", "default", "--data", data).status == 0
    assert shown(data) == (100, governed)
    assert called("policy", "delete", "limits", "--data", data).one == expected
    assert shown(data) == (None, {})


def test_each_property_of_a_queue_can_be_forgotten(data: Path) -> None:
    words = ("--journal", "--label", "x", "--time-to-live", "60", "--when-full", "oldest-to-dead-letters")
    queue = called("queue", "set", ORDERS, *words, "--delivery-limit", "3", "--data", data).one
    names = ("journal", "label", "time_to_live", "when_full", "delivery_limit")
    assert [queue[name] for name in names] == [True, "x", 60, "oldest-to-dead-letters", 3]
    forget = (
        "--default",
        "journal",
        "--default",
        "label",
        "--time-to-live",
        "default",
        "--when-full",
        "default",
    )
    queue = called("queue", "set", ORDERS, *forget, "--delivery-limit", "none", "--data", data).one
    assert [queue[name] for name in names] == [False, "", None, "refuse", None]


@pytest.mark.parametrize(
    ("words", "status", "path"),
    [
        (("policy", "show", "none"), 66, ""),
        (("policy", "delete", "none"), 66, ""),
        (("policy", "set", "a b", "--pattern", "*", "--order", "1", "--quota", "1"), 65, "name"),
        (("policy", "set", "p", "--pattern", "", "--order", "1", "--quota", "1"), 65, "pattern"),
        (("policy", "set", "p", "--pattern", "*", "--order", "1"), 65, "policy"),
        (("policy", "set", "p", "--pattern", "*", "--order", "1", "--quota", "x"), 65, "quota"),
        (("policy", "set", "p", "--pattern", "*", "--order", "1", "--quota", "default"), 65, "quota"),
        (("policy", "set", "p", "--pattern", "*", "--order", "1", "--when-full", "x"), 65, "when_full"),
        (("queue", "set", ORDERS, "--default", "jurnal"), 65, "default"),
        (("queue", "set", ORDERS, "--delivery-limit", "0"), 65, "delivery_limit"),
    ],
)
def test_what_is_wrong_is_named(words: tuple[str, ...], status: int, path: str, tmp_path: Path) -> None:
    assert called("queue", "create", ORDERS, "--data", tmp_path).status == 0
    assert called(*words, "--data", tmp_path).error(status)["path"] == path
    assert called("policy", "list", "--data", tmp_path).lines == []
