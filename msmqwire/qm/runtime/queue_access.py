r"""The rights to a queue in words: ``HOME\anne:receive,send`` and the entries of its descriptor.

The queues of the computer itself, its journal and its dead-letter queues, are protected by the descriptor of
the queue manager, which has separate rights for them: [MS-MQMQ] 2.2.23.

An entry for a user known only by name has the name after its SID, which is a hash of the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msmqwire.constants import MQQMACCESSMASK, MQQUEUEACCESSMASK
from msmqwire.errors import InvalidValue
from msmqwire.headers.security_descriptor import (
    ACCESS_ACE_BODY,
    ACE,
    ACE_HEADER_SIZE,
    ACL,
    SID,
    access_entry,
    build_descriptor,
    descriptor_parts,
    sid_bytes,
    sid_text,
)
from msmqwire.qm.model.access import ANONYMOUS, EVERYONE, LOCAL_SYSTEM
from msmqwire.qm.model.caller import user_sid

_MASK: Final = MQQUEUEACCESSMASK
ALL: Final = "all"
NONE: Final = "none"
CHANGES_MAX: Final = 100
"""Limit of changes in one request."""
_NAME_MAX: Final = 256
_SID_PREFIX: Final = "S-1-"
_ALLOWED, _DENIED = 0, 1  # AceType
_REVISION: Final = 2
_ACL_HEADER_SIZE: Final = 8
_ACL_SIZE_MAX: Final = 0xFFFF
RIGHTS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        ALL: (_MASK.MQSEC_QUEUE_GENERIC_ALL, _MASK.MQSEC_QUEUE_GENERIC_ALL),
        "receive": (_MASK.MQSEC_RECEIVE_MESSAGE, _MASK.MQSEC_DELETE_MESSAGE),
        "receive_journal": (_MASK.MQSEC_RECEIVE_JOURNAL_MESSAGE, _MASK.MQSEC_DELETE_JOURNAL_MESSAGE),
        "peek": (_MASK.MQSEC_PEEK_MESSAGE, _MASK.MQSEC_PEEK_MESSAGE),
        "send": (_MASK.MQSEC_WRITE_MESSAGE, _MASK.MQSEC_WRITE_MESSAGE),
        **{
            name: (mask, mask)
            for name, mask in (
                ("get_properties", _MASK.MQSEC_GET_QUEUE_PROPERTIES),
                ("set_properties", _MASK.MQSEC_SET_QUEUE_PROPERTIES),
                ("get_permissions", _MASK.MQSEC_GET_QUEUE_PERMISSIONS),
                ("change_permissions", _MASK.MQSEC_CHANGE_QUEUE_PERMISSIONS),
                ("take_ownership", _MASK.MQSEC_TAKE_QUEUE_OWNERSHIP),
                ("delete", _MASK.MQSEC_DELETE_QUEUE),
            )
        },
    }
)
"""By name, the widest first: the rights that allowing grants and denying takes.

