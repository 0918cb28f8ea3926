"""The maintenance of a lake in a store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow.fs as fs
import pytest

import msmqwire
from msmqwire.tables.lake import (
    compact_lake,
    delete_from_lake,
    lake_history,
    retain_lake,
    vacuum_lake,
)
from tests.support import captures as c
from tests.support.capture.lakes import expected_rows, rows_of, traffic, write_capture
from tests.support.capture.s3_server import S3Server, s3_server

BUCKET = "captures"
URL = f"s3://{BUCKET}/a lake/of=ours"
QUEUES = (r"OS:alpha\private$\orders", 'TCP:1.2.3.4\\it\'s "q"')
WHERE = "kind == 'UserMessage' and label like '1%'"


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        server.filesystem().create_dir(BUCKET)
        yield server


def data_files(server: S3Server) -> set[str]:
    found = server.filesystem().get_file_info(fs.FileSelector(URL[5:], recursive=True))
    return {one.path for one in found if one.extension == "parquet" and "/date=" in one.path}


@pytest.mark.parametrize("by", [None, "destination"])
def test_all_kinds_of_maintenance(server, tmp_path, by):
    options = {"storage_options": server.options}
    captures: list[Path] = []
    for number in range(3):
        captures.append(
            write_capture(tmp_path / f"{number}.pcap", traffic(12, port=50_000 + number, queues=QUEUES))
        )
        msmqwire.write_lake(captures, URL, by=by, split_size=4000, **options)

    def rows() -> object:
        return rows_of(msmqwire.read_lake(URL, **options).to_table())

    before = msmqwire.read_lake(URL, **options).files
    done = compact_lake(URL, **options)
    assert done.files_removed == len(before)
    assert done.files_added == (1 if by is None else 3)
    assert rows() == expected_rows(captures)
    assert delete_from_lake(URL, WHERE, **options).rows_deleted == 9
    assert rows() == expected_rows(captures) - expected_rows(captures, where=WHERE)
    edge_ns = c.START_NS + 5 * 10**6
    assert retain_lake(URL, timedelta(0), now_ns=edge_ns, **options).rows_deleted
    left = rows()
    old = f"{WHERE} or time < '{edge_ns // 10**9}.{edge_ns % 10**9:09}'"
    assert left == expected_rows(captures) - expected_rows(captures, where=old)
    with server.filesystem().open_output_stream(f"{URL[5:]}/README") as readme:
        readme.write(b"ours")
    tried = vacuum_lake(URL, timedelta(0), dry_run=True, **options)
    removed = vacuum_lake(URL, timedelta(0), **options)
    assert removed.files_removed == tried.files_removed > len(before)
    assert removed.bytes_removed == tried.bytes_removed > 0
    assert len(data_files(server)) == len(msmqwire.read_lake(URL, **options).files)
    assert server.filesystem().get_file_info(f"{URL[5:]}/README").size == 4
    assert rows() == left
    assert vacuum_lake(URL, timedelta(hours=1), **options).files_removed == 0
    operations = [one.operation for one in lake_history(URL, **options)]
    assert operations == ["retain", "delete", "compact", "write", "write", "write"]
