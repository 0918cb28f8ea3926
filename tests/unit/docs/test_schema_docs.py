"""The pages and diagrams of the wire format, generated from the schemas."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from msmqwire.headers import BASE_HEADER, MESSAGE_PROPERTIES_HEADER, USER_HEADER
from msmqwire.schema import REST, TO_NULL, Align, Close, Flags, Header, Ref, View
from tests.support.installed import library
from tests.support.paths import ROOT
from tools.pages.schema_diagrams import Cell, Mark, diagram
from tools.pages.schema_docs import pages
from tools.pages.schema_words import length_words, page_name, size_words, structures

STRUCTURES = structures()
SVG = "{http://www.w3.org/2000/svg}"
PAGES = pages()
EVERY_STRUCTURE = pytest.mark.parametrize("header", STRUCTURES.values(), ids=STRUCTURES.keys())


def page(name: str) -> str:
    return PAGES[f"{name}.md"]


def labels(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_the_hook_adds_every_page_to_the_site() -> None:
    load_config = library("mkdocs.config").load_config
    Files = library("mkdocs.structure.files").Files
    config = load_config(str(ROOT / "mkdocs.yml"))
    files = [
        file for file in config.plugins.on_files(Files([]), config=config) if file.src_uri.startswith("wire/")
    ]
    assert {file.src_uri: file.content_string for file in files} == {
        f"wire/{name}": content for name, content in PAGES.items()
    }
    assert next(iter(files)).src_uri == "wire/index.md"


def test_every_structure_of_a_fresh_process_has_its_page() -> None:
    modules = "msmqwire.headers, msmqwire.packets, msmqwire.ncp.packets, msmqwire.ncp.print_record"
    source = f"import {modules}, msmqwire.schema as s; print(*s.SCHEMAS, sep='\\n')"
    command = [sys.executable, "-c", source]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(run.stdout.splitlines()) == set(STRUCTURES)


@EVERY_STRUCTURE
def test_every_field_is_on_its_page_and_in_its_diagram(header: Header) -> None:
    content = page(page_name(header))
    drawn = labels(PAGES[f"{page_name(header)}.svg"])
    for part in header.parts:
        if isinstance(part, Close):
            continue
        assert f">{part.name}</code>" in content
        assert part.name in drawn or isinstance(part, View)
        for name in part.req:
            assert name in content
        if isinstance(part, Flags):
            svg = PAGES[f"{page_name(header)}-{part.name}.svg"]
            for bits in part.parts:
                assert f"`0x{bits.mask:0{part.bits // 4}X}` | <code" in content
                assert f">{bits.name}</code>" in content
                assert bits.name in labels(svg)


@EVERY_STRUCTURE
def test_diagrams_are_inline_and_nothing_is_cut(header: Header) -> None:
    content = page(page_name(header))
    pictures = re.findall(r"<svg.*?</svg>", content, re.DOTALL)
    assert len(pictures) == 1 + sum(isinstance(part, Flags) for part in header.parts)
    ids = re.findall(r' id="([^"]*)"', content)
    assert len(ids) == len(set(ids))
    for picture in pictures:
        svg = ElementTree.fromstring(picture)
        width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
        assert svg.findtext(f"{SVG}title")
        assert svg.findtext(f"{SVG}desc")
        assert svg.attrib["viewBox"] == f"0 0 {width:g} {height:g}"
        for label in svg.iter(f"{SVG}text"):
            size = float(label.attrib.get("font-size", "10"))
            assert size >= 7
            upwards = label.attrib.get("transform", "").startswith("rotate(-90 ")
            assert size * len(label.text or "") * 0.6 <= (height if upwards else width)
            assert float(label.attrib["y"]) < height


def test_every_structure_is_in_the_index() -> None:
    index = page("index")
    for header in STRUCTURES.values():
        assert f"]({page_name(header)}.md) | " in index
    assert "| [TransactionHeader](TransactionHeader.md) | if UserHeader.Flags.TH is not 0 | " in index
    assert "| [ExtensionHeader](ExtensionHeader.md) | if bytes are left | " in index


def test_netware_is_a_group_of_its_own() -> None:
    rest, _, netware = page("index").partition("\n## NetWare\n")
    for header in STRUCTURES.values():
        of_ncp = header.key.startswith(("Ncp", "NW"))
        assert (f"]({page_name(header)}.md)" in rest) == (not of_ncp)
        assert f"]({page_name(header)}.md)" in (netware if of_ncp else rest)
    row = next(line for line in netware.splitlines() if line.startswith("| 23/102 |"))
    assert ">ReadQueueCurrentStatusOld</code> | [NcpQueue](NcpQueue.md) |" in row
    assert row.count("](NcpOldQueueCurrentStatus") == 2
    assert "uint32, big-endian" in page("NcpJobOfQueue")


def test_the_flags_of_user_header() -> None:
    rows = [line for line in page("UserHeader").splitlines() if line.startswith("| 10 to 12 |")]
    assert len(rows) == 1
    assert rows[0].startswith(
        "| 10 to 12 | `0x00001C00` | <code style='white-space:nowrap'>DQ</code> | computed |"
    )
    assert "Form of DestinationQueue." in rows[0]
    assert "MQMQ-2.2.19.2-21" in rows[0]
    assert "| 7 | [DirectQueueFormatName](DirectQueueFormatName.md) | 2 bytes or more |" in page("UserHeader")


def test_the_diagram_of_base_header() -> None:
    svg = PAGES["BaseHeader.svg"]
    names = [label for label in labels(svg) if not label.isdigit()]
    assert names == [part.name for part in BASE_HEADER.parts]
    assert labels(svg)[35:].count("12") == 1  # the offset of TimeToReachQueue


def test_offsets_and_sizes_in_the_field_table() -> None:
    lines = page("MessagePropertiesHeader").partition("## Fields")[2].partition("##")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if "</code>" in line]
    cells_by_field = {re.sub("<.*?>", "", cells[3]): (cells[0], unescape(cells[1])) for cells in rows}
    assert list(cells_by_field) == [part.name for part in MESSAGE_PROPERTIES_HEADER.parts]
    assert cells_by_field["CorrelationID"] == ("4", "20 bytes")
    assert cells_by_field["Label"] == ("56", "LabelLength \N{MULTIPLICATION SIGN} 2 bytes")
    assert cells_by_field["MessageBody"] == ("after ExtensionData", "MessageSize bytes")
    slack = "AllocationBodySize \N{MINUS SIGN} MessageSize bytes, or none"
    assert cells_by_field["MessageBodySlack"] == ("after MessageBody", slack)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (1, "1 byte"),
        (Ref("N"), "N bytes"),
        (Ref("N", times=2, plus=-4), "N \N{MULTIPLICATION SIGN} 2 \N{MINUS SIGN} 4 bytes"),
        (Ref("N", per=8), "N \N{DIVISION SIGN} 8, rounded up, bytes"),
        (Ref("N", over="M"), "N \N{MINUS SIGN} M bytes, or none"),
        (REST, "all that is left"),
        (TO_NULL, "up to and including the first null character"),
    ],
)
def test_lengths_in_words(length: object, words: str) -> None:
    assert length_words(length) == words


@pytest.mark.parametrize(
    ("of", "start"),
    [
        ("", "this structure"),
        ("*", "the outermost structure"),
        ("UserHeader", "the UserHeader around it, else of this structure"),
    ],
)
def test_padding_in_words(of: str, start: str) -> None:
    words = f"0 to 7 bytes: up to a multiple of 8 from the start of {start}"
    assert size_words(Align("Padding", 8, of), USER_HEADER) == words


def test_a_diagram_has_32_bits_a_row() -> None:
    cells = [
        Cell("A", bits=8),
        Cell("Across", "6 bytes", bits=48),
        Cell("C", bits=8),
        Cell("Long", "512 bytes", bits=4096),
        Cell("Any", "N bytes"),
        Mark("Size counts no further"),
        Cell("Late", bits=32),
    ]
    svg = ElementTree.fromstring(diagram(cells, name="d", title="<T>", description="D"))
    at = {label.text: float(label.attrib["y"]) for label in svg.iter(f"{SVG}text")}
    assert at["A"] == at["Across"] < at["C"]
    order = [at[name] for name in ("C", "Long", "Any", "Size counts no further", "Late")]
    assert all(above < below for above, below in pairwise(order))
    offsets = [label.text for label in svg.iter(f"{SVG}text") if label.attrib.get("text-anchor") == "end"]
    assert offsets == ["0", "8", "520"]  # none after a field of variable size
    assert svg.findtext(f"{SVG}title") == "<T>"
