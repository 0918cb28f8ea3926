"""Redirections that an administrator configures: [MC-MQSRM] 3.1.1.1.8 to 3.1.1.1.10.

URLs are compared without regard to case, as the names of hosts and queues are. If several elements match, the
first one of the collection counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.qm.protocols.srmp.queue_names import read_http
from msmqwire.srmp.schema_names import HTTP

URL_MAX: Final = 2048
"""The longest URL of a collection, in characters."""
INBOUND: Final = "InboundRedirectionCollection"
OUTBOUND: Final = "OutboundRedirectionCollection"
EXCEPTIONS: Final = "OutboundRedirectionExceptionCollection"
RECEIPTS: Final = "StreamReceiptURLReplacementCollection"
DEFAULT_RECEIPTS: Final = "DefaultStreamReceiptURLReplacement"
FROM: Final = "From"
TO: Final = "To"
_NAMES: Final = (INBOUND, OUTBOUND, EXCEPTIONS, RECEIPTS, DEFAULT_RECEIPTS)
_WILDCARD: Final = "*"
_ANY_QUEUE: Final = "/MSMQ/q"


@dataclass(frozen=True, slots=True)
class Redirection:
    """A Redirection element, 3.1.1.1.10.

    Attributes:
        source: From, a URL. A ``*`` at its end matches any characters, or none.
        to: To, a URL.
    """

    source: str
    to: str


class UrlPatterns:
    """Patterns of URLs, with a lookup whose time hardly depends on their number."""

    __slots__ = ("_exact", "_lengths", "_prefixes")

    def __init__(self, patterns: Iterable[str]) -> None:
        self._exact: dict[str, int] = {}
        self._prefixes: dict[str, int] = {}
        for number, pattern in enumerate(patterns):
            folded = pattern.casefold()
            if folded.endswith(_WILDCARD):
                self._prefixes.setdefault(folded[: -len(_WILDCARD)], number)
            else:
                self._exact.setdefault(folded, number)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def find(self, url: str) -> int | None:
        """Return the number of the first pattern that a URL matches; None for none."""
        if not self._exact and not self._prefixes:
            return None
        folded = url.casefold()
        found = [self._exact.get(folded)]  # SRMP-3.1.1.1.10-01
        for length in self._lengths:
            if length > len(folded):
                break
            found.append(self._prefixes.get(folded[:length]))
        return min((number for number in found if number is not None), default=None)


@dataclass(frozen=True, slots=True)
class RedirectionCollection:
    """A collection of Redirection elements, in the order in which they are compared."""

    elements: tuple[Redirection, ...] = ()
    _patterns: UrlPatterns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_patterns", UrlPatterns(element.source for element in self.elements))

    def find(self, url: str) -> str | None:
        """Return To of the element whose From a URL matches; None for none."""
        number = self._patterns.find(url)
        return None if number is None else self.elements[number].to


@dataclass(frozen=True, slots=True)
class Redirections:
    """The redirections of a queue manager. URLs are those of queues, as ``to`` of a message has them.

    Attributes:
        inbound_collection: InboundRedirectionCollection, 3.1.1.1.10.2.
        outbound_collection: OutboundRedirectionCollection, 3.1.1.1.10.1.
        outbound_exceptions: OutboundRedirectionExceptionCollection, 3.1.1.1.9: URLs as in From.
        receipts_collection: StreamReceiptURLReplacementCollection, 3.1.1.1.10.3.
        default_receipts: DefaultStreamReceiptURLReplacement, 3.1.1.1.8; empty for none.
    """

    inbound_collection: RedirectionCollection = RedirectionCollection()
    outbound_collection: RedirectionCollection = RedirectionCollection()
    outbound_exceptions: tuple[str, ...] = ()
    receipts_collection: RedirectionCollection = RedirectionCollection()
    default_receipts: str = ""
    _exceptions: UrlPatterns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_exceptions", UrlPatterns(self.outbound_exceptions))

    def inbound(self, url: str) -> str:
        """Return the URL of the queue for a message that was sent to `url`: 3.1.5.1.3."""
        redirected = self.inbound_collection.find(url)  # SRMP-3.1.1.1.10.2-01
        return url if redirected is None else redirected

    def outbound(self, url: str) -> str:
        """Return the URL to connect to in order to send to the queue `url`: 3.1.7.9.

        It is the same URL, with the host and port of the transparent store-and-forward server if there is
        one. The message itself still names `url`.
        """
        to = self.outbound_collection.find(url)  # SRMP-3.1.1.1.10.1-01
        # SRMP-3.1.7.9-04, SRMP-3.1.7.9-05
        if to is None or self._exceptions.find(url) is not None:  # SRMP-3.1.1.1.9-01
            return url
        scheme, _, rest = url.partition("://")
        _, slash, path = rest.partition("/")
        return f"{scheme}://{_authority(to)}{slash}{path}"

    def receipts_url(self, destination: str, own: str) -> str:
        """Return the URL for stream receipts of messages to the queue `destination`: 3.1.7.2.4.

        `own` is the URL of this queue manager's order queue.
        """
        replacement = self.receipts_collection.find(destination)  # SRMP-3.1.7.2.4-21, SRMP-3.1.1.1.10.3-01
        # SRMP-3.1.7.2.4-22, SRMP-3.1.1.1.8-01
        return replacement or self.default_receipts or own  # SRMP-3.1.7.2.4-21

    @classmethod
    def from_json(cls, value: object) -> Redirections:
        """Return the redirections of a JSON object, whose members have the names of the specification.

        Members that are not there are empty. Raises InvalidValue with the path of the wrong member.
        """
        if not isinstance(value, dict):
            raise InvalidValue("not an object")
        _check_members(value, _NAMES, "")
        exceptions = _list(value, EXCEPTIONS)
        patterns = tuple(_url(url, f"{EXCEPTIONS}[{number}]") for number, url in enumerate(exceptions))
        _check_unique(patterns, EXCEPTIONS, "")
        default = value.get(DEFAULT_RECEIPTS, "")
        return cls(
            _collection(value, INBOUND),
            _collection(value, OUTBOUND),
            patterns,
            _collection(value, RECEIPTS),
            default if default == "" else _queue(default, DEFAULT_RECEIPTS),
        )


def _authority(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def _collection(value: dict[str, Any], name: str) -> RedirectionCollection:
    elements = []
    for number, element in enumerate(_list(value, name)):
        path = f"{name}[{number}]"
        if not isinstance(element, dict):
            raise InvalidValue("not an object", path=path)
        _check_members(element, (FROM, TO), f"{path}.")
        source = _url(element.get(FROM), f"{path}.{FROM}")
        read = _server if name == OUTBOUND else _queue
        to = read(element.get(TO), f"{path}.{TO}")
        if name == OUTBOUND and _scheme(source) != _scheme(to):
            # Only the host of To counts: the destination decides whether the connection is secure.
            raise InvalidValue(f"not {_scheme(source)}, as {FROM}", path=f"{path}.{TO}")
        elements.append(Redirection(source, to))
    _check_unique((element.source for element in elements), name, f".{FROM}")
    return RedirectionCollection(tuple(elements))


def _list(value: dict[str, Any], name: str) -> list[Any]:
    members = value.get(name, [])
    if not isinstance(members, list):
        raise InvalidValue("not a list", path=name)
    return members


def _check_members(value: dict[str, Any], known: tuple[str, ...], path: str) -> None:
    for name in value:
        if name not in known:
            raise InvalidValue(f"none of {', '.join(known)}", path=f"{path}{name:.80}")


def _check_unique(patterns: Iterable[str], name: str, member: str) -> None:
    """Refuse a duplicate URL: only the first one would ever count."""
    seen: dict[str, int] = {}
    for number, pattern in enumerate(patterns):
        first = seen.setdefault(pattern.casefold(), number)
        if first != number:
            raise InvalidValue(f"the same as {name}[{first}]{member}", path=f"{name}[{number}]{member}")


def _queue(value: object, path: str) -> str:
    """Return the URL of a queue. Raises InvalidValue for any other value."""
    url = _url(value, path)
    _check_queue(url, path)
    return url


def _server(value: object, path: str) -> str:
    """Return a URL with a host. Raises InvalidValue for any other value."""
    url = _url(value, path)
    _check_queue(f"{_scheme(url)}://{_authority(url)}{_ANY_QUEUE}", path)
    return url


def _check_queue(url: str, path: str) -> None:
    try:
        read_http(url, path)
    except MalformedPacket as exc:
        raise InvalidValue(exc.why, path=path) from None


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower()


def _url(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue("not a text" if value is not None else "missing", path=path)
    if len(value) > URL_MAX:
        raise InvalidValue(f"longer than {URL_MAX} characters", path=path)
    if not value.lower().startswith(HTTP):
        raise InvalidValue(f"{value!r:.200} begins with neither {' nor '.join(HTTP)}", path=path)
    return value
