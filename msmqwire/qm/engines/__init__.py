"""Protocol engines: bytes, events and the time go in, effects come out. Nothing here does I/O."""
