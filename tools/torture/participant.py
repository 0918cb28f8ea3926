"""The base of all participants of a torture run: a plan, a book, random numbers, and an end."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any, Final

from tools.torture import books
from tools.torture.books import Book

PATIENCE_S: Final = 400.0
"""Seconds that any step may take at the end: the machine may be busy."""
Plan = dict[str, Any]


class Participant:
    """A participant: its name, plan, book, random numbers, and whether it is to stop."""

    def __init__(self, plan: Plan) -> None:
        self.who: str = plan["who"]
        self.plan = plan
        self.books = Path(plan["books"])
        self.book = Book(self.books, self.who)
        self.stop = threading.Event()
        self.numbers: dict[str, int] = {}
        for entry in books.entries_of(books.path_of(self.books, self.who)):
            if entry["event"] == "begun":
                stream, number = books.stream_of(entry["message"])
                self.numbers[stream] = number
        self.book.write("started")

    def rng(self, part: str) -> random.Random:
        """Return random numbers for a part of this life of the participant."""
        return random.Random(f"{self.plan['seed']}/{self.who}/{self.plan['life']}/{part}")

    def begin(self, queue: str, kinds: list[str], way: list[str], *, local: bool, group: bool) -> list[str]:
        """Record messages that are about to be sent; return their names."""
        stream = f"{self.who}-{queue}"
        first = self.numbers.get(stream, 0) + 1
        self.numbers[stream] = first + len(kinds) - 1
        names = [f"{stream}/{first + index}" for index in range(len(kinds))]
        together = names[0] if group else ""
        for name, kind in zip(names, kinds, strict=True):
            self.book.write(
                "begun", message=name, kind=kind, queue=queue, way=way, group=together, local=local
            )
        return names
