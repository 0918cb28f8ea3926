"""A simulation of the queue service: clients and queue servers, a disk that loses unsynced data, faults.

The server is the real one from its TCP connections to its store and volumes; only sockets, the disk and the
clock are simulated. See ``docs/netware-simulation.md``.
"""
