"""Documents of [MC-NBFX] beside another reader of them, and the static dictionary beside another one.

The other reader gives values of Python, whose characters are not those of the text (``True``, ``inf``):
elements and their order are compared, not what is in them.
"""

from __future__ import annotations

import csv

import pytest

from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.wcf import nbfx
from msmqwire.bodies.wcf.infoset import End, Start, events
from msmqwire.bodies.wcf.problems import Problems
from msmqwire.bodies.wcf.session import Session
from msmqwire.bodies.wcf.words import WORDS
from msmqwire.bodies.wcf.writing import write_document
from tests.support.paths import VECTORS

peer = pytest.importorskip("pynettcp.nbfx")


class Agreed(dict):
    """The dictionary of the examples, for both readers."""

    def get(self, number, default=None):
        return f"str{number}"

    def lookup(self, number):
        return f"str{number}"


def vectors():
    with (VECTORS / "bodies" / "nbfx_records.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield pytest.param(bytes.fromhex(row["bytes"]), id=row["record"])


def structure(xml):
    for event in events(xml, DEFAULT.depth):
        if isinstance(event, Start):
            yield event.prefix, event.name
        elif isinstance(event, End):
            yield "end"


def structure_of_peer(data, dictionary):
    for event in peer.BinaryXmlReader(data, dictionary).read():
        if event[0] == "start":
            yield event[1], str(event[2])
        elif event[0] == "end":
            yield "end"


@pytest.mark.parametrize("data", list(vectors()))
def test_elements_are_those_of_the_other_reader(data):
    session = Session()
    session.words = Agreed({1: ""})
    problems = Problems()
    budget = Budget(DEFAULT, len(data))
    xml = nbfx.read_document(data, session, budget, problems, dictionary=Agreed(), fragment=True)
    assert ["outside", *structure_of_peer(data, Agreed()), "end"] == [
        "outside",
        *list(structure(f"<o>{xml}</o>"))[1:],
    ]


def test_what_is_written_is_read_by_the_other_reader():
    xml = (
        '<s:Envelope xmlns:s="u"><s:Body><Order a="1"><Id>5</Id><b:c xmlns:b="v"></b:c></Order></s:Body>'
        "</s:Envelope>"
    )
    data = write_document(xml)
    expected = list(structure(xml))
    assert list(structure_of_peer(data, Static())) == expected


class Static:
    """The static dictionary, for the other reader."""

    def lookup(self, number):
        return WORDS[number]


def test_the_static_dictionary_is_that_of_the_other_reader():
    dictionary = pytest.importorskip("pynettcp.dictionary")
    # It has nothing for 0xA2, and a space before another one.
    theirs = [word.strip() or "-" for word in dictionary.STATIC_STRINGS]
    assert theirs == list(WORDS.values())
