"""Steps and cases of the tests of peers: their JSON form, their disguise, how they are made shorter."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.peer.evidence import Seed
from fuzz.peer.shrinking import shrink
from fuzz.peer.steps import ADDRESS, IDENTITY, Case, Disguise, Step
from fuzz.peer.target import queue_path, target_of
from msmqwire.errors import InvalidValue, LocatedError

OTHER = UUID("00112233-4455-4677-8899-aabbccddeeff")

steps = st.builds(
    Step,
    st.sampled_from(["connect", "send"]),
    st.integers(0, 3),
    st.binary(max_size=20),
    st.lists(st.integers(0, 20)).map(tuple),
    st.lists(st.text(max_size=5)).map(tuple),
    st.text(max_size=5),
    st.text(max_size=5),
)
cases = st.builds(Case, st.just("binary"), st.lists(steps).map(tuple), st.just(("MQQB-1",)), st.text())


@settings(max_examples=50)
@given(cases)
def test_cases_come_back_from_their_json(case):
    assert Case.from_json(json.loads(json.dumps(case.to_json()))) == case


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"version": 2},
        {"version": 1, "requirements": [], "text": "", "what": "", "target": {}, "cases": []},
        {"steps": [{"action": "send", "data": "0"}]},
        {"steps": [{"action": "send", "connection": "1"}]},
        {"steps": [{"action": "send", "more": 1}]},
        {"steps": [{}]},
        {"steps": 5},
        {"protocol": "none"},
    ],
)
def test_a_wrong_seed_file_is_refused(tmp_path, wrong):
    case = {"protocol": "binary", "requirements": [], "text": "", "steps": [], **wrong}
    whole = {
        "version": 1,
        "requirements": [],
        "text": "",
        "what": "",
        "target": {"host": "127.0.0.1", "ports": {"binary": 1801}},
        "cases": [case],
    }
    path = tmp_path / "seed.json"
    path.write_text(json.dumps(whole if {"steps", "protocol"} & set(wrong) else wrong))
    with pytest.raises(LocatedError):
        Seed.read(path)


def test_bytes_that_are_no_json_are_no_seed_file(tmp_path):
    path = tmp_path / "seed.json"
    path.write_bytes(b"\xff" + b"[" * 100_000)
    with pytest.raises(LocatedError):
        Seed.read(path)


def test_a_disguise_is_put_on_in_every_form():
    address = ADDRESS.replace(".10", ".42")
    data = (
        IDENTITY.bytes_le
        + f"<{IDENTITY}> {str(IDENTITY).upper()} {ADDRESS}".encode()
        + f"{IDENTITY} {ADDRESS}".encode("utf-16-le")
    )
    assert Disguise(OTHER, address).dress(data) == (
        OTHER.bytes_le
        + f"<{OTHER}> {str(OTHER).upper()} {address}".encode()
        + f"{OTHER} {address}".encode("utf-16-le")
    )


def test_an_address_of_another_length_stays():
    """Else the lengths in front of it would be wrong."""
    assert Disguise(OTHER, "10.0.0.1").dress(ADDRESS.encode()) == ADDRESS.encode()


def test_what_shows_a_failure_is_made_as_short_as_can_be():
    def case(*data: bytes) -> Case:
        return Case("binary", tuple(Step("send", data=item, cuts=(1, 2)) for item in data))

    tried = 0

    def fails(cases: tuple[Case, ...]) -> bool:
        """Fails when "one" came in a case, and "two" with some segment ends in a later one."""
        nonlocal tried
        tried += 1
        seen = False
        for case in cases:
            if seen and any(step.data == b"two" and step.cuts for step in case.steps):
                return True
            seen = seen or any(step.data == b"one" for step in case.steps)
        return False

    long = [
        case(b"a", b"b"),
        case(b"c", b"one", b"d"),
        *[case(b"e")] * 20,
        case(b"f", b"two", b"g"),
        case(b"h"),
    ]
    shortest = shrink(tuple(long), fails)
    assert [[step.data for step in case.steps] for case in shortest] == [[b"one"], [b"two"]]
    assert [case.steps[0].cuts for case in shortest] == [(), (1, 2)]
    assert tried < 80


# -- which peers may be tested -------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.8.7", "localhost"])
def test_this_computer_may_be_tested(host):
    assert target_of(f"{host}:1801", ["binary"]).loopback


@pytest.mark.parametrize("consent", [None, "192.0.2.2", "yes", ""])
def test_another_computer_has_to_be_named_twice(consent):
    with pytest.raises(InvalidValue, match=r"--consent 192\.0\.2\.1"):
        target_of("192.0.2.1:1801", ["binary"], consent=consent)


def test_all_addresses_at_once_are_not_this_computer():
    with pytest.raises(InvalidValue, match="once more"):
        target_of("0.0.0.0:1801", ["binary"])


@pytest.mark.parametrize(
    "peer", ["127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x", ":"]
)
def test_a_peer_is_a_host_and_a_port(peer):
    with pytest.raises(InvalidValue, match="HOST:PORT"):
        target_of(peer, ["binary"])


def test_the_port_is_that_of_the_first_protocol():
    target = target_of("127.0.0.1:4000", ["ping", "binary"], {"srmp": 8080})
    assert [target.port(name) for name in ("ping", "binary", "srmp", "remote-read")] == [
        4000,
        1801,
        8080,
        2103,
    ]


@pytest.mark.parametrize(
    "name",
    [
        r"private$\orders",
        r".\private$\orders",
        r"DIRECT=TCP:1.2.3.4\private$\orders",
        r"direct=os:a\private$\orders",
    ],
)
def test_queues_go_by_any_form_of_their_name(name):
    assert queue_path(name) == r"private$\orders"
