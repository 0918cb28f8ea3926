"""The text of definitions: bounded, and read in one way only."""

from __future__ import annotations

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime.definitions import text
from msmqwire.qm.runtime.definitions.text import check_version, parse_definitions


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not definitions"),
        (b"[]", "no JSON object"),
        (b'"x"', "no JSON object"),
        (b"\xff\xfe{}", "not definitions"),
        (b'{"queues": [], "queues": []}', "twice"),
        (b'{"queues": [{"queue": "a", "queue": "b"}]}', "twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"a": ' + b"[" * 200_000, "too deeply"),
        (b'{"a": 1} {}', "not definitions"),
    ],
    ids=lambda value: value[:24] if isinstance(value, bytes) else None,
)
def test_other_texts_are_refused(content: bytes, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        parse_definitions(content)


def test_too_many_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "SIZE_MAX", 10)
    assert parse_definitions(b'{"a": 1}  ') == {"a": 1}
    with pytest.raises(InvalidValue, match="MiB"):
        parse_definitions(b'{"a": 1}   ')


@pytest.mark.parametrize("version", [None, 0, 2, True, "1", 1.5, []])
def test_another_version_is_refused(version: object) -> None:
    with pytest.raises(InvalidValue, match="begin with") as caught:
        check_version({"msmqwire_definitions": version})
    assert caught.value.path == "msmqwire_definitions"


def test_a_mark_of_utf_8_is_no_matter() -> None:
    assert parse_definitions(b'\xef\xbb\xbf{"msmqwire_definitions": 1}') == {"msmqwire_definitions": 1}
