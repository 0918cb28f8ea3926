"""The data model of a queue manager: [MS-MQDMPR] 3.1.1.

Elements and attributes have the specification's terms in snake_case. What is marked persistent there is
told to `msmqwire.qm.model.changes.Changes` by whoever changes it. Nothing here does I/O, reads a clock or
draws a number.
"""
