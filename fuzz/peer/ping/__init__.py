"""Pings, [MS-MQQB] 2.2.7: datagrams to the ping port of a peer, and the behaviour of a right peer."""
