"""HTTP of a running queue manager: what it takes, and what it sends."""
