"""The base of a server of any protocol: a driver, its store, listeners and connections, virtual time.

It is independent of MSMQ and NetWare, whose queue managers both build on it.
"""
