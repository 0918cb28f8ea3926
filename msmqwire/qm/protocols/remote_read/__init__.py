"""The server of [MS-MQRR], remote read, without I/O."""
