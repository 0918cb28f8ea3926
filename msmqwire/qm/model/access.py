"""Access control: the access check of [MS-DTYP] 2.5.3.2 on the objects of [MS-MQDMPR] 3.1.1.

Rights are those of [MS-MQMQ] 2.2.23 to 2.2.27. Object trees, conditions and privileges are not supported: an
entry for a part of an object has no effect, a condition never allows and always denies, and the right to read
or write audit lists is never granted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from msmqwire.constants import (
    ACCESS_MASK,
    MQCNACCESSMASK,
    MQENTACCESSMASK,
    MQQMACCESSMASK,
    MQQUEUEACCESSMASK,
    MQSITEACCESSMASK,
)
from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.headers.security_descriptor import (
    ACCESS_ACE_BODY,
    ACL,
    SID,
    DescriptorParts,
    access_entry,
    build_descriptor,
    descriptor_parts,
    sid_bytes,
)
from msmqwire.qm.model.directory_objects import ConnectedNetwork, Enterprise, Site
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import QueueAccessType

NULL_SID: Final = sid_bytes("S-1-0-0")
EVERYONE: Final = sid_bytes("S-1-1-0")
CREATOR_OWNER: Final = sid_bytes("S-1-3-0")
CREATOR_GROUP: Final = sid_bytes("S-1-3-1")
OWNER_RIGHTS: Final = sid_bytes("S-1-3-4")
ANONYMOUS: Final = sid_bytes("S-1-5-7")
PRINCIPAL_SELF: Final = sid_bytes("S-1-5-10")
LOCAL_SYSTEM: Final = sid_bytes("S-1-5-18")

_PLACEHOLDERS: Final = frozenset({CREATOR_OWNER, CREATOR_GROUP, OWNER_RIGHTS, PRINCIPAL_SELF})
_OWNER_RIGHTS_IMPLIED: Final = int(ACCESS_MASK.READ_CONTROL | ACCESS_MASK.WRITE_DAC)


@dataclass(frozen=True, slots=True)
class Token:
    """The user on whose behalf an operation is performed.

    Attributes:
        user: SID of the user.
        groups: SIDs of the groups of the user.
    """

    user: bytes
    groups: frozenset[bytes] = frozenset()

    @classmethod
    def of(cls, user: bytes, groups: Iterable[bytes] = ()) -> Token:
        """Return the token of a user, a member of Everyone unless anonymous: [MS-DTYP] 2.4.2.4.

        Raises MalformedPacket if `user` is not a SID.
        """
        SID.parse(user)
        return cls(user, frozenset(groups) | (frozenset() if user == ANONYMOUS else {EVERYONE}))

    @property
    def sids(self) -> frozenset[bytes]:
        """All SIDs, without the placeholders of entries, which belong to no user."""
        return (self.groups | {self.user}) - _PLACEHOLDERS


@dataclass(frozen=True, slots=True)
class ObjectRights:
    """The generic rights of one kind of object; 0 where its specification defines none.

    Attributes:
        all: every right of the kind.
    """

    read: int
    write: int
    all: int

    def mapped(self, mask: int) -> int:
        """Translate the generic rights of a mask: [MS-DTYP] 2.4.3. Generic rights without a meaning stay."""
        for generic, specific in (
            (ACCESS_MASK.GENERIC_READ, self.read),
            (ACCESS_MASK.GENERIC_WRITE, self.write),
            (ACCESS_MASK.GENERIC_ALL, self.all),
        ):
            if mask & generic and specific:
                mask = mask & ~int(generic) | specific
        return int(mask)


QUEUE_RIGHTS: Final = ObjectRights(
    MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_READ,
    MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_WRITE,
    MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_ALL,
)
RIGHTS_OF: Final[Mapping[type, ObjectRights]] = MappingProxyType(
    {
        QueueManager: ObjectRights(  # DMPR-3.1.1.1-25
            MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_READ,
            MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_WRITE,
            MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_ALL,
        ),
        Queue: QUEUE_RIGHTS,  # DMPR-3.1.1.2-16
        OutgoingQueue: QUEUE_RIGHTS,
        Enterprise: ObjectRights(  # DMPR-3.1.1.6-06
            MQENTACCESSMASK.MQSEC_ENTERPRISE_GENERIC_READ,
            MQENTACCESSMASK.MQSEC_ENTERPRISE_GENERIC_WRITE,
            MQENTACCESSMASK.MQSEC_ENTERPRISE_GENERIC_ALL,
        ),
        Site: ObjectRights(  # DMPR-3.1.1.7-08
            MQSITEACCESSMASK.MQSEC_SITE_GENERIC_READ,
            MQSITEACCESSMASK.MQSEC_SITE_GENERIC_WRITE,
            MQSITEACCESSMASK.MQSEC_SITE_GENERIC_ALL,
        ),
        ConnectedNetwork: ObjectRights(  # DMPR-3.1.1.9-02
            MQCNACCESSMASK.MQSEC_CN_GENERIC_READ, 0, MQCNACCESSMASK.SEC_CN_GENERIC_ALL
        ),
    }
)


class _Effect(Enum):
    ALLOW = auto()
    DENY = auto()


# 0x09 is a callback that allows if a condition holds, 0x0A one that denies: by [MS-DTYP] 2.4.4.17.3 an
# unknown condition does not allow, and denies.
_EFFECTS: Final = MappingProxyType({0x00: _Effect.ALLOW, 0x01: _Effect.DENY, 0x0A: _Effect.DENY})


@dataclass(frozen=True, slots=True)
class _Policy:
    """The parsed owner and DACL of a descriptor. `entries` is None without a DACL."""

    owner: bytes | None
    entries: tuple[tuple[_Effect, int, bytes], ...] | None
    owner_is_limited: bool


@lru_cache(maxsize=256)
def _policy(descriptor: bytes) -> _Policy:
    parts = descriptor_parts(descriptor)
    if parts.dacl is None:
        return _Policy(parts.owner, None, False)
    entries, limited = [], False
    for ace in ACL.parse(parts.dacl).Aces:
        if ace.AceFlags.IO or (entry := access_entry(ace)) is None:
            continue
        limited |= entry[1] == OWNER_RIGHTS
        if ace.AceType in _EFFECTS:
            entries.append((_EFFECTS[ace.AceType], *entry))
    return _Policy(parts.owner, tuple(entries), limited)


def granted_access(
    descriptor: bytes, token: Token, mask: int, rights: ObjectRights = QUEUE_RIGHTS
) -> int | None:
    """Return the rights that a token is granted, or None if access is denied: [MS-DTYP] 2.5.3.2.

    Without MAXIMUM_ALLOWED these are the requested rights; with it all rights that the token could be
    granted, at least one, including those of `mask`.

    Args:
        descriptor: a self-relative SECURITY_DESCRIPTOR.
        mask: an ACCESS_MASK, generic rights included.
        rights: the generic rights of the object.

    Raises MalformedPacket.
    """
    policy, requested = _policy(descriptor), rights.mapped(mask)
    maximum = requested & ACCESS_MASK.MAXIMUM_ALLOWED
    requested &= ~int(ACCESS_MASK.MAXIMUM_ALLOWED)
    if requested & ACCESS_MASK.ACCESS_SYSTEM_SECURITY:
        return None
    if policy.entries is None:
        return requested | int(rights.all) if maximum else requested
    sids, implied = token.sids, 0
    # S-1-5-7 as owner means that no owner is known (DMPR-3.1.7.1.3.1-04): the anonymous user gains nothing.
    if policy.owner in sids and policy.owner != ANONYMOUS:
        sids |= {OWNER_RIGHTS}
        # "ACEs from object owner" are those for OWNER_RIGHTS: [MS-DTYP] 2.4.2.4.
        implied = 0 if policy.owner_is_limited else _OWNER_RIGHTS_IMPLIED
    entries = [(effect, entry) for effect, entry, sid in policy.entries if sid in sids]
    if maximum:
        return _maximum(entries, requested, implied)
    remaining = requested & ~implied
    for effect, entry in entries:
        if effect is _Effect.ALLOW:
            remaining &= ~entry
        elif remaining & entry:
            return None
    return None if remaining else requested


def _maximum(entries: Iterable[tuple[_Effect, int]], requested: int, implied: int) -> int | None:
    """Return all rights that entries grant, in any order. The pseudo-code drops the owner's rights."""
    masks = {_Effect.ALLOW: 0, _Effect.DENY: 0}
    for effect, entry in entries:
        masks[effect] |= entry
    granted = masks[_Effect.ALLOW] & ~masks[_Effect.DENY] | implied
    return granted if granted and not requested & ~granted else None


