"""Endpoints of keys of the queue manager and of certificates of users."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from msmqwire.constants import HResult
from msmqwire.errors import InvalidValue, QueueError
from msmqwire.headers.security_descriptor import sid_bytes, sid_text
from msmqwire.qm.runtime.api.changes import said
from msmqwire.qm.runtime.api.lists import PAGING, Key, list_schema
from msmqwire.qm.runtime.api.problems import Problem
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Reply, Route
from msmqwire.qm.runtime.api.values import Schema, ref
from msmqwire.qm.runtime.certificate_rows import (
    certificate_row,
    certificate_rows,
    register,
    register_read,
)
from msmqwire.qm.runtime.folder_security import private_key_of
from msmqwire.qm.runtime.key_ring import PROVIDERS, KeyFile, KeyUse
from msmqwire.qm.runtime.key_rows import key_row, key_rows
from msmqwire.qm.runtime.message_signers import account_name, new_certificate, sid_of
from msmqwire.qm.runtime.new_keys import BITS, BITS_MIN, new_key, own_keys
from msmqwire.qm.runtime.peer_keys import read_peer_keys

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

T = TypeVar("T")
_BITS_MAX: Final = 4096
"""Longer keys take minutes to make: that is for the command."""
_DAYS: Final = 8 * 365
_DAYS_MAX: Final = 100 * 365
_TEXT_MAX: Final = 64 << 10
_TAG: Final = "keys and certificates"
_TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_SID: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 200, "description": "S-1-5-…"}
_PEM: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": _TEXT_MAX}
_BITS: Final[Schema] = {"type": "integer", "minimum": BITS_MIN, "maximum": _BITS_MAX, "default": BITS}
_PROVIDER: Final[Schema] = {"type": "string", "enum": list(PROVIDERS)}
_PROVIDERS: Final[Schema] = {"type": "array", "minItems": 1, "maxItems": len(PROVIDERS), "items": _PROVIDER}
_USE: Final[Schema] = {"type": "string", "enum": [use.value for use in KeyUse]}
KEY_SCHEMAS: Final[dict[str, Schema]] = {
    "Key": {
        "type": "object",
        "required": ["provider", "use", "bits", "created", "current", "peer"],
        "properties": {
            "provider": _PROVIDER,
            "use": _USE,
            "bits": {"type": "integer"},
            "created": _TEXT_OR_NULL,
            "current": {"type": "boolean"},
            "peer": {
                "type": ["string", "null"],
                "description": "Whose key it is; null: ours",
            },
        },
    },
    "Certificate": {
        "type": "object",
        "required": ["digest", "sid", "subject", "serial", "not_before", "not_after", "key", "revoked"],
        "properties": {
            "digest": {"type": "string", "description": "MD5, in hexadecimal"},
            "sid": _TEXT_OR_NULL,
            "subject": _TEXT_OR_NULL,
            "serial": _TEXT_OR_NULL,
            "not_before": _TEXT_OR_NULL,
            "not_after": _TEXT_OR_NULL,
            "key": {"type": "boolean", "description": "Whether the folder has its private key"},
            "revoked": {"type": "boolean"},
        },
    },
}


def _object(required: list[str], **properties: Schema) -> Schema:
    return {
        "type": "object",
        "required": required,
        "additionalProperties": False,
        "properties": properties,
    }


class _KeyEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def _in_folder(self, work: Callable[[Path], T]) -> T:
        """Run work on the files of the folder in a thread: it reads disks, and makes keys."""
        security = self._api.running.security
        if security is None:
            raise QueueError("there is no folder for its keys", HResult.MQ_ERROR_INVALID_PARAMETER)
        return await asyncio.get_running_loop().run_in_executor(None, work, security.folder)

    async def _change(self, call: Call, what: str, work: Callable[[Path], T], **details: Any) -> T:
        try:
            done = await self._in_folder(work)
            await self._api.run("refresh_keys")
        except Exception as exc:
            said(call, what, exc, **details)
            raise
        said(call, what, **details)
        return done

    # -- keys -----------------------------------------------------------------------------------------------

    async def keys(self, call: Call) -> Reply:
        rows = await self._in_folder(lambda folder: key_rows(KeyFile(folder).read()))
        own = [row for row in rows if row["peer"] is None]
        peers = [row for row in rows if row["peer"] is not None]
        keyed: list[tuple[Key, dict[str, Any]]] = [([0, at], row) for at, row in enumerate(reversed(own))]
        keyed += [([1, row["peer"], row["provider"]], row) for row in peers]
        told = self._api.lists.page(
            keyed, call.parameters, "keys", lambda pair: pair[0], lambda pair: pair[1]
        )
        return Reply(told)

    async def add_keys(self, call: Call) -> Reply:
        body, now = call.body, int(time.time())
        providers = [PROVIDERS[name] for name in dict.fromkeys(body.get("providers", PROVIDERS))]
        if "public_key" in body:
            peer = _guid(body["peer"], "peer")
            content = body["public_key"].encode("utf-8", "surrogatepass")

            def add(folder: Path) -> list[dict[str, Any]]:
                keys = read_peer_keys(content)
                ring = KeyFile(folder).change(lambda ring: ring.with_peer(peer, keys))
                return [row for row in key_rows(ring) if row["peer"] == str(peer)]

        elif "private_key" in body:
            pem = body["private_key"].encode("utf-8", "surrogatepass")

            def add(folder: Path) -> list[dict[str, Any]]:
                keys = own_keys(private_key_of(pem), KeyUse(body.get("use", "exchange")), providers, now)
                KeyFile(folder).change(lambda ring: ring.with_keys(keys))
                return [key_row(key, current=True) for key in keys]

        else:

            def add(folder: Path) -> list[dict[str, Any]]:
                bits = body.get("bits", BITS)
                keys = [own for use in KeyUse for own in own_keys(new_key(bits), use, providers, now)]
                KeyFile(folder).change(lambda ring: ring.with_keys(keys))
                return [key_row(own, current=True) for own in keys]

        return Reply({"items": await self._change(call, "keys added", add), "next": None}, 201)

    # -- certificates ---------------------------------------------------------------------------------------

    async def certificates(self, call: Call) -> Reply:
        rows = await self._in_folder(certificate_rows)
        told = self._api.lists.page(rows, call.parameters, "certificates", _by_digest)
        return Reply(told)

    async def add_certificate(self, call: Call) -> Reply:
        body = call.body
        sid = sid_of(body.get("sid"))

        def add(folder: Path) -> dict[str, Any]:
            if "certificate" in body:
                content = body["certificate"].encode("utf-8", "surrogatepass")
                groups = [sid_bytes(group) for group in body.get("groups", ())]
                return register_read(folder, sid, content, "certificate", groups)
            own = new_certificate(
                sid_text(sid),
                body.get("subject") or account_name(),
                int(time.time()),
                body.get("days", _DAYS),
                body.get("bits", BITS),
            )
            file = KeyFile(folder)
            ring = file.change(lambda ring: ring.with_certificate(own))
            with file.exclusively():
                register(folder, sid, own.certificate)
            return certificate_row(own.certificate, sid, ring, {own.certificate})

        return Reply(await self._change(call, "certificate registered", add, sid=sid_text(sid)), 201)

    async def revoke(self, call: Call) -> Reply:
        digest = call.parameters["digest"].lower()
        rows = await self._in_folder(certificate_rows)
        if digest not in {row["digest"] for row in rows}:
            raise Problem(404, f"no certificate has the digest {digest!r:.100}")

        def revoke(folder: Path) -> None:
            KeyFile(folder).change(lambda ring: ring.with_revoked(bytes.fromhex(digest)))

        await self._change(call, "certificate revoked", revoke, digest=digest)
        return Reply(status=204)


def _by_digest(row: dict[str, Any]) -> Key:
    return [row["digest"], row["sid"] or ""]


def _guid(text: str, path: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidValue(f"{text!r:.100} is not a GUID", path=path) from None


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _KeyEndpoints(api)
    keys, certificates = list_schema(ref("Key")), list_schema(ref("Certificate"))
    new_keys: Schema = {
        "oneOf": [
            _object([], bits=_BITS, providers=_PROVIDERS),
            _object(["private_key"], private_key=_PEM, use=_USE, providers=_PROVIDERS),
            _object(["peer", "public_key"], peer={"type": "string", "format": "uuid"}, public_key=_PEM),
        ]
    }
    days: Schema = {"type": "integer", "minimum": 1, "maximum": _DAYS_MAX, "default": _DAYS}
    subject: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
    new_certificate_: Schema = {
        "oneOf": [
            _object([], sid=_SID, subject=subject, days=days, bits=_BITS),
            _object(
                ["sid", "certificate"],
                sid=_SID,
                certificate=_PEM,
                groups={"type": "array", "maxItems": 100, "items": _SID},
            ),
        ]
    }
    return [
        Route(
            "GET", "/keys", Right.READ, "list_keys",
            "The keys of this queue manager, and those that it knows of others; no private ones",
            own.keys, parameters=PAGING, answers={200: keys}, tag=_TAG,
        ),
        Route(
            "POST", "/keys", Right.ADMINISTER, "add_keys",
            "Make keys, take over a private key (PEM), or the public key of another queue manager",
            own.add_keys, body=new_keys, answers={201: keys}, tag=_TAG,
        ),
        Route(
            "GET", "/certificates", Right.READ, "list_certificates",
            "The certificates that are registered or revoked", own.certificates,
            parameters=PAGING, answers={200: certificates}, tag=_TAG,
        ),
        Route(
            "POST", "/certificates", Right.ADMINISTER, "add_certificate",
            "Make an internal certificate for a user, or register one (PEM)", own.add_certificate,
            body=new_certificate_, answers={201: ref("Certificate")}, tag=_TAG,
        ),
        Route(
            "DELETE", "/certificates/{digest}", Right.ADMINISTER, "revoke_certificate",
            "Revoke a certificate for good", own.revoke, answers={204: None}, tag=_TAG,
        ),
    ]  # fmt: skip
