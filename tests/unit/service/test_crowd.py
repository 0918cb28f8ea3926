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
    assert [crowd.discard(member) for member in ("b1", "b2", "b2")] == [True, True, False]
    assert crowd.oldest() == "a1"
    assert (crowd.oldest_of("b"), crowd.oldest_of("c")) == ("b3", None)
    assert ("b3" in crowd, "b1" in crowd) == (True, False)
    assert set(crowd) == {"a1", "a2", "b3"}


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
            assert crowd.discard(members.pop(number % len(members)))
        most = max(map(len, left.values()))
        oldest = crowd.oldest()
        assert len(crowd) == sum(map(len, left.values()))
        assert (oldest is None) == (most == 0)
        assert oldest is None or oldest in [each[0] for each in left.values() if len(each) == most]
    for members in left.values():
        assert all(map(crowd.discard, members))
    assert (list(crowd), crowd._members, crowd._origins, crowd.most) == ([], {}, {}, 0), "nothing is left"
