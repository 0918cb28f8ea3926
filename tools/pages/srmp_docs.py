"""Writes `docs/srmp.md`: the elements of an SRMP envelope, from their declarations.

python tools/pages/srmp_docs.py            writes the page
python tools/pages/srmp_docs.py --check    fails if the page is out of date
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from msmqwire.srmp.elements import Base64, Element, Group, Identifier, Ignored, Number, Text  # noqa: E402
from msmqwire.srmp.scan import DEPTH_MAX, ELEMENTS_MAX, SIZE_MAX, TAG_MAX  # noqa: E402
from msmqwire.srmp.schema import ENVELOPE  # noqa: E402
from tools.pages.generated_pages import row, write_or_check  # noqa: E402

TARGET: Final = ROOT / "docs" / "srmp.md"
HEAD: Final = f"""\
---
hide:
  - toc
---

# SRMP envelopes

MSMQ over HTTP carries a message's attributes in the header of a SOAP envelope ([MC-MQSRM] 2.2).
`msmqwire.srmp.envelope` reads and writes it; the tables are made from the declarations in
`msmqwire/srmp/schema.py` by `python tools/pages/srmp_docs.py`.

```python
from msmqwire.srmp.envelope import build_envelope, envelope_from_json, parse_envelope

envelope = parse_envelope(data)             # MalformedPacket with path and byte offset
envelope.path.to                            # elements under their own names; None if they are not there
envelope.departures                         # where the bytes differ from the text, and were accepted
other = envelope.replace(path=envelope.path.replace(to="http://other/msmq/private$/q"))
build_envelope(other)                       # as [MC-MQSRM] 3.1.7.2.4 writes it; InvalidValue
envelope_from_json(envelope.to_json())      # equal to envelope
```

An envelope that was parsed and not changed is built as the bytes that it came from. One that was changed is
written anew, without white space between elements and in the order of the tables; departures that examples
of the specification have are accepted, but never written. Elements that nobody declared are kept
(`envelope.unknown`) and written back; one in the header with `mustUnderstand="1"` makes the envelope
malformed.

Text that is not well-formed, is not UTF-8 or has a document type or entity is refused, as is more than
{SIZE_MAX:,} bytes, {ELEMENTS_MAX:,} elements, {DEPTH_MAX} levels or {TAG_MAX:,} bytes in one tag.

JSON has an object for each group under `Header`, texts as they are on the wire, numbers as numbers, bytes in
hexadecimal, empty elements as `true` and names of queues as lists.
"""
COLUMNS: Final = ["element", "section", "times", "content", "meaning", "Message", "requirements"]


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD, _section(ENVELOPE, "Envelope", nested=False)]
    header = ENVELOPE.child("Header")
    assert isinstance(header, Group)
    for group in header.children:
        assert isinstance(group, Group)
        parts.append(_section(group, group.name))
    return "\n".join(parts)


def _section(group: Group, heading: str, *, nested: bool = True) -> str:
    lines = [f"## {heading}", "", f"Namespace `{group.namespace}`.", ""]
    lines += [row(COLUMNS), row(["---"] * len(COLUMNS))]
    lines += [row(cells) for cells in _rows(group, "", nested)]
    return "\n".join([*lines, ""])


def _rows(element: Element, before: str, nested: bool) -> Iterator[list[str]]:
    requirements = "<br>".join(element.req)
    if isinstance(element, Group) and element.must_understand:
        requirements += f"<br>{element.must_understand}"
    yield [
        f"`{before}{element.name}`",
        element.section,
        _times(element),
        _content(element),
        _escaped(element.meaning),
        f"`{element.attribute}`" if element.attribute else "",
        requirements,
    ]
    if isinstance(element, Group):
        for child in element.children:
            yield from _rows(child, f"{before}{element.name}.", nested) if nested else _alone(child, element)


def _alone(child: Element, parent: Element) -> Iterator[list[str]]:
    """The row of an element whose children have tables of their own."""
    yield next(_rows(child, f"{parent.name}.", True))


def _times(element: Element) -> str:
    if isinstance(element, Ignored):
        return "any"
    return str(element.least) if element.least == element.most else f"{element.least} to {element.most}"


def _content(element: Element) -> str:
    words = element.kind
    match element:
        case Group(attributes=attributes, must_understand=must):
            marks = [f"`{name}`" for name in attributes] + ['`se:mustUnderstand="1"`'] * bool(must)
            words += f" with {', '.join(marks)}" if marks else ""
        case Number(maximum=maximum):
            words += f" up to {maximum:,}"
        case Base64(length=int(length)):
            words += f" of {length} bytes"
        case Text(one_of=one_of) if one_of:
            words = " or ".join(f"`{text}`" for text in one_of)
        case Text(starts=starts) if starts:
            words += " that begins with " + ", ".join(f"`{text}`" for text in starts)
        case Identifier(any_text=True):
            words += ", or any text without Msmq"
        case Ignored(departure=True):
            words += ", noted"
    return words


def _escaped(words: str) -> str:
    """Return words as Markdown, except for text between double backquotes."""
    parts = re.split("(``.*?``)", words)
    return "".join(re.sub(r"([*_|<>])", r"\\\1", part) if part[:2] != "``" else part for part in parts)


def main(arguments: list[str] | None = None, target: Path = TARGET) -> int:
    return write_or_check(page, target, "srmp_docs.py", arguments)


if __name__ == "__main__":
    sys.exit(main())
