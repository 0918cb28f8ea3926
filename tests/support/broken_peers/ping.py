"""Answering pings: [MS-MQQB] 2.2.7 and 3.1.7.7."""

from __future__ import annotations

from tests.support.broken_peers.wire import PING, PING_SIGNATURE, Crash, Makes

_RC, _RF = 1, 2


class Pings:
    """Answers the datagrams that come to the ping port."""

    def __init__(self, guid: bytes, makes: Makes) -> None:
        self._guid, self._makes = guid, makes
        self._deaf = False

    def answer(self, data: bytes) -> bytes | None:
        """Return the answer to a datagram, or None. Raises Crash."""
        makes = self._makes
        if len(data) < 8 and makes("short_ping_crashes"):
            raise Crash("the cookie is read from a datagram that has none")
        if len(data) != PING.size or self._deaf:
            self._deaf = makes("deaf_after_bad_ping")
            return None
        flags, signature, cookie, guid = PING.unpack(data)
        if signature != PING_SIGNATURE and not makes("answers_any_ping"):
            return None
        if makes("wrong_cookie"):
            cookie = (cookie + 1) & 0xFFFFFFFF
        if makes("wrong_cookie_above_2_31"):
            cookie &= 0x7FFFFFFF
        answer = PING.pack(
            (0 if makes("ping_without_rc") else flags & _RC) | (_RF if makes("ping_always_refuses") else 0),
            0x4855 if makes("ping_signature") else PING_SIGNATURE,
            cookie,
            guid if makes("ping_echoes_guid") else self._guid,
        )
        return answer[:8] if makes("short_ping") else answer
