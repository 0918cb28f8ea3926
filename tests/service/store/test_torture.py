"""A short torture run, and how its books show discrepancies: messages missing, duplicated, damaged, ..."""

from __future__ import annotations

import io
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.nightly import NIGHTLY
from tools.torture.books import KINDS, Balance, Book, Entry, body_of, message_of, read_books
from tools.torture.processes import Supervised
from tools.torture.torture import Options, Torture, report


@pytest.mark.requirement("MQMQ-2.2.19.2-12", "DMPR-3.1.1.12-17")
def test_after_kills_every_message_is_accounted_for(tmp_path: Path) -> None:
    kills = 8 if NIGHTLY else 4
    run = Torture(Options(kills=kills, seed=20_261, folder=tmp_path, between=(0.2, 1.5), pause=(0.05, 0.4)))
    balance = run.run()
    output = io.StringIO()
    assert report(balance, output) == 0, output.getvalue()
    assert balance.figures["kills"] >= kills
    for kind in KINDS:
        assert balance.figures[f"{kind} stored"] > 0
        assert balance.figures[f"{kind} transferred"] > 0
        assert balance.figures[f"{kind} received"] > 0
        assert balance.figures[f"by HTTP, {kind} received"] > 0
    for kind in KINDS[1:]:
        for way in ("", "by HTTP, "):
            assert balance.figures[f"{way}{kind} received"] >= balance.figures[f"{way}{kind} stored"]
    assert balance.figures["received remotely, end confirmed"] > 0


# -- books of a few messages ----------------------------------------------------------------------------


class HandmadeBooks:
    """Books written by a test; each event is a second after the one before."""

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
        self,
        *rows: tuple[str, int],
        by: str = "r1",
        requested: float | None = None,
        sound: bool = True,
        remote: bool = False,
    ) -> None:
        received = [[message, place, sound, "an identifier"] for message, place in rows]
        queue = rows[0][0].partition("/")[0].partition("-")[2]
        asked = self.now if requested is None else requested
        self.add("taken", by, queue=queue, asked=asked, messages=received, remote=remote)

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


def discrepancies(books: HandmadeBooks) -> list[tuple[str, str]]:
    """The discrepancies in the books, each with its message."""
    return [(wrong.what, wrong.message) for wrong in books.balance().wrong]


def test_what_may_happen_balances() -> None:
    books = HandmadeBooks()
    books.send(T1, T2, kind="transactional")
    books.send(R1, R2, kind="recoverable")
    books.send(E1, kind="express")
    books.take((T1, 7), (T2, 8))
    books.end((T1, 7), (T2, 8), confirmed=False)
    books.kill()
    books.read((T1, 7), (T2, 8), by="r2")  # the confirmation was not durable
    books.begin("s1-orders/5", "recoverable")  # killed before it was answered
    books.kill("s1")
    books.read((R1, 3), (R2, 4))
    books.begin(E2, "express")
    books.begin(T3, "transactional", group=T3)
    books.add("aborted", "s1", messages=[T3])
    books.add("unanswered", "s1", messages=[E2])
    balance = books.balance()
    assert balance.wrong == []
    expected = {
        "transactional begun": 3, "transactional stored": 2, "transactional received": 2,
        "transactional read again": 2, "transactional aborted": 1, "transactions": 2,
        "recoverable begun": 3, "recoverable stored": 2, "recoverable received": 2,
        "express begun": 2, "express stored": 1, "express lost by kills": 1, "express never answered for": 1,
    }  # fmt: skip
    assert {name: count for name, count in balance.figures.items() if count} == expected


def a_stored_message_nobody_has(books: HandmadeBooks) -> None:
    books.send(R1, R2, kind="recoverable")
    books.kill()
    books.read((R1, 3))


def one_that_was_taken_and_never_came_back(books: HandmadeBooks) -> None:
    books.send(R2, kind="recoverable")
    books.take((R2, 4))
    books.kill()


def an_express_one_lost_without_a_kill(books: HandmadeBooks) -> None:
    books.kill()
    books.send(R2, kind="express")


def an_express_one_lost_after_it_was_transferred(books: HandmadeBooks) -> None:
    books.send(R2, kind="express")
    books.add("transferred", "s1", message=R2)
    books.kill("s1")


def an_express_one_lost_though_answered_for(books: HandmadeBooks) -> None:
    books.send(R2, kind="express", local=True)
    books.kill("s1")


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
def test_a_missing_message_is_caught(doctor: Callable[[HandmadeBooks], None]) -> None:
    books = HandmadeBooks()
    doctor(books)
    assert discrepancies(books) == [("lost", R2)]


def test_nothing_is_called_lost_while_it_may_be_on_its_way() -> None:
    books = HandmadeBooks()
    a_stored_message_nobody_has(books)
    assert Balance(books.entries, drained=False).wrong == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_whose_end_is_confirmed_twice_is_caught(kind: str) -> None:
    books = HandmadeBooks()
    books.send(T1, kind=kind)
    books.read((T1, 7))
    books.read((T1, 8), by="r2")
    assert discrepancies(books) == [("twice", T1)]


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("message", [T1, P1])
def test_a_kill_does_not_excuse_a_message_that_comes_twice(kind: str, message: str) -> None:
    books = HandmadeBooks()
    books.send(message, kind=kind)
    books.read((message, 7))
    books.kill()
    books.read((message, 8), by="r2")
    assert discrepancies(books) == [("twice", message)]


