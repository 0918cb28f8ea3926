"""Strategies for the leaves of structures: integers, bytes, GUIDs, text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

from hypothesis import strategies as st

from msmqwire.schema import REST, TO_NULL, OemText, Text
from msmqwire.schema.texts import oem_exact, oem_value

ITEMS_MAX: Final = 3
BYTES_MAX: Final = 40
CHARACTERS_MAX: Final = 12

Fixed: TypeAlias = Mapping[str, Any]
"""The values of fields, of flag words or of bits of one, or strategies for them, by path."""

CHARACTERS: Final = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXT: Final = st.text(CHARACTERS, max_size=CHARACTERS_MAX)
LONE_SURROGATES: Final = st.integers(0xD800, 0xDFFF).map(lambda unit: unit.to_bytes(2, "little"))
BYTES: Final = st.one_of(st.binary(max_size=BYTES_MAX), st.binary(max_size=4).map(lambda seed: seed * 75))
GUIDS: Final = st.one_of(st.uuids(), st.just(UUID(int=0)))
NULL: Final = b"\0\0"


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


@cache
def integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.one_of(st.integers(low, high), st.sampled_from([0, 1, high, low, high >> 1, high - 1]))


@cache
def exactly(count: int) -> st.SearchStrategy[bytes]:
    if count > 64:  # long fields repeat: a single one would exhaust the data of a Hypothesis example
        return st.binary(min_size=1, max_size=16).map(lambda seed: (seed * count)[:count])
    return st.binary(min_size=count, max_size=count)


@cache
def paddings(count: int) -> st.SearchStrategy[bytes]:
    """Zeros as often as anything else."""
    return st.one_of(st.just(bytes(count)), exactly(count))


@cache
def not_well_formed() -> st.SearchStrategy[bytes]:
    """UTF-16 with a lone surrogate, without nulls."""
    return st.builds(lambda a, lone, b: utf16(a) + lone + utf16("A" + b), TEXT, LONE_SURROGATES, TEXT)


@cache
def texts(node: Text) -> st.SearchStrategy[str | bytes | None]:
    """The values that a parser can return for a text: text, raw bytes, None for length 0."""
    if node.padded:
        assert isinstance(node.length, int)
        return padded_texts(node.length)
    inner_nulls = st.builds(lambda a, b: utf16(a) + NULL + utf16(b) + NULL, TEXT, TEXT)
    forms: list[st.SearchStrategy[Any]] = [TEXT, not_well_formed().map(lambda data: data + NULL)]
    if node.length is not TO_NULL:
        forms.append(inner_nulls)
        if not node.strict:
            forms += [st.none(), TEXT.filter(bool).map(utf16), not_well_formed()]
    if node.length is REST:
        forms.append(st.binary(max_size=9).filter(lambda data: len(data) % 2 == 1))
    return st.one_of(forms)


@cache
def oem_texts(node: OemText) -> st.SearchStrategy[str | bytes]:
    """The values that a parser can return for text of one byte a character."""
    if not isinstance(node.length, int):
        return st.binary(max_size=BYTES_MAX).map(oem_exact)
    length = node.length
    text = st.binary(max_size=length - 1).map(lambda data: data.replace(b"\0", b"")).map(oem_exact)
    return st.one_of(text, exactly(length).map(lambda data: oem_value(node, data)))


def padded_texts(length: int) -> st.SearchStrategy[str | bytes | None]:
    units = length // 2

    def with_tail(text: bytes, rest: bytes) -> bytes:
        return (text + NULL + b"\x01" + rest).ljust(length, b"\0")[:length]

    return st.one_of(
        TEXT,
        st.just("x" * (units - 1)),
        st.just(utf16("x" * units)),
        st.builds(with_tail, TEXT.map(utf16), st.binary(max_size=9)),
        not_well_formed().map(lambda data: data[: length - 2].ljust(length, b"\0")).filter(is_not_utf16),
    )


def is_not_utf16(data: bytes) -> bool:
    try:
        data.decode("utf-16-le")
    except UnicodeDecodeError:
        return True
    return False
