"""RPC of a running queue manager: connections and callers."""
