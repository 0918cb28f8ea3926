"""The page of findings: an entry for each rule, with what, why and what to do."""

from __future__ import annotations

import re

import pytest

from msmqwire.analysis.lint import Check, checks
from tools.pages.finding_docs import anchor, page, texts
from tools.pages.findings.texts import TEXTS


def test_every_rule_has_an_entry() -> None:
    entries = {}
    for entry in page().split("\n### ")[1:]:
        id, _, rest = entry.partition(" {: #")
        assert rest.startswith(f"{anchor(id)} }}\n")
        entries[id] = rest
    rules = {check.id: check for check in checks()}
    assert entries.keys() == rules.keys()
    assert len({anchor(id) for id in entries}) == len(entries)
    for id, entry in entries.items():
        assert f".** {rules[id].severity}" in entry
        why, what = re.findall(r"^\*(?:Why it matters|What to do)\.\* (.+\.)$", entry, re.MULTILINE)
        assert (why, what) == texts(rules[id])
        is_of_a_table = not id.startswith(("ATTACK-", "READING-", "PGM-"))
        assert ("*The requirement.* " in entry) == is_of_a_table


def test_a_rule_that_nobody_has_explained_stops_the_tool() -> None:
    with pytest.raises(LookupError, match="nothing about NEW-1-01"):
        texts(Check("NEW-1-01", "MUST", "x is not y", "", frozenset()))


def test_every_text_is_of_some_rule() -> None:
    """Of one whose id fits no pattern before it."""
    used = {texts(check) for check in checks()}
    for pattern, why, advice in TEXTS:
        assert (why, advice) in used, pattern
        assert all(sentence.endswith(".") and len(sentence) > 7 for sentence in (why, advice)), pattern


@pytest.mark.parametrize(
    "id, words",
    [
        ("MQMQ-2.2.19.1-24", "Only messages expire"),
        ("MQMQ-2.2.20.6-06", "has verified the signature"),
        ("MQQB-2.2.1-08", "another one answers"),
        ("MQQB-2.2.4-07", "acknowledged in order"),
        ("MQQB-2.2.5-07", "whether a program received it"),
        ("MQQB-2.2.5.1-03-SENT", "what it has not sent"),
        ("MQRR-2.2.3-03", "Receivers ignore these bits"),
        ("MQRR-3.1.4.2-05", "The server refuses the call"),
        ("MQRR-3.1.4.2-08", "how many clients it serves"),
        ("MQRR-3.1.4.4-06", "The server answers with a value"),
        ("SRMP-2.1.1-12", "the message was accepted"),
        ("SRMP-2.2.5.2-01", "which receipts the sender wants"),
    ],
)
def test_the_text_is_about_the_rule(id: str, words: str) -> None:
    """Where a pattern of ids has rules of the other side or of another purpose."""
    (check,) = (check for check in checks() if check.id == id)
    assert words in texts(check)[0]


def test_the_entry_of_body_types() -> None:
    text = page().partition("### MQMQ-2.2.19.3-12 ")[2].partition("\n### ")[0]
    assert "**BodyType is not a VARIANT type.** NOTE, at `MessagePropertiesHeader.BodyType`." in text
    assert "the program that receives the message chooses by it how to read the body" in text
