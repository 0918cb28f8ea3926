"""A short torture run, and how its books show discrepancies: messages missing, duplicated, damaged, ..."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.torture import Options, Torture, report
from tools.torture_books import KINDS, Balance, Book, Entry, body_of, message_of, read_books


@pytest.mark.requirement("MQMQ-2.2.19.2-12", "DMPR-3.1.1.12-17")
def test_after_kills_every_message_is_accounted_for(tmp_path: Path) -> None:
    run = Torture(Options(kills=8, seed=20_261, folder=tmp_path, between=(0.2, 1.5)))
    balance = run.run()
    told = io.StringIO()
    assert report(balance, told) == 0, told.getvalue()
    assert balance.figures["kills"] >= 8
    for kind in KINDS:
        assert balance.figures[f"{kind} stored"] > 0
        assert balance.figures[f"{kind} transferred"] > 0
        assert balance.figures[f"{kind} received"] > 0
    for kind in KINDS[1:]:
        assert balance.figures[f"{kind} received"] >= balance.figures[f"{kind} stored"]


# -- books of a few messages ------------------------------------------------------------------------------


class Day:
    """Books that are made by hand; every event is a second later."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, event: str, by: str = "supervisor", **more: Any) -> None:
        self.entries.append({"at": 100.0 + len(self.entries), "by": by, "event": event, **more})

    @property
    def now(self) -> float:
        return 100.0 + len(self.entries)

    def begin(self, message: str, kind: str, *, group: str = "", local: bool = False) -> None:
        queue = message.partition("/")[0].partition("-")[2]
        by = message.partition("-")[0]
        more = {"kind": kind, "queue": queue, "way": ["alpha"], "group": group, "local": local}
        self.add("begun", by, message=message, **more)

    def store(self, *messages: str) -> None:
        self.add("stored", messages[0].partition("-")[0], messages=list(messages))

    def send(self, *messages: str, kind: str, local: bool = False) -> None:
        for message in messages:
            self.begin(message, kind, group=messages[0] if kind == "transactional" else "", local=local)
        self.store(*messages)

    def take(
        self, *rows: tuple[str, int], by: str = "r1", asked: float | None = None, sound: bool = True
    ) -> None:
        found = [[message, place, sound, "an identifier"] for message, place in rows]
        queue = rows[0][0].partition("/")[0].partition("-")[2]
        self.add("taken", by, queue=queue, asked=self.now if asked is None else asked, messages=found)

    def end(self, *rows: tuple[str, int], by: str = "r1", confirmed: bool = True) -> None:
        self.add("ending", by, messages=[list(row) for row in rows])
        if confirmed:
            self.add("ended", by, messages=[list(row) for row in rows])

    def read(self, *rows: tuple[str, int], by: str = "r1") -> None:
        self.take(*rows, by=by)
        self.end(*rows, by=by)

    def kill(self, who: str = "alpha") -> None:
        self.add("killed", who=who)

    def balance(self) -> Balance:
        return Balance(self.entries, moved=["parcels"], shared=["orders"])


T1, T2, T3 = "s1-ledger/1", "s1-ledger/2", "s1-ledger/3"
R1, R2 = "s1-orders/1", "s1-orders/2"
E1, E2 = "s1-orders/3", "s1-orders/4"
P1 = "s1-parcels/1"


def whats(day: Day) -> list[tuple[str, str]]:
    """What is wrong, and with which message."""
    return [(wrong.what, wrong.message) for wrong in day.balance().wrong]


def test_what_may_happen_balances() -> None:
    day = Day()
    day.send(T1, T2, kind="transactional")
    day.send(R1, R2, kind="recoverable")
    day.send(E1, kind="express")
    day.take((T1, 7), (T2, 8))
    day.end((T1, 7), (T2, 8), confirmed=False)
    day.kill()
    day.read((T1, 7), (T2, 8), by="r2")  # the end was not durable
    day.begin("s1-orders/5", "recoverable")  # killed before it was told
    day.kill("s1")
    day.read((R1, 3), (R2, 4))
    day.begin(E2, "express")
    day.begin(T3, "transactional", group=T3)
    day.add("aborted", "s1", messages=[T3])
    day.add("unanswered", "s1", messages=[E2])
    balance = day.balance()
    assert balance.wrong == []
    expected = {
        "transactional begun": 3, "transactional stored": 2, "transactional received": 2,
        "transactional read again": 2, "transactional aborted": 1, "transactions": 2,
        "recoverable begun": 3, "recoverable stored": 2, "recoverable received": 2,
        "express begun": 2, "express stored": 1, "express lost by kills": 1, "express never answered for": 1,
    }  # fmt: skip
    assert {name: count for name, count in balance.figures.items() if count} == expected


