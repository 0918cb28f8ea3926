"""The written code of structures is what the schemas say, and only the library's own schemas use it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest

from msmqwire.headers import BASE_HEADER
from msmqwire.packets import ESTABLISH_CONNECTION, SESSION_ACK, USER_MESSAGE
from msmqwire.schema import SCHEMAS, Header, Record, codec, json_text, plain, to_json, uint
from msmqwire.schema.codec import Codec
from msmqwire.schema.codec_build import BuilderSource
from msmqwire.schema.codec_module import module_source
from msmqwire.schema.codec_parse import ParserSource
from msmqwire.schema.codec_support import Refused
from msmqwire.schema.generated import COMPOSED, WRITTEN
from msmqwire.schema.references import stands_alone
from tests.support import handmade as h
from tests.support.paths import ROOT

GENERATED = ROOT / "msmqwire" / "schema" / "generated"
MESSAGE = USER_MESSAGE.build(
    {
        "UserHeader": {"DestinationQueue": {"DirectFormatName": "TCP:10.0.0.2\\orders"}},
        "TransactionHeader": {},
        "MessagePropertiesHeader": {"Label": "order 7", "MessageBody": b"body"},
        "SoapHeader": {"Header": "a", "Body": "b"},
        "MultiQueueFormatHeader": {},
        "SessionHeader": {},
    }
)
DECLARED_LATE = """
import sys
import msmqwire.schema.nodes as nodes
from msmqwire.schema import Header, uint

own = Header({name!r}, "[EXAMPLE] 1", (uint(16, "Number"),))
assert own.parse(bytes([7, 1])).Number == 263
assert own.build({{"Number": 263}}) == bytes([7, 1])
assert own.codec.read_trusted.__code__.co_filename == "<generated readers of {name}>"
"""


@pytest.fixture
def declared() -> Iterator[Header]:
    header = Header("ReceiptHeader", "[EXAMPLE] 2.1", (uint(32, "Number"),))
    yield header
    del SCHEMAS[header.key]


def test_generated_code_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "generate" / "codec_code.py", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_code_that_is_up_to_date_is_not_written_again() -> None:
    """Others may import or copy it while the library is installed once more."""
    before = {path: path.stat() for path in GENERATED.rglob("*.py")}
    subprocess.run([sys.executable, ROOT / "tools" / "generate" / "codec_code.py"], check=True)
    after = {path: path.stat() for path in GENERATED.rglob("*.py")}
    assert before
    assert {p: (s.st_ino, s.st_mtime_ns) for p, s in before.items()} == {
        p: (s.st_ino, s.st_mtime_ns) for p, s in after.items()
    }


def test_each_structure_of_the_library_has_written_code() -> None:
    assert len(WRITTEN) > 170
    for key, (module, declaring, name) in WRITTEN.items():
        header = getattr(import_module(declaring), name)
        readers = import_module(f"msmqwire.schema.generated.readers.{module}")
        writers = import_module(f"msmqwire.schema.generated.writers.{module}")
        json_writers = import_module(f"msmqwire.schema.generated.json_writers.{module}")
        made = Codec(header)
        assert header.key == key
        assert made.read_trusted is readers.FUNCTIONS[key]
        assert made.write_trusted is writers.FUNCTIONS[key]
        assert made.json_trusted is json_writers.FUNCTIONS[key]


def test_the_sources_for_inspection_are_in_the_written_modules() -> None:
    for key, (module, declaring, name) in WRITTEN.items():
        header = getattr(import_module(declaring), name)
        assert stands_alone(header), key
        assert header.codec.parser_source in (GENERATED / "readers" / f"{module}.py").read_text(), key
        assert header.codec.builder_source in (GENERATED / "writers" / f"{module}.py").read_text(), key
        assert header.codec.json_source in (GENERATED / "json_writers" / f"{module}.py").read_text(), key


def test_structures_built_often_have_written_composers() -> None:
    assert COMPOSED == ("UserMessage",)
    for key in COMPOSED:
        module = import_module(f"msmqwire.schema.generated.composers.{WRITTEN[key][0]}")
        made = Codec(SCHEMAS[key])
        assert made.compose_trusted is module.FUNCTIONS[key]
        place = GENERATED / "composers" / f"{WRITTEN[key][0]}.py"
        assert made.composer_source in place.read_text()


def test_an_outside_structure_is_generated_at_its_first_use(declared: Header) -> None:
    made = declared.codec
    record = made.parse(bytes([1, 2, 0, 0]))
    assert (record.Number, made.build(record)) == (513, bytes([1, 2, 0, 0]))
    assert made.parser_source.startswith("def read_ReceiptHeader(data: bytes, p0: int, e0: int)")
    assert made.builder_source.startswith("def write_ReceiptHeader(r0: Any)")
    assert made.compose(513) == bytes([1, 2, 0, 0])
    assert made.composer_source.startswith("def compose_ReceiptHeader(Number: Any) -> bytes:")
    assert made.json_trusted(record) == json_text(record) == '{"Number": 513}'
    assert made.json_source.startswith("def json_ReceiptHeader(r0: Any) -> str:")
    assert made.parser_source in module_source(ParserSource, [declared], "")
    assert made.builder_source in module_source(BuilderSource, [declared], "")


def spoilt(data: bytes) -> Iterator[bytes]:
    """The bytes, cut anywhere, and with any one of them changed."""
    yield data
    for at in range(len(data)):
        yield data[:at]
        yield from (data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :] for mask in (1, 0x20, 0x80, 0xFF))


def outcome(read: Callable[..., tuple[Record, int]], data: bytes) -> object:
    """What a reader returns of bytes that stand between others, or how it refuses them."""
    try:
        record, end = read(b"\0" * 7 + data + b"\0" * 9, 7, 7 + len(data))
    except Refused as refusal:
        return type(refusal)
    return repr(to_json(record)), plain(record), end


@pytest.mark.parametrize(
    "schema, data",
    [
        (BASE_HEADER, BASE_HEADER.build({"PacketSize": 16})),
        (ESTABLISH_CONNECTION, h.establish_connection()),
        (SESSION_ACK, h.session_ack()),
        (USER_MESSAGE, MESSAGE),
    ],
    ids=lambda value: value.name if isinstance(value, Header) else "",
)
def test_written_readers_do_what_those_made_at_first_use_do(schema: Header, data: bytes) -> None:
    """Also where the written ones are compiled: `tests/interop/test_compiled.py`."""
    written, made = schema.codec.read_trusted, codec._compiled("readers", schema)
    outcomes = [outcome(written, bytes_) for bytes_ in spoilt(data)]
    assert outcomes == [outcome(made, bytes_) for bytes_ in spoilt(data)]
    assert 0 < sum(result is Refused for result in outcomes) < len(outcomes)


@pytest.mark.parametrize("name", ["UserMessage", "NWPrintRecord", "BaseHeader"])
def test_a_structure_with_the_name_of_another_has_its_own_layout(name: str) -> None:
    source = DECLARED_LATE.format(name=name)
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr


def test_written_code_reads_any_buffer_of_bytes() -> None:
    data = USER_MESSAGE.build(
        {"UserHeader": {"DestinationQueue": {"DirectFormatName": "TCP:10.0.0.2\\orders"}}}
    )
    expected = USER_MESSAGE.read(data)
    assert USER_MESSAGE.read(bytearray(data)) == expected
    assert USER_MESSAGE.read(memoryview(data)) == expected
    assert type(USER_MESSAGE.read(bytearray(data))[0].TrailingData) is bytes
    for wrong in ("text", 7, None):
        with pytest.raises(TypeError):
            USER_MESSAGE.read(wrong)
