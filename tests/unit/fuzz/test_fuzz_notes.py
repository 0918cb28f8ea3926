"""What the fuzzer of peers holds against a peer: breaches, not what is merely strange."""

from __future__ import annotations

from typing import Any, cast

import pytest

from fuzz.peer.binary.session import PeerSession
from fuzz.peer.channel import Channel
from fuzz.peer.failure import PeerFailure
from msmqwire.analysis.lint import lint_packet
from tests.support.capture.lint_packets import make


def taken(changes: dict[str, Any]) -> list[str]:
    """The severities of a message that a session takes from a peer."""
    session = PeerSession(cast(Channel, None), ours=True)
    session.open = True
    return [finding.severity for finding in lint_packet(session._take(make("message", changes).to_bytes()))]


def test_a_note_does_not_accuse_a_peer() -> None:
    assert taken({"MessagePropertiesHeader.BodyType": 0x9999}) == ["NOTE"]
    assert taken({"MessagePropertiesHeader.Flags.NA": 1}) == ["NOTE"]
    assert taken({"UserHeader.Flags.X1": 1}) == ["SHOULD"]


def test_a_breach_does() -> None:
    with pytest.raises(PeerFailure) as caught:
        taken({"UserHeader.Flags.RC": 0x1F})
    assert caught.value.requirements == ("MQMQ-2.2.19.2-10",)


def test_a_peer_is_accused_by_requirement() -> None:
    """Not by the id of one of several rules about it."""
    session = PeerSession(cast(Channel, None), ours=True)
    session.open = True
    with pytest.raises(PeerFailure) as caught:
        session._take(make("ack", {"BaseHeader.Flags.SH": 1, "InternalHeader.Flags.CS": 1}).to_bytes())
    assert caught.value.requirements == ("MQQB-2.2.1-07",)
    with pytest.raises(PeerFailure) as caught:
        session._take(make("final direct", {"MessagePropertiesHeader.Flags.NR": 1}).to_bytes())
    assert caught.value.requirements == ("MQQB-2.2.5-07",)