def a_stored_message_nobody_has(day: Day) -> None:
    day.send(R1, R2, kind="recoverable")
    day.kill()
    day.read((R1, 3))


def one_that_was_taken_and_never_came_back(day: Day) -> None:
    day.send(R2, kind="recoverable")
    day.take((R2, 4))
    day.kill()


def an_express_one_lost_without_a_kill(day: Day) -> None:
    day.kill()
    day.send(R2, kind="express")


def an_express_one_lost_after_it_was_transferred(day: Day) -> None:
    day.send(R2, kind="express")
    day.add("transferred", "s1", message=R2)
    day.kill("s1")


def an_express_one_lost_though_answered_for(day: Day) -> None:
    day.send(R2, kind="express", local=True)
    day.kill("s1")


@pytest.mark.parametrize(
    "doctor",
    [
        a_stored_message_nobody_has,
        one_that_was_taken_and_never_came_back,
        an_express_one_lost_without_a_kill,
        an_express_one_lost_after_it_was_transferred,
        an_express_one_lost_though_answered_for,
    ],
)
def test_a_missing_message_is_caught(doctor: Callable[[Day], None]) -> None:
    day = Day()
    doctor(day)
    assert whats(day) == [("lost", R2)]


def test_nothing_is_called_lost_while_it_may_be_on_its_way() -> None:
    day = Day()
    a_stored_message_nobody_has(day)
    assert Balance(day.entries, drained=False).wrong == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_whose_end_is_confirmed_twice_is_caught(kind: str) -> None:
    day = Day()
    day.send(T1, kind=kind)
    day.read((T1, 7))
    day.read((T1, 8), by="r2")
    assert whats(day) == [("twice", T1)]


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("message", [T1, P1])
def test_a_kill_does_not_excuse_a_message_that_comes_twice(kind: str, message: str) -> None:
    day = Day()
    day.send(message, kind=kind)
    day.read((message, 7))
    day.kill()
    day.read((message, 8), by="r2")
    assert whats(day) == [("twice", message)]


def test_an_express_message_comes_again_only_over_a_kill() -> None:
    day = Day()
    day.send(E1, kind="express")
    day.read((E1, 7))
    day.kill()
    day.read((E1, 8))
    balance = day.balance()
    assert (balance.wrong, balance.figures["express twice by kills"]) == ([], 1)


def test_a_message_that_is_read_after_its_end_was_confirmed_is_caught() -> None:
    day = Day()
    day.send(T1, kind="transactional")
    day.read((T1, 7))
    day.kill()
    day.take((T1, 7), by="r2")
    assert whats(day) == [("twice", T1)]


def test_a_reader_that_was_slow_to_write_is_no_second_one() -> None:
    day = Day()
    day.send(T1, kind="transactional")
    asked = day.now
    day.kill()
    day.read((T1, 7), by="r2")
    day.take((T1, 7), asked=asked)
    assert whats(day) == []


def test_a_second_copy_in_the_queue_is_caught_by_its_place() -> None:
    day = Day()
    day.send(T1, kind="transactional")
    day.take((T1, 7))
    day.end((T1, 7), confirmed=False)
    day.kill()
    day.read((T1, 8))
    assert whats(day) == [("twice", T1)]


def test_a_message_that_was_moved_may_be_at_another_place() -> None:
    day = Day()
    day.send(P1, kind="transactional")
    day.take((P1, 7))
    day.kill()
    day.read((P1, 9))
    assert whats(day) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_order_in_the_queue_is_caught(kind: str) -> None:
    day = Day()
    for message in (T1, T2, T3):
        day.send(message, kind=kind)
    day.read((T1, 7))
    day.read((T3, 8))
    day.read((T2, 9))
    assert whats(day) == [("order", T2)]


