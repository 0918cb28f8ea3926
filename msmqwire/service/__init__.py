"""The base of a server of any protocol: a driver, its store, listeners and connections, virtual time.

It knows nothing of MSMQ or NetWare, whose queue managers both stand on it.
"""