def test_an_express_message_comes_again_only_over_a_kill() -> None:
    books = HandmadeBooks()
    books.send(E1, kind="express")
    books.read((E1, 7))
    books.kill()
    books.read((E1, 8))
    balance = books.balance()
    assert (balance.wrong, balance.figures["express twice by kills"]) == ([], 1)


def test_a_message_read_after_its_confirmed_end_is_caught() -> None:
    books = HandmadeBooks()
    books.send(T1, kind="transactional")
    books.read((T1, 7))
    books.kill()
    books.take((T1, 7), by="r2")
    assert discrepancies(books) == [("twice", T1)]


def test_a_reader_that_was_slow_to_write_is_no_second_one() -> None:
    books = HandmadeBooks()
    books.send(T1, kind="transactional")
    requested = books.now
    books.kill()
    books.read((T1, 7), by="r2")
    books.take((T1, 7), requested=requested)
    assert discrepancies(books) == []


def test_a_second_copy_in_the_queue_is_caught_by_its_place() -> None:
    books = HandmadeBooks()
    books.send(T1, kind="transactional")
    books.take((T1, 7))
    books.end((T1, 7), confirmed=False)
    books.kill()
    books.read((T1, 8))
    assert discrepancies(books) == [("twice", T1)]


def test_a_message_that_was_moved_may_be_at_another_place() -> None:
    books = HandmadeBooks()
    books.send(P1, kind="transactional")
    books.take((P1, 7))
    books.kill()
    books.read((P1, 9))
    assert discrepancies(books) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_order_in_the_queue_is_caught(kind: str) -> None:
    books = HandmadeBooks()
    for message in (T1, T2, T3):
        books.send(message, kind=kind)
    books.read((T1, 7))
    books.read((T3, 8))
    books.read((T2, 9))
    assert discrepancies(books) == [("order", T2)]


def test_unacknowledged_express_messages_may_return_after_a_kill() -> None:
    books = HandmadeBooks()
    books.send(E1, E2, kind="express")
    books.take((E2, 8))  # E1 went to a receiver that never got it
    books.kill()
    books.read((E1, 20), (E2, 21))
    assert discrepancies(books) == []


def test_a_wrong_order_in_an_answer_is_caught() -> None:
    books = HandmadeBooks()
    books.send(T1, T2, kind="transactional")
    books.read((T2, 8), (T1, 7))
    assert discrepancies(books) == [("order", T1)]


def test_what_another_receiver_gave_back_may_come_late() -> None:
    books = HandmadeBooks()
    books.send(R1, R2, kind="recoverable")
    books.take((R1, 7), by="r2")
    books.add("back", "r2", messages=[R1])
    books.read((R2, 8), (R1, 7))
    assert discrepancies(books) == []


# -- remote readers ---------------------------------------------------------------------------------------


def test_a_message_in_doubt_after_a_lost_answer_may_return() -> None:
    books = HandmadeBooks()
    books.send(T1, T2, T3, kind="transactional")
    for number, message in enumerate((T1, T2), 7):
        books.take((message, number), by="q1", remote=True)
        books.end((message, number), by="q1", confirmed=False)
    books.add("in doubt", "q1", messages=[[T1, 7]])
    books.add("in doubt", "q1", messages=[[T2, 8]])
    books.kill()
    books.read((T2, 8), by="r2")
    books.take((T3, 9), by="q1", remote=True)
    books.end((T3, 9), by="q1", confirmed=False)
    books.kill("q1")
    balance = books.balance()
    figures = {name: count for name, count in balance.figures.items() if count and "remotely" in name}
    assert (balance.wrong, figures) == (
        [],
        {
            "received remotely": 3,
            "received remotely, end in doubt": 3,
            "received remotely, end in doubt, gone": 2,
            "received remotely, end in doubt, read again": 1,
        },
    )


def test_a_message_not_ended_by_a_remote_reader_must_return() -> None:
    books = HandmadeBooks()
    books.send(T1, kind="transactional")
    books.take((T1, 7), by="q1", remote=True)
    books.end((T1, 7), by="q1", confirmed=False)
    books.add("not ended", "q1", messages=[[T1, 7]])
    books.kill()
    assert discrepancies(books) == [("lost", T1)]


@pytest.mark.parametrize("doubt", [True, False])
def test_a_doubt_that_no_kill_explains_is_caught(doubt: bool) -> None:
    books = HandmadeBooks()
    books.send(T1, kind="transactional")
    books.kill("alpha")
    books.take((T1, 7), by="q1", remote=True)
    books.end((T1, 7), by="q1", confirmed=False)
    if doubt:
        books.add("in doubt", "q1", messages=[[T1, 7]])
        books.kill("q1")  # explains no lost answer
    else:
        books.kill("alpha")  # the reader goes on, and has to write what it knows
    assert discrepancies(books) == [("doubt", T1)]


