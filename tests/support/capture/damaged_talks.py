"""What two sides say over TCP, damaged in any way: for tests of readers of streams."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st

from tests.support import captures as c

Said = list[tuple[bool, bytes]]
"""Units of a protocol, each with whether the client has sent it."""
Edit = tuple[int, int, bytes, str]


def conversation(said: Said, port: int, mss: int) -> c.TcpConversation:
    """The connection to a port, in segments of a size."""
    talk = c.TcpConversation((c.CLIENT, 50_001), (c.SERVER, port), mss=mss).handshake()
    for by_client, data in said:
        talk.send(data, by_client=by_client, acknowledged=mss > 1)
    return talk


def edits(units: int, size: int, pieces: Sequence[bytes]) -> st.SearchStrategy[list[Edit]]:
    """Up to four changes, in the first units and their first bytes; `pieces` are put in among others."""
    return st.lists(
        st.tuples(
            st.integers(0, units),
            st.integers(0, size),
            st.one_of(st.binary(max_size=3), st.sampled_from(pieces)),
            st.sampled_from(["patch", "insert", "cut", "drop", "twice"]),
        ),
        max_size=4,
    )


def damaged(units: Said, changes: list[Edit], head: bytes) -> Said:
    """The units with some of them changed, and bytes before the first."""
    said = list(units)
    for chosen, place, patch, how in changes:
        number = chosen % len(said)
        by_client, data = said[number]
        at = place % max(1, len(data))
        match how:
            case "patch":
                data = data[:at] + patch + data[at + len(patch) :]
            case "insert":
                data = data[:at] + patch + data[at:]
            case "cut":
                data = data[:at]
            case "drop":
                data = b""
            case "twice":
                data += data
        said[number] = by_client, data
    if head:
        said.insert(0, (True, head))
    return [(by_client, data) for by_client, data in said if data]
