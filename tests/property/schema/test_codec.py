"""Complete, partial and wrong values of every declared structure, through both readers and both builders."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fuzz import invariants, strategies
from msmqwire.packets import ESTABLISH_CONNECTION, REMOTE_READ_MESSAGE, USER_MESSAGE
from msmqwire.schema import REST, SCHEMAS, Choice, Flags, Header, Maybe, OddPadding, Raw, Record
from msmqwire.schema.layout import layout

KEYS = [
    key
    for key, schema in strategies.SELF_CONTAINED.items()
    if not schema.variant and key not in strategies.NCP_STRUCTURES
]
EVERY_SCHEMA = pytest.mark.parametrize("key", KEYS)
# There are so many schemas that each gets only a share of the examples.
SOME = settings(max_examples=max(25, settings.default.max_examples // 10))


@EVERY_SCHEMA
@pytest.mark.requirement("MQMQ-2.2.18-01", "MQQB-2.2-01")
@SOME
@given(data=st.data())
def test_complete_values_come_back(key: str, data: st.DataObject) -> None:
    value = data.draw(strategies.values(SCHEMAS[key]))
    invariants.what_is_built_parses(value)
    invariants.layout_has_no_gap(value)
    invariants.survives_json(value)
    invariants.survives_pickling(value)


@EVERY_SCHEMA
@SOME
@given(data=st.data())
def test_what_is_left_out_is_computed(key: str, data: st.DataObject) -> None:
    schema = SCHEMAS[key]
    invariants.what_is_left_out_is_computed(schema, data.draw(strategies.partial(schema)))


@pytest.mark.parametrize("key", [key for key in KEYS if strategies.has_integers(SCHEMAS[key])])
@SOME
@given(data=st.data())
def test_wrong_values_stay(key: str, data: st.DataObject) -> None:
    invariants.wrong_values_stay(*data.draw(strategies.misfits(SCHEMAS[key])))


@pytest.mark.requirement(
    "MQMQ-2.2.18.1.4-03",
    "MQMQ-2.2.18.1.4-04",
    "MQMQ-2.2.18.1.5.2-04",
    "MQMQ-2.2.19.3-47",
    "MQMQ-2.2.20.1-08",
)
@given(message=strategies.remote_read_messages(), seed=st.binary(min_size=1, max_size=3))
def test_padding_may_hold_anything(message: Record, seed: bytes) -> None:
    invariants.padding_may_hold_anything(message, seed)


@pytest.mark.requirement("MQQB-2.2.3.1-19")
@given(packet=strategies.packet(ESTABLISH_CONNECTION), padding=st.binary(min_size=512, max_size=512))
def test_the_padding_of_a_request_may_hold_anything(packet: Record, padding: bytes) -> None:
    header = packet.EstablishConnectionHeader
    changed = packet.replace(EstablishConnectionHeader=header.replace(Padding=padding))
    assert changed.to_bytes() == packet.to_bytes()[:60] + padding
    invariants.only_malformed_packet_is_raised(changed.to_bytes())
    invariants.what_is_built_parses(changed)


@pytest.mark.requirement("MQMQ-2.2.20-11")
@given(packet=strategies.packet(USER_MESSAGE))
def test_headers_start_on_multiples_of_4(packet: Record) -> None:
    fields = list(layout(packet))
    if not (packet.TrailingData or any(isinstance(field.value, OddPadding) for field in fields)):
        starts: dict[str, int] = {}
        for field in fields:
            starts.setdefault(field.path.partition(".")[0], field.offset)
        assert {header: start % 4 for header, start in starts.items()} == dict.fromkeys(starts, 0)


# A test that cannot fail is a defect: the strategies must reach every form.


def forms(value: Record) -> Iterator[tuple[str, object]]:
    """The forms in a value: which parts are present, in which form, and which bits are set."""
    for part in value.schema.parts:
        name, content = f"{value.schema.key}.{part.name}", value.get(part.name)
        if isinstance(part, Maybe | Choice):
            yield name, content and content.schema.key if isinstance(content, Record) else content is not None
        if isinstance(part, Raw) and part.length is REST:
            yield name, bool(content)
        if isinstance(part, Flags):
            yield from ((f"{name}.{bit}", bool(bits)) for bit, bits in content.bits().items())
        if isinstance(content, Record):
            yield from forms(content)
        for item in content if isinstance(content, list) else ():
            yield from forms(item)


def all_forms(schema: Header) -> Iterator[tuple[str, object]]:
    """Every form that `forms` may return, except those of list items."""
    for part in schema.parts:
        name = f"{schema.key}.{part.name}"
        if isinstance(part, Choice):
            yield from ((name, arm.key if arm else False) for arm in part.arms.values())
            for arm in part.arms.values():
                yield from all_forms(arm) if arm else ()
        elif isinstance(part, Maybe):
            inner = getattr(part.node, "header", None)
            yield from ((name, False), (name, inner.key if inner else True))
            yield from all_forms(inner) if inner else ()
        elif isinstance(part, Raw) and part.length is REST:
            yield from ((name, False), (name, True))
        elif isinstance(part, Flags):
            yield from ((f"{name}.{bit.name}", value) for bit in part.parts for value in (False, True))
        elif hasattr(part, "header"):
            yield from all_forms(part.header)


class EveryForm(Exception):
    """Every form has come: no more values are needed."""


def test_values_come_in_every_form() -> None:
    schema = REMOTE_READ_MESSAGE  # it has all the headers of a UserMessage
    seen: set[tuple[str, object]] = set()
    texts_as_bytes: set[str] = set()
    odd_padding: set[str] = set()
    forms_needed = set(all_forms(schema))
    texts_needed = {"MessagePropertiesHeader.Label", "SoapHeader.Header", "SRMPEnvelopeHeader.Data"}

    @settings(max_examples=1500, phases=[Phase.generate])
    @given(value=strategies.values(schema))
    def collect(value: Record) -> None:
        seen.update(forms(value))
        for field in layout(value):
            path = field.path.partition("[")[0]
            if isinstance(field.value, OddPadding):
                odd_padding.add(path)
            elif type(field.node).__name__ == "Text" and isinstance(field.value, bytes):
                texts_as_bytes.add(path)
        has_all = forms_needed <= seen and texts_needed <= texts_as_bytes
        if has_all and "SoapHeader.HeaderPadding" in odd_padding and len(odd_padding) > 1:
            raise EveryForm

    with suppress(EveryForm):
        collect()
    assert forms_needed <= seen
    assert texts_needed <= texts_as_bytes
    assert "SoapHeader.HeaderPadding" in odd_padding
    assert len(odd_padding) > 1


def test_a_pickle_is_read_by_a_fresh_interpreter() -> None:
    """As on a Spark worker that has parsed nothing yet."""
    values = [schema.make() for schema in (USER_MESSAGE, ESTABLISH_CONNECTION)]
    script = "import pickle, sys; print([v.to_bytes().hex() for v in pickle.load(sys.stdin.buffer)])"
    ran = subprocess.run(
        [sys.executable, "-c", script], input=pickle.dumps(values), capture_output=True, check=False
    )
    assert ran.stderr == b""
    assert ran.stdout.decode().strip() == str([value.to_bytes().hex() for value in values])
