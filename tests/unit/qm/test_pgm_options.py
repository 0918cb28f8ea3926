"""The options of multicast as a command line gives them."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.pgm.constants import TXW_MAX_RTE
from msmqwire.qm.runtime.multicast import PgmMode, PgmOptions, parse_pgm_options


@pytest.mark.requirement("SRMP-2.1.3.1-01")
@pytest.mark.parametrize(
    "text, expected",
    [
        (None, (PgmMode.AUTO, 3055, 3055)),
        ("raw", (PgmMode.RAW, 3055, 3055)),
        ("off", (PgmMode.OFF, 3055, 3055)),
        ("udp", (PgmMode.UDP, 3055, 3055)),
        ("UDP:7500", (PgmMode.UDP, 7500, 3055)),
        ("udp:7500:65535", (PgmMode.UDP, 7500, 65535)),
    ],
)
def test_modes_and_ports(text, expected):
    options = parse_pgm_options(text)
    assert (options.mode, options.multicast_port, options.unicast_port) == expected
    assert (options.interface, options.rate) == (None, TXW_MAX_RTE)


@pytest.mark.parametrize(
    "text",
    ["", "tcp", "raw:1", "off:", "udp:", "udp:0", "udp:65536", "udp:-1", "udp:1:2:3", "udp::3055", "udp:x",
     "udp:٣٠٥٥", "udp:1:", "udp:" + "9" * 5000, "auto"],
)  # fmt: skip
def test_not_a_way(text):
    with pytest.raises(InvalidValue) as caught:
        parse_pgm_options(text)
    assert caught.value.path == "pgm"
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("address", ["", "eth0", "::1", "234.1.1.1", "0.0.0.0", "255.255.255.255", "1.2.3"])
def test_not_an_interface(address):
    with pytest.raises(InvalidValue) as caught:
        parse_pgm_options("udp", address)
    assert caught.value.path == "pgm_interface"


def test_an_interface():
    assert parse_pgm_options(None, "10.0.0.1").interface == IPv4Address("10.0.0.1")


@pytest.mark.parametrize("setting", [{"ttl": 0}, {"ttl": 256}, {"rate": 0}, {"multicast_port": 0}])
def test_settings_out_of_range(setting):
    with pytest.raises(InvalidValue) as caught:
        PgmOptions(**setting)
    assert caught.value.path == next(iter(setting))
