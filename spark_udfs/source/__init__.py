"""The data source `msmq`: options, parts of a load, and what a task makes of its part."""
