"""Lakes: captures as a folder of Parquet files that grows with them, exactly once."""

from msmqwire.lake.reading import read_lake
from msmqwire.lake.writing import LakeCommit, write_lake

__all__ = ["LakeCommit", "read_lake", "write_lake"]
