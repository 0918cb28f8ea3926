"""Targets of an exporter without a network."""
