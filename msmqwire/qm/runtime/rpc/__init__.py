"""RPC of a running queue manager: connections, and who calls."""
