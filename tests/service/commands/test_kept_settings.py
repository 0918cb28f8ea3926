"""Settings that a server keeps in its folder: they are there after it was killed and started without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.runtime.local import attach
from tests.support import handmade as h
from tests.support.peers.raw_peer import NACK_ARRIVAL, Message, Session, direct
from tests.support.running import ADDRESS, Process, process

DEFAULTS = [30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600]
GIVEN = [7, 7, 7, 11, 11, 11, 13, 13, 13, 17]


def status(data: Path) -> tuple[bool, list[int]]:
    """What is in force, as the control channel says."""
    with attach(data) as local:
        answer: dict[str, Any] = local.call("status")
    return answer["insecure_nacks"], answer["resend_times"]


def insecure_nacks(server: Process) -> list[int]:
    """The classes of the acknowledgements for a message to a queue that is not there."""
    nowhere = direct(r"OS:alpha\private$\nowhere")
    with Session.opened((ADDRESS, server.port)) as peer:
        peer.push(Message(b"refused", nowhere, wants=NACK_ARRIVAL, admin=(2, h.private_id(9))))
        answers = peer.until_acknowledged() + peer.fence()
    return [packet.MessageClass for packet in answers if packet.kind == "UserMessage"]


@pytest.mark.requirement(
    "MQQB-3.1.1.3-19", "MQQB-3.1.1.3-20", "MQQB-3.1.1.3-21", "MQQB-3.1.1.3-22", "MQQB-3.1.1.3-23"
)
def test_the_folder_keeps_settings_given_to_serve_once(tmp_path: Path) -> None:
    data = tmp_path / "alpha"
    with process(data) as server:
        assert status(data) == (False, DEFAULTS)
        assert insecure_nacks(server) == []
    with process(data, "--insecure-nacks", "--resend-times", "7,11,13,17") as server:
        server.kill()
    with process(data) as server:
        assert status(data) == (True, GIVEN)
        assert insecure_nacks(server) == [0x8000]
    assert status(data) == (True, GIVEN), "without a server too"
    with process(data, "--no-insecure-nacks") as server:
        server.kill()
    with process(data) as server:
        assert status(data) == (False, GIVEN)
        assert insecure_nacks(server) == []
