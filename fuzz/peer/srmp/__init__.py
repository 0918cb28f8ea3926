"""SRMP over HTTP, [MC-MQSRM]: requests to a peer, its receipts, and what a right peer does."""
