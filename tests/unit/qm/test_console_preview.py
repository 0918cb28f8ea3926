"""The preview of a body in the console: format, headers, text, value, and why it is less than the whole."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from msmqwire.qm.runtime.console.preview import HEX_BYTES, TEXT_BYTES, with_preview

REBUS = b'{"rbs2-content-type": "application/json", "<b>": "\\u202e"}'


def preview(body: bytes, body_type: int = 0, extension: bytes = b"", size: int | None = None) -> Any:
    told = with_preview(
        {
            "body": b64encode(body).decode(),
            "body_size": len(body) if size is None else size,
            "body_type": body_type,
            "extension": b64encode(extension).decode() if extension else None,
        }
    )
    assert "body" not in told
    assert json.dumps(told)
    return told["preview"]


def test_headers_and_a_value_that_the_text_has_already() -> None:
    found = preview(b'{"a": [1, 2]}', extension=REBUS)
    assert (found["format"], found["headers_format"]) == ("json", "rebus")
    assert found["headers"] == {"rbs2-content-type": "application/json", "<b>": "\u202e"}
    assert (found["text"], found["value"], found["note"]) == ('{"a": [1, 2]}', None, None)
    assert found["hex"] == b'{"a": [1, 2]}'.hex()


def test_a_value_beside_the_text() -> None:
    found = preview(b"<a><b>1</b></a>")
    assert found["text"] == "<a><b>1</b></a>"
    assert json.loads(found["value"]) == {"$type": "a", "b": "1"}
    assert (found["headers_format"], found["headers"]) == (None, {})


def test_problems_are_noted() -> None:
    found = preview(b"abc", body_type=3)
    assert (found["format"], found["text"]) == ("text", "abc")
    assert found["note"] == "VT_I4, byte 3: VT_I4 takes 4 bytes, the body has 3"


@pytest.mark.parametrize("before", range(4))
def test_the_start_of_a_text_is_cut_between_characters(before: int) -> None:
    whole = ("a" * before + "é😀" * 20_000).encode()
    found = preview(whole[:TEXT_BYTES], size=len(whole))
    assert found["format"] == "text"
    assert found["note"] == f"the first {TEXT_BYTES:,} of {len(whole):,} bytes"
    assert whole.startswith(found["text"].encode())
    assert len(found["text"].encode()) > TEXT_BYTES - 4
    assert len(found["hex"]) == 2 * HEX_BYTES


def test_a_large_value_is_cut() -> None:
    found = preview(b"<a>" + b"<b>1</b>" * 8_000 + b"</a>")
    assert len(found["value"]) == TEXT_BYTES
    assert found["value"].endswith("…")
