"""Which URLs name this computer."""

from __future__ import annotations

import pytest

from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.srmp.http_framer import parse_http
from tests.support.srmp.srmp_harness import SrmpHarness
from tests.support.srmp.srmp_requests import SrmpPeer

OWN_ADDRESS = "10.9.9.9"


def receiver() -> tuple[SrmpHarness, SrmpPeer]:
    harness = SrmpHarness()
    harness.queue("orders")
    srmp_of(harness.core).urls.listens(http=8080, https=None)
    return harness, SrmpPeer(harness)


@pytest.mark.requirement("SRMP-3.1.5.1.3-02")
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("here", 200),
        ("HERE:80", 200),
        ("localhost", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]", 200),
        ("here:81", 400),
        ("localhost:81", 400),
        (OWN_ADDRESS, 400),
        ("there", 400),
    ],
)
def test_the_host_of_a_destination(host, status):
    _, peer = receiver()
    assert peer.send(to=f"http://{host}/msmq/private$/orders") == status


@pytest.mark.requirement("SRMP-3.1.5.1.3-02")
def test_an_address_is_known_once_a_request_has_come_there():
    harness, peer = receiver()
    request = peer.message(to=f"http://{OWN_ADDRESS}/msmq/private$/orders")
    assert harness.post(request) == 400
    srmp_of(harness.core).requested(99, parse_http(request), "10.0.0.7", OWN_ADDRESS)
    harness.run()
    assert harness.responses[99] == 200
