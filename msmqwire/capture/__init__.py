"""Capture files to datagrams and to the byte streams of TCP connections, whatever they carry.

``open_records`` reads frames from a file, ``IpDecoder`` decodes the UDP datagram or TCP segment in each,
``Reassembler`` reassembles the segments. Each processes one item at a time in bounded memory::

    decoder, reassembler = IpDecoder(), Reassembler()
    for record in open_records("session.pcapng"):
        for datagram in decoder.feed(record):
            for event in reassembler.feed(datagram):
                ...
    for event in reassembler.flush():
        ...
"""

from msmqwire.capture.direction import Counters
from msmqwire.capture.events import Data, End, EndReason, Event, Flow, Gap, GapReason
from msmqwire.capture.files import is_capture, open_records
from msmqwire.capture.ip import Datagram, IpDecoder
from msmqwire.capture.paths import expand
from msmqwire.capture.record import Record
from msmqwire.capture.tcp import Reassembler

__all__ = [
    "Counters",
    "Data",
    "Datagram",
    "End",
    "EndReason",
    "Event",
    "Flow",
    "Gap",
    "GapReason",
    "IpDecoder",
    "Reassembler",
    "Record",
    "expand",
    "is_capture",
    "open_records",
]
