"""Items, packets and messages one below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from msmqwire.analysis.dissection import Item
from msmqwire.analysis.dissection.item import Packet, is_packet
from msmqwire.analysis.dissection.summaries import packet_summary, summary
from msmqwire.analysis.protocols import protocol_of
from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import format_endpoint
from msmqwire.schema import Record
from msmqwire.schema.display import Table, Tabular, line
from msmqwire.schema.showing import completed

ROWS_DEFAULT: Final = 100
_INDEX: Final = "index"
_OF_ITEM: Final = ("time", "frame", "from", "to", "kind", "bytes", "findings", "about")
_OF_PACKET: Final = ("kind", "bytes", "about")


def table(
    things: Iterable[Item] | Iterable[Packet] | Iterable[Tabular], *, limit: int = ROWS_DEFAULT
) -> Table:
    """Return items, packets or messages as a table, a row each, with a summary of each.

    Their ``index``, from 0, is that in a list of them. Rows of items with findings are marked.

    Args:
        things: items of `msmqwire.dissect`, packets or headers, or received messages: all of them of one of
            these three. They are read to their end.
        limit: the most rows, from the first. Those after them are counted.

    Raises:
        ValueError: the limit is negative.
        TypeError: something is none of these, or of another of the three than the first.
    """
    if limit < 0:
        raise ValueError("a limit is not negative")
    rows: list[tuple[str, ...]] = []
    marked: list[int] = []
    count, noun, columns = 0, "row", tuple[str, ...]()
    row_of: Callable[[Any], tuple[str, ...]] = _row_of_item
    for count, thing in enumerate(things, 1):
        its_noun, its_columns, its_row_of = _shown_as(thing)
        if count == 1:
            noun, columns, row_of = its_noun, its_columns, its_row_of
        elif its_noun != noun:
            raise TypeError(f"a table has {noun}s or {its_noun}s, not both: number {count - 1} is one")
        if len(rows) < limit:
            if isinstance(thing, Item) and thing.findings:
                marked.append(len(rows))
            rows.append((str(count - 1), *map(line, row_of(thing))))
    return Table(noun, (_INDEX, *columns), tuple(rows), frozenset(marked), count - len(rows))


def _shown_as(thing: object) -> tuple[str, tuple[str, ...], Callable[[Any], tuple[str, ...]]]:
    """Return the name of a thing, its columns, and the function that makes its row."""
    if isinstance(thing, Item):
        return "item", _OF_ITEM, _row_of_item
    if is_packet(thing):
        return "packet", _OF_PACKET, _row_of_packet
    if isinstance(thing, Tabular):
        return *thing._table_head(), type(thing)._table_row
    raise TypeError(f"a table has items, packets or messages, not {type(thing).__name__}")


def _row_of_item(item: Item) -> tuple[str, ...]:
    return (
        item.time or "-",
        str(item.frames[-1]) if item.frames else "",
        format_endpoint(item.src, item.src_port),
        format_endpoint(item.dst, item.dst_port),
        item.kind,
        f"{item.size:,}",
        f"{len(item.findings):,}" if item.findings else "",
        summary(item),
    )


def _row_of_packet(packet: Packet) -> tuple[str, ...]:
    if isinstance(packet, Record):
        return _row_of_record(packet)
    protocol = protocol_of(packet)
    assert protocol is not None
    return protocol.packets.kind_of(packet), "", packet_summary(packet)


def _row_of_record(record: Record) -> tuple[str, ...]:
    try:
        data, whole = completed(record)
    except (InvalidValue, MalformedPacket) as exc:
        return record.schema.name, "", f"No bytes: {exc}"
    return record.schema.name, f"{len(data):,}", packet_summary(whole) or repr(record)
