"""Format names, the names of queues in messages and calls: [MS-MQMQ] 2.1.2 to 2.1.7.

One frozen class for each kind. ``text`` is the name exactly as given; ``str(name)`` and ``canonical`` spell
the fixed parts as the specification does (GUIDs and numbers in lower-case hexadecimal) and keep the case of
the variable ones. Names are equal if their parts are, whatever their spelling. A constructed name has its
canonical text, and is refused with InvalidName if that text would not parse as the same name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Final
from uuid import UUID

from msmqwire.errors import InvalidName
from msmqwire.names.addresses import ADDRESS_READERS, HTTP_PORTS, HTTP_ROOT, without_brackets
from msmqwire.names.grammar import (
    DOMAIN_MAX,
    HEX,
    ILLEGAL_FORMAT_NAME,
    MULTICAST_SINCE,
    NEWEST_VERSION,
    PORT_MAX,
    QUEUE_NAME_2,
    QUEUE_NAME_MAX,
    SUBQUEUE_MAX,
    SUBQUEUES_SINCE,
    UNSUPPORTED_FORMAT_NAME,
    VISIBLE,
    Scanner,
    queue_name_characters,
    same_letters,
)

SYSTEM_QUEUES: Final = ("JOURNAL", "DEADLETTER", "DEADXACT")
PRIVATE_NUMBER_DIGITS: Final = 8


def _text() -> str:
    """Return the field for the name as given, which carries no further information."""
    return field(default="", compare=False, repr=False, kw_only=True)


class _Name:
    """The base of all format names.

    Attributes:
        kind: direct, public, private, dl, machine, connector, multicast or multiple.
        text: the name as given.
    """

    __slots__ = ()
    kind: ClassVar[str]
    text: str

    @property
    def canonical(self) -> str:
        """The name in the spelling of the specification."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.canonical

    def __post_init__(self) -> None:
        if self.text:
            return
        object.__setattr__(self, "text", self.canonical)
        again = parse_format_name(self.text, spx=True)
        if again != self and (not isinstance(self, MultipleElementName) or (again,) != self.elements):
            raise InvalidName("the parts do not make a name of this kind", hresult=ILLEGAL_FORMAT_NAME)


@dataclass(frozen=True, slots=True)
class DirectName(_Name):
    r"""A queue at an address: ``DIRECT=OS:host\PRIVATE$\orders``; [MS-MQMQ] 2.1.2.

    Attributes:
        protocol: TCP, OS, HTTP, HTTPS or IPX; SPX in order acknowledgements ([MS-MQQB] 2.2.4).
        address: the address in the protocol's notation (``10.0.0.5``, ``//host:8080/MSMQ``). A constructed
            HTTP name may omit the slashes and ``/MSMQ``.
        queue: the name of the queue; empty for a system queue.
        private: whether it is a private queue.
        system: JOURNAL, DEADLETTER or DEADXACT for a queue of the computer.
        journal: whether the journal of the queue is meant.
        subqueue: the subqueue, from MSMQ 4.0 on.
    """

    kind: ClassVar[str] = "direct"
    needs_directory: ClassVar[bool] = False
    protocol: str
    address: str
    queue: str = ""
    private: bool = False
    system: str | None = None
    journal: bool = False
    subqueue: str | None = None
    text: str = _text()

    def __post_init__(self) -> None:
        if not self.text:
            object.__setattr__(self, "protocol", self.protocol.upper())
            if self.system is not None:
                object.__setattr__(self, "system", self.system.upper())
            if self.protocol in HTTP_PORTS and not self.address.startswith("//"):
                object.__setattr__(self, "address", f"//{self.address}{HTTP_ROOT}")
        _Name.__post_init__(self)

    @property
    def canonical(self) -> str:
        """The name in the spelling of the specification."""
        start = f"DIRECT={self.protocol}:{self.address}\\"
        if self.system is not None:
            return f"{start}SYSTEM$;{self.system}"
        subqueue = "" if self.subqueue is None else f";{self.subqueue}"
        private = "PRIVATE$\\" if self.private else ""
        return f"{start}{private}{self.queue}{subqueue}{';JOURNAL' if self.journal else ''}"

    @property
    def host(self) -> str:
        """The computer of the address: a name, or an IP address without brackets."""
        return without_brackets(self._host_and_port()[0])

    @property
    def port(self) -> int | None:
        """The port of an HTTP name, by default 80 or 443; None for the other protocols."""
        if self.protocol not in HTTP_PORTS:
            return None
        return int(self._host_and_port()[1] or HTTP_PORTS[self.protocol])  # MQMQ-2.1.2-10 and SRMP-2.1.1-03

    def _host_and_port(self) -> tuple[str, str]:
        if self.protocol not in HTTP_PORTS:
            return self.address, ""
        inner = self.address[2 : -len(HTTP_ROOT)]
        host, colon, port = inner.rpartition(":")
        return (host, port) if colon and port.isdigit() else (inner, "")

    @property
    def is_read_only(self) -> bool:
        """Whether it is read-only: a journal or a dead-letter queue."""
        return self.journal or self.system is not None