def access_allowed(descriptor: bytes, token: Token, mask: int, rights: ObjectRights = QUEUE_RIGHTS) -> bool:
    """Whether `granted_access` grants the requested rights. A malformed descriptor denies everybody."""
    try:
        return granted_access(descriptor, token, mask, rights) is not None
    except MalformedPacket:
        return False


def set_security(
    element: QueueManager | Queue | Enterprise | Site | ConnectedNetwork, descriptor: bytes
) -> None:
    """Set the descriptor of an object.

    Generic rights in the entries of its DACL are translated ([MS-DTYP] 2.4.3), since access checks don't
    translate them.

    Raises MalformedPacket, and InvalidValue for an entry with rights that this kind of object does not have.
    """
    element.security = _translated(descriptor, RIGHTS_OF[type(element)])


def _translated(descriptor: bytes, rights: ObjectRights) -> bytes:
    """Translate the generic rights in a descriptor for an object. Raises as `set_security` does."""
    parts = descriptor_parts(descriptor)
    if parts.dacl is None:
        return build_descriptor(parts)
    acl, aces = ACL.parse(parts.dacl), []
    for number, original in enumerate(acl.Aces):
        ace = original
        if entry := access_entry(ace):
            mask = rights.mapped(entry[0]) & ~int(ACCESS_MASK.MAXIMUM_ALLOWED)  # meaningless in an entry
            # MQMQ-2.2.23-18
            if unknown := mask & ~int(rights.all):  # ~ of an IntFlag has only its own bits
                path = f"SECURITY_DESCRIPTOR.Dacl.Aces[{number}].Body.Mask"
                raise InvalidValue(f"{unknown:#010x} are not rights of the object", path=path)
            ace = ace.replace(Body=mask.to_bytes(4, "little") + ace.Body[4:])
        aces.append(ace)
    return build_descriptor(replace(parts, dacl=acl.replace(Aces=aces).to_bytes()))


