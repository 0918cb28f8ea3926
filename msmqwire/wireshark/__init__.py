"""A dissector for Wireshark, generated from the schemas: one script in Lua.

`dissector` returns it; `filter_name` tells the display filter of a field.
"""

from msmqwire.wireshark.dissector import dissector
from msmqwire.wireshark.names import filter_name

__all__ = ["dissector", "filter_name"]
