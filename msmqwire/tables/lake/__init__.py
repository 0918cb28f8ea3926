"""Lakes: captures as a folder of Parquet files that grows with them, exactly once."""

from msmqwire.tables.lake.following import follow_lake
from msmqwire.tables.lake.reading import read_lake
from msmqwire.tables.lake.runs import LakeCommit
from msmqwire.tables.lake.upgrade import LakeUpgrade, upgrade_lake
from msmqwire.tables.lake.writing import write_lake

__all__ = ["LakeCommit", "LakeUpgrade", "follow_lake", "read_lake", "upgrade_lake", "write_lake"]
