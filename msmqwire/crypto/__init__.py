"""Message security: signatures, body encryption, keys and certificates of [MS-MQMQ] 2.5 and [MS-MQQB] 2.4.

Nothing here does I/O or reads a clock; random bytes come from an argument, or from `cryptography` itself.
"""
