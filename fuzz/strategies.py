"""Hypothesis strategies for every declared structure, derived by a walk over the schemas.

No layout is repeated here: the parts of a schema are drawn in the order of the wire, and the fields that
decide a part (a size, a count, bits for its presence or form) are set by the part that was drawn. So `values`
returns the possible results of a parser: complete records whose sizes agree, with reserved bits, padding and
texts that hold anything. `partial` leaves parts of them out, `misfits` and `mutated` make them wrong.
"""

from fuzz.drawing import values
from fuzz.json_data import json_objects, json_values
from fuzz.leaves import BYTES_MAX, CHARACTERS_MAX, ITEMS_MAX, texts
from fuzz.partial_values import partial
from fuzz.references import has_integers
from fuzz.whole_packets import (
    NCP_STRUCTURES,
    SELF_CONTAINED,
    SESSION_PACKETS,
    packet,
    packet_bytes,
    packets,
    packets_of,
    partial_packet,
    pings,
    remote_read_messages,
)
from fuzz.wrong_values import misfits, mutated
from msmqwire.schema.references import stands_alone

__all__ = [
    "BYTES_MAX",
    "CHARACTERS_MAX",
    "ITEMS_MAX",
    "NCP_STRUCTURES",
    "SELF_CONTAINED",
    "SESSION_PACKETS",
    "has_integers",
    "json_objects",
    "json_values",
    "misfits",
    "mutated",
    "packet",
    "packet_bytes",
    "packets",
    "packets_of",
    "partial",
    "partial_packet",
    "pings",
    "remote_read_messages",
    "stands_alone",
    "texts",
    "values",
]
