"""The command `msmqwire manage`: queue managers of other computers, by [MS-MQMR]."""
