"""The column of findings in Spark: lakes have it, and readers of parts refuse it before any task runs."""

from __future__ import annotations

import io
from typing import Any, cast

import pytest

import msmqwire
import spark_udfs
from msmqwire.analysis.dissection import dissect
from msmqwire.errors import InvalidArgument
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.filters import Filter
from msmqwire.tables.resumable_decoder import ResumableDecoder
from spark_udfs.reassembly.packet_columns import packet_schema
from spark_udfs.source.options import BadOption
from spark_udfs.source.schema import packet_schema as source_schema
from tests.support.paths import EXAMPLES

SESSION = str(EXAMPLES / "session.pcap")
WHY = "leave out finding_ids"


@pytest.mark.parametrize("asked", [{"columns": ["kind", "finding_ids"]}, {"where": "finding_ids is null"}])
def test_a_frame_of_parts_refuses_it(asked: dict[str, Any]) -> None:
    no_session = cast(Any, None)  # it is refused before one is used
    with pytest.raises(BadOption, match=WHY):
        spark_udfs.frame(no_session, SESSION, **asked)


def test_packets_refuse_it() -> None:
    with pytest.raises(InvalidArgument, match=WHY):
        packet_schema(["kind", "finding_ids"])
    with pytest.raises(InvalidArgument, match=WHY):
        spark_udfs.packets(cast(Any, None), SESSION, columns=["finding_ids"])
    assert "finding_ids" not in source_schema(on_request=True).names


def test_a_decoder_that_resumes_refuses_it() -> None:
    for columns, where in ((["finding_ids"], ""), (["kind"], "finding_ids is null")):
        chosen = [BY_NAME[name] for name in columns]
        maker = BatchMaker(chosen, Filter(where or ()), 10, None)
        with pytest.raises(InvalidArgument, match=WHY):
            ResumableDecoder(dissect(io.BytesIO(b""), lint=True), maker)


def test_a_lake_written_by_tasks_has_it(spark, tmp_path):
    lakes = tmp_path / "spark", tmp_path / "here"
    spark_udfs.lake(spark, SESSION, lakes[0], findings=True)
    msmqwire.write_lake(SESSION, lakes[1], findings=True)
    by_spark, here = (
        msmqwire.read_lake(lake).to_table(columns=["time_ns", "kind", "finding_ids"]).to_pylist()
        for lake in lakes
    )
    assert by_spark == here
    assert any(row["finding_ids"] for row in here)
    rows = spark_udfs.read_lake(spark, lakes[0]).where("finding_ids is not null").collect()
    assert len(rows) == sum(row["finding_ids"] is not None for row in here)
