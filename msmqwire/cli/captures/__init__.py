"""The commands that read captures."""
