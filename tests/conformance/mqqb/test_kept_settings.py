"""Settings that survive process and node failures: [MS-MQQB] 3.1.1.3 and 3.1.1.3.2."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.message import ObjectId, TxSequenceId
from msmqwire.qm.model.settings import KeptSettings, Settings
from msmqwire.qm.model.timers import Timer
from tests.support.engine_harness import OWN_ID, START_UTC, EngineHarness, harness_with_peer
from tests.support.peers.handwritten_peer import NA, direct
from tests.support.qm.queue_contents import message_classes

SHORT, MEDIUM, LONG, FINAL = (
    "resend_timeouts_short", "resend_timeouts_medium", "resend_timeouts_long", "resend_timeouts_final",
)  # fmt: skip


def resend_intervals(harness: EngineHarness, count: int) -> list[int]:
    """The seconds after which a transactional message without an OrderAck is sent again and again."""
    peer = harness.open_session(transactional=True)
    peer.acknowledge()
    key = harness.outgoing().number
    intervals = []
    for _ in range(count):
        remaining = harness.time_left(Timer.TRANSACTIONAL_ACK_WAIT, key)
        assert remaining is not None
        intervals.append(remaining // 1000)
        harness.core.context.timers.stop(Timer.SESSION_CLEANUP, peer.session.number)
        harness.advance(remaining)
        peer.acknowledge()
    return intervals


@pytest.mark.requirement("MQQB-3.1.3.1-01", "MQQB-3.1.1.3-12")
@pytest.mark.parametrize(
    ("name", "entries"),
    [
        pytest.param(SHORT, (0, 1, 2), marks=pytest.mark.requirement("MQQB-3.1.1.3-20"), id="short"),
        pytest.param(MEDIUM, (3, 4, 5), marks=pytest.mark.requirement("MQQB-3.1.1.3-21"), id="medium"),
        pytest.param(LONG, (6, 7, 8), marks=pytest.mark.requirement("MQQB-3.1.1.3-22"), id="long"),
        pytest.param(FINAL, (9,), marks=pytest.mark.requirement("MQQB-3.1.1.3-23"), id="final"),
    ],
)
@pytest.mark.requirement("SRMP-3.1.1.1.5-07")
def test_the_time_between_resends_has_its_default_and_survives(name: str, entries: tuple[int, ...]) -> None:
    default = [30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600]
    assert resend_intervals(EngineHarness(), 10) == default
    changed = [44 if entry in entries else interval for entry, interval in enumerate(default)]
    harness = EngineHarness(keep=KeptSettings(**{name: 44}))
    killed = harness.restarted(keep=None)
    assert resend_intervals(killed, 10) == changed
    assert resend_intervals(harness.restarted(keep=None, stop=True).restarted(), 10) == changed


@pytest.mark.requirement("MQQB-3.1.1.3-19", "MQQB-5.1-04")
def test_insecure_nacks_default_to_off_and_the_setting_is_kept() -> None:
    def sent(harness: EngineHarness) -> list[int]:
        harness.queue("adm")
        harness.accept_session().send_message(destination=direct("none"), acks=NA, admin=direct("adm"))
        return message_classes(harness.find_queue("adm"))

    assert sent(harness_with_peer()) == []
    harness = harness_with_peer(keep=KeptSettings(send_insecure_nacks=True))
    assert sent(harness.restarted(keep=None).restarted()) == [0x8000]
    off = harness.restarted(keep=KeptSettings(send_insecure_nacks=False))
    assert sent(off.restarted(keep=None)) == []


def test_a_setting_that_is_not_given_leaves_what_is_kept() -> None:
    harness = EngineHarness(keep=KeptSettings(True, resend_timeouts_short=5))
    later = harness.restarted(keep=KeptSettings(resend_timeouts_final=50)).restarted(keep=None)
    settings = later.core.context.settings
    assert settings.send_insecure_nacks
    assert settings.resend_timer_table == (5, 5, 5, 300, 300, 300, 1800, 1800, 1800, 50)
    others = Settings(resend_timer_table=(7,), send_insecure_nacks=True)
    assert KeptSettings().applied_to(others) == others


@pytest.mark.requirement("MQQB-3.1.1.3.2-01")
def test_what_has_to_survive_is_as_it_was_after_a_kill() -> None:
    harness = EngineHarness(keep=KeptSettings(False, 31, 301, 1801, 21601))
    incoming = harness.queue("tx", transactional=True)
    peer = harness.open_session(transactional=True, count=3, positive_journaling_requested=True)
    harness.send(recoverable=True)
    transfer = harness.transfer()
    peer.acknowledge()
    harness.send(b"later", recoverable=True)
    peer.send_order_ack((START_UTC, 1), 1)
    source = harness.accept_session(address="10.0.0.8")
    source.send_message(destination=direct("tx"), tx=(1, 0, 5), message_id=900)
    source.send_message(destination=direct("tx"), tx=(3, 2, 5), message_id=901)

    def state(now: EngineHarness) -> list[object]:
        queue = now.core.queues.lookup.path(incoming.pathname)
        assert queue is not None
        (info,) = queue.incoming.values()
        moving = now.transfer()
        return [
            (moving.sequence_id, moving.next_number, str(moving.queue.destination)),
            [(position.message.identifier, entry.tx_sequence_number)
             for position, entry in moving.table.items()],
            list(moving.awaiting_final_ack),
            (info.sequence_identifier, info.sequence_number, info.reject_count),
            now.core.context.settings.resend_timer_table,
        ]  # fmt: skip

    before = state(harness)
    assert before == [
        (TxSequenceId(START_UTC, 1), 4, str(transfer.queue.destination)),
        [(ObjectId(OWN_ID, 2), 2), (ObjectId(OWN_ID, 3), 3), (ObjectId(OWN_ID, 5), 0)],
        [1],
        (TxSequenceId(2, 5), 1, 1),
        (31, 31, 31, 301, 301, 301, 1801, 1801, 1801, 21601),
    ]
    killed = harness.restarted(keep=None)
    assert state(killed) == before
    assert killed.send()[0].identifier.uniquifier > 5
