"""The user that logs on, as an NTLM handshake names it in the clear: [MS-NLMP] 2.2.1.3."""

from __future__ import annotations

from typing import Final

_AUTHENTICATE: Final = b"NTLMSSP\0\x03\0\0\0"
_DOMAIN, _USER, _FLAGS = 28, 36, 60
"""Offsets of the fields of the two names, and of the flags, in the AUTHENTICATE_MESSAGE."""
_HEAD: Final = 64
_UNICODE: Final = 1
_NAME_MAX: Final = 512  # bytes of a name that is shown


def user_of(token: bytes) -> str:
    """Return ``DOMAIN\\user`` of the AUTHENTICATE_MESSAGE in a security token, in SPNEGO too.

    Empty for one without names, and if there is no such message.
    """
    start = token.find(_AUTHENTICATE)
    message = token[start:] if start >= 0 else b""
    if len(message) < _HEAD:
        return ""
    encoding = "utf-16-le" if message[_FLAGS] & _UNICODE else "latin-1"
    domain, user = (_field(message, at).decode(encoding, "replace") for at in (_DOMAIN, _USER))
    return f"{domain}\\{user}" if domain else user


def _field(message: bytes, at: int) -> bytes:
    size = int.from_bytes(message[at : at + 2], "little")
    offset = int.from_bytes(message[at + 4 : at + 8], "little")
    return message[offset : offset + min(size, _NAME_MAX)] if offset + size <= len(message) else b""