@dataclass(frozen=True, slots=True)
class PublicName(_Name):
    """A queue of the directory by its GUID: ``PUBLIC=<guid>``; [MS-MQMQ] 2.1.3.

    The grammar has no suffix; ``;JOURNAL`` comes from QUEUE_FORMAT (2.2.7), which allows it.
    """

    kind: ClassVar[str] = "public"
    needs_directory: ClassVar[bool] = True
    guid: UUID
    journal: bool = False
    text: str = _text()

    @property
    def canonical(self) -> str:
        """The name in the spelling of the specification."""
        return f"PUBLIC={self.guid}{';JOURNAL' if self.journal else ''}"

    @property
    def is_read_only(self) -> bool:
        """Whether it is read-only: a journal."""
        return self.journal


@dataclass(frozen=True, slots=True)
class PrivateName(_Name):
    r"""A private queue by its host and its number there: ``PRIVATE=<guid>\0000000f``; [MS-MQMQ] 2.1.4."""

    kind: ClassVar[str] = "private"
    needs_directory: ClassVar[bool] = True  # to find the host
    guid: UUID
    number: int
    journal: bool = False
    text: str = _text()

    @property
    def canonical(self) -> str:
        """The name in the spelling of the specification, the number with eight digits."""
        suffix = ";JOURNAL" if self.journal else ""
        return f"PRIVATE={self.guid}\\{self.number:0{PRIVATE_NUMBER_DIGITS}x}{suffix}"

    @property
    def is_read_only(self) -> bool:
        """Whether it is read-only: a journal."""
        return self.journal


@dataclass(frozen=True, slots=True)
class DistributionListName(_Name):
    """A group of queues in the directory: ``DL=<guid>@domain``; [MS-MQMQ] 2.1.5."""

    kind: ClassVar[str] = "dl"
    needs_directory: ClassVar[bool] = True
    is_read_only: ClassVar[bool] = False
    guid: UUID
    domain: str | None = None
    text: str = _text()

    @property
    def canonical(self) -> str:
        """The name in the spelling of the specification."""
        return f"DL={self.guid}" + ("" if self.domain is None else f"@{self.domain}")


@dataclass(frozen=True, slots=True)
class MachineName(_Name):
    """The journal or a dead-letter queue of a computer: ``MACHINE=<guid>;DEADLETTER``; [MS-MQMQ] 2.1.6.

    The grammar has no suffix, but without one it does not say which queue is meant, and QUEUE_FORMAT
    (2.2.7) wants it. A name without suffix is read, and has no QUEUE_FORMAT.
    """

    kind: ClassVar[str] = "machine"
    needs_directory: ClassVar[bool] = True  # to find the computer
    is_read_only: ClassVar[bool] = True
    guid: UUID
    suffix: str | None = None
    text: str = _text()

    @property
    def canonical(self) -> str:
        """The name in the spelling of the specification."""
        return f"MACHINE={self.guid}" + ("" if self.suffix is None else f";{self.suffix}")


