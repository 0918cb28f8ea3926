"""The processing rules of a queue manager: [MS-MQDMPR] 3.1 and 3.2."""
