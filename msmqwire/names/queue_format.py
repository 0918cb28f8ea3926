"""Format names in remote calls: QUEUE_FORMAT, [MS-MQMQ] 2.2.7 to 2.2.11.

The wire form is a dict under the specification's field names; ``m_SuffixAndFlags`` is split into
its two halves of four bits, so that QUEUE_FORMAT_FLAG_SYSTEM (0x80 in place) is ``Flags`` 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msmqwire.constants import QUEUE_FORMAT_FLAG_SYSTEM, QUEUE_FORMAT_TYPE, QUEUE_SUFFIX_TYPE
from msmqwire.errors import InvalidName
from msmqwire.names.fields import (
    DIRECT_PREFIX,
    UINT32_MAX,
    direct_text,
    field_of,
    guid_of,
    number_of,
    read_direct,
    refuse,
)
from msmqwire.names.formats import (
    ConnectorName,
    DirectName,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    PrivateName,
    PublicName,
)
from msmqwire.names.grammar import PORT_MAX, UNSUPPORTED_FORMAT_NAME

_Name = TypeVar("_Name", MulticastName, DistributionListName)
_T, _S = QUEUE_FORMAT_TYPE, QUEUE_SUFFIX_TYPE
_SYSTEM: Final = QUEUE_FORMAT_FLAG_SYSTEM >> 4
_SUFFIX_OF: Final[Mapping[str | None, int]] = MappingProxyType(
    {
        None: _S.QUEUE_SUFFIX_TYPE_NONE,
        "JOURNAL": _S.QUEUE_SUFFIX_TYPE_JOURNAL,
        "DEADLETTER": _S.QUEUE_SUFFIX_TYPE_DEADLETTER,
        "DEADXACT": _S.QUEUE_SUFFIX_TYPE_DEADXACT,
    }
)
_WORD_OF: Final = {number: word for word, number in _SUFFIX_OF.items()}

# The flags and types that 2.2.7 allows each suffix. It does not specify the flags of XACTONLY.
_SUFFIX_RULES: Final[Mapping[int, tuple[frozenset[int], frozenset[int]]]] = MappingProxyType(
    {
        # MQMQ-2.2.7-04
        _S.QUEUE_SUFFIX_TYPE_NONE: (frozenset({0}), frozenset(_T) - {_T.QUEUE_FORMAT_TYPE_MACHINE}),
        _S.QUEUE_SUFFIX_TYPE_JOURNAL: (frozenset({_SYSTEM}), frozenset(_T) - {5, 6, 7}),  # MQMQ-2.2.7-05
        # MQMQ-2.2.7-06
        _S.QUEUE_SUFFIX_TYPE_DEADLETTER: (frozenset({_SYSTEM}), frozenset(_T) - {1, 2, 5, 6, 7}),
        _S.QUEUE_SUFFIX_TYPE_DEADXACT: (frozenset({_SYSTEM}), frozenset({3, 4})),  # MQMQ-2.2.7-07
        _S.QUEUE_SUFFIX_TYPE_XACTONLY: (frozenset({0, _SYSTEM}), frozenset({5})),  # MQMQ-2.2.7-08
        _S.QUEUE_SUFFIX_TYPE_SUBQUEUE: (frozenset({0}), frozenset({8})),  # MQMQ-2.2.7-09
    }
)


def to_queue_format(name: FormatName | None, *, subqueue_prefix: bool = True) -> dict[str, Any]:
    """Return a name as a QUEUE_FORMAT, with the one member of its union; [MS-MQMQ] 2.2.7.

    Args:
        name: the name, None for QUEUE_FORMAT_TYPE_UNKNOWN.
        subqueue_prefix: begin m_pDirectSubqueueID with ``DIRECT=``. The specification removes it from
            m_pDirectID and requires a whole DirectName here; a peer that treats both alike needs False.

    Raises:
        InvalidName: for several elements, and for a machine name without suffix.
    """
    match name:
        case None:
            return _form(_T.QUEUE_FORMAT_TYPE_UNKNOWN)
        case DirectName():
            suffix = _SUFFIX_OF["JOURNAL" if name.journal else name.system]
            if name.subqueue is None:
                return _form(_T.QUEUE_FORMAT_TYPE_DIRECT, suffix, m_pDirectID=direct_text(name))
            text = (DIRECT_PREFIX if subqueue_prefix else "") + direct_text(name)
            suffix = suffix or _S.QUEUE_SUFFIX_TYPE_SUBQUEUE
            return _form(_T.QUEUE_FORMAT_TYPE_SUBQUEUE, suffix, m_pDirectSubqueueID=text)
        case PublicName():
            suffix = _SUFFIX_OF["JOURNAL" if name.journal else None]
            return _form(_T.QUEUE_FORMAT_TYPE_PUBLIC, suffix, m_gPublicID=name.guid)
        case PrivateName():
            suffix = _SUFFIX_OF["JOURNAL" if name.journal else None]
            identifier = {"Lineage": name.guid, "Uniquifier": name.number}
            return _form(_T.QUEUE_FORMAT_TYPE_PRIVATE, suffix, m_oPrivateID=identifier)
        case MachineName(suffix=str()):
            return _form(_T.QUEUE_FORMAT_TYPE_MACHINE, _SUFFIX_OF[name.suffix], m_gMachineID=name.guid)
        case ConnectorName():
            suffix = _S.QUEUE_SUFFIX_TYPE_XACTONLY if name.xact_only else _S.QUEUE_SUFFIX_TYPE_NONE
            return _form(_T.QUEUE_FORMAT_TYPE_CONNECTOR, suffix, m_GConnectorID=name.guid)
        case DistributionListName():
            dl = {"m_DlGuid": name.guid, "m_pwzDomain": name.domain}
            return _form(_T.QUEUE_FORMAT_TYPE_DL, m_DlID=dl)
        case MulticastName():
            # The octets are in network order in memory, so the little-endian ULONG has the first one in
            # its low byte.
            address = int.from_bytes(IPv4Address(name.address).packed, "little")
            multicast = {"m_address": address, "m_port": name.port}
            return _form(_T.QUEUE_FORMAT_TYPE_MULTICAST, m_MulticastID=multicast)
    refuse(f"{name.canonical} has no such form", "QUEUE_FORMAT", UNSUPPORTED_FORMAT_NAME)


def _form(kind: int, suffix: int = _S.QUEUE_SUFFIX_TYPE_NONE, **arm: Any) -> dict[str, Any]:
    # MQMQ-2.2.7-04, MQMQ-2.2.7-05, MQMQ-2.2.7-06, MQMQ-2.2.7-07, MQMQ-2.2.7-08, MQMQ-2.2.7-09
    flags = _SYSTEM if suffix in _WORD_OF and suffix else 0
    return {
        "m_qft": int(kind),
        "m_SuffixAndFlags": {"SuffixType": int(suffix), "Flags": flags},
        "m_reserved": 0,
        **arm,
    }


def from_queue_format(value: Any) -> FormatName | None:
    """Return the name in a QUEUE_FORMAT, None for QUEUE_FORMAT_TYPE_UNKNOWN; [MS-MQMQ] 2.2.7.

    m_SuffixAndFlags may also be the byte itself; m_reserved is ignored.

    Raises:
        InvalidName: for a type that does not exist, a suffix or flags that do not go with it, and a name that
            breaks the grammar.
    """
    path = "QUEUE_FORMAT"
    kind = number_of(value, "m_qft", path, most=max(_T))
    suffix = _suffix(value, kind)
    word = _WORD_OF.get(suffix)
    match kind:
        case _T.QUEUE_FORMAT_TYPE_PUBLIC:
            return PublicName(guid_of(value, "m_gPublicID", path), word is not None)
        case _T.QUEUE_FORMAT_TYPE_PRIVATE:
            identifier, path = field_of(value, "m_oPrivateID", path), f"{path}.m_oPrivateID"
            number = number_of(identifier, "Uniquifier", path)
            # MQMQ-2.1.4-03
            return PrivateName(guid_of(identifier, "Lineage", path), number, word is not None)
        case _T.QUEUE_FORMAT_TYPE_DIRECT:
            text = field_of(value, "m_pDirectID", path)
            return _direct(text, word, f"{path}.m_pDirectID")
        case _T.QUEUE_FORMAT_TYPE_MACHINE:
            return MachineName(guid_of(value, "m_gMachineID", path), word)
        case _T.QUEUE_FORMAT_TYPE_CONNECTOR:
            xact_only = suffix == _S.QUEUE_SUFFIX_TYPE_XACTONLY
            return ConnectorName(guid_of(value, "m_GConnectorID", path), xact_only)
        case _T.QUEUE_FORMAT_TYPE_DL:
            return _distribution_list(field_of(value, "m_DlID", path), f"{path}.m_DlID")
        case _T.QUEUE_FORMAT_TYPE_MULTICAST:
            multicast, path = field_of(value, "m_MulticastID", path), f"{path}.m_MulticastID"
            octets = number_of(multicast, "m_address", path, UINT32_MAX).to_bytes(4, "little")
            address, port = str(IPv4Address(octets)), number_of(multicast, "m_port", path, PORT_MAX)
            return _made(lambda: MulticastName(address, port), f"{path}.m_address")
        case _T.QUEUE_FORMAT_TYPE_SUBQUEUE:
            text = field_of(value, "m_pDirectSubqueueID", path)
            name = _direct(text, word, f"{path}.m_pDirectSubqueueID")
            if name.subqueue is None:
                refuse("the name has no subqueue", f"{path}.m_pDirectSubqueueID")
            return name
    return None


def _suffix(value: Any, kind: int) -> int:
    path = "QUEUE_FORMAT.m_SuffixAndFlags"
    both = field_of(value, "m_SuffixAndFlags", "QUEUE_FORMAT")
    if isinstance(both, int):
        suffix, flags = both & 0x0F, both >> 4
    else:
        suffix, flags = number_of(both, "SuffixType", path), number_of(both, "Flags", path)
        flags = _SYSTEM if flags == QUEUE_FORMAT_FLAG_SYSTEM else flags
    if suffix not in _SUFFIX_RULES:
        refuse(f"there is no suffix type {suffix}", path)
    allowed_flags, allowed_types = _SUFFIX_RULES[suffix]
    if flags not in allowed_flags:
        refuse(f"the flags {flags << 4:#04x} do not go with suffix type {suffix}", path)
    if kind not in allowed_types:
        refuse(f"suffix type {suffix} does not go with m_qft {kind}", path)
    return suffix


def _direct(text: Any, word: str | None, path: str) -> DirectName:
    """Parse a direct name with its suffix, which the text may repeat or omit."""
    name = read_direct(text, path)
    stated = "JOURNAL" if name.journal else name.system
    if word is not None and stated is None:
        name = read_direct(f"{text};{word}", path)
        stated = "JOURNAL" if name.journal else name.system
    if word is not None and stated != word:
        refuse(f"the name is not one of a {word} queue", path)
    return name


def _distribution_list(value: Any, path: str) -> DistributionListName:
    domain = field_of(value, "m_pwzDomain", path)
    if not (domain is None or isinstance(domain, str)):
        refuse("not a text", f"{path}.m_pwzDomain")
    guid = guid_of(value, "m_DlGuid", path)
    return _made(lambda: DistributionListName(guid, domain or None), f"{path}.m_pwzDomain")


def _made(make: Callable[[], _Name], path: str) -> _Name:
    """Return a name made of a field, which is to blame if its text would break the grammar."""
    try:
        return make()
    except InvalidName as exc:
        raise InvalidName(exc.why, path=path, hresult=exc.hresult) from None
