"""The engine of [MC-MQSRM] chapter 3: messages as SOAP envelopes over HTTP, HTTPS and multicast."""
