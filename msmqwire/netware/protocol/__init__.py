"""NCP of the queue service: service connections, and calls from bytes to the rules and back.

No I/O, no clock, no chance: `NcpSession` makes a call of a request, `perform` performs it on the service, and
the session makes the reply.
"""
