"""The arrays over which a scan works, as records that are passed to compiled functions as a whole.

A record is made anew where one of its arrays is replaced by a larger one.
"""

from __future__ import annotations

from typing import NamedTuple

from msmqwire.tables.compiled.arrays import Bytes, Input, Int32Rows, Int32s, Int64Rows, Int64s


class ScanArrays(NamedTuple):
    """The input, what is known of it, and the rows that come of it.

    Attributes:
        state: the state of the scan; see `msmqwire.tables.compiled.state`.
        memory: the bytes of the input, then the arena: room for packets that came in several segments.
        header: the header of the current datagram; see `msmqwire.tables.compiled.network`.
        pending_segments: the segments, or parts of them, that are buffered; see
            `msmqwire.tables.compiled.flow_table`.
        pending_bytes: their bytes.
        rows: the rows; see `msmqwire.tables.compiled.state`.
        field_offsets: for each row where the fields of its packet stand; see
            `msmqwire.tables.compiled.generated`.
        rollback: room for a copy of a flow and of the state.
        frames: the frames of packets that came in several; see R_FRAMES of `msmqwire.tables.compiled.state`.
    """

    state: Int64s
    memory: Bytes
    header: Int64s
    pending_segments: Int64Rows
    pending_bytes: Bytes
    rows: Int64Rows
    field_offsets: Int32Rows
    rollback: Int64s
    frames: Int64s


class FlowArrays(NamedTuple):
    """The flows of the scan.

    Attributes:
        table: a hash table that finds the number of a flow by its key. keys: the key of each flow: the first
        fields of a datagram's header. flows: the state of each flow; see
        `msmqwire.tables.compiled.flow_table`. The two flows of a connection
            have an even number and the next one, that of its first segment the even one.
        free_numbers: even numbers that are not in use, as many as the state says.
        chosen: room for the numbers of connections.
        events: the events of flows; see `msmqwire.tables.compiled.flow_events`.
    """

    table: Int32s
    keys: Int64Rows
    flows: Int64Rows
    free_numbers: Int64s
    chosen: Int64s
    events: Int64Rows


class RowBlock(NamedTuple):
    """Rows from which cells are made.

    Attributes:
        rows: the rows; see `msmqwire.tables.compiled.state`.
        field_offsets: for each row where the fields of its packet stand.
        memory: the bytes to which the rows refer.
    """

    rows: Int64Rows
    field_offsets: Int32Rows
    memory: Input
