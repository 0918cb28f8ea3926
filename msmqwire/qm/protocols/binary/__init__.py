"""The engine of [MS-MQQB]: bytes, datagrams, events and the time go in, effects come out."""