@dataclass(frozen=True, slots=True)
class ConnectorName(_Name):
    """The queue of a connector server: ``CONNECTOR=<guid>``; [MS-MQMQ] 2.1.6.

    ``;XACTONLY``, the transactional one, comes from QUEUE_FORMAT (2.2.7 and 2.2.11).
    """

    kind: ClassVar[str] = "connector"
    needs_directory: ClassVar[bool] = False
    is_read_only: ClassVar[bool] = False
    guid: UUID
    xact_only: bool = False
    text: str = _text()

    @property
    def canonical(self) -> str:
        """The name in the spelling of the specification."""
        return f"CONNECTOR={self.guid}{';XACTONLY' if self.xact_only else ''}"


@dataclass(frozen=True, slots=True)
class MulticastName(_Name):
    """All queues that listen to an IPv4 multicast address: ``MULTICAST=234.1.1.1:8001``; [MS-MQMQ] 2.1.6."""

    kind: ClassVar[str] = "multicast"
    needs_directory: ClassVar[bool] = False
    is_read_only: ClassVar[bool] = False
    address: str
    port: int
    text: str = _text()

    @property
    def canonical(self) -> str:
        """The name in the spelling of the specification."""
        return f"MULTICAST={self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class MultipleElementName(_Name):
    """Several destinations of one message, joined by commas; [MS-MQMQ] 2.1.7."""

    kind: ClassVar[str] = "multiple"
    is_read_only: ClassVar[bool] = False
    elements: tuple[ElementName, ...]
    text: str = _text()

    def __post_init__(self) -> None:
        if not self.text:
            for element in self.elements:
                _as_element(element, None)
        _Name.__post_init__(self)

    @property
    def canonical(self) -> str:
        """The name in the spelling of the specification."""
        return ",".join(element.canonical for element in self.elements)

    @property
    def needs_directory(self) -> bool:
        """Whether it can't be used without the directory."""
        return any(element.needs_directory for element in self.elements)  # MQMQ-2.1.7-04


ElementName = DirectName | PublicName | PrivateName | DistributionListName | ConnectorName | MulticastName
SingleName = ElementName | MachineName
FormatName = SingleName | MultipleElementName

# MQMQ-2.1.7-05 and -06
_COMMA_BEFORE_NAME = re.compile(
    r",(?=(?:DIRECT|PUBLIC|PRIVATE|DL|MACHINE|CONNECTOR|MULTICAST)=)", re.IGNORECASE | re.ASCII
)


def parse_format_name(text: str, *, version: float = NEWEST_VERSION, spx: bool = False) -> FormatName:
    """Parse a format name of any kind.

    Args:
        text: the name, its kind included (``DIRECT=...``).
        version: the version of MSMQ whose rules hold, 1.0 to 6.0: it decides the characters of a queue name,
            and whether subqueues (4.0) and multicast names (3.0) exist.
        spx: take the SPX addresses of order acknowledgements too ([MS-MQQB] 2.2.4).

    Raises:
        InvalidName: with the character at which the name breaks the grammar of [MS-MQMQ] 2.1.
            `hresult` is MQ_ERROR_ILLEGAL_FORMATNAME, for a journal or dead-letter queue among several
            elements MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION.
    """
    bounds = _bounds(text)
    if len(bounds) == 1:
        return _single(Scanner(text, ILLEGAL_FORMAT_NAME), version, spx)
    elements: list[ElementName] = []
    for start, end in bounds:
        element = _single(Scanner(text, ILLEGAL_FORMAT_NAME, start=start, end=end), version, spx)
        elements.append(_as_element(element, start))  # MQMQ-2.1.7-01
    return MultipleElementName(tuple(elements), text=text)


