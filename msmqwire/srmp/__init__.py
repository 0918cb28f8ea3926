"""The bytes of SRMP, MSMQ over HTTP and PGM: [MC-MQSRM] chapter 2."""
