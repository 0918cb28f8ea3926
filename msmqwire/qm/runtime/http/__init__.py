"""HTTP of a running queue manager: its listener and its sender."""
