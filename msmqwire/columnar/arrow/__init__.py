"""From the rows that the scan found to the cells, columns and record batches of Arrow."""