def test_express_messages_that_were_not_acknowledged_come_again_after_a_kill() -> None:
    day = Day()
    day.send(E1, E2, kind="express")
    day.take((E2, 8))  # and E1 to somebody who never got it
    day.kill()
    day.read((E1, 20), (E2, 21))
    assert whats(day) == []


def test_a_wrong_order_in_an_answer_is_caught() -> None:
    day = Day()
    day.send(T1, T2, kind="transactional")
    day.read((T2, 8), (T1, 7))
    assert whats(day) == [("order", T1)]


def test_what_another_receiver_gave_back_may_come_late() -> None:
    day = Day()
    day.send(R1, R2, kind="recoverable")
    day.take((R1, 7), by="r2")
    day.add("back", "r2", messages=[R1])
    day.read((R2, 8), (R1, 7))
    assert whats(day) == []


def test_a_damaged_body_is_caught() -> None:
    day = Day()
    day.send(T1, kind="transactional")
    day.take((T1, 7), sound=False)
    day.end((T1, 7))
    assert whats(day) == [("damaged", T1)]


def test_a_message_that_nobody_has_sent_is_caught() -> None:
    day = Day()
    day.read((R1, 7))
    assert whats(day) == [("unknown", R1)]


def test_a_message_in_a_wrong_queue_is_caught() -> None:
    day = Day()
    day.send(R1, kind="recoverable")
    day.read((R1, 7))
    day.entries[-3]["queue"] = "distant"
    assert whats(day) == [("unknown", R1)]


def test_a_part_of_a_transaction_is_caught() -> None:
    day = Day()
    for message in (T1, T2):  # its sender was killed and does not know
        day.begin(message, "transactional", group=T1)
    day.kill("s1")
    day.read((T1, 7))
    assert whats(day) == [("torn", T2)]


def test_a_message_of_an_aborted_transaction_is_caught() -> None:
    day = Day()
    day.begin(T1, "transactional", group=T1)
    day.add("aborted", "s1", messages=[T1])
    day.read((T1, 7))
    assert whats(day) == [("aborted", T1)]


def test_a_refused_message_is_told() -> None:
    day = Day()
    day.begin(R1, "recoverable")
    day.add("refused", "s1", messages=[R1], why="no room")
    assert whats(day) == [("refused", R1)]


def test_the_report_tells_the_story_of_what_is_wrong() -> None:
    day = Day()
    a_stored_message_nobody_has(day)
    out = io.StringIO()
    assert report(day.balance(), out) == 1
    lines = out.getvalue().splitlines()
    at = lines.index(f"lost: {R2} was stored, and nobody has received it")
    assert [line.split()[1:3] for line in lines[at + 1 : at + 4]] == [
        ["s1", "begun"],
        ["s1", "stored"],
        ["supervisor", "killed"],
    ]
    assert lines[-1] == "the books do not balance: {'lost': 1}"


# -- what they are made of ----------------------------------------------------------------------------------


def test_any_damage_of_a_body_shows() -> None:
    body = body_of(R1, b"payload")
    assert message_of(body, R1) == (R1, True)
    for at in range(len(body)):
        damaged = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        assert message_of(damaged, R1) == (R1, False)
        assert message_of(body[:at], R1) == (R1, False)
    assert message_of(body_of(R2, b"payload"), R1) == (R2, False)


def test_books_come_back_by_time(tmp_path: Path) -> None:
    one, other = Book(tmp_path, "s1"), Book(tmp_path, "r1")
    one.write("begun", message=R1)
    other.write("taken", messages=[[R1, 7, True, "x"]])
    again = Book(tmp_path, "s1")  # of a sender that was killed
    again.write("stored", messages=[R1])
    for book in (one, other, again):
        book.close()
    found = read_books(tmp_path)
    assert [(entry["by"], entry["event"]) for entry in found] == [
        ("s1", "begun"),
        ("r1", "taken"),
        ("s1", "stored"),
    ]
    assert json.loads((tmp_path / "r1.jsonl").read_text())["messages"] == [[R1, 7, True, "x"]]
