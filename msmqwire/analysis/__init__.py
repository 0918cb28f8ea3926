"""Analysis of captures: their packets, findings, the fate of messages, reports and diagrams."""
