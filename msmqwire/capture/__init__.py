"""Capture files to datagrams and to the bytes of TCP connections, whatever they carry.

``open_records`` reads frames from a file, ``IpDecoder`` finds the UDP datagram or the TCP segment in
each, ``Reassembler`` puts the segments together. Each takes one thing at a time in bounded memory::

    decoder, reassembler = IpDecoder(), Reassembler()
    for record in open_records("session.pcapng"):
        for datagram in decoder.feed(record):
            for event in reassembler.feed(datagram):
                ...
    for event in reassembler.flush():
        ...
"""

from msmqwire.capture.direction import Counters
from msmqwire.capture.events import Data, End, Event, Flow, Gap, GapReason, How
from msmqwire.capture.files import expand, is_capture, open_records
from msmqwire.capture.ip import Datagram, IpDecoder
from msmqwire.capture.record import Record
from msmqwire.capture.tcp import Reassembler

__all__ = [
    "Counters",
    "Data",
    "Datagram",
    "End",
    "Event",
    "Flow",
    "Gap",
    "GapReason",
    "How",
    "IpDecoder",
    "Reassembler",
    "Record",
    "expand",
    "is_capture",
    "open_records",
]
