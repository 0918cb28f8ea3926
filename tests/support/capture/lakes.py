"""Captures for lakes, and the views of different readers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import msmqwire
from msmqwire.tables.flow_number import FlowNumbers
from msmqwire.tables.lake.place import lake_place
from msmqwire.tables.lake.reading import lake_contents
from msmqwire.tables.lake.state import LakeState
from msmqwire.tables.lake.table import LakeFile, opened
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.installed import library

DAY_NS = 86_400 * 10**9
MIDNIGHT_NS = c.START_NS // DAY_NS * DAY_NS
UNKNOWN = ("frame", "file")
"""Not the same in a part of a capture, and in a file of another name."""


def message(number: int, queue: str = r"OS:alpha\private$\orders", size: int = 300) -> bytes:
    user = h.user_header(message_id=number, destination=(7, h.direct_name(queue)))
    return h.user_message(user=user, properties=h.properties_header(label=f"{number}", body=bytes(size)))


def traffic(
    count: int,
    *,
    first: int = 0,
    port: int = 50_000,
    start_ns: int = c.START_NS,
    queues: Sequence[str] = (r"OS:alpha\private$\orders",),
    disordered: bool = False,
) -> list[c.Frame]:
    """The frames of a connection with a number of messages."""
    talk = c.TcpConversation((c.CLIENT, port), start_ns=start_ns)
    talk.handshake().send(h.establish_connection()).send(h.establish_connection(), by_client=False)
    for number in range(first, first + count):
        talk.send(message(number, queues[number % len(queues)]))
    frames = talk.frames
    if disordered:
        frames = c.disorder(frames, random.Random(count), reorder=0.2, duplicate=0.1)
    return frames


def write_capture(path: Path, frames: Iterable[c.Frame], *, pcapng: bool = False) -> Path:
    """Write frames as a capture, in place of any file there."""
    path.write_bytes((c.pcapng_bytes if pcapng else c.pcap_bytes)(list(frames)))
    return path


def rows_of(table: pa.Table) -> Counter[str]:
    """The rows of a table of a lake that a reader of the whole capture has too."""
    names = [name for name in table.column_names if name not in ("date", "queue", "time", "part", *UNKNOWN)]
    return Counter(repr(sorted(row.items())) for row in table.select(names).to_pylist())


def expected_rows(paths: Iterable[Path], **options: Any) -> Counter[str]:
    """The rows of these captures, as a lake has them."""
    batches = []
    for batch in msmqwire.read_capture([str(path) for path in paths], batch_rows=1000, **options):
        flows = FlowNumbers().column(batch)
        numbered = batch.set_column(batch.schema.get_field_index("stream"), "stream", flows)
        batches.append(numbered.append_column("time_ns", batch.column("time").view(pa.int64())))
    return rows_of(pa.Table.from_batches(batches)) if batches else Counter()


def delta_rows(lake: Path) -> Counter[str]:
    """The rows for another reader of Delta tables."""
    return rows_of(library("polars").read_delta(str(lake)).to_arrow())


def named_rows(lake: Path) -> Counter[str]:
    """The rows of the last version."""
    return rows_of(msmqwire.read_lake(lake).to_table())


def files_of(lake: Path) -> list[LakeFile]:
    """The files of the last version."""
    return lake_contents(lake).files


def state_of(lake: Path) -> LakeState:
    """The state of the last version."""
    found = opened(lake_place(lake))
    assert found is not None
    return found[1]


def state_file(lake: Path) -> Path:
    """The only file of a state."""
    (path,) = (lake / "_msmqwire").iterdir()
    return path


def all_files(lake: Path) -> set[str]:
    return {str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file()}


class Growth(NamedTuple):
    """A lake, and captures, one of which has grown and one of which is new since.

    Attributes:
        lake: its folder.
        captures: the captures now.
        old, new: the rows of the lake, and those after a run.
    """

    lake: Path
    captures: list[Path]
    old: Counter[str]
    new: Counter[str]

    def check_readers(self, lake: Path) -> None:
        """Readers find all or nothing of the run, and the files of the version are whole."""
        assert named_rows(lake) in (self.old, self.new)

    def check_complete(self, lake: Path) -> None:
        """All of the run is there, for other readers of Delta tables too."""
        assert named_rows(lake) == delta_rows(lake) == self.new


def grown(folder: Path, split_size: int) -> Growth:
    """Make such a lake and such captures in a folder."""
    captures = [folder / name for name in ("0.pcap", "1.pcap", "2.pcap")]
    frames = c.merged(traffic(7, disordered=True), traffic(3, port=50_001, start_ns=c.START_NS + DAY_NS))
    content = write_capture(captures[0], frames).read_bytes()
    captures[0].write_bytes(content[: len(content) // 2])
    write_capture(captures[1], traffic(3, port=50_002))
    lake, made = folder / "before", folder / "made"
    msmqwire.write_lake(captures[:2], lake, split_size=split_size)
    captures[0].write_bytes(content)
    write_capture(captures[2], traffic(4, port=50_003))
    msmqwire.write_lake(captures, made, split_size=split_size)
    return Growth(lake, captures, named_rows(lake), named_rows(made))
