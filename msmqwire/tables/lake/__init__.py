"""Lakes: captures as a folder of Parquet files that grows with them, exactly once."""

from msmqwire.tables.lake.compaction import TARGET_SIZE, compact_lake
from msmqwire.tables.lake.deleting import delete_from_lake, retain_lake
from msmqwire.tables.lake.following import follow_lake
from msmqwire.tables.lake.history import LakeVersion, lake_history
from msmqwire.tables.lake.lake_change import LakeChange
from msmqwire.tables.lake.reading import read_lake
from msmqwire.tables.lake.runs import LakeCommit
from msmqwire.tables.lake.upgrade import LakeUpgrade, upgrade_lake
from msmqwire.tables.lake.vacuuming import vacuum_lake
from msmqwire.tables.lake.writing import write_lake

__all__ = [
    "TARGET_SIZE",
    "LakeChange",
    "LakeCommit",
    "LakeUpgrade",
    "LakeVersion",
    "compact_lake",
    "delete_from_lake",
    "follow_lake",
    "lake_history",
    "read_lake",
    "retain_lake",
    "upgrade_lake",
    "vacuum_lake",
    "write_lake",
]
