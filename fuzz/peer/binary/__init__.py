"""The binary protocol, [MS-MQQB]: sessions with a peer, what is sent to it, and what a right peer does."""
