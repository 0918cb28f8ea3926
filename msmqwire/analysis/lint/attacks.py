"""Checks of malformed bytes: false sizes, and patterns of known attacks.

Parsing stops at the first invalid field. An analyst wants them all, so this continues where it can: every
size in front of the data it counts is checked by itself, lists are traversed by their sizes, and the end of
a text with a false length is searched for. No bytes make this raise.

| id | pattern |
| --- | --- |
| ATTACK-SRMP-LENGTH | SRMPEnvelopeHeader.DataLength reaches past the packet, or wraps 32 bits when doubled and rounded up (QueueJumper, CVE-2023-21554) |
| ATTACK-HTTP-BODY-SIZE | CompoundMessageHeader.HTTPBodySize reaches past the packet, or wraps 32 bits when rounded up |
| ATTACK-BODY-RANGE | MsgBodyOffset + MsgBodySize is past HTTPBodySize, or wraps 32 bits |
| ATTACK-LENGTH | another size or length reaches past the packet |
| ATTACK-ELEMENT-COUNT | ElementCount announces more names than there is room for |
| ATTACK-HEADER-ID | a part of a MultiQueueFormatHeader bears the id of another part |
| ATTACK-PACKET-SIZE | PacketSize can't be: below 16, above 4 MiB, or against the content of the packet; of a packet that can be parsed, if it counts bytes after the last header that are not an ExtensionHeader |
| ATTACK-TRUNCATED | the bytes end before the announced size |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.malformed_bytes import INTERNAL_PACKETS, USER_FLAGS_AT, MalformedBytes
from msmqwire.analysis.lint.packet import ATTACKS, RULES
from msmqwire.analysis.lint.parts import DATA_PAST_PACKET, body_problem
from msmqwire.analysis.lint.registry import BYTES, Check, listed
from msmqwire.analysis.lint.sizes import (
    DATA_LENGTH,
    EXTENSION_SIZE,
    HTTP_BODY,
    LABEL_LENGTH,
    MESSAGE_SIZE,
    SIGNATURE_SIZE,
    SIZES,
)
from msmqwire.errors import MalformedPacket
from msmqwire.headers import (
    COMPOUND_MESSAGE_HEADER,
)
from msmqwire.headers.base import (
    FLAGS_OFFSET,
    INTERNAL_BIT,
    PACKET_SIZE_MAX,
    PACKET_SIZE_MIN,
    PACKET_SIZE_OFFSET,
    SESSION_HEADER_BIT,
    SIGNATURE,
    SIGNATURE_OFFSET,
    VERSION,
)
from msmqwire.headers.internal import (
    PT_MASK,
    PT_OFFSET,
)
from msmqwire.headers.multiqueue import (
    ADMINISTRATION_ID,
    DESTINATION_ID,
    MQF_DESTINATION,
    RESPONSE_ID,
    SIGNATURE_ID,
)
from msmqwire.headers.properties import LABEL_LENGTH_MAX
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.names.printable import agreed, agreeing, counted
from msmqwire.packets import (
    Protocol,
    lacks_properties,
)
from msmqwire.ping import PING, PING_SIGNATURE, PING_SIZE
from msmqwire.schema import field_offset, head_size
from msmqwire.schema.utf16 import find_null

HTTP_BODY_SIZE: Final = listed(
    "ATTACK-HTTP-BODY-SIZE",
    "HTTPBodySize reaches past the packet",
    "CompoundMessageHeader.HTTPBodySize",
    BYTES,
    "ATTACK",
)
LENGTH: Final = listed("ATTACK-LENGTH", "A size or length reaches past the packet", "", BYTES, "ATTACK")
ELEMENT_COUNT: Final = listed(
    "ATTACK-ELEMENT-COUNT", "ElementCount announces more names than there is room for", "", BYTES, "ATTACK"
)
HEADER_ID: Final = listed(
    "ATTACK-HEADER-ID", "A part of a MultiQueueFormatHeader bears the id of another", "", BYTES, "ATTACK"
)
PACKET_SIZE: Final = listed(
    "ATTACK-PACKET-SIZE", "PacketSize is not the size of the packet", "BaseHeader.PacketSize", BYTES, "ATTACK"
)
TRUNCATED: Final = listed(
    "ATTACK-TRUNCATED", "The bytes end before the announced size", "BaseHeader.PacketSize", BYTES, "ATTACK"
)
UNKNOWN_PT: Final = listed("MQQB-2.2.1-04", "PT is not 1, 2 or 3", "InternalHeader.Flags.PT", BYTES)
PING_LAYOUT: Final = listed("MQQB-2.2.7-01", "A Ping has not 24 bytes", "", BYTES)
BAD_COUNT: Final = listed("MQMQ-2.2.18.1.5.2-05", "Count does not fit a null-terminated name", "", BYTES)
FORMAT_TYPE: Final = listed("MQMQ-2.2.18.1.4-01", "FormatType is not 1, 2, 3 or 6", "", BYTES)
PROVIDER_SIZE: Final = listed(
    "MQMQ-2.2.20.6-37",
    "ProviderInfo has less than the 4 bytes of its type",
    "SecurityHeader.ProviderInfoSize",
    BYTES,
)
ALLOCATION: Final = listed(
    "MQMQ-2.2.19.3-16-SIZE",
    "AllocationBodySize is more than the packet holds",
    "MessagePropertiesHeader.AllocationBodySize",
    BYTES,
)
NOT_CONFORMING: Final = listed(
    "MQQB-3.1.5.1.3-01", "The bytes are not a packet of [MS-MQQB] chapter 2", "", BYTES
)

_RULES: Final = {**RULES, **{check.id: check for check in (BAD_COUNT, PROVIDER_SIZE, ALLOCATION)}}
_FULL: Final = 1 << 32
_BEFORE_BODY: Final = (LABEL_LENGTH, EXTENSION_SIZE, MESSAGE_SIZE)
_LISTS: Final = (
    ("Destination", DESTINATION_ID),
    ("Administration", ADMINISTRATION_ID),
    ("Response", RESPONSE_ID),
)
_LIST_HEAD: Final = head_size(MQF_DESTINATION)
_ELEMENT_LEAST: Final = 4  # a FormatType and at least a null character
_BODY_SIZE_AT: Final = field_offset(COMPOUND_MESSAGE_HEADER, "MsgBodySize")
_BODY_OFFSET_AT: Final = field_offset(COMPOUND_MESSAGE_HEADER, "MsgBodyOffset")
_LIST_ID_AT: Final = field_offset(MQF_DESTINATION, "HeaderID")
_LIST_COUNT_AT: Final = field_offset(MQF_DESTINATION, "ElementCount")
_PING_SIGNATURE_AT: Final = field_offset(PING, "Signature")

BLAMED: Final = {
    "UserHeader.Flags.DQ": "MQMQ-2.2.19.2-22",
    "UserHeader.Flags.AQ": "MQMQ-2.2.19.2-24",
    "UserHeader.DestinationQueue.Count": "MQMQ-2.2.18.1.5.2-05",
    "UserHeader.AdminQueue.Count": "MQMQ-2.2.18.1.5.2-05",
    "UserHeader.ResponseQueue.Count": "MQMQ-2.2.18.1.5.2-05",
    "MessagePropertiesHeader.LabelLength": "MQMQ-2.2.19.3-07",
    "SecurityHeader.ProviderInfoSize": "MQMQ-2.2.20.6-37",
    "SoapHeader.HeaderPadding": "MQMQ-2.2.20.7-05",
    "BaseHeader.Flags.SH": "MQQB-2.2.6-02-SH",
    "MessagePropertiesHeader.MessageSize": "MQQB-2.2.5-07-SIZE",
}
"""Other requirements whose breach makes a packet malformed, by the path that the parser blames."""


def lint_malformed(
    data: bytes, error: MalformedPacket | None = None, protocol: Protocol = "session"
) -> list[Finding]:
    """Return the findings for bytes that could not be parsed, by offset.

    Args:
        data: the packet as far as it was captured.
        error: why parsing refused it.
        protocol: the protocol it was parsed as.
    """
    data = bytes(data)
    scan = _PingScan(data) if protocol == "ping" else _Scan(data, error, remote=protocol == "remote_read")
    once: dict[tuple[str, str], Finding] = {}
    for finding in scan.findings():
        once.setdefault((finding.id, finding.path), finding)
    findings = sorted(once.values(), key=lambda finding: finding.offset)
    if not findings and scan.error is not None:
        findings.append(NOT_CONFORMING.at(scan.error.path, scan.error.offset or 0, scan.error.why))
    return findings


class _PingScan:
    error = None

    def __init__(self, data: bytes) -> None:
        self.data = data

    def findings(self) -> Iterator[Finding]:
        size = len(self.data)
        if size < PING_SIZE:
            yield TRUNCATED.at("", size, f"a Ping has {PING_SIZE} bytes, {agreed(size, 'are')} there")
        if size != PING_SIZE:
            yield PING_LAYOUT.at("", min(size, PING_SIZE), f"{counted(size, 'byte', 'are')} not a Ping")
        signature = self.data[_PING_SIGNATURE_AT : _PING_SIGNATURE_AT + 2]
        if len(signature) == 2 and signature != PING_SIGNATURE.to_bytes(2, "little"):
            why = f"{int.from_bytes(signature, 'little'):#06x} is not 0x5548"
            yield _RULES["MQQB-2.2.7-08"].at("Signature", _PING_SIGNATURE_AT, why)


class _Scan(MalformedBytes):
    """The checks of a malformed session packet or remotely read message."""

    def findings(self) -> Iterator[Finding]:
        yield from self._base()
        yield from self._sizes()
        yield from self._names()
        yield from self._soap()
        yield from self._srmp()
        yield from self._several()
        yield from self._properties()
        yield from self._blamed()

    # -- BaseHeader ----------------------------------------------------------------------------

    def _base(self) -> Iterator[Finding]:
        version, signature = self.number(0, 1), self.number(SIGNATURE_OFFSET, 4)
        if version is not None and version != VERSION:
            path = "BaseHeader.VersionNumber"
            yield _RULES["MQMQ-2.2.19.1-02"].at(path, 0, f"{version:#04x} is not 0x10")
        if signature is not None and signature != SIGNATURE:
            path = "BaseHeader.Signature"
            why = f"{signature:#010x} is not {SIGNATURE:#x}"
            yield _RULES["MQMQ-2.2.19.1-18"].at(path, SIGNATURE_OFFSET, why)
        if self.internal and len(self.data) > PT_OFFSET:
            kind = self.data[PT_OFFSET] & PT_MASK
            if kind not in INTERNAL_PACKETS:
                yield UNKNOWN_PT.at("InternalHeader.Flags.PT", PT_OFFSET, f"{kind} is none of 1, 2 and 3")
        yield from self._packet_size()

    def _packet_size(self) -> Iterator[Finding]:
        path, size = "BaseHeader.PacketSize", len(self.data)
        if self.announced is None:
            yield TRUNCATED.at(path, size, f"a BaseHeader has 16 bytes, {agreed(size, 'are')} there")
            return
        if not self.size_valid:
            big = self.announced > PACKET_SIZE_MAX
            why = f"{self.announced} is not in {PACKET_SIZE_MIN}..{PACKET_SIZE_MAX}"
            yield PACKET_SIZE.at(path, PACKET_SIZE_OFFSET, why)
            req = "MQMQ-2.2.19.1-21" if big else "MQMQ-2.2.19.1-19"
            yield _RULES[req].at(path, PACKET_SIZE_OFFSET, why)
            return
        bits = self.data[FLAGS_OFFSET] & (INTERNAL_BIT | SESSION_HEADER_BIT)
        full = self.announced + (SESSION_HEADER_SIZE if bits == SESSION_HEADER_BIT else 0)
        if size < full:
            yield TRUNCATED.at(
                path,
                PACKET_SIZE_OFFSET,
                f"{counted(full, 'byte', 'are')} announced, {agreed(size, 'are')} there",
            )
        elif (size > full and not self.remote) or (self.error is not None and self.error.path == path):
            there = f"{counted(size, 'byte')} that {agreeing(size, 'are')} there"
            why = f"{self.announced}, against the {there} and their content"
            yield PACKET_SIZE.at(path, PACKET_SIZE_OFFSET, why)
            yield _RULES["MQMQ-2.2.19.1-19"].at(path, PACKET_SIZE_OFFSET, why)

    # -- sizes in front of their data ----------------------------------------------------------

    def _past(
        self, check: Check, path: str, at: int, announced: int, start: int, need: int
    ) -> Iterator[Finding]:
        """Report a size whose data would end past the packet."""
        if start + need <= self.end:
            return
        why = f"{announced}: {counted(need, 'byte')}, and {agreed(max(0, self.end - start), 'are')} left"
        rounded = (need + 3) & ~3
        if rounded >= _FULL:
            why += f"; in 32 bits this wraps to {rounded % _FULL}"
        yield check.at(path, at, why)

    def _broken(self, req: str, path: str, at: int, announced: int) -> Iterator[Finding]:
        check = _RULES.get(req)
        if check is not None:
            yield check.at(path, at, f"{announced} is more than the packet holds")

    def _size(
        self, check: Check, req: str, path: str, at: int, announced: int, start: int, need: int
    ) -> Iterator[Finding]:
        for finding in self._past(check, path, at, announced, start, need):
            yield finding
            yield from self._broken(req, path, at, announced)

    def _sizes(self) -> Iterator[Finding]:
        used: dict[str, int] = {}
        for sized in SIZES:
            start = self.start(sized.header)
            if start is None:
                continue
            announced = self.sized(start, sized)
            if announced is None:
                continue
            path, at, begin = f"{sized.header}.{sized.name}", start + sized.at, start + sized.head
            if sized.name == "AllocationBodySize" and announced <= (self.sized(start, MESSAGE_SIZE) or 0):
                continue  # MessageSize decides
            need = announced * sized.times
            own_findings = list(self._size(LENGTH, sized.req, path, at, announced, begin, need))
            yield from own_findings
            if own_findings or sized.name in ("HeaderSize", "RemainingHeadersSize"):
                continue
            # It fits by itself; does it also fit after the preceding items?
            before = used.get(sized.header, 0)
            if sized.name == "MessageSize":
                extension = self.sized(start, EXTENSION_SIZE) or 0
                before += extension if begin + before + extension <= self.end else 0
            yield from self._size(LENGTH, sized.req, path, at, announced, begin + before, need)
            if sized.header == "SecurityHeader":
                used[sized.header] = before + (need + 3 & ~3)
            elif sized.name == "LabelLength":
                used[sized.header] = need

    def _names(self) -> Iterator[Finding]:
        for name in ("DestinationQueue", "AdminQueue", "ResponseQueue"):
            path = f"UserHeader.{name}.Count"
            if path in self.seen:
                at, announced = self.seen[path]
                yield from self._size(LENGTH, BAD_COUNT.id, path, at, announced, at + 2, announced)

    def _soap(self) -> Iterator[Finding]:
        path = "SoapHeader.BodyDataLength"
        if path in self.seen:
            at, announced = self.seen[path]
            yield from self._size(LENGTH, "MQMQ-2.2.20.7-07", path, at, announced, at + 4, 2 * announced)

    # -- SRMPEnvelopeHeader and CompoundMessageHeader ------------------------------------------

    def _srmp(self) -> Iterator[Finding]:
        start = self.start("SRMPEnvelopeHeader")
        if start is None:
            return
        if not self.remote:
            at = self.seen["UserHeader.Flags"][0]
            yield RULES["MQMQ-2.2.19.2-39"].at("UserHeader.Flags.AH", at, "set in a packet of a session")
        compound = self.start("CompoundMessageHeader")
        announced = self.sized(start, DATA_LENGTH)
        if announced is not None:
            path, text = "SRMPEnvelopeHeader.DataLength", start + DATA_LENGTH.head
            need = announced * DATA_LENGTH.times
            yield from self._size(
                DATA_PAST_PACKET, DATA_LENGTH.req, path, start + DATA_LENGTH.at, announced, text, need
            )
            if compound is None:
                compound = self._behind_text(text)
        if compound is not None:
            yield from self._compound(compound)

    def _behind_text(self, at: int) -> int | None:
        """Return the offset of the header after a text with an untrusted length: aligned, after its null."""
        null = find_null(self.data, at, len(self.data))
        return (null + 2 + 3) & ~3 if null >= 0 else None

    def _compound(self, start: int) -> Iterator[Finding]:
        http = self.sized(start, HTTP_BODY)
        size, offset = self.number(start + _BODY_SIZE_AT, 4), self.number(start + _BODY_OFFSET_AT, 4)
        name = "CompoundMessageHeader"
        if http is not None:
            path, at = f"{name}.HTTPBodySize", start + HTTP_BODY.at
            yield from self._size(HTTP_BODY_SIZE, HTTP_BODY.req, path, at, http, start + HTTP_BODY.head, http)
        if http is None or size is None or offset is None:
            return
        why = body_problem(http, size, offset)
        if why is not None:
            path = f"{name}.MsgBodyOffset"
            yield ATTACKS["ATTACK-BODY-RANGE"].at(path, start + _BODY_OFFSET_AT, why)
            yield _RULES["MQRR-2.2.5.1.2.2-06"].at(path, start + _BODY_OFFSET_AT, why)

    # -- MultiQueueFormatHeader ----------------------------------------------------------------

    def _several(self) -> Iterator[Finding]:
        at = self.multi_queue_format
        for name, number in _LISTS:
            if at is None:
                return
            path = f"MultiQueueFormatHeader.{name}"
            yield from self._list(path, number, at)
            size = self.number(at, 4)
            fits = size is not None and _LIST_HEAD <= size <= self.end - at
            at = at + ((size + 3) & ~3) if fits and size is not None else None
        if at is not None:
            yield from self._signature(at)

    def _list(self, path: str, number: int, at: int) -> Iterator[Finding]:
        id_at, count_at = at + _LIST_ID_AT, at + _LIST_COUNT_AT
        size, header_id, count = self.number(at, 4), self.number(id_at, 2), self.number(count_at, 4)
        if header_id is not None and header_id != number:
            why = f"{header_id:#06x} is not {number:#06x}"
            yield HEADER_ID.at(f"{path}.HeaderID", id_at, why)
            yield _RULES["MQMQ-2.2.20.2-02"].at(f"{path}.HeaderID", id_at, why)
        if size is None:
            return
        req = "MQMQ-2.2.20.2-01"
        yield from self._size(LENGTH, req, f"{path}.HeaderSize", at, size, at, size)
        if size < _LIST_HEAD:
            yield _RULES[req].at(f"{path}.HeaderSize", at, f"{size} is less than {_LIST_HEAD}")
        end = min(at + size, self.end) if size >= _LIST_HEAD else self.end
        if count is not None and _ELEMENT_LEAST * count > max(0, end - at - _LIST_HEAD):
            left = max(0, end - at - _LIST_HEAD)
            why = (
                f"{counted(count, 'name', 'take')} {_ELEMENT_LEAST * count:,} bytes at least,"
                f" {agreed(left, 'are')} left"
            )
            yield ELEMENT_COUNT.at(f"{path}.ElementCount", count_at, why)
            yield _RULES["MQMQ-2.2.20.2-05"].at(f"{path}.ElementCount", count_at, why)
        elif count is not None and self._ran_out(path, end):
            why = f"{counted(count, 'name', 'do')} not fit into {counted(end - at, 'byte')}"
            yield ELEMENT_COUNT.at(f"{path}.ElementCount", count_at, why)

    def _ran_out(self, path: str, end: int) -> bool:
        """Return whether the names of a list ended before their count was reached."""
        error = self.error
        inside = error is not None and error.path.startswith(f"{path}.FormatNameList[")
        return inside and error is not None and error.offset is not None and error.offset >= end

    def _signature(self, at: int) -> Iterator[Finding]:
        path = "MultiQueueFormatHeader.Signature"
        part_id, size = self.number(at, 2), self.sized(at, SIGNATURE_SIZE)
        if part_id is not None and part_id != SIGNATURE_ID:
            why = f"{part_id:#06x} is not {SIGNATURE_ID:#06x}"
            yield HEADER_ID.at(f"{path}.ID", at, why)
            yield _RULES["MQMQ-2.2.20.3-01"].at(f"{path}.ID", at, why)
        if size is not None:
            size_at, data_at = at + SIGNATURE_SIZE.at, at + SIGNATURE_SIZE.head
            yield from self._size(LENGTH, SIGNATURE_SIZE.req, f"{path}.Size", size_at, size, data_at, size)

    # -- the rest ------------------------------------------------------------------------------

    def _properties(self) -> Iterator[Finding]:
        """A message that claims to have no MessagePropertiesHeader is mostly malformed for lack of one."""
        if lacks_properties(self.data):
            path = "UserHeader.Flags.MP"
            yield _RULES["MQMQ-2.2.19.2-34"].at(path, USER_FLAGS_AT, "clear in a message")

    def _blamed(self) -> Iterator[Finding]:
        error = self.error
        if error is None or error.offset is None:
            return
        path, offset = error.path, error.offset
        if path.endswith(".FormatType") and "has no layout" in error.why:
            yield FORMAT_TYPE.at(path, offset, error.why)
        req = BLAMED.get(path)
        if req is None or offset >= len(self.data):
            return
        if path.endswith("ProviderInfoSize"):
            announced = self.seen.get(path, (0, 4))[1]
            if not 0 < announced < 4:
                return
        if path.endswith("MessageSize") and self._body_past_end():
            return
        if path.endswith("LabelLength") and self.data[offset] <= LABEL_LENGTH_MAX:
            return  # it reaches past the packet
        yield _RULES[req].at(path, offset, error.why)

    def _body_past_end(self) -> bool:
        """Return whether MessageSize reaches past the packet; else an acknowledgement has a wrong one."""
        start = self.start("MessagePropertiesHeader")
        if start is None:
            return True
        sizes = [(self.sized(start, sized) or 0) * sized.times for sized in _BEFORE_BODY]
        return start + MESSAGE_SIZE.head + sum(sizes) > self.end
