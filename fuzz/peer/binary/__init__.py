"""The binary protocol, [MS-MQQB]: sessions with a peer, the steps sent to it, and the behaviour of a right
peer.
"""
