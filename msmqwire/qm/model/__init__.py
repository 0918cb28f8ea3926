"""The data model of a queue manager: [MS-MQDMPR] 3.1.1.

Elements and attributes have the specification's names in snake_case. Code that changes an attribute that is
persistent there records it in `msmqwire.service.store.changes.Changes`. Nothing here does I/O, reads a clock
or draws a random number.
"""
