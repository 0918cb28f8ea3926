"""Pings, [MS-MQQB] 2.2.7: what is sent to the ping port of a peer, and what a right peer does."""