RIGHTS: Final[Mapping[QueueAccessType, MQQUEUEACCESSMASK]] = MappingProxyType(
    {
        QueueAccessType.RECEIVE_ACCESS: MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE,
        QueueAccessType.SEND_ACCESS: MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE,
        QueueAccessType.PEEK_ACCESS: MQQUEUEACCESSMASK.MQSEC_PEEK_MESSAGE,
        # For the target of a move; the source is another descriptor, opened with ReceiveAccess. The
        # specifications name no right; MQMoveMessage requires the right to peek.
        QueueAccessType.MOVE_ACCESS: MQQUEUEACCESSMASK.MQSEC_PEEK_MESSAGE,
        QueueAccessType.RECEIVE_ADMIN_ACCESS: MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE,
        QueueAccessType.PEEK_ADMIN_ACCESS: MQQUEUEACCESSMASK.MQSEC_PEEK_MESSAGE,
    }
)
"""The right in a queue's descriptor that Open Queue requires."""

JOURNAL_RIGHTS: Final[Mapping[QueueAccessType, MQQUEUEACCESSMASK]] = MappingProxyType(
    {
        QueueAccessType.RECEIVE_ACCESS: MQQUEUEACCESSMASK.MQSEC_RECEIVE_JOURNAL_MESSAGE,
        QueueAccessType.PEEK_ACCESS: MQQUEUEACCESSMASK.MQSEC_PEEK_MESSAGE,  # no bit for peeking
    }
)
"""The right in a queue's descriptor that Open Queue requires for its journal."""

SYSTEM_JOURNAL_RIGHTS: Final[Mapping[QueueAccessType, MQQMACCESSMASK]] = MappingProxyType(
    {
        QueueAccessType.RECEIVE_ACCESS: MQQMACCESSMASK.MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE,
        QueueAccessType.PEEK_ACCESS: MQQMACCESSMASK.MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE,
    }
)
"""The right in the queue manager's descriptor that Open Queue requires for the system journal."""

DEADLETTER_RIGHTS: Final[Mapping[QueueAccessType, MQQMACCESSMASK]] = MappingProxyType(
    {
        QueueAccessType.RECEIVE_ACCESS: MQQMACCESSMASK.MQSEC_RECEIVE_DEADLETTER_MESSAGE,
        QueueAccessType.PEEK_ACCESS: MQQMACCESSMASK.MQSEC_PEEK_DEADLETTER_MESSAGE,
    }
)
"""The right in the queue manager's descriptor that Open Queue requires for system dead-letter queues."""


class Operation(Enum):
    """The operations on a queue or queue manager, except Open Queue."""

    CREATE_QUEUE = auto()
    DELETE = auto()
    PURGE = auto()
    GET_PROPERTIES = auto()
    SET_PROPERTIES = auto()
    GET_PERMISSIONS = auto()
    CHANGE_PERMISSIONS = auto()
    TAKE_OWNERSHIP = auto()


