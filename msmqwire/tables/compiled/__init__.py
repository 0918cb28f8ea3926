"""What is compiled, and how: the scan over the records of a capture, and the cells that it fills."""
