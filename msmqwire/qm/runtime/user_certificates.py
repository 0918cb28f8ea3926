"""The certificates of users in the directory of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from msmqwire.constants import HResult
from msmqwire.durable import make_private
from msmqwire.errors import MalformedPacket, QueueError, StoreRefused
from msmqwire.ownership import check_siblings
from msmqwire.qm.directory.attributes import Operator
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.directory_objects import User
from msmqwire.qm.model.enumerations import DirectoryOperationResult
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.runtime.data_folder import DIRECTORY
from msmqwire.qm.security.user_certificates import register, registered, unregister

_SUCCESS: Final = DirectoryOperationResult.SUCCESS
_WRITTEN: Final = ("Certificates", "CertificateDigestList", "Groups")


class Registered(NamedTuple):
    """A certificate that is registered for a user: SID and certificate in DER."""

    sid: bytes
    certificate: bytes


def open_users(folder: Path, *, create: bool = False) -> EmbeddedDirectory | None:
    """Open the directory of a folder; None if it has none and must not get one.

    Raises the subclasses of StoreError.
    """
    path = folder / DIRECTORY
    check_siblings(path)
    if create:
        try:
            make_private(path)
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(path)) from None
    return EmbeddedDirectory(path) if path.exists() else None


def register_certificate(
    directory: EmbeddedDirectory, sid: bytes, certificate: bytes, groups: Sequence[bytes] = ()
) -> None:
    """Register a certificate for a SID, unless it is registered.

    `groups` are the SIDs of the user's groups; without any they are unchanged.

    Raises QueueError.
    """
    user = _user(directory, sid)
    user.groups = list(groups) or user.groups
    try:
        register(user, certificate, uuid4())
    except MalformedPacket:
        raise _failed("the certificates of this user can't be read") from None
    if user.identifier == NULL_GUID:
        status = directory.create_directory_object(user).status
    else:
        status = directory.write_directory(user, _WRITTEN)
    if status is not _SUCCESS:
        raise _failed(status.name)


def unregister_certificate(directory: EmbeddedDirectory, certificate: bytes) -> int:
    """Remove a certificate from all users that have it; return their number. Raises QueueError."""
    count = 0
    for user in list(_users(directory)):
        try:
            had = unregister(user, certificate)
        except MalformedPacket:
            continue
        if had:
            count += 1
            status = directory.write_directory(user, _WRITTEN)
            if status is not _SUCCESS:
                raise _failed(status.name)
    return count


def registered_certificates(directory: EmbeddedDirectory) -> Iterator[Registered]:
    """Yield all certificates with their users, except for unreadable ones."""
    for user in _users(directory):
        try:
            entries = registered(user)
        except MalformedPacket:
            continue
        for entry in entries:
            yield Registered(user.security_identifier, entry.Certificate)


def registered_users(directory: EmbeddedDirectory) -> Iterator[tuple[bytes, bytes, list[bytes]]]:
    """Yield SID, certificate and groups, as `registered_certificates` does."""
    for user in _users(directory):
        try:
            entries = registered(user)
        except MalformedPacket:
            continue
        for entry in entries:
            yield user.security_identifier, entry.Certificate, user.groups


def _user(directory: EmbeddedDirectory, sid: bytes) -> User:
    found = directory.read_directory("User", [("SecurityIdentifier", Operator.EQUALS, sid)]).object
    return found if isinstance(found, User) else User(NULL_GUID, security_identifier=sid)


def _users(directory: EmbeddedDirectory) -> Iterator[User]:
    status, handle = directory.read_directory_begin("User")
    if status is not _SUCCESS:
        raise _failed(status.name)
    while isinstance(user := directory.read_directory_next(handle).object, User):
        yield user
    directory.read_directory_end(handle)


def _failed(why: str) -> QueueError:
    return QueueError(f"the directory: {why}", HResult.MQ_ERROR_DS_ERROR)
