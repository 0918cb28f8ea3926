"""The written readers and writers are what the schemas say, and only the library's own schemas use them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import pytest

from msmqwire.packets import USER_MESSAGE
from msmqwire.schema import SCHEMAS, Header, uint
from msmqwire.schema.codec import Codec
from msmqwire.schema.codec_build import BuilderSource
from msmqwire.schema.codec_module import module_source
from msmqwire.schema.codec_parse import ParserSource
from msmqwire.schema.generated import WRITTEN
from msmqwire.schema.references import stands_alone
from tests.support.paths import ROOT

GENERATED = ROOT / "msmqwire" / "schema" / "generated"
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
        [sys.executable, ROOT / "tools" / "codec_code.py", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_structure_of_the_library_has_written_code() -> None:
    assert len(WRITTEN) > 170
    for key, (module, declaring, name) in WRITTEN.items():
        header = getattr(import_module(declaring), name)
        readers = import_module(f"msmqwire.schema.generated.readers.{module}")
        writers = import_module(f"msmqwire.schema.generated.writers.{module}")
        codec = Codec(header)
        assert header.key == key
        assert codec.read_trusted is readers.FUNCTIONS[key]
        assert codec.write_trusted is writers.FUNCTIONS[key]


def test_the_sources_for_inspection_are_in_the_written_modules() -> None:
    for key, (module, declaring, name) in WRITTEN.items():
        codec = getattr(import_module(declaring), name).codec
        assert stands_alone(codec.header), key
        assert codec.parser_source in (GENERATED / "readers" / f"{module}.py").read_text(), key
        assert codec.builder_source in (GENERATED / "writers" / f"{module}.py").read_text(), key


def test_a_structure_declared_elsewhere_is_generated_at_its_first_use(declared: Header) -> None:
    codec = declared.codec
    record = codec.parse(bytes([1, 2, 0, 0]))
    assert (record.Number, codec.build(record)) == (513, bytes([1, 2, 0, 0]))
    assert codec.parser_source.startswith("def read_ReceiptHeader(data: bytes, p0: int, e0: int)")
    assert codec.builder_source.startswith("def write_ReceiptHeader(r0: Any)")
    assert codec.parser_source in module_source(ParserSource, [declared], "")
    assert codec.builder_source in module_source(BuilderSource, [declared], "")


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
