"""Messages of the SOAP Reliable Messaging Protocol: [MC-MQSRM] chapter 2."""
