"""Commands on the queues of a folder: errors are reported, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.qm.runtime.local import attach
from tests.support.running import LEDGER, ORDERS, Run, called, listed, peeked, process, put, recoverable

TO_ORDERS = rf"DIRECT=OS:.\{ORDERS}"
TO_LEDGER = rf"DIRECT=OS:.\{LEDGER}"


@pytest.fixture(scope="module", params=["served", "store"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with two queues, with and without a server."""
    data = tmp_path_factory.mktemp("wrong") / "alpha"
    with process(data, "--queue", ORDERS, "--queue", f"{LEDGER};transactional") as server:
        if request.param == "store":
            server.stop()
        yield data


def run(folder: Path, *arguments: str | Path, data: bytes = b"") -> Run:
    return called(*arguments, "--data", folder, data=data)


@pytest.mark.parametrize(
    "arguments, status, path, error_text",
    [
        (("create", ORDERS), 69, "", r"private$\orders: there is a queue with this name"),
        (("create", "orders"), 69, "", "directory"),
        (("create", r"away\private$\x"), 2, "", "another computer"),
        (("create", "system$;journal"), 2, "", "not the name of a queue that can be made"),
        (("create", r"private$\x", "--label", "x" * 125), 65, "label", "124"),
        (("create", r"private$\x", "--quota", "much"), 65, "quota", "'much'"),
        (("create", r"private$\x", "--type", "x"), 65, "type", "GUID"),
        (("create", r"private$\x", "--privacy", "some"), 65, "privacy", "none, optional, body"),
        (("create", r"private$\x", "--base-priority", "40000"), 65, "base_priority", "32767"),
        (("show", r"private$\x"), 66, "", r"private$\x: there is no such queue"),
        (("set", r"private$\x", "--label", "x"), 66, "", r"private$\x: there is no such queue"),
        (("set", ORDERS), 65, "queue", "there is nothing to set"),
        (("set", ORDERS, "--pause"), 65, "paused", "outgoing"),
        (("set", "system$;journal", "--label", "x"), 69, "", "can't be changed"),
        (("delete", f"{ORDERS};journal"), 69, "", "can't be deleted"),
        (("delete", r"private$\x"), 66, "", r"private$\x: there is no such queue"),
        (("purge", r"private$\x"), 66, "", r"private$\x: there is no such queue"),
        (("show", r"a\b\c\d"), 2, "", "can't stand here"),
    ],
)
def test_what_is_wrong_about_a_queue_is_said(
    folder: Path, arguments: tuple[str, ...], status: int, path: str, error_text: str
) -> None:
    before = listed(folder)
    error = run(folder, "queue", *arguments).error(status)
    assert error["path"] == path
    assert error_text in error["error"]
    assert listed(folder) == before


def test_a_wrong_name_is_shown_where_it_is_wrong(folder: Path) -> None:
    assert run(folder, "peek", r"private$\a\b").error(2)["offset"] == len(r"private$\a")
    assert run(folder, "send", r"DIRECT=OS:host\a\b", "--recoverable").error(2)["offset"] == len(
        r"DIRECT=OS:host\a"
    )
    assert run(folder, "send", "orders", "--recoverable").error(2)["offset"] == 0


@pytest.mark.parametrize(
    "arguments, status, error_text",
    [
        ((ORDERS, LEDGER), 69, "between a queue and its subqueues only"),
        ((ORDERS, ORDERS), 69, "they are there already"),
        ((ORDERS, "system$;journal"), 69, "between a queue and its subqueues only"),
        ((r"private$\x", r"private$\x;a"), 66, "there is no such queue"),
        ((ORDERS, f"{ORDERS};a", "--identifier", "x"), 65, "guid"),
    ],
)
def test_what_can_not_be_moved_stays(
    folder: Path, arguments: tuple[str, ...], status: int, error_text: str
) -> None:
    with attach(folder) as local:
        local.call("purge", queue=ORDERS)
        put(local, ORDERS, *recoverable(b"x"))
    assert error_text in run(folder, "move", *arguments).error(status)["error"]
    assert peeked(folder, ORDERS) == [b"x"]


