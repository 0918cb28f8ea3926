"""Cells of spreadsheets: none begins a formula, and the texts can be taken back."""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given

from msmqwire.tables.spreadsheet import escaped, escaped_column, unescaped

TEXTS = st.lists(
    st.none() | st.text(st.sampled_from("=+-@'\t\r\n \0\x7fax1é\xa0\uff1d\uff20\ufeff") | st.characters())
)


@given(TEXTS, st.integers(0, 5))
def test_a_column_is_escaped_as_its_texts_are(texts: list[str | None], start: int) -> None:
    cells = escaped_column(pa.array(texts, pa.string())[start:]).to_pylist()
    assert cells == [None if text is None else escaped(text) for text in texts[start:]]
    assert [None if cell is None else unescaped(cell) for cell in cells] == texts[start:]
    for cell in cells:
        assert (
            not (cell or "")
            .lstrip(" \t\r\n\0\x7f\xa0\ufeff")
            .startswith(("=", "+", "-", "@", "\uff1d", "\uff20"))
        )
