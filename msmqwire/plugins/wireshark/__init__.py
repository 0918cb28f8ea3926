"""A dissector for Wireshark, generated from the schemas: one script in Lua.

`dissector` returns it; `filter_name` returns the display filter of a field.
"""

from msmqwire.plugins.wireshark.dissector import dissector
from msmqwire.plugins.wireshark.names import filter_name

__all__ = ["dissector", "filter_name"]
