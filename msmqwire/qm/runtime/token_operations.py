"""Operations on tokens of the API, for commands and the API itself."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from msmqwire.errors import InvalidValue
from msmqwire.names.nearest import nearest
from msmqwire.qm.rules.api_tokens import ApiToken, Right
from msmqwire.qm.runtime.queues import text

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

TOKEN_BYTES: Final = 32
"""Random bytes of a token: 256 bits are not found by trying."""


def new_token() -> str:
    """Return a new secret."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest(secret: str) -> bytes:
    """Return what is kept and compared in place of a secret."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def token_json(token: ApiToken) -> dict[str, Any]:
    """Return a token as JSON, without its secret, which is not known."""
    created = datetime.fromtimestamp(token.created, UTC).isoformat().replace("+00:00", "Z")
    return {"name": token.name, "right": str(token.right), "created": created}


def create(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Create a token with ``name`` and ``right``; the answer has its secret as ``token``, this once.

    Raises InvalidValue.
    """
    name, right = text(request, "name"), request.get("right")
    if right not in list(Right):
        raise InvalidValue(f"{right!r:.100} is none of {', '.join(Right)}", path="right")
    secret = new_token()
    token = core.tokens.create(name, Right(str(right)), digest(secret))
    return {"name": token.name, "right": str(token.right), "token": secret}


def listed(core: Core) -> list[dict[str, Any]]:
    """Return the tokens by name."""
    return [token_json(token) for token in core.tokens.all()]


def revoke(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Revoke the token with ``name``: it does not hold any more. Raises InvalidValue if there is none."""
    name = text(request, "name")
    token = core.tokens.revoke(name)
    if token is None:
        near = nearest(name, [one.name for one in core.tokens.all()])
        why = f"no token is named {name!r:.200}" + (f"; did you mean {' or '.join(near)}?" if near else "")
        raise InvalidValue(why, path="name")
    return {"name": token.name, "right": str(token.right), "revoked": True}
