"""Certificates of users and keys in definitions.

They are in files of their own, which have no commit in common with the store of queues: an import notes them
in that store, in the commit of everything else, and changes the files afterwards. A start that finds such a
note changes them then: see `finish_import`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msmqwire.errors import InvalidValue, StoreDamaged
from msmqwire.headers.security_descriptor import sid_bytes, sid_text
from msmqwire.qm.model.tables import Table
from msmqwire.qm.runtime.data_folder import STORE
from msmqwire.qm.runtime.definitions.changes import CHANGE, CREATE, Plan, located, members, text_of
from msmqwire.qm.runtime.folder import IMPORT_NOTE
from msmqwire.qm.runtime.folder_security import private_key_of
from msmqwire.qm.runtime.key_ring import (
    PROVIDERS,
    SHORT_NAMES,
    KeyFile,
    KeyRing,
    KeyUse,
    OwnCertificate,
    OwnKey,
)
from msmqwire.qm.runtime.message_json import flag, number
from msmqwire.qm.runtime.message_signers import pem_of_certificate, read_certificate
from msmqwire.qm.runtime.peer_keys import public_keys
from msmqwire.qm.runtime.user_certificates import open_users, register_certificate, registered_users
from msmqwire.service.logs import log

if TYPE_CHECKING:
    from msmqwire.service.store import Store

_CERTIFICATE: Final = ("certificate", "digest", "groups", "private_key", "revoked", "sid")
_KEY: Final = ("created", "private_key", "provider", "use")
_PEER: Final = ("keys", "queue_manager")
_TEXT_MAX: Final = 64 << 10
_DIGEST_SIZE: Final = 16
_GROUPS_MAX: Final = 1000
_TIME_MAX: Final = (1 << 53) - 1


def registered(folder: Path) -> list[tuple[bytes, bytes, Sequence[bytes]]]:
    """Return SID, certificate and groups of the certificates that are registered."""
    directory = open_users(folder)
    if directory is None:
        return []
    with closing(directory):
        return list(registered_users(directory))


def certificates(
    ring: KeyRing, found: Iterable[tuple[bytes, bytes, Sequence[bytes]]], *, secrets: bool
) -> list[dict[str, Any]]:
    """Return the certificates of users, by digest; with their keys if `secrets`."""
    keys = {own.certificate: own.private_key for own in ring.certificates}
    items, known = [], set()
    for sid, der, groups in found:
        digest = read_certificate(der).digest
        known.add(digest)
        item: dict[str, Any] = {
            "digest": digest.hex(), "sid": sid_text(sid), "certificate": pem_of_certificate(der).decode(),
        }  # fmt: skip
        if groups:
            item["groups"] = sorted(sid_text(group) for group in groups)
        if digest in ring.revoked:
            item["revoked"] = True
        if secrets and der in keys:
            item["private_key"] = keys[der].decode()
        items.append(item)
    items += [{"digest": digest.hex(), "revoked": True} for digest in ring.revoked - known]
    return sorted(items, key=lambda item: (item["digest"], item.get("sid", "")))


def keys(ring: KeyRing) -> list[dict[str, Any]]:
    """Return the keys of the queue manager, the newest first."""
    return [
        {
            "provider": SHORT_NAMES[key.provider],
            "use": key.use.value,
            "created": key.created,
            "private_key": key.private_key.decode(),
        }
        for key in ring.keys
    ]


def peer_keys(ring: KeyRing) -> list[dict[str, Any]]:
    """Return the public keys of other queue managers, by GUID."""
    return [
        {
            "queue_manager": str(peer),
            "keys": {SHORT_NAMES[provider]: blob.hex() for provider, blob in ring.peers[peer].items()},
        }
        for peer in sorted(ring.peers)
    ]


def check_certificates(plan: Plan, items: list[Any], path: str) -> None:
    """Check certificates. Raises InvalidValue."""
    own = {one.certificate for one in plan.ring.certificates}
    there: set[tuple[str, str]] = set()
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        members(item, at, _CERTIFICATE)
        revoked = flag(item.get("revoked", False), f"{at}.revoked")
        if "certificate" in item:
            pem = text_of(item, "certificate", at, _TEXT_MAX)
            found = located(f"{at}.certificate", read_certificate, pem.encode())
            digest, sid = found.digest, text_of(item, "sid", at)
            located(f"{at}.sid", sid_bytes, sid)
            if item.get("digest", digest.hex()) != digest.hex():
                raise InvalidValue(f"the digest of the certificate is {digest.hex()}", path=f"{at}.digest")
            _check_groups(item, at)
            groups = plan.registered.get((digest.hex(), sid))
            changes = groups is None or ("groups" in item and sorted(item["groups"]) != groups)
            if "private_key" in item:
                key = text_of(item, "private_key", at, _TEXT_MAX)
                located(f"{at}.private_key", private_key_of, key.encode())
                changes = changes or found.der not in own
        elif revoked:
            digest, sid, changes = _digest(item, at), "", False
        else:
            raise InvalidValue("neither a certificate nor revoked", path=at)
        if (digest.hex(), sid) in there:
            raise InvalidValue("the certificate is there twice", path=at)
        there.add((digest.hex(), sid))
        if changes or (revoked and digest not in plan.ring.revoked):
            known = any(one == digest.hex() for one, _ in plan.registered) or digest in plan.ring.revoked
            plan.add(CHANGE if known else CREATE, "certificate", digest.hex())
            plan.later("certificates", {**item, "digest": digest.hex()})


def _digest(item: Mapping[str, Any], path: str) -> bytes:
    try:
        digest = bytes.fromhex(text_of(item, "digest", path))
    except ValueError:
        digest = b""
    if len(digest) != _DIGEST_SIZE:
        raise InvalidValue(f"not {_DIGEST_SIZE} bytes in hex", path=f"{path}.digest")
    return digest


def _check_groups(item: Mapping[str, Any], path: str) -> None:
    groups = item.get("groups", [])
    if not isinstance(groups, list) or len(groups) > _GROUPS_MAX:
        raise InvalidValue(f"not a list of at most {_GROUPS_MAX} SIDs", path=f"{path}.groups")
    for index, group in enumerate(groups):
        where = f"{path}.groups[{index}]"
        if not isinstance(group, str):
            raise InvalidValue("not a SID", path=where)
        located(where, sid_bytes, group)


def check_keys(plan: Plan, items: list[Any], path: str) -> None:
    """Check keys of the queue manager. Raises InvalidValue."""
    known = set(plan.ring.keys)
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        members(item, at, _KEY, _KEY)
        key = _own_key(item, at)
        located(f"{at}.private_key", private_key_of, key.private_key)
        if key not in known:
            known.add(key)
            plan.add(CREATE, "key", f"{item['provider']} {item['use']}")
            plan.later("keys", item)


def _own_key(item: Mapping[str, Any], path: str) -> OwnKey:
    provider, use = item["provider"], item["use"]
    if not isinstance(provider, str) or provider not in PROVIDERS:
        raise InvalidValue(f"none of {', '.join(PROVIDERS)}", path=f"{path}.provider")
    uses = {one.value: one for one in KeyUse}
    if not isinstance(use, str) or use not in uses:
        raise InvalidValue(f"none of {', '.join(uses)}", path=f"{path}.use")
    created = number(item["created"], f"{path}.created", _TIME_MAX)
    return OwnKey(
        PROVIDERS[provider], uses[use], created, text_of(item, "private_key", path, _TEXT_MAX).encode()
    )


def check_peer_keys(plan: Plan, items: list[Any], path: str) -> None:
    """Check public keys of other queue managers. Raises InvalidValue."""
    there: set[UUID] = set()
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        members(item, at, _PEER, _PEER)
        try:
            peer = UUID(text_of(item, "queue_manager", at))
        except ValueError:
            raise InvalidValue("not a GUID", path=f"{at}.queue_manager") from None
        if peer in there:
            raise InvalidValue("the queue manager is there twice", path=f"{at}.queue_manager")
        there.add(peer)
        blobs = item["keys"]
        if not isinstance(blobs, dict) or not blobs.keys() <= PROVIDERS.keys():
            raise InvalidValue(f"not an object with {', '.join(PROVIDERS)}", path=f"{at}.keys")
        try:
            read = {PROVIDERS[name]: bytes.fromhex(blob) for name, blob in blobs.items()}
        except (ValueError, TypeError):
            raise InvalidValue("a key is not in hex", path=f"{at}.keys") from None
        located(f"{at}.keys", public_keys, read)
        if plan.ring.peers.get(peer) != read:
            plan.add(CHANGE if peer in plan.ring.peers else CREATE, "peer_key", str(peer))
            plan.later("peer_keys", item)


def finish_import(store: Store, folder: Path) -> None:
    """Change keys and directory as an import noted in a store that was killed before it had done so.

    It may be done any number of times: what is there already stays. `open_core` removes the note then.

    Raises StoreDamaged for a note that can't be read, and as `KeyFile` and the directory do.
    """
    row = store.row(Table.META, IMPORT_NOTE)
    if row is None:
        return
    try:
        noted = json.loads(row)
    except ValueError:
        raise StoreDamaged("the note of an import can't be read", file=str(folder / STORE)) from None
    apply_secrets(noted, folder)
    log.info("an import of definitions that was interrupted is finished", extra={"folder": str(folder)})


def apply_secrets(noted: Mapping[str, list[dict[str, Any]]], folder: Path) -> None:
    """Change keys and directory of a folder; what is there already stays. Raises as `finish_import` does."""
    file = KeyFile(folder)
    of_certificates = noted.get("certificates", [])
    if of_certificates or noted.get("keys") or noted.get("peer_keys"):
        file.change(lambda ring: _changed(ring, noted))
    with file.exclusively():
        registering = [item for item in of_certificates if "certificate" in item]
        if registering:
            directory = open_users(folder, create=True)
            assert directory is not None, "it is made if it is missing"
            with closing(directory):
                for item in registering:
                    groups = [sid_bytes(group) for group in item.get("groups", ())]
                    der = read_certificate(item["certificate"].encode()).der
                    register_certificate(directory, sid_bytes(item["sid"]), der, groups)


def _changed(ring: KeyRing, noted: Mapping[str, list[dict[str, Any]]]) -> KeyRing:
    new = [_own_key(item, "keys") for item in noted.get("keys", [])]
    ring = ring.with_keys([key for key in new if key not in ring.keys])
    for item in reversed(noted.get("certificates", [])):
        if item.get("revoked"):
            ring = ring.with_revoked(bytes.fromhex(item["digest"]))
        if "private_key" in item:
            der = read_certificate(item["certificate"].encode()).der
            own = OwnCertificate(item["sid"], der, item["private_key"].encode())
            if own not in ring.certificates:
                ring = ring.with_certificate(own)
    for item in noted.get("peer_keys", []):
        read = {PROVIDERS[name]: bytes.fromhex(blob) for name, blob in item["keys"].items()}
        ring = ring.with_peer(UUID(item["queue_manager"]), read)
    return ring


def names_of(items: Iterable[tuple[bytes, bytes, Sequence[bytes]]]) -> dict[tuple[str, str], list[str]]:
    """Return digest and SID of certificates that are registered, and the groups of their users."""
    return {
        (read_certificate(der).digest.hex(), sid_text(sid)): sorted(map(sid_text, groups))
        for sid, der, groups in items
    }
