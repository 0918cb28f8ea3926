"""The register of rules: one id a rule, and titles that say what is wrong."""

from __future__ import annotations

import re

import pytest

from msmqwire.analysis.lint import checks
from msmqwire.analysis.lint.registry import REGISTER, Check, add


def test_two_rules_never_share_an_id() -> None:
    ids = [check.id for check in checks()]
    assert ids == sorted(set(ids)) == sorted({check.id for check in REGISTER})
    assert len(ids) > 540
    rules = {check.id: (check.severity, check.title) for check in checks()}
    assert all(rules[check.id] == (check.severity, check.title) for check in REGISTER)


def test_an_id_of_another_rule_is_refused() -> None:
    size = len(REGISTER)
    with pytest.raises(ValueError, match=r"MQMQ-2\.2\.19\.3-07 is 'LabelLength is more than 250' and 'x'"):
        add(Check("MQMQ-2.2.19.3-07", "MUST", "x", "", frozenset()))
    with pytest.raises(ValueError, match="LabelLength is more than 250"):
        add(Check("MQMQ-2.2.19.3-07", "NOTE", "LabelLength is more than 250", "", frozenset()))
    assert len(REGISTER) == size


@pytest.mark.parametrize(
    "id, requirement",
    [
        ("MQMQ-2.2.19.3-07", "MQMQ-2.2.19.3-07"),
        ("MQMQ-2.2.19.3-07-SIZE", "MQMQ-2.2.19.3-07"),
        ("QMS-ext-07", "QMS-ext-07"),
        ("ATTACK-LENGTH", "ATTACK-LENGTH"),
        ("READING-CHARGE", "READING-CHARGE"),
    ],
)
def test_a_second_rule_of_a_requirement_has_a_word_in_its_id(id: str, requirement: str) -> None:
    (check,) = (check for check in checks() if check.id == id)
    assert check.requirement == requirement


RULES_THEMSELVES = re.compile(r"^(No|Only|Nothing|Both|At most|Each|Every) |MUST|SHOULD")


def test_titles_say_what_is_wrong() -> None:
    """Not what ought to be."""
    titles = {check.id: check.title for check in checks()}
    assert titles["MQMQ-2.2.19.3-12"] == "BodyType is not a VARIANT type"
    assert titles["MQMQ-2.2.19.1-21"] == "PacketSize is more than 4 MiB"
    assert all(not title.endswith(".") and len(title) < 100 for title in titles.values())
    assert [title for title in titles.values() if RULES_THEMSELVES.search(title)] == [
        "No Content-Length counts the entity",
        "No line break ends the entity",
        "No MSMQ: stands before the label",
        "No Reference names the body",
        "No Reference names the extension",
    ]
