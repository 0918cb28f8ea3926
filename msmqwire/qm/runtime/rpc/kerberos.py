r"""Kerberos for servers of remote calls: [MS-KILE] 3.4.5 in DCE style, [RFC4121], by the GSS-API.

The key of the server comes from the keytab of the system (``KRB5_KTNAME``): that of the principal in the
client's ticket. A caller is known by its principal alone, ``alice@LAB.EXAMPLE``, which is called
``LAB.EXAMPLE\alice`` here; the authorization data of a ticket, for example a PAC, are not used.
"""

from __future__ import annotations

from typing import Any, Final

import gssapi
from gssapi.raw import IOV, IOVBufferType, get_mic_iov_length, inquire_sec_context_by_oid
from spnego import ContextReq
from spnego._gss import GSSAPIProxy
from spnego.exceptions import InvalidTokenError

_SESSION_KEY: Final = gssapi.OID.from_int_seq("1.2.840.113554.1.2.2.5.5")
"""GSS_C_INQ_SSPI_SESSION_KEY: gives the key, and an OID that ends with the number of its cipher."""
_AES: Final = frozenset({17, 18, 19, 20})
"""With the checksums of [RFC3962] and of [RFC8009]."""
_APPLICATION: Final = 0x60
_LONG_LENGTH: Final = 0x80
_AP_REQ_PREFIX: Final = bytes.fromhex("06092a864886f712010202 0100")
"""The OID of Kerberos and the TOK_ID of an AP-REQ: [RFC4121] 4.1."""


class KerberosAcceptor(GSSAPIProxy):
    """The server's end of a Kerberos handshake."""

    def __init__(self, request: ContextReq) -> None:
        """Raises SpnegoError without a key in the keytab."""
        super().__init__(usage="accept", protocol="kerberos", context_req=request)

    @property
    def client_principal(self) -> str | None:
        r"""The client, ``REALM\user``, once complete. Raises InvalidTokenError for a name of another form."""
        principal = super().client_principal if self.complete else None
        return None if principal is None else caller_name(principal)

    def step(self, in_token: bytes | None = None, **options: Any) -> bytes | None:
        """Return the next token."""
        if self._context is None and in_token is not None:
            in_token = without_frame(in_token)
        answer: bytes | None = super().step(in_token, **options)
        return answer


def caller_name(principal: str) -> str:
    r"""Return ``REALM\user`` for ``user@REALM``. Raises InvalidTokenError for a name with escaped
    characters.
    """
    user, _, realm = principal.rpartition("@")
    if not user or not realm or "\\" in principal:
        raise InvalidTokenError(context_msg=f"no caller can have the name {principal!r:.100}")
    return f"{realm}\\{user}"


def is_strong(context: Any) -> bool:
    """Return whether the key of a GSS-API context is an AES key: RC4 and DES are deprecated."""
    return inquire_sec_context_by_oid(context, _SESSION_KEY)[1][-1] in _AES


def mic_size(context: Any) -> int:
    """Return the bytes of a MIC token of a strong key."""
    mic = IOV(IOVBufferType.mic_token, std_layout=False)
    get_mic_iov_length(context, mic)
    return len(mic[0].value)


def without_frame(token: bytes) -> bytes:
    """Return a first token without the frame of [RFC2743] 3.1, which DCE style leaves out.

    Some clients (impacket) send it nevertheless. A token without a valid frame is returned as it is.
    """
    if len(token) < 2 or token[0] != _APPLICATION:
        return token
    size = token[1] - _LONG_LENGTH if token[1] & _LONG_LENGTH else 0
    start = 2 + size
    length = int.from_bytes(token[2:start], "big") if size else token[1]
    if len(token) != start + length or not token.startswith(_AP_REQ_PREFIX, start):
        return token
    return token[start + len(_AP_REQ_PREFIX) :]
