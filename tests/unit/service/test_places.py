"""The places of a listener: silent connections make room, a part is for known origins."""

from __future__ import annotations

from dataclasses import replace

from msmqwire.service.places import ListenerLimits, Places, Room

LIMITS = ListenerLimits(connections=8, per_origin=3, held_bytes=0, close_s=0.0, reserved=4)
"""Four places for silent connections of unknown origins, six for all of theirs."""


def places(limits: ListenerLimits = LIMITS) -> Places[str]:
    """Places of connections named ``origin-number``; origins in capitals are known."""
    return Places(limits, str.isupper)


def origin(connection: str) -> str:
    return connection.partition("-")[0]


def come(room: Places[str], *connections: str, speak: bool = False) -> list[str | None]:
    """Connections come, and take the place of a silent one if need be; return whom each has ended."""
    ended: list[str | None] = []
    for connection in connections:
        refusal, silent = room.room(origin(connection))
        assert refusal is None, connection
        if silent is not None:
            room.leave(silent)
        room.take(connection, origin(connection))
        if speak:
            room.spoke(connection)
        ended.append(silent)
    return ended


def test_the_oldest_of_the_most_crowded_origin_makes_room() -> None:
    room = places()
    assert come(room, "a-1", "b-1", "b-2", "c-1", "d-1", "e-1") == [None] * 4 + ["b-1", "a-1"]
    assert (len(room), room.silent) == (4, 4)
    assert "b-1" not in room


def test_who_has_spoken_makes_room_for_none() -> None:
    room = places()
    come(room, "a-1", "a-2", "a-3", "b-1", "b-2", "b-3", speak=True)
    assert room.room("c") == Room("too many connections", None), "the rest is for known origins"
    assert room.room("a") == Room("too many connections of this peer", None)
    assert come(room, "K-1", "L-1") == [None, None]
    assert room.room("M") == Room(None, "K-1"), "a known origin makes room for another"
    assert room.room("c") == Room("too many connections", None), "and not for an unknown one"
    room.spoke("K-1")
    room.spoke("K-1")
    room.spoke("L-1")
    assert room.room("M") == Room("too many connections", None)
    room.leave("K-1")
    assert room.room("M") == Room(None, None)
    assert room.room("c") == Room("too many connections", None)
    room.leave("b-1")
    assert room.room("c") == Room(None, None)


def test_who_has_many_makes_room_for_who_has_none() -> None:
    room = places(replace(LIMITS, many=2))
    come(room, "a-1", "a-2", "a-3", "b-1", "b-2", "b-3", speak=True)
    assert come(room, "c-1", speak=True) == ["a-1"], "the oldest of who has three"
    assert room.room("c") == Room("too many connections", None), "it has one"
    assert room.room("a") == Room("too many connections", None)
    assert come(room, "d-1", speak=True) == ["b-1"]
    assert room.room("e") == Room("too many connections", None), "two are not many"
    come(room, "K-1", "L-1", speak=True)
    assert room.room("M") == Room("too many connections", None)
    for connection in ("c-1", "d-1", "a-2", "a-3", "b-2", "b-3", "K-1", "L-1"):
        room.leave(connection)
    assert (len(room), len(room._speaking), room._unknown) == (0, 0, 0)


def test_many_connections_of_a_known_origin_are_left_alone() -> None:
    room = places(replace(LIMITS, many=0))
    come(room, "K-1", "K-2", "K-3", "L-1", "L-2", "a-1", "b-1", "c-1", speak=True)
    assert come(room, "M-1", speak=True) == ["a-1"]
    assert come(room, "d-1", "N-1", speak=True) == ["b-1", "c-1"]
    room.leave("d-1")
    come(room, "O-1", speak=True)
    assert room.room("e") == Room("too many connections", None)


def test_silent_ones_leave_places_for_those_who_speak() -> None:
    room = places()
    come(room, "a-1", "b-1", "c-1", "d-1")
    assert come(room, "e-1", "f-1", speak=True) == ["a-1", None]
    assert (len(room), room.silent) == (5, 3)
    assert come(room, "g-1") == [None]
    assert (len(room), room.silent) == (6, 4)
    assert come(room, "h-1") == ["b-1"]


def test_an_origin_at_its_limit_makes_room_for_itself() -> None:
    room = places()
    come(room, "a-1", speak=True)
    come(room, "a-2", "a-3", "b-1")
    assert come(room, "a-4") == ["a-2"]
    come(room, "K-1", "K-2", "K-3")
    assert come(room, "K-4") == ["K-1"], "a known one, too"
    for connection in ("a-3", "a-4"):
        room.spoke(connection)
    assert room.room("a") == Room("too many connections of this peer", None)


def test_silent_ones_of_known_origins_make_room_last() -> None:
    room = places()
    come(room, "K-1", "K-2", "K-3", "L-1", "L-2", "L-3", "a-1", "b-1")
    assert room.room("M") == Room(None, "a-1")
    assert come(room, "c-1") == ["a-1"]
    assert come(room, "M-1", "M-2", "M-3") == ["b-1", "c-1", "K-1"]
    assert room.room("d") == Room("too many connections", None)


def test_an_origin_is_known_or_not_when_it_comes() -> None:
    known: set[str] = set()
    room: Places[str] = Places(LIMITS, known.__contains__)
    room.take("a-1", "a")
    known.add("a")
    room.take("a-2", "a")
    room.spoke("a-1")
    for connection in ("a-1", "a-2", "a-2", "a-3"):
        room.leave(connection)
    room.spoke("a-1")
    assert (len(room), room.silent, room._unknown, room._of_origin) == (0, 0, 0, {})
