"""Which Python Spark starts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SHOW = "import os, spark_udfs; print(os.environ.get('PYSPARK_PYTHON'))"


@pytest.mark.parametrize("named", [None, "/usr/bin/other"])
def test_spark_starts_this_python_unless_another_is_named(named: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    if named is not None:
        environment["PYSPARK_PYTHON"] = named
    run = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, check=True)
    assert run.stdout.decode().strip() == (named or sys.executable)


def test_what_the_package_hands_out_is_not_hidden_by_its_modules() -> None:
    import spark_udfs
    from spark_udfs import functions
    from spark_udfs.reassembly import packets
    from spark_udfs.source import data_source

    assert spark_udfs.packets is packets.packets
    assert callable(spark_udfs.register)
    assert data_source.MsmqDataSource.name() == "msmq"
    assert "msmq_parse" in functions.FUNCTIONS
