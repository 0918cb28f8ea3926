"""Numbers with their nouns: one helper says them, and no text puts a number before a plural without it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.names.printable import agreed, agreeing, counted, in_seconds
from tests.support.paths import ROOT

NOUNS = (
    "acknowledgement|argument|byte|capture|certificate|character|commit|connection|element|entry|event"
    "|failure|field|file|finding|fragment|frame|hop|input|job|key|line|message|name|octet|option|packet|part"
    "|partition|queue|record|request|requirement|response|retransmission|row|second|session|setting"
    "|subscription|task|transaction|value"
)
PLURAL = re.compile(rf" (?!(?:counts|has|of|to|with) )(?:[a-z]+ )?(?:{NOUNS})s\b")
# Notes on what the fuzzer sends: sizes that are known, never 1.
CASES = re.compile(
    r"fuzz/peer/(binary/(directed/|walk)|remote_read/ndr_checks|srmp/(http_checks|malformed|taken))"
)
# No numbers stand there, or numbers that are never 1.
OTHERS = {"msmqwire/schema/declare.py", "msmqwire/schema/nodes.py", "spark_udfs/source/session_table.py"}


@pytest.mark.parametrize(
    "count, what, verb, text",
    [
        (0, "packet", "", "0 packets"),
        (1, "packet", "", "1 packet"),
        (2_000, "packet", "", "2,000 packets"),
        (1, "byte", "are", "1 byte is"),
        (2, "byte", "are", "2 bytes are"),
        (1, "message", "were", "1 message was"),
        (1, "byte", "follow", "1 byte follows"),
        (1, "character", "do", "1 character does"),
        (2, "reply", "", "2 replies"),
        (2, "key", "", "2 keys"),
        (2, "sub-authority", "", "2 sub-authorities"),
        (2, "hash", "", "2 hashes"),
    ],
)
def test_a_number_with_its_noun(count: int, what: str, verb: str, text: str) -> None:
    assert counted(count, what, verb) == text


def test_a_number_with_its_verb() -> None:
    assert (agreed(1, "are"), agreed(0, "are"), agreed(2_000, "are")) == ("1 is", "0 are", "2,000 are")
    assert (agreeing(1, "have"), agreeing(3, "have")) == ("has", "have")


@pytest.mark.parametrize(
    "value, text",
    [
        (10, "10 s"),
        (9.99999, "10 s"),
        (0.25, "0.25 s"),
        (100, "100 s"),
        (86_400, "86,400 s"),
        (0, "0 s"),
        (0.00004, "4e-05 s"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert in_seconds(value) == text


def _sources() -> Iterator[Path]:
    for package in ("msmqwire", "spark_udfs", "fuzz"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if "generated" in path.parts or "compiled" in path.parts or name in OTHERS or CASES.match(name):
                continue
            yield path


def _is_fixed(value: ast.expr) -> bool:
    """Whether a number is a constant of the code, as its name in capitals says."""
    names = re.findall(r"\w+", ast.unparse(value))
    return any(name.strip("_").isupper() and len(name) > 1 for name in names)


def _numbers_before_plurals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for number, text in zip(node.values, node.values[1:], strict=False):
            if (
                isinstance(number, ast.FormattedValue)
                and isinstance(text, ast.Constant)
                and PLURAL.match(str(text.value))
                and not _is_fixed(number.value)
            ):
                yield f"line {node.lineno}: {{{ast.unparse(number.value)}}}{text.value}"


def test_no_text_has_a_number_before_a_plural() -> None:
    found = [
        f"{path.relative_to(ROOT)}, {what}"
        for path in _sources()
        for what in _numbers_before_plurals(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(found)
