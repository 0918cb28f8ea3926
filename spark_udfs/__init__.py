"""Spark jobs, functions and the ``msmq`` data source over captures of the MSMQ protocols."""