QUEUE_OPERATIONS: Final[Mapping[Operation, MQQUEUEACCESSMASK]] = MappingProxyType(
    {
        Operation.DELETE: MQQUEUEACCESSMASK.MQSEC_DELETE_QUEUE,
        Operation.PURGE: RIGHTS[QueueAccessType.RECEIVE_ACCESS],  # DMPR-3.1.1.17-04
        Operation.GET_PROPERTIES: MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PROPERTIES,
        Operation.SET_PROPERTIES: MQQUEUEACCESSMASK.MQSEC_SET_QUEUE_PROPERTIES,
        Operation.GET_PERMISSIONS: MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PERMISSIONS,
        Operation.CHANGE_PERMISSIONS: MQQUEUEACCESSMASK.MQSEC_CHANGE_QUEUE_PERMISSIONS,
        Operation.TAKE_OWNERSHIP: MQQUEUEACCESSMASK.MQSEC_TAKE_QUEUE_OWNERSHIP,
    }
)
"""The right in a queue's descriptor that an operation on it requires."""

QUEUE_MANAGER_OPERATIONS: Final[Mapping[Operation, MQQMACCESSMASK]] = MappingProxyType(
    {
        Operation.CREATE_QUEUE: MQQMACCESSMASK.MQSEC_CREATE_QUEUE,
        Operation.DELETE: MQQMACCESSMASK.MQSEC_DELETE_MACHINE,
        Operation.GET_PROPERTIES: MQQMACCESSMASK.MQSEC_GET_MACHINE_PROPERTIES,
        Operation.SET_PROPERTIES: MQQMACCESSMASK.MQSEC_SET_MACHINE_PROPERTIES,
        Operation.GET_PERMISSIONS: MQQMACCESSMASK.MQSEC_GET_MACHINE_PERMISSIONS,
        Operation.CHANGE_PERMISSIONS: MQQMACCESSMASK.MQSEC_CHANGE_MACHINE_PERMISSIONS,
        Operation.TAKE_OWNERSHIP: MQQMACCESSMASK.MQSEC_TAKE_MACHINE_OWNERSHIP,
    }
)
"""The right in a queue manager's descriptor that an operation on it requires."""


def may_open(queue: Queue, token: Token | None, access: QueueAccessType) -> bool:
    """Whether Open Queue may open a queue for a token; None is the queue manager's owner, who always may.

    A subqueue is protected by the descriptor of its queue. Sending to a queue of another queue manager is
    checked there.
    """
    if token is None or (isinstance(queue, OutgoingQueue) and access is QueueAccessType.SEND_ACCESS):
        return True
    manager = queue.queue_manager
    protecting: Queue | QueueManager = queue.owner_queue or queue
    table: Mapping[QueueAccessType, int] = RIGHTS
    if queue.owner_queue and queue.owner_queue.journal is queue:
        table = JOURNAL_RIGHTS
    elif manager and queue is manager.system_journal_queue:
        protecting, table = manager, SYSTEM_JOURNAL_RIGHTS
    elif manager and queue in (
        manager.system_deadletter_queue,
        manager.system_transactional_deadletter_queue,
    ):
        protecting, table = manager, DEADLETTER_RIGHTS
    return access in table and _is_granted(protecting, token, table[access])


def may(element: Queue | QueueManager, token: Token | None, operation: Operation) -> bool:
    """Whether a token has the right to an operation; None is the owner of the queue manager, who has all."""
    if token is None:
        return True
    table: Mapping[Operation, int] = (
        QUEUE_MANAGER_OPERATIONS if isinstance(element, QueueManager) else QUEUE_OPERATIONS
    )
    return operation in table and _is_granted(element, token, table[operation])


def _is_granted(element: Queue | QueueManager, token: Token, mask: int) -> bool:
    return access_allowed(element.security, token, mask, RIGHTS_OF[type(element)])


_NOBODY: Final = frozenset({NULL_SID, EVERYONE, ANONYMOUS})
_GROUP_DEFAULTED, _DACL_DEFAULTED = 0x0002, 0x0008
# S-1-5-21, followed by three numbers and a RID:
_DOMAIN_SID_PREFIX: Final = bytes.fromhex("01 05 00 00 00 00 00 05 15 00 00 00")
_DOMAIN_USER_RID_GUEST: Final = 501
_FULL_ACCESS: Final = MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_ALL
_READ_ATTRIBUTES: Final = (
    MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PROPERTIES | MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PERMISSIONS
)


