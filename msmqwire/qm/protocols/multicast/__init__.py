"""Multicast, which carries messages of SRMP to groups: all of it is in `msmqwire.qm.runtime.multicast`."""