@pytest.mark.parametrize("killed", ["", "q1", "alpha"])
def test_a_message_that_a_remote_reader_has_is_nobody_elses(killed: str) -> None:
    books = HandmadeBooks()
    books.send(T1, kind="transactional")
    books.take((T1, 7), by="q1", remote=True)
    if killed:
        books.kill(killed)
    books.take((T1, 7), by="r2")
    books.add("back", "q1", messages=[[T1, 7]])
    books.end((T1, 7), by="r2")
    assert discrepancies(books) == ([] if killed else [("twice", T1)])


def test_a_reader_that_is_being_killed_may_have_nothing_any_more() -> None:
    books = HandmadeBooks()
    books.send(T1, kind="transactional")
    books.take((T1, 7), by="q1", remote=True)
    books.add("killing", who="q1")  # and dead at once, before that is written
    books.take((T1, 7), by="r2")
    books.end((T1, 7), by="r2")
    books.add("killed", who="q1")
    assert discrepancies(books) == []


# -- what came -------------------------------------------------------------------------------------------


def test_a_damaged_body_is_caught() -> None:
    books = HandmadeBooks()
    books.send(T1, kind="transactional")
    books.take((T1, 7), sound=False)
    books.end((T1, 7))
    assert discrepancies(books) == [("damaged", T1)]


def test_a_message_that_nobody_has_sent_is_caught() -> None:
    books = HandmadeBooks()
    books.read((R1, 7))
    assert discrepancies(books) == [("unknown", R1)]


def test_a_message_in_a_wrong_queue_is_caught() -> None:
    books = HandmadeBooks()
    books.send(R1, kind="recoverable")
    books.read((R1, 7))
    books.entries[-3]["queue"] = "distant"
    assert discrepancies(books) == [("unknown", R1)]


def test_a_part_of_a_transaction_is_caught() -> None:
    books = HandmadeBooks()
    for message in (T1, T2):  # its sender was killed before the answer
        books.begin(message, "transactional", group=T1)
    books.kill("s1")
    books.read((T1, 7))
    assert discrepancies(books) == [("torn", T2)]


def test_a_message_of_an_aborted_transaction_is_caught() -> None:
    books = HandmadeBooks()
    books.begin(T1, "transactional", group=T1)
    books.add("aborted", "s1", messages=[T1])
    books.read((T1, 7))
    assert discrepancies(books) == [("aborted", T1)]


def test_a_refused_message_is_reported() -> None:
    books = HandmadeBooks()
    books.begin(R1, "recoverable")
    books.add("refused", "s1", messages=[R1], why="no room")
    assert discrepancies(books) == [("refused", R1)]


def test_the_report_tells_the_story_of_what_is_wrong() -> None:
    books = HandmadeBooks()
    a_stored_message_nobody_has(books)
    out = io.StringIO()
    assert report(books.balance(), out) == 1
    lines = out.getvalue().splitlines()
    at = lines.index(f"lost: {R2} was stored, and no receiver has received it")
    assert [line.split()[1:3] for line in lines[at + 1 : at + 4]] == [
        ["s1", "begun"],
        ["s1", "stored"],
        ["supervisor", "killed"],
    ]
    assert lines[-1] == "the books do not balance: {'lost': 1}"


# -- bodies and books -----------------------------------------------------------------------------------


def test_any_damage_of_a_body_shows() -> None:
    body = body_of(R1, b"payload")
    assert message_of(body, R1) == (R1, True)
    for offset in range(len(body)):
        damaged = body[:offset] + bytes([body[offset] ^ 1]) + body[offset + 1 :]
        assert message_of(damaged, R1) == (R1, False)
        assert message_of(body[:offset], R1) == (R1, False)
    assert message_of(body_of(R2, b"payload"), R1) == (R2, False)


def test_books_come_back_by_time(tmp_path: Path) -> None:
    sender, receiver = Book(tmp_path, "s1"), Book(tmp_path, "r1")
    sender.write("begun", message=R1)
    receiver.write("taken", messages=[[R1, 7, True, "x"]])
    restarted = Book(tmp_path, "s1")  # of a sender restarted after a kill
    restarted.write("stored", messages=[R1])
    for book in (sender, receiver, restarted):
        book.close()
    entries = read_books(tmp_path)
    assert [(entry["by"], entry["event"]) for entry in entries] == [
        ("s1", "begun"),
        ("r1", "taken"),
        ("s1", "stored"),
    ]
    assert json.loads((tmp_path / "r1.jsonl").read_text())["messages"] == [[R1, 7, True, "x"]]


def test_a_client_stopped_before_it_listens_exits_cleanly(tmp_path: Path) -> None:
    """SIGTERM waits for the handler that the client sets once its imports are done."""
    program = (
        "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7));"
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM}); signal.pause()"
    )
    client = Supervised("client", tmp_path, lambda _: [sys.executable, "-c", program], defers_sigterm=True)
    client.start()
    client.send(signal.SIGTERM)
    assert client.ended() == 7
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ()), "the parent is as it was"
