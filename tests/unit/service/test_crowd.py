"""Members of origins: the oldest of the most crowded origin, whatever comes and goes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.service.crowd import Crowd


def test_the_oldest_of_the_most_crowded_origin_is_found() -> None:
    crowd: Crowd[str] = Crowd()
    assert crowd.oldest() is None
    for member in ("a1", "b1", "b2", "a2", "b3"):
        crowd.add(member, member[0])
    assert (crowd.oldest(), len(crowd), crowd.of("a"), crowd.of("c")) == ("b1", 5, 2, 0)
    crowd.remove("b1", "b")
    crowd.remove("b2", "b")
    assert crowd.oldest() == "a1"
    assert (crowd.oldest_of("b"), crowd.oldest_of("c")) == ("b3", None)
    assert crowd.has("b3", "b")
    assert not crowd.has("b1", "b")
    assert not crowd.has("b3", "a")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40))
def test_any_order_of_coming_and_going(steps: list[tuple[str, bool]]) -> None:
    crowd: Crowd[int] = Crowd()
    left: dict[str, list[int]] = {}
    for number, (origin, comes) in enumerate(steps):
        members = left.setdefault(origin, [])
        if comes:
            crowd.add(number, origin)
            members.append(number)
        elif members:
            crowd.remove(members.pop(number % len(members)), origin)
        most = max(map(len, left.values()))
        oldest = crowd.oldest()
        assert len(crowd) == sum(map(len, left.values()))
        assert (oldest is None) == (most == 0)
        assert oldest is None or oldest in [each[0] for each in left.values() if len(each) == most]
    for origin, members in left.items():
        for member in members:
            crowd.remove(member, origin)
    assert (crowd._members, crowd._origins, crowd.most) == ({}, {}, 0), "nothing is left of an origin"
