"""The jobs that `spark-submit` runs, and what they share."""
