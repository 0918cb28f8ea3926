"""Redirections of SRMP: [MC-MQSRM] 3.1.1.1.8 to 3.1.1.1.10, 3.1.5.1.3, 3.1.7.2.4, 3.1.7.9."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.errors import InvalidValue
from msmqwire.qm.protocols.srmp.redirections import (
    DEFAULT_RECEIPTS,
    EXCEPTIONS,
    INBOUND,
    OUTBOUND,
    RECEIPTS,
    URL_MAX,
    Redirections,
    UrlPatterns,
)

ORDERS = "http://shop/msmq/private$/orders"
OWN = "http://here/MSMQ/PRIVATE$/order_queue$"


def redirection(source: str, to: str) -> dict[str, str]:
    return {"From": source, "To": to}


@pytest.mark.requirement("SRMP-3.1.1.1.10-01", "SRMP-3.1.1.1.10.2-01", "SRMP-3.1.5.1.3-06")
@pytest.mark.parametrize(
    ("source", "matches"),
    [
        (ORDERS, True),
        ("HTTP://Shop/MSMQ/Private$/Orders", True),
        ("http://shop/msmq/private$/order", False),
        ("http://shop/msmq/private$/orders2", False),
        ("http://shop/msmq/private$/order*", True),
        (ORDERS + "*", True),  # no character is any characters, too
        ("http://SHOP/*", True),
        ("http://shop:80/*", False),
        ("http://*/private$/orders", False),  # elsewhere it is a character like others
        ("https://shop/*", False),
    ],
)
def test_from_is_matched_whole_or_up_to_its_asterisk(source: str, matches: bool) -> None:
    to = "https://other:8443/msmq/q"
    redirections = Redirections.from_json({INBOUND: [redirection(source, to)]})
    assert redirections.inbound(ORDERS) == (to if matches else ORDERS)
    assert redirections.outbound(ORDERS) == ORDERS
    assert redirections.receipts_url(ORDERS, OWN) == OWN


def test_an_asterisk_inside_matches_itself() -> None:
    redirections = Redirections.from_json({INBOUND: [redirection("http://*/msmq/q", ORDERS)]})
    assert redirections.inbound("http://*/MSMQ/q") == ORDERS


@pytest.mark.requirement("SRMP-3.1.1.1.10.1-01", "SRMP-3.1.7.9-04", "SRMP-3.1.7.9-05", "SRMP-3.1.1.1.9-01")
def test_outbound_redirection_changes_the_host_with_exceptions() -> None:
    redirections = Redirections.from_json(
        {
            OUTBOUND: [
                redirection("http://shop/*", "http://gate:8080/anything"),
                redirection("https://*", "https://[2001:db8::1]"),
            ],
            EXCEPTIONS: ["http://shop/msmq/private$/direct", "http://SHOP/msmq/near*"],
        }
    )
    assert redirections.outbound("http://shop/MSMQ/Private$/q?A=b") == (
        "http://gate:8080/MSMQ/Private$/q?A=b"
    )
    assert redirections.outbound("https://any:99/msmq/q") == "https://[2001:db8::1]/msmq/q"
    for unchanged in ("http://shop/msmq/private$/Direct", "http://shop/msmq/nearby", "http://other/msmq/q"):
        assert redirections.outbound(unchanged) == unchanged
    assert redirections.outbound("http://shop/msmq/private$/direct2").startswith("http://gate:8080/")


@pytest.mark.requirement("SRMP-3.1.1.1.10.3-01", "SRMP-3.1.7.2.4-21", "SRMP-3.1.7.2.4-22")
def test_receipts_go_to_the_replacement_then_to_the_default() -> None:
    gate, default = "http://gate/msmq/private$/order_queue$", "https://front/msmq/private$/order_queue$"
    replaced = {RECEIPTS: [redirection("http://shop/*", gate)]}
    redirections = Redirections.from_json(replaced)
    assert redirections.receipts_url(ORDERS, OWN) == gate
    assert redirections.receipts_url("http://else/msmq/q", OWN) == OWN
    redirections = Redirections.from_json({**replaced, DEFAULT_RECEIPTS: default})
    assert redirections.receipts_url(ORDERS, OWN) == gate
    assert redirections.receipts_url("http://else/msmq/q", OWN) == default


@pytest.mark.requirement("SRMP-3.1.1.1.8-01")
@pytest.mark.parametrize("value", [{}, {DEFAULT_RECEIPTS: ""}, {INBOUND: [], EXCEPTIONS: []}])
def test_nothing_is_redirected_unless_configured(value: dict[str, Any]) -> None:
    redirections = Redirections.from_json(value)
    assert redirections == Redirections()
    assert redirections.inbound(ORDERS) == redirections.outbound(ORDERS) == ORDERS
    assert redirections.receipts_url(ORDERS, OWN) == OWN


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        ([], "", "not an object"),
        ({"Inbound": []}, "Inbound", "none of InboundRedirectionCollection, "),
        ({INBOUND: {}}, INBOUND, "not a list"),
        ({INBOUND: ["x"]}, f"{INBOUND}[0]", "not an object"),
        ({INBOUND: [{"From": ORDERS}]}, f"{INBOUND}[0].To", "missing"),
        ({INBOUND: [{"From": 1, "To": ORDERS}]}, f"{INBOUND}[0].From", "not a text"),
        ({INBOUND: [{"From": ORDERS, "To": ORDERS, "x": 1}]}, f"{INBOUND}[0].x", "none of From, To"),
        ({INBOUND: [redirection("shop/msmq/q", ORDERS)]}, f"{INBOUND}[0].From", "begins with neither"),
        ({INBOUND: [redirection(ORDERS, "http://shop")]}, f"{INBOUND}[0].To", "/MSMQ is missing"),
        ({INBOUND: [redirection(ORDERS, "http://a:99999/msmq/q")]}, f"{INBOUND}[0].To", "the port"),
        (
            {INBOUND: [redirection(ORDERS, "http://a/msmq/q,DIRECT=http://b/msmq/q")]},
            f"{INBOUND}[0].To",
            "multiple name",
        ),
        (
            {INBOUND: [redirection(ORDERS, ORDERS), redirection(ORDERS.upper(), ORDERS)]},
            f"{INBOUND}[1].From",
            f"the same as {INBOUND}[0].From",
        ),
        ({OUTBOUND: [redirection("http://*", "http://")]}, f"{OUTBOUND}[0].To", "format name"),
        ({OUTBOUND: [redirection("http://*", "http://a:b/")]}, f"{OUTBOUND}[0].To", "format name"),
        ({OUTBOUND: [redirection("http://*", "https://a/")]}, f"{OUTBOUND}[0].To", "not http, as From"),
        ({EXCEPTIONS: ["http://a*", "HTTP://A*"]}, f"{EXCEPTIONS}[1]", f"the same as {EXCEPTIONS}[0]"),
        ({EXCEPTIONS: ["http://" + "a" * URL_MAX]}, f"{EXCEPTIONS}[0]", "longer than 2048"),
        ({RECEIPTS: [redirection(ORDERS, "http://x/")]}, f"{RECEIPTS}[0].To", "/MSMQ is missing"),
        ({DEFAULT_RECEIPTS: 7}, DEFAULT_RECEIPTS, "not a text"),
        ({DEFAULT_RECEIPTS: "here"}, DEFAULT_RECEIPTS, "begins with neither"),
    ],
)
def test_a_mistake_is_reported_with_its_place(value: object, path: str, why: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Redirections.from_json(value)
    assert caught.value.path == path
    assert why in caught.value.why


LETTERS = st.text("aAbß*/", max_size=6)


@pytest.mark.requirement("SRMP-3.1.1.1.10-01")
@given(st.lists(LETTERS, max_size=8), LETTERS)
def test_the_first_match_in_the_order_of_the_collection_is_found(patterns: list[str], url: str) -> None:
    def matches(pattern: str) -> bool:
        pattern, folded = pattern.casefold(), url.casefold()
        return folded.startswith(pattern[:-1]) if pattern.endswith("*") else folded == pattern

    first = next((number for number, pattern in enumerate(patterns) if matches(pattern)), None)
    assert UrlPatterns(patterns).find(url) == first


def test_long_tables_are_read_and_looked_up_fast() -> None:
    count = 50_000
    elements = [redirection(f"http://h{number}/*", ORDERS) for number in range(count)]
    began = time.process_time()
    redirections = Redirections.from_json({INBOUND: elements})
    for number in range(count):
        assert redirections.inbound(f"http://h{number}/msmq/q") == ORDERS
    assert redirections.inbound("http://other/msmq/q") == "http://other/msmq/q"
    assert time.process_time() - began < 20  # many minutes, were each element compared
