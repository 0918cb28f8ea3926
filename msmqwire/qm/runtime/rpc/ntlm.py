"""NTLM for servers of remote calls: [MS-NLMP] 3.2.5 and 3.3.2, with messages and cryptography of pyspnego.

As an acceptor, pyspnego has two habits that do not fit a service. It takes its users from a file that an
environment variable names, and it checks an NTLMv2 response by packing the client's blob anew: a client that
orders or ends the pairs in it otherwise than pyspnego is refused despite the right password (impacket is).
Here users come from a table, and the response is checked over its bytes as received, as [MS-NLMP] 3.3.2 says.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final

from spnego import NTLMHash
from spnego._ntlm import NTLMProxy
from spnego._ntlm_raw.crypto import hmac_md5, ntowfv2, rc4k
from spnego._ntlm_raw.md4 import md4
from spnego._ntlm_raw.messages import Authenticate, AvFlags, AvId, NegotiateFlags
from spnego.exceptions import InvalidTokenError

from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime.rpc.logins import LoginAttempts

HASH_PREFIX: Final = "$NT$"
"""The prefix of a hash in place of a password; 32 hexadecimal digits follow."""

KERBEROS_ONLY: Final = "$KERBEROS$"
"""The stand-in for the password of a user who may only use Kerberos."""

_HASH_SIZE: Final = 16
_PROOF_SIZE: Final = 16
_BLOB_MIN: Final = 32
_PAIRS_OFFSET: Final = 28
_PAIR: Final = Struct("<HH")
_MIC_SIZE: Final = 16


class RpcUsers:
    r"""The users who may call by NTLM: NT hashes by ``DOMAIN\user``, whatever their case."""

    def __init__(self, users: Mapping[str, str]) -> None:
        r"""Take passwords, ``$NT$`` and 32 hexadecimal digits, or KERBEROS_ONLY, by ``DOMAIN\user``.

        Raises InvalidValue for a name without a user, an invalid hash, and a duplicate name.
        """
        self._users: dict[tuple[str, str], tuple[str, bytes]] = {}
        keys: set[tuple[str, str]] = set()
        for name, secret in users.items():
            domain, separator, user = name.rpartition("\\")
            if not user or (separator and not domain):
                raise InvalidValue(f"{name!r:.100} is not DOMAIN\\user", path="rpc_users")
            key = domain.upper(), user.upper()
            if key in keys:
                raise InvalidValue(f"{name!r:.100} comes twice", path="rpc_users")
            keys.add(key)
            if secret != KERBEROS_ONLY:
                self._users[key] = name, nt_hash(secret)

    def __len__(self) -> int:
        return len(self._users)

    def find(self, domain: str, user: str) -> tuple[str, bytes] | None:
        """Return a user's name as it was given, and the hash of the password."""
        return self._users.get((domain.upper(), user.upper()))


def nt_hash(secret: str) -> bytes:
    """Return the NT hash of a password, or the hash given in its place. Raises InvalidValue."""
    if not secret.startswith(HASH_PREFIX):
        digest: bytes = md4(secret.encode("utf-16-le", "surrogatepass"))
        return digest
    try:
        given = bytes.fromhex(secret.removeprefix(HASH_PREFIX))
    except ValueError:
        given = b""
    if len(given) != _HASH_SIZE:
        raise InvalidValue(f"32 hexadecimal digits follow {HASH_PREFIX}", path="rpc_users")
    return given


class NtlmAcceptor(NTLMProxy):
    """The server's end of an NTLM handshake: NTLMv2 only, no anonymous users."""

    def __init__(self, users: RpcUsers, attempts: LoginAttempts | None = None, address: str = "") -> None:
        """`attempts` limits the attempts at passwords from an address; without it there is no limit."""
        # An initiator's constructor, since an acceptor's needs the environment variable.
        super().__init__(
            NTLMHash("unused", nt_hash=bytes(_HASH_SIZE).hex()), usage="initiate", protocol="ntlm"
        )
        self.usage = "accept"
        self._users, self._address = users, address
        self._attempts = LoginAttempts() if attempts is None else attempts
        self._name = ""
        self._sent: tuple[bytes, bytes] = b"", b""

    @property
    def client_principal(self) -> str | None:
        return self._name if self.complete else None

    def _step_accept_negotiate(self, token: bytes) -> bytes:
        challenge: bytes = super()._step_accept_negotiate(token)
        self._sent = token, challenge
        return challenge

    def _step_accept_authenticate(self, token: bytes, channel_bindings: Any) -> None:
        auth = Authenticate.unpack(token)
        response = auth.nt_challenge_response or b""
        if not auth.user_name or len(response) < _PROOF_SIZE + _BLOB_MIN:
            raise InvalidTokenError(context_msg="neither an anonymous user nor NTLMv1 is accepted")
        proof, blob = response[:_PROOF_SIZE], response[_PROOF_SIZE:]
        domain = auth.domain_name or ""
        found = self._users.find(domain, auth.user_name)
        known = found[0] if found else None
        if not self._attempts.allows(self._address, known):
            raise InvalidTokenError(context_msg="too many wrong passwords")
        # An unknown user takes as long as a known one.
        self._name, hashed = found or ("", bytes(_HASH_SIZE))
        key = ntowfv2(auth.user_name, hashed, domain)
        assert self._temp_challenge is not None
        expected = hmac_md5(key, self._temp_challenge.server_challenge + blob)
        if not hmac.compare_digest(expected, proof) or known is None:
            self._attempts.failed(self._address, known, f"{domain}\\{auth.user_name}")
            raise InvalidTokenError(context_msg="unknown user or wrong password")
        self._attempts.succeeded(self._address, known)
        session_key = hmac_md5(key, proof)
        flags = auth.flags
        if flags & NegotiateFlags.key_exch and flags & (NegotiateFlags.sign | NegotiateFlags.seal):
            encrypted = auth.encrypted_random_session_key or b""
            if len(encrypted) != len(session_key):
                raise InvalidTokenError(context_msg="no exchanged session key")
            session_key = rc4k(session_key, encrypted)
        if _av_flags(blob[_PAIRS_OFFSET:]) & AvFlags.mic:
            self._check_mic(auth, token, session_key)
        self._session_key = session_key
        self._context_attr = flags
        self._complete = True

    def _check_mic(self, auth: Authenticate, token: bytes, session_key: bytes) -> None:
        offset = auth._get_mic_offset()
        if not offset:
            raise InvalidTokenError(context_msg="the announced MIC is missing")
        mic = token[offset : offset + _MIC_SIZE]
        without = token[:offset] + bytes(_MIC_SIZE) + token[offset + _MIC_SIZE :]
        if not hmac.compare_digest(hmac_md5(session_key, b"".join(self._sent) + without), mic):
            raise InvalidTokenError(context_msg="wrong MIC")


def _av_flags(pairs: bytes) -> int:
    """Return the MsvAvFlags among the pairs of a blob, 0 without."""
    at = 0
    while at + _PAIR.size <= len(pairs):
        kind, length = _PAIR.unpack_from(pairs, at)
        at += _PAIR.size
        if kind == AvId.eol:
            break
        if kind == AvId.flags:
            return int.from_bytes(pairs[at : at + length], "little")
        at += length
    return 0
