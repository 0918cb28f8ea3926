"""TCP, compiled: segments to what is in order on each connection, by the rules of `msmqwire.capture.tcp`."""
