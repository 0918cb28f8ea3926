"""What numba compiles, and how: the scan over the records of a capture, and the cells that it fills."""
