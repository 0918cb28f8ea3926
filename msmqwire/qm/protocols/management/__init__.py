"""The server of [MS-MQMR] 3.1: calls of administrators at other computers about the queue manager."""
