"""TLS handshakes: limited in number and in work, by origin."""

from __future__ import annotations

from msmqwire.qm.model.settings import Settings
from msmqwire.qm.runtime.http.handshakes import HANDSHAKE_MS, Handshakes

EACH = 3
SETTINGS = Settings(security_per_origin_ms=30, security_total_ms=60)


class Shaking:
    """A connection whose handshake is under way."""

    def __init__(self, address: str) -> None:
        self.address, self.ended = address, False
        self.held = 0

    def abort(self) -> None:
        self.ended = True


class Clocked:
    """Handshakes with a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.limits: Handshakes[Shaking] = Handshakes(SETTINGS, {"10.0.9.9"}, EACH, lambda: self.now)  # type: ignore[type-var]

    def begin(self, address: str) -> tuple[Shaking, bool]:
        connection = Shaking(address)
        return connection, self.limits.begin(connection)

    def finished(self, address: str) -> bool:
        """Whether a handshake that ends at once is allowed."""
        connection, allowed = self.begin(address)
        self.limits.end(connection)
        return allowed


def test_the_oldest_of_an_origin_ends() -> None:
    clocked = Clocked()
    first, *others = (clocked.begin("2001:db8::1")[0] for _ in range(EACH))
    neighbour, _ = clocked.begin("10.0.0.1")
    assert len(clocked.limits) == EACH + 1
    clocked.begin("2001:db8::2")
    assert (first.ended, neighbour.ended, [each.ended for each in others]) == (True, False, [False, False])
    clocked.limits.end(first)
    clocked.limits.end(first)
    assert len(clocked.limits) == EACH + 1
    clocked.limits.end(others[0])
    clocked.begin("2001:db8::3")
    assert not others[1].ended


def test_the_work_of_an_origin_is_limited() -> None:
    clocked = Clocked()
    allowed = SETTINGS.security_per_origin_ms // int(HANDSHAKE_MS)
    assert [clocked.finished("10.0.0.1") for _ in range(allowed + 2)] == [True] * allowed + [False] * 2
    assert clocked.finished("10.0.0.2"), "another origin is served"
    assert all(clocked.finished("10.0.9.9") for _ in range(10 * allowed)), "known ones have no limit"
    clocked.now += 0.5
    assert [clocked.finished("10.0.0.1") for _ in range(allowed)] == [
        number < allowed // 2 for number in range(allowed)
    ]
    assert len(clocked.limits) == 0


def test_a_refused_handshake_ends_no_other() -> None:
    clocked = Clocked()
    under_way = [clocked.begin("10.0.0.1")[0] for _ in range(EACH)]
    allowed = SETTINGS.security_per_origin_ms // int(HANDSHAKE_MS)
    for _ in range(allowed - EACH):
        clocked.limits.end(under_way[0])
        under_way[0], begun = clocked.begin("10.0.0.1")
        assert begun
    late, begun = clocked.begin("10.0.0.1")
    assert not begun
    clocked.limits.end(late)
    assert not any(connection.ended for connection in under_way)
    assert len(clocked.limits) == EACH
