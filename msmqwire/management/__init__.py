"""The queue manager management protocol, [MS-MQMR]: its bytes, and what the values in them mean."""