def default_security(
    user: bytes | None,
    supplied: bytes = b"",
    *,
    is_domain_user: Callable[[bytes], bool] = lambda sid: False,
    local_owner: bool = True,
    machine_sid: bytes | None = None,
    anonymous_may_send: bool = False,
) -> bytes:
    """Create Default Queue Security Descriptor, self-relative: [MS-MQDMPR] 3.1.7.1.3.1.

    By the text of the specification, an owner who is not a domain user is anonymous (DMPR-3.1.7.1.3.1-04),
    and everybody has full access (-06); on a machine without a domain that would apply to all its queues.
    With `local_owner` an account of the machine counts as a domain user in both cases. Everyone, the
    anonymous user and S-1-0-0 never do.

    Args:
        user: SID of the user on whose behalf the queue is created, who owns it if `supplied` names no owner;
            None for the queue manager's own account, S-1-5-18.
        supplied: iQueue.Security, empty if not set: its owner, DACL and SACL are copied.
        is_domain_user: whether a SID is that of a domain user.
        local_owner: `Settings.local_owner` in workgroup mode, False in directory-integrated mode.
        machine_sid: objectSid of the computer in the directory; None in workgroup mode or if that fails.
        anonymous_may_send: whether anonymous senders may send to the queue, as those of [MC-MQSRM] do.

    Raises MalformedPacket, and InvalidValue for entries with rights that a queue does not have.
    """
    parts = descriptor_parts(_translated(supplied, QUEUE_RIGHTS)) if supplied else DescriptorParts()
    owner = parts.owner or user or LOCAL_SYSTEM  # DMPR-3.1.7.1.3.1-02, -03
    is_user = owner not in _NOBODY and (local_owner or is_domain_user(owner))
    if not is_user:
        owner = ANONYMOUS  # DMPR-3.1.7.1.3.1-04
    dacl, control = parts.dacl, _GROUP_DEFAULTED
    if dacl is None:  # DMPR-3.1.7.1.3.1-05
        control |= _DACL_DEFAULTED
        dacl = _default_dacl(owner, not is_user or _is_guest(owner), machine_sid, anonymous_may_send)
    # The steps do not name the place of OwnerSid; S-1-5-7 has a meaning only as the owner.
    return build_descriptor(DescriptorParts(owner, None, parts.sacl, dacl, control))  # DMPR-3.1.7.1.3.1-11


@lru_cache(maxsize=256)  # the queues of a computer have few owners
def _default_dacl(
    owner: bytes, open_to_all: bool, machine_sid: bytes | None, anonymous_may_send: bool
) -> bytes:
    if open_to_all:  # DMPR-3.1.7.1.3.1-06
        world, owners = int(_FULL_ACCESS), 0
    else:
        world, owners = int(_READ_ATTRIBUTES), int(_FULL_ACCESS)  # DMPR-3.1.7.1.3.1-07
    anonymous = int(MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE) if anonymous_may_send else 0  # DMPR-3.1.7.1.3.1-09
    entries = [(world | anonymous, EVERYONE), (anonymous, ANONYMOUS)]  # DMPR-3.1.7.1.3.1-10
    if machine_sid:  # DMPR-3.1.7.1.3.1-08
        entries.append((int(_READ_ATTRIBUTES), machine_sid))
    entries.append((owners, owner))
    return _allowing(entries)


def default_manager_security() -> bytes:
    """Return the default security descriptor of a queue manager.

    The specification names no default. Everyone may get its properties and permissions; its own account,
    S-1-5-18, owns it and has all rights, as for its queues.
    """
    entries = (
        (int(MQQMACCESSMASK.MQSEC_MACHINE_WORLD_RIGHTS), EVERYONE),
        (int(MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_ALL), LOCAL_SYSTEM),
    )
    return build_descriptor(DescriptorParts(LOCAL_SYSTEM, None, None, _allowing(entries), _DACL_DEFAULTED))


def _allowing(entries: Iterable[tuple[int, bytes]]) -> bytes:
    """Return a DACL that grants rights to SIDs."""
    return ACL.build(
        {
            "Aces": [
                {"AceType": 0, "Body": ACCESS_ACE_BODY.build({"Mask": mask, "Sid": SID.parse(sid)})}
                for mask, sid in entries
                if mask
            ]
        }
    )


def _is_guest(sid: bytes) -> bool:
    return sid.startswith(_DOMAIN_SID_PREFIX) and sid[-4:] == _DOMAIN_USER_RID_GUEST.to_bytes(4, "little")