@pytest.mark.parametrize(
    "arguments, status, path, error_text",
    [
        ((TO_ORDERS, "--recoverable", "--priority", "9"), 65, "priority", "from 0 to 7"),
        ((TO_ORDERS, "--recoverable", "--label", "x" * 250), 65, "label", "249"),
        ((TO_ORDERS, "--recoverable", "--ack", "all"), 65, "acknowledge", "full_receive"),
        ((TO_ORDERS, "--recoverable", "--ack", "full_receive"), 65, "messages[0].admin_queue", "no queue"),
        ((TO_ORDERS, "--recoverable", "--admin-queue", "x"), 2, "admin_queue", "format name"),
        ((TO_ORDERS, "--recoverable", "--response-queue", "DIRECT=OS:a"), 2, "response_queue", ""),
        ((TO_ORDERS, "--recoverable", "--correlation", "x"), 65, "correlation", "guid"),
        ((TO_ORDERS, "--recoverable", "--class", "4660"), 65, "class", "0x1234"),
        ((TO_ORDERS, "--recoverable", "--body-type", "-1"), 2, "--body-type", "-1"),
        ((TO_ORDERS, "--recoverable", "--file", "nothing.here"), 66, "", "nothing.here: No such file"),
        ((TO_ORDERS, "--transactional"), 69, "", "a transactional queue takes transactional messages only"),
        ((TO_LEDGER, "--recoverable"), 69, "", "a transactional queue takes transactional messages only"),
        ((r"DIRECT=OS:.\private$\x", "--recoverable"), 66, "", "there is no such queue"),
        ((ORDERS, "--recoverable"), 2, "", "a format name begins with one of DIRECT="),
    ],
)
def test_what_is_wrong_about_a_message_is_said_and_nothing_sent(
    folder: Path, arguments: tuple[str, ...], status: int, path: str, error_text: str
) -> None:
    before = listed(folder)
    error = run(folder, "send", *arguments).error(status)
    assert error["path"] == path
    assert error_text in error["error"]
    after = listed(folder)
    assert [after[queue]["messages"] for queue in before] == [before[queue]["messages"] for queue in before]


def test_a_body_that_is_no_text_is_not_sent_as_one(folder: Path) -> None:
    result = run(folder, "send", TO_ORDERS, "--recoverable", "--bstr", "--file", "-", data=b"ab\xff")
    assert result.error(65) == {"error": "not a text in UTF-8", "path": "body", "offset": 2}


@pytest.mark.parametrize(
    "arguments",
    [
        ("receive", ORDERS, "--count", "0"),
        ("receive", ORDERS, "--timeout", "-1"),
        ("peek",),
        ("send", TO_ORDERS, "--body", "a", "--file", "b"),
        ("queue", "rename", ORDERS),
        ("queue",),
        ("move", ORDERS),
    ],
)
def test_wrong_usage_ends_with_2(data: Path, arguments: tuple[str, ...]) -> None:
    result = run(data, *arguments)
    assert (result.status, result.out if arguments != ("queue",) else "") == (2, "")
    assert "Traceback" not in result.err


def test_the_folder_is_made_by_create_alone(tmp_path: Path) -> None:
    reading = [("queue", "list"), ("queue", "show", ORDERS), ("peek", ORDERS), ("receive", ORDERS)]
    writing = [("queue", "purge", ORDERS), ("move", ORDERS, f"{ORDERS};a"), ("send", TO_ORDERS)]
    for arguments in (*reading, *writing):
        error = run(tmp_path / "none", *arguments).error(66)
        assert str(tmp_path / "none") in error["error"]
    assert not (tmp_path / "none").exists()
    assert run(tmp_path / "none", "queue", "create", ORDERS).one["queue"] == ORDERS
