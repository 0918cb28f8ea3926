"""The rules of [MC-MQSRM] between messages of the queue manager and SRMP envelopes."""
