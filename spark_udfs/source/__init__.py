"""The data source `msmq`: its options, the partitions of a load, and the rows of a partition."""
