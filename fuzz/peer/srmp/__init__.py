"""SRMP over HTTP, [MC-MQSRM]: requests to a peer, its receipts, and the behaviour of a right peer."""
