"""Items as people look at them: in one line, and as bytes beside fields."""

from __future__ import annotations

from collections.abc import Iterator

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.dissection.placed_fields import placed_fields
from msmqwire.analysis.dissection.summaries import summary
from msmqwire.names.printable import counted, cut, format_endpoint
from msmqwire.schema.display import View, view_of

ABOUT_MAX = 160
"""Characters of the summary in a ``repr``."""


def one_line(item: Item) -> str:
    """Return an item as its ``repr``."""
    parts = [f"{item.kind} {_ends(item)}", counted(item.size, "byte")]
    if about := summary(item):
        parts.append(cut(about, ABOUT_MAX))
    if item.findings:
        parts.append(counted(len(item.findings), "finding"))
    return f"<Item {item.time or '-'} {', '.join(parts)}>"


def item_view(item: Item) -> View:
    """Return an item as it is shown."""
    return view_of(
        f"{item.kind} {_ends(item)}",
        properties=_properties(item),
        fields=placed_fields(item),
        data=item.raw,
        findings=item.findings,
        remarks=["The body was encrypted; its bytes are as they were sent."] if item.decrypted else [],
    )


def _ends(item: Item) -> str:
    return f"{format_endpoint(item.src, item.src_port)} > {format_endpoint(item.dst, item.dst_port)}"


def _properties(item: Item) -> Iterator[tuple[str, str]]:
    yield "time", item.time or "-"
    frames = ", ".join(map(str, item.frames[:8])) + (", ..." if len(item.frames) > 8 else "")
    yield "frames", f"{frames} of {item.file}"
    yield "transport", item.transport if item.stream is None else f"{item.transport}, stream {item.stream}"
    yield "size", counted(item.size, "byte")
    if about := summary(item):
        yield "about", about