Receiving needs peeking too; a user who must not receive may still peek.
"""


def _reading(receive: int, delete: int, peek: int) -> Mapping[str, tuple[int, int]]:
    return MappingProxyType({ALL: (receive, receive), "receive": (receive, delete), "peek": (peek, peek)})


class RightsOn(Enum):
    """The objects with separate rights in a descriptor; each value is like `RIGHTS`.

    The last two are the queue manager's rights to its journal and to both of its dead-letter queues.
    """

    QUEUE = RIGHTS
    JOURNAL = _reading(
        MQQMACCESSMASK.MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE,
        MQQMACCESSMASK.MQSEC_DELETE_JOURNAL_QUEUE_MESSAGE,
        MQQMACCESSMASK.MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE,
    )
    DEADLETTER = _reading(
        MQQMACCESSMASK.MQSEC_RECEIVE_DEADLETTER_MESSAGE,
        MQQMACCESSMASK.MQSEC_DELETE_DEADLETTER_MESSAGE,
        MQQMACCESSMASK.MQSEC_PEEK_DEADLETTER_MESSAGE,
    )

    @property
    def all(self) -> int:
        """All rights."""
        return self.value[ALL][_ALLOWED]


_GROUPS: Final = MappingProxyType({"callers": LOCAL_SYSTEM, "everyone": EVERYONE, "anonymous": ANONYMOUS})


class AccessChange(NamedTuple):
    """A change of the rights of one user or group.

    Attributes:
        sid: the SID of the user or group.
        name: the name written in the entry; empty if the SID is enough.
        words: the rights; none to remove all.
    """

    sid: bytes
    name: str
    words: tuple[str, ...]

    def masks(self, on: RightsOn, path: str) -> tuple[int, int]:
        """Return the rights that allowing grants and denying takes. Raises InvalidValue for other rights."""
        allowed, denied, rights = 0, 0, on.value
        for word in self.words:
            if word not in rights:
                known = ", ".join((*rights, NONE))
                raise InvalidValue(f"{word!r:.100} is none of {known}, the rights on such a queue", path=path)
            allowed |= rights[word][0]
            denied |= rights[word][1]
        return allowed, denied


def access_changes(value: object, path: str) -> tuple[AccessChange, ...]:
    """Return the changes of a list of ``USER:RIGHTS``. Raises InvalidValue."""
    if not isinstance(value, list) or len(value) > CHANGES_MAX:
        raise InvalidValue(f"not a list of at most {CHANGES_MAX} texts", path=path)
    return tuple(_change(text, path) for text in value)


def _change(text: object, path: str) -> AccessChange:
    user, colon, listed = str(text).rpartition(":")
    if not isinstance(text, str) or not colon or not listed or not user or len(user) > _NAME_MAX:
        raise InvalidValue(f"{text!r:.300} is not USER:RIGHT,RIGHT", path=path)
    words = () if listed.lower() == NONE else tuple(listed.lower().split(","))
    for word in words:
        if word not in RIGHTS:
            raise InvalidValue(f"{word!r:.100} is none of {', '.join((*RIGHTS, NONE))}", path=path)
    if user.lower() in _GROUPS:
        return AccessChange(_GROUPS[user.lower()], "", words)
    if user.upper().startswith(_SID_PREFIX):
        try:
            return AccessChange(sid_bytes(user), "", words)
        except InvalidValue as exc:
            raise InvalidValue(exc.why, path=path) from None
    domain, _, name = user.partition("\\")
    if not domain or not name:
        known = ", ".join(_GROUPS)
        raise InvalidValue(f"{user!r:.300} is neither DOMAIN\\user nor a SID, nor of {known}", path=path)
    return AccessChange(user_sid(user), user, words)


def changed_access(
    descriptor: bytes,
    deny: Iterable[AccessChange] = (),
    allow: Iterable[AccessChange] = (),
    on: RightsOn = RightsOn.QUEUE,
) -> bytes:
    """Return a descriptor after changes of rights: first the denials, then the grants.

    A right that is denied to a user is no longer granted to him, and the reverse. Entries that deny precede
    all that allow. No entry ever denies ``callers``, as it would precede the grants of each caller: they only
    lose their grants.

    Raises MalformedPacket for the descriptor, InvalidValue if it gets too long, and for other rights.
    """
    parts = descriptor_parts(descriptor)
    if parts.dacl is None:  # everybody has all rights
        aces = [_entry(_ALLOWED, sid, "", on.all) for sid in (EVERYONE, ANONYMOUS)]
        revision = _REVISION
    else:
        acl = ACL.parse(parts.dacl)
        aces, revision = list(acl.Aces), acl.AclRevision
    for change in deny:
        _, denied = change.masks(on, "deny")
        added = 0 if change.sid == LOCAL_SYSTEM else denied
        removed = (denied, 0) if change.words else (on.all, on.all)
        aces = _changed(aces, change, added=(0, added), removed=removed)
    for change in allow:
        allowed, _ = change.masks(on, "allow")
        removed = (0, allowed) if change.words else (on.all, on.all)
        aces = _changed(aces, change, added=(allowed, 0), removed=removed)
    if _ACL_HEADER_SIZE + sum(ACE_HEADER_SIZE + len(ace.Body) for ace in aces) > _ACL_SIZE_MAX:
        raise InvalidValue("too many users have separate rights", path="allow")
    return build_descriptor(replace(parts, dacl=ACL.build({"AclRevision": revision, "Aces": aces})))


def _changed(
    aces: Sequence[Any], change: AccessChange, *, added: tuple[int, int], removed: tuple[int, int]
) -> list[Any]:
    """Return entries after a change; `added` and `removed` are rights of its allowing and denying entry."""
    masks, others = [0, 0], []
    for ace in aces:
        entry = access_entry(ace)
        if ace.AceType in (_ALLOWED, _DENIED) and not ace.AceFlags and entry and entry[1] == change.sid:
            masks[ace.AceType] |= entry[0]
        else:
            others.append(ace)
    own = {
        kind: _entry(kind, change.sid, change.name, mask)
        for kind in (_ALLOWED, _DENIED)
        if (mask := (masks[kind] | added[kind]) & ~removed[kind])
    }
    denying = [ace for ace in others if ace.AceType == _DENIED]
    allowing = [ace for ace in others if ace.AceType != _DENIED]
    denying += [own[_DENIED]] if _DENIED in own else []
    return [*denying, *allowing, *([own[_ALLOWED]] if _ALLOWED in own else [])]


def _entry(kind: int, sid: bytes, name: str, mask: int) -> Any:
    data = name.encode("utf-16-le", "surrogatepass")
    body = {"Mask": mask, "Sid": SID.parse(sid), "ApplicationData": data + bytes(-len(data) % 4)}
    return ACE.parse(ACE.build({"AceType": kind, "Body": ACCESS_ACE_BODY.build(body)}))


@lru_cache(maxsize=256)
def _access(descriptor: bytes, on: RightsOn) -> tuple[str | None, dict[str, list[str]], dict[str, list[str]]]:
    parts = descriptor_parts(descriptor)
    shown: tuple[dict[str, list[str]], dict[str, list[str]]] = {}, {}
    if parts.dacl is None:
        shown[_ALLOWED].update({_name(sid, b""): [ALL] for sid in (EVERYONE, ANONYMOUS)})
    for ace in ACL.parse(parts.dacl).Aces if parts.dacl is not None else ():
        entry = access_entry(ace)
        if ace.AceType not in (_ALLOWED, _DENIED) or entry is None:
            continue
        mask, sid = entry
        if on is not RightsOn.QUEUE:  # the descriptor has rights to other objects too
            mask &= on.all
        if mask:
            name = _name(sid, ACCESS_ACE_BODY.parse(ace.Body).ApplicationData)
            shown[ace.AceType][name] = _words(on, ace.AceType, mask)
    return (None if parts.owner is None else _name(parts.owner, b"")), *shown


def access_json(descriptor: bytes, on: RightsOn = RightsOn.QUEUE) -> dict[str, Any]:
    """Return the owner of a queue, and the rights that entries allow and deny. Raises MalformedPacket."""
    owner, allowed, denied = _access(descriptor, on)
    return {"owner": owner, "allow": dict(allowed), "deny": dict(denied)}


def _name(sid: bytes, data: bytes) -> str:
    for name, known in _GROUPS.items():
        if sid == known:
            return name
    name = data.decode("utf-16-le", "replace").rstrip("\0")
    return name if name and sid == user_sid(name) else sid_text(sid)


def _words(on: RightsOn, kind: int, mask: int) -> list[str]:
    words, rest = [], mask
    for name, masks in on.value.items():
        if rest & masks[_DENIED] and mask & masks[kind] == masks[kind]:
            words.append(name)
            rest &= ~masks[kind]
    return [*words, f"{rest:#010x}"] if rest else words
