"""From the rows of a scan to the cells, columns and record batches of Arrow."""
