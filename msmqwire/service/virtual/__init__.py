"""A service in virtual time: the loop, its processes, and its links, with their faults."""
