"""A service in virtual time: the loop, the lives of its process, and its links, with their faults."""