def split_elements(text: str) -> list[str]:
    """Return the elements of a multiple-element name, unparsed; [MS-MQMQ] 2.1.7.

    A comma separates only where a known prefix follows it: a domain name, or a queue name of MSMQ 1.0, may
    hold commas of its own.
    """
    return [text[start:end] for start, end in _bounds(text)]  # MQMQ-2.1.7-05


def kind_of(text: str) -> str | None:
    """Return the kind that the prefix of a format name announces; ``multiple`` for several, else None."""
    if _COMMA_BEFORE_NAME.search(text):
        return "multiple"
    prefix = text.partition("=")[0]
    return next((kind for word, (kind, _) in _KINDS.items() if same_letters(prefix, word)), None)


def _as_element(name: SingleName, offset: int | None) -> ElementName:
    """Parse a name that may be one of several; [MS-MQMQ] 2.1.7."""
    if isinstance(name, MachineName):  # MQMQ-2.1.7-02
        why, hresult = "a machine name can't be one of several elements", ILLEGAL_FORMAT_NAME
    elif name.is_read_only:  # MQMQ-2.1.7-03
        why, hresult = "a read-only queue can't be one of several elements", UNSUPPORTED_FORMAT_NAME
    else:
        return name
    raise InvalidName(why, offset=offset, hresult=hresult)


def _bounds(text: str) -> list[tuple[int, int]]:
    commas = [match.start() for match in _COMMA_BEFORE_NAME.finditer(text)]
    # MQMQ-2.1.7-05
    return list(zip([0, *(comma + 1 for comma in commas)], [*commas, len(text)], strict=True))


def _single(scan: Scanner, version: float, spx: bool) -> SingleName:
    text = scan.text[scan.position : scan.end]
    for word, (_, read) in _KINDS.items():
        if scan.take(f"{word}="):  # MQMQ-2.1-01
            return read(scan, text, version, spx)
    scan.fail("a format name begins with one of " + ", ".join(f"{word}=" for word in _KINDS))


def _suffix(scan: Scanner, *words: str) -> str | None:
    """Consume a semicolon and one of the words, or nothing, and then the end."""
    word = next((word for word in words if scan.rest_is(f";{word}")), None)
    if word is None:  # MQMQ-2.1.2-02, MQMQ-2.1.2-03, MQMQ-2.1.6-01
        scan.finish()
    return word


def _direct(scan: Scanner, text: str, version: float, spx: bool) -> DirectName:
    colon = scan.text.find(":", scan.position, scan.end)
    token = scan.text[scan.position : max(colon, scan.position)]
    protocol = next((name for name in ADDRESS_READERS if same_letters(token, name)), None)
    if protocol is None or (protocol == "SPX" and not spx):  # MQMQ-2.1.2-06
        scan.fail("the protocol is none of TCP, OS, HTTP, HTTPS and IPX")
    scan.position = colon + 1
    address = ADDRESS_READERS[protocol](scan)
    # Names of HTTP queues are written as URLs too, with a slash before the queue.
    separators = ("\\", "/") if protocol in HTTP_PORTS else ("\\",)
    # MQMQ-2.1.2-02 and -03
    if not any(scan.take(separator) for separator in separators):
        scan.fail("no backslash after the address")
    if scan.take("SYSTEM$;"):  # MQMQ-2.1.2-04
        system = next((word for word in SYSTEM_QUEUES if scan.rest_is(word)), None)
        if system is None:
            scan.fail("the system queues are " + ", ".join(SYSTEM_QUEUES))
        return DirectName(protocol, address, system=system, text=text)
    private = any(scan.take(f"PRIVATE${separator}") for separator in separators)  # MQMQ-2.1.2-02
    queue = scan.run(queue_name_characters(version), QUEUE_NAME_MAX, "the queue name")  # MQMQ-2.1.2-03
    subqueue = None
    # The suffix wins over a subqueue of that name, MQMQ-2.1.2-14.
    if version >= SUBQUEUES_SINCE and not scan.rest_is(";JOURNAL") and scan.take(";"):
        start = scan.position
        subqueue = scan.run(QUEUE_NAME_2, SUBQUEUE_MAX, "the subqueue name")  # MQMQ-2.1.2-13
        if same_letters(subqueue, "JOURNAL"):
            scan.fail("JOURNAL is a suffix and no subqueue", start)
    journal = _suffix(scan, "JOURNAL") is not None  # MQMQ-2.1.2-05
    # MQMQ-2.1.2-02 and -03
    return DirectName(protocol, address, queue, private, None, journal, subqueue, text=text)


