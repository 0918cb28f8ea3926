"""The rules of lint that one packet alone shows, as functions of Lua: one for each kind of packet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msmqwire.analysis.lint import Check
from msmqwire.analysis.lint.attacks import (
    BLAMED,
    ELEMENT_COUNT,
    HEADER_ID,
    HTTP_BODY_SIZE,
    LENGTH,
    PACKET_SIZE,
    UNKNOWN_PT,
)
from msmqwire.analysis.lint.parts import DATA_PAST_PACKET
from msmqwire.analysis.lint.registry import REGISTER
from msmqwire.headers.multiqueue import MULTI_QUEUE_FORMAT_HEADER
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    FINAL_ACK,
    ORDER_ACK,
    SESSION_ACK,
    USER_MESSAGE,
)
from msmqwire.plugins.wireshark.conditions import Untranslatable
from msmqwire.plugins.wireshark.fields import quoted
from msmqwire.plugins.wireshark.rules import Case, Translation
from msmqwire.plugins.wireshark.value_slots import ValueSlots
from msmqwire.schema import Flags, Header, Repeat, Sub, UInt
from msmqwire.schema.nodes import inner_headers

KINDS: Final = (
    USER_MESSAGE,
    ORDER_ACK,
    FINAL_ACK,
    SESSION_ACK,
    ESTABLISH_CONNECTION,
    CONNECTION_PARAMETERS,
)


class Findings:
    """The translated rules: ``J.<kind>(found)`` calls ``found(number of the check, path)`` for each finding.

    Attributes:
        functions: their source.
        translated: the ids of the rules in them, by kind of packet.
        untranslated: the reasons why rules are left out, by id.
    """

    def __init__(self, kept: ValueSlots) -> None:
        self._numbers: dict[tuple[str, str], int] = {}  # by id and severity
        self._titles: list[str] = []
        self.functions: list[str] = []
        self.translated: dict[str, set[str]] = {}
        self.untranslated: dict[str, str] = {}
        for schema in KINDS:
            self._kind(schema, kept)
        for check in (LENGTH, DATA_PAST_PACKET, *_SIZES, *_VALUES):
            self._number(check)
        rules = {check.id: check for check in REGISTER}
        for id in BLAMED.values():
            self._number(rules[id])

    def _kind(self, schema: Header, kept: ValueSlots) -> None:
        lines: list[str] = []
        translation = Translation(schema, kept)
        ids = self.translated.setdefault(schema.name, set())
        for check in sorted(REGISTER, key=lambda check: (check.id, check.path)):
            if schema.name not in check.kinds or check.judge is None or check.measured:
                continue
            try:
                cases = _cases(check, schema, translation)
                present = translation.header(check.path.partition(".")[0])
            except Untranslatable as exc:
                self.untranslated[check.id] = str(exc)
                continue
            ids.add(check.id)
            lines += self._statements(check, cases, present)
        self.functions.append("\n".join([f"function J.{schema.name}(found)", *lines, "end"]))

    def _statements(self, check: Check, cases: list[Case], present: str) -> Iterator[str]:
        number = self._number(check)
        word = "if"
        for condition, path in cases:
            guarded = condition if present == "true" else f"{present} and ({condition})"
            found = "" if path is None else f"found({number}, {quoted(path or check.path)})"
            yield f"  {word} {guarded} then {found}"
            word = "elseif"
        yield "  end"

    def _number(self, check: Check) -> int:
        key = check.id, check.severity
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 1
            severity = _EXPERT[check.severity]
            group = "SECURITY" if check.severity == "ATTACK" else "PROTOCOL"
            name = f"msmq.lint.{check.id.lower()}" + (".should" if check.severity == "SHOULD" else "")
            self._titles.append(
                f"finding({quoted(name)}, {quoted(check.id)}, {quoted(check.title)}, "
                f"expert.group.{group}, expert.severity.{severity})"
            )
        return self._numbers[key]

    def declarations(self) -> list[str]:
        """Return the statements that declare the expert items."""
        return self._titles


_EXPERT: Final = {"NOTE": "CHAT", "SHOULD": "NOTE", "MUST": "WARN", "ATTACK": "ERROR"}
"""The severities of Wireshark's expert information."""
_SIZES: Final = (DATA_PAST_PACKET, HTTP_BODY_SIZE)
_VALUES: Final = (ELEMENT_COUNT, HEADER_ID, PACKET_SIZE, UNKNOWN_PT)


def blamed_sizes() -> dict[str, str]:
    """Return the attacks of sizes that reach past the packet, by path; other paths have ``LENGTH``."""
    return {check.path: check.id for check in _SIZES}


def blamed_values() -> dict[str, str]:
    """Return the requirements and attacks of values that make a packet malformed, by path."""
    values = {**BLAMED, PACKET_SIZE.path: PACKET_SIZE.id, UNKNOWN_PT.path: UNKNOWN_PT.id}
    for part in MULTI_QUEUE_FORMAT_HEADER.parts:
        assert isinstance(part, Sub)
        path = f"{MULTI_QUEUE_FORMAT_HEADER.name}.{part.name}"
        for inner in part.header.parts:
            if isinstance(inner, UInt) and inner.must is not None:
                values[f"{path}.{inner.name}"] = HEADER_ID.id
            elif isinstance(inner, Repeat):
                values[f"{path}.{inner.count}"] = ELEMENT_COUNT.id
    return values


def _cases(check: Check, schema: Header, translation: Translation) -> list[Case]:
    if check.mask:
        return translation.unused(check.path, _word(schema, check.path), check.mask)
    if check.holds is not None:
        return [Case(translation.field(check.path, check.holds), "")]
    assert check.judge is not None
    return translation.rule(check.judge)


def _word(schema: Header, path: str) -> Flags:
    header = schema
    *above, name = path.split(".")
    for part in above:
        header = inner_headers(header.part(part))[0]
    node = header.part(name)
    assert isinstance(node, Flags)
    return node
