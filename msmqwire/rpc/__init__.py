"""DCE/RPC over TCP, connection-oriented, without I/O: [C706] chapters 9, 12 and 14, [MS-RPCE] 2.2 and 3.3.

`pdus` has the PDUs; `client_association` and `server_association` are the two ends of a connection: bytes in,
events and bytes out. `ndr` has the stubs, the content of PDUs.
"""
