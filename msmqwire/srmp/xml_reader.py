"""XML of unauthenticated senders, read by lxml, whose memory for names is given back.

lxml keeps every name that it has read, and every text that it takes for one, in a dictionary that lives as
long as the thread: prefixes, namespaces, short runs of white space. A sender that invents names could fill
the memory. So documents are read where they are needed as long as all their new names together take little;
then only those without a new name are, and each other one is read in a thread of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import product
from threading import Thread, local
from typing import Any, Final, TypeVar

from msmqwire.srmp.elements import Element, Group
from msmqwire.srmp.schema import ENVELOPE
from msmqwire.srmp.schema_names import MSMQ, ROUTING, SIGNATURE, SOAP, SRMP

T = TypeVar("T")
_TAG: Final = re.compile(rb"<(/?[^\s<>/]+)([^<>]*)>")
_LONG_BLANKS: Final = re.compile(rb"[ \t\r\n]{16}<")
"""The end of white space that is not stored inside its node, as shorter text is."""
_TEXT: Final = re.compile(rb">(?:\s{0,15}+[^<\s][^<]*+)?+(?=<)")
"""The end of a tag and the text after it, unless that begins with much white space."""
_TAGS_SIZE_MAX: Final = 8_192
_TAGS_CACHED: Final = 256
_LEARNED_MAX: Final = 1 << 20
"""Bytes of tags with new names, in all."""
_BLANKS: Final = re.compile(rb"[ \t\r\n]+")
_ONLY_TAGS: Final = re.compile(
    rb"""(?:<\?xml [^<>]*\?>\s*+)?+(?:<[^\s<>!?"']++(?:[^<>"']|"[^<>"]*+"|'[^<>']*+')*+>\s*+)*+"""
)
"""Tags, and nothing that `_TEXT` may have cut apart: no comment, and no ``>`` in a value."""
_MUST_UNDERSTAND: Final = ' se:mustUnderstand="1"'
_WARNING: Final = 1  # of lxml's levels
_NOT_A_URI: Final = 99
"""The type of lxml for a namespace that is not a URI, which breaks no rule: names are only compared."""
_parsers: Final = local()


class UndeclaredPrefix(SyntaxError):
    """A name has a prefix that no element around it declares.

    Attributes:
        number: the element with the name, counted from 0 in the order of the document.
    """

    def __init__(self, name: str, number: int) -> None:
        super().__init__(f"the namespace prefix of {name[:200]} is not declared")
        self.number = number


class NamespaceError(SyntaxError):
    """A name or a declaration breaks the rules of namespaces in another way.

    Attributes:
        position: its line and column, both counted from 1.
    """

    def __init__(self, why: str, position: tuple[int, int]) -> None:
        super().__init__(why)
        self.position = position


def parse_xml(data: bytes) -> Any:
    """Return the root element of a document.

    Raises the errors of lxml, UndeclaredPrefix and NamespaceError.
    """
    if has_known_names(tags_of(data)):
        return _parse(data, _parser())
    return in_own_thread(lambda: _parse(data, _new_parser()))


def _refuse_namespaces(root: Any, parser: Any) -> None:
    """Raise UndeclaredPrefix or NamespaceError if the parser has found one in its last document.

    lxml refuses a document for such an error only if no warning follows: that of a namespace which is not
    absolute, such as that of Msmq. So whether it does depends on the order of the elements.
    """
    wrong = [entry for entry in parser.error_log if entry.level > _WARNING and entry.type != _NOT_A_URI]
    if not wrong:
        return
    for number, element in enumerate(root.iter("*")):
        for name in (element.tag, *element.keys()):
            if name[:1] != "{" and ":" in name:
                raise UndeclaredPrefix(name, number)
    raise NamespaceError(wrong[0].message, (wrong[0].line, wrong[0].column))


def tags_of(data: bytes) -> bytes:
    """Return a document without its texts."""
    return _TEXT.sub(b">", data).strip()


def has_known_names(tags: bytes) -> bool:
    """Return whether tags have only names of SRMP, or such that were learned, or that now are.

    Most documents are alike but for their texts, so that it is known of the tags of one before.
    """
    return len(tags) <= _TAGS_SIZE_MAX and (_are_of_srmp(tags) or _LEARNED.add(tags))


@lru_cache(maxsize=_TAGS_CACHED)
def _are_of_srmp(tags: bytes) -> bool:
    found = _TAG.findall(_BLANKS.sub(b" ", tags))
    return len(found) == tags.count(b"<") and _known() >= set(found) and not _LONG_BLANKS.search(tags)


class _LearnedTags:
    """The tags of documents whose names lxml has been allowed to keep.

    Args:
        most: bytes of all of them.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._tags: Final = set[bytes]()

    def add(self, tags: bytes) -> bool:
        """Return whether the names in these tags are kept from now on, because they take little."""
        if tags in self._tags:
            return True
        if len(tags) > self._left or not _ONLY_TAGS.fullmatch(tags):
            return False
        self._left -= len(tags)
        self._tags.add(tags)
        return True


_LEARNED: Final = _LearnedTags(_LEARNED_MAX)


def in_own_thread(action: Callable[[], T]) -> T:
    """Return the result of `action`, or raise its exception; the names that lxml learns in it are forgotten.

    `action` must make the objects of lxml that it uses, parsers too.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(action())
        except BaseException as exc:
            errors.append(exc)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


@cache
def _known() -> frozenset[tuple[bytes, bytes]]:
    """Return all start and end tags of known names: the name, and the text after it."""
    namespaces = ["", *(f' xmlns="{uri}"' for uri in (ROUTING, SRMP, MSMQ, SIGNATURE))]
    parts = (f"{one}{other}" for one, other in product(namespaces, ("", _MUST_UNDERSTAND)))
    endings = [ending.encode() for part in parts for ending in (part, f"{part}/", f"{part} /")]
    names = {name.encode() for name in _names(ENVELOPE)}
    known = {(name, ending) for name in names for ending in endings}
    known |= {(b"/" + name, b"") for name in names}
    soap, srmp = f' xmlns:se="{SOAP}"', f' xmlns="{SRMP}"'
    for name in (b"se:Envelope", b"se:Header", b"se:Body"):
        known |= {(name, b""), (name, b"/"), (b"/" + name, b"")}
        known |= {(name, f"{one}{other}".encode()) for one, other in ((soap, srmp), (srmp, soap), (soap, ""))}
    return frozenset(known)


def _names(element: Element) -> Iterator[str]:
    yield element.name
    yield from element.also
    for child in element.children if isinstance(element, Group) else ():
        yield from _names(child)


def _parse(data: bytes, parser: Any) -> Any:
    from lxml import etree  # with the first document

    root = etree.fromstring(data, parser)
    _refuse_namespaces(root, parser)
    return root


def _parser() -> Any:
    """Return this thread's parser for documents without new names: its log is that of one document."""
    parser = getattr(_parsers, "parser", None)
    if parser is None:
        parser = _parsers.parser = _new_parser()
    return parser


def _new_parser() -> Any:
    from lxml import etree

    return etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
    )