def _public(scan: Scanner, text: str, _version: float, _spx: bool) -> PublicName:
    return PublicName(scan.guid(), _suffix(scan, "JOURNAL") is not None, text=text)  # MQMQ-2.1.3-01


def _private(scan: Scanner, text: str, _version: float, _spx: bool) -> PrivateName:
    guid = scan.guid()
    if not scan.take("\\"):
        scan.fail("no backslash and number after the GUID")
    number = int(scan.run(HEX, PRIVATE_NUMBER_DIGITS, "the number of the queue"), 16)  # MQMQ-2.1.4-02
    return PrivateName(guid, number, _suffix(scan, "JOURNAL") is not None, text=text)  # MQMQ-2.1.4-01


def _distribution_list(scan: Scanner, text: str, _version: float, _spx: bool) -> DistributionListName:
    guid = scan.guid()
    domain = scan.run(VISIBLE, DOMAIN_MAX, "the domain name") if scan.take("@") else None  # MQMQ-2.1.5-01
    scan.finish()
    return DistributionListName(guid, domain, text=text)


def _machine(scan: Scanner, text: str, _version: float, _spx: bool) -> MachineName:
    return MachineName(scan.guid(), _suffix(scan, *SYSTEM_QUEUES), text=text)  # MQMQ-2.1.6-01, MQMQ-2.1.6-02


def _connector(scan: Scanner, text: str, _version: float, _spx: bool) -> ConnectorName:
    guid = scan.guid()
    xact_only = _suffix(scan, "XACTONLY") is not None  # MQMQ-2.1.6-04
    return ConnectorName(guid, xact_only, text=text)


def _multicast(scan: Scanner, text: str, version: float, _spx: bool) -> MulticastName:
    if version < MULTICAST_SINCE:  # MQMQ-2.1.6-09
        scan.fail(f"multicast names exist from MSMQ {MULTICAST_SINCE} on")
    start = scan.position
    octets = [scan.decimal(255, "an octet of the address")]
    if not 224 <= octets[0] <= 239:  # MQMQ-2.1.6-06, MQMQ-2.3.1.23-02
        scan.fail("a multicast address begins with 224 to 239", start)
    while len(octets) < 4:
        if not scan.take("."):
            scan.fail("the address is not four octets with dots between them")
        octets.append(scan.decimal(255, "an octet of the address"))  # MQMQ-2.1.6-07
    if not scan.take(":"):  # MQMQ-2.1.6-05
        scan.fail("no colon and port after the address")
    port = scan.decimal(PORT_MAX, "the port")  # MQMQ-2.1.6-08, MQMQ-2.3.1.23-02
    scan.finish()
    return MulticastName(".".join(map(str, octets)), port, text=text)


# MQMQ-2.1-01
_KINDS: Final[Mapping[str, tuple[str, Callable[[Scanner, str, float, bool], SingleName]]]] = MappingProxyType(
    {
        "DIRECT": (DirectName.kind, _direct),
        "PUBLIC": (PublicName.kind, _public),
        "PRIVATE": (PrivateName.kind, _private),
        "DL": (DistributionListName.kind, _distribution_list),
        "MACHINE": (MachineName.kind, _machine),  # MQMQ-2.1.6-01
        "CONNECTOR": (ConnectorName.kind, _connector),  # MQMQ-2.1.6-03
        "MULTICAST": (MulticastName.kind, _multicast),
    }
)
