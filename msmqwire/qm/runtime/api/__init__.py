"""The HTTP API of a running queue manager: one table of routes makes its answers and its document."""
