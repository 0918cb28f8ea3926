"""Direct format names: [MS-MQMQ] 2.1.2."""

from __future__ import annotations

import pytest

from msmqwire.errors import InvalidName
from msmqwire.names import DirectName, parse_format_name

requirement = pytest.mark.requirement
ILLEGAL = 0xC00E001E


def refused(text, *, hresult=ILLEGAL, **options):
    with pytest.raises(InvalidName) as caught:
        parse_format_name(text, **options)
    assert caught.value.hresult == hresult
    assert caught.value.path == ""
    return caught.value.offset


def is_name(text, **options):
    try:
        parse_format_name(text, **options)
    except InvalidName:
        return False
    return True


@requirement("MQMQ-2.1.2-05")
@pytest.mark.parametrize("word", ["DEADLETTER", "DEADXACT", "XACTONLY"])
def test_journal_is_the_only_suffix_of_a_queue(word):
    assert refused(rf"DIRECT=OS:host\q;{word}", version=3.0) == 16
    # From MSMQ 4.0 the same text names a subqueue, not a dead-letter queue.
    name = parse_format_name(rf"DIRECT=OS:host\q;{word}", version=4.0)
    assert (name.subqueue, name.system, name.is_read_only) == (word, None, False)
    assert refused(rf"DIRECT=OS:host\PRIVATE$\q;{word}", version=3.0) == 25
    private = parse_format_name(rf"DIRECT=OS:host\PRIVATE$\q;{word}", version=4.0)
    assert (private.subqueue, private.system, private.is_read_only) == (word, None, False)


@requirement("MQMQ-2.1.2-06")
def test_the_five_protocols():
    addresses = {
        "TCP": "10.0.0.5",
        "OS": "host",
        "HTTP": "//host/MSMQ",
        "HTTPS": "//host/MSMQ",
        "IPX": "00000012:00a0c9112233",
    }
    for protocol, address in addresses.items():
        assert parse_format_name(rf"DIRECT={protocol}:{address}\q").protocol == protocol
    for protocol in ("UDP", "", "FTP", "TCPIP", "SPX", "T", "O S"):
        assert refused(rf"DIRECT={protocol}:10.0.0.5\q") == 7
    assert refused(r"DIRECT=host\q") == 7


@requirement("MQMQ-2.1.2-07")
@pytest.mark.parametrize(
    "address, allowed",
    [
        ("10.0.0.5", True),
        ("255.255.255.255", True),
        ("::1", True),
        ("fe80::a0:c9ff:fe11:2233", True),
        ("[2001:db8::1]", True),
        ("host", False),
        ("10.0.0", False),
        ("10.0.0.256", False),
        ("10.0.0.05", False),
        ("10.0.0.5 ", False),
        ("[10.0.0.5]", False),
        ("fe80::1%11", False),
        ("10.0.0.5:1801", False),
        ("", False),
    ],
)
def test_tcp_takes_an_ip_address(address, allowed):
    text = rf"DIRECT=TCP:{address}\q"
    if allowed:
        name = parse_format_name(text)
        assert (name.address, name.host, name.port) == (address, address.strip("[]"), None)
    else:
        assert refused(text) == 11


@requirement("MQMQ-2.1.2-08")
@pytest.mark.parametrize(
    "address, allowed",
    [
        ("00000012:00a0c9112233", True),
        ("12:A0C9112233", True),
        ("00000012.00a0c9112233", False),
        ("00000012", False),
        (":00a0c9112233", False),
        ("000000012:1", False),
        ("1:1234567890abc", False),
        ("g:1", False),
    ],
)
def test_ipx_takes_network_and_host_number(address, allowed):
    text = rf"DIRECT=IPX:{address}\q"
    if allowed:
        assert parse_format_name(text).address == address
    else:
        assert refused(text) == 11


@requirement("MQMQ-2.1.2-09")
@pytest.mark.parametrize(
    "host", ["HOST-1", "host.example.com", ".", "localhost", "10.0.0.5", "m\u00fcnchen", "a" * 256]
)
def test_os_takes_any_computer_name(host):
    name = parse_format_name(rf"DIRECT=OS:{host}\private$\q")
    assert (name.address, name.host, name.port) == (host, host, None)


@requirement("MQMQ-2.1.2-09")
@pytest.mark.parametrize(
    "host, offset", [("", 10), ("a" * 257, 10), ("a b", 11), ("a/b", 11), ("a\x00", 11), ("a;b", 11)]
)
def test_os_refuses_what_no_computer_is_called(host, offset):
    assert refused(rf"DIRECT=OS:{host}\q") == offset


@pytest.mark.parametrize(
    "protocol, default",
    [
        pytest.param("HTTP", 80, marks=requirement("MQMQ-2.1.2-10", "SRMP-2.1.1-03")),
        pytest.param("HTTPS", 443, marks=requirement("MQMQ-2.1.2-11", "SRMP-2.1.1-03")),
    ],
)
def test_http_takes_host_port_and_msmq(protocol, default):
    for host, bare in (
        ("host", "host"),
        ("10.0.0.5", "10.0.0.5"),
        ("[::1]", "::1"),
        ("a.example", "a.example"),
    ):
        name = parse_format_name(rf"DIRECT={protocol}://{host}/MSMQ\PRIVATE$\q")
        assert (name.host, name.port, name.address) == (bare, default, f"//{host}/MSMQ")
        name = parse_format_name(rf"DIRECT={protocol}://{host}:8080/msmq\PRIVATE$\q")
        assert (name.host, name.port, name.address) == (bare, 8080, f"//{host}:8080/MSMQ")
    start = len(f"DIRECT={protocol}:")
    assert refused(rf"DIRECT={protocol}:host/MSMQ\q") == start
    assert refused(rf"DIRECT={protocol}:///MSMQ\q") == start + 2
    assert refused(rf"DIRECT={protocol}://host\q") == start + 6
    assert refused(rf"DIRECT={protocol}://host/other\q") == start + 6
    assert refused(rf"DIRECT={protocol}://host:80x/MSMQ\q") == start + 9
    assert refused(rf"DIRECT={protocol}://host:65536/MSMQ\q") == start + 7
    assert refused(rf"DIRECT={protocol}://[::g]/MSMQ\q") == start + 2
    assert refused(rf"DIRECT={protocol}://host/MSMQ") == start + 11


@requirement("MQMQ-2.1.2-12")
@pytest.mark.parametrize("protocol, default", [("HTTP", 80), ("HTTPS", 443)])
def test_an_empty_port_is_the_default_one(protocol, default):
    name = parse_format_name(rf"DIRECT={protocol}://host:/MSMQ\q")
    assert name.port == default
    assert name == parse_format_name(rf"DIRECT={protocol}://host/MSMQ\q")
    assert name.text == rf"DIRECT={protocol}://host:/MSMQ\q"


def test_http_names_are_written_with_slashes_too():
    name = parse_format_name("DIRECT=http://host/msmq/private$/q")
    assert name == DirectName("HTTP", "host", "q", private=True)
    assert name.canonical == r"DIRECT=HTTP://host/MSMQ\PRIVATE$\q"
    assert refused("DIRECT=OS:host/private$/q") == 25


@requirement("MQMQ-2.2.6-09")
@requirement("MQMQ-2.1.2-13")
def test_a_subqueue_has_1_to_32_characters():
    start = r"DIRECT=OS:host\PRIVATE$\q;"
    assert parse_format_name(start + "s" * 32).subqueue == "s" * 32
    assert refused(start + "s" * 33) == len(start) + 32
    assert refused(start) == len(start)
    assert refused(start + "a;b") == len(start) + 1
    allowed = [chr(code) for code in range(0x100) if is_name(start + chr(code))]
    assert allowed == [chr(code) for code in range(0x21, 0x80) if chr(code) not in '"+,;\\']
    assert refused(start + "sub", version=3.0) == len(start) - 1
    assert parse_format_name(start + "sub", version=4.0).subqueue == "sub"


@requirement("MQMQ-2.1.2-14")
@pytest.mark.parametrize("word", ["JOURNAL", "journal", "Journal"])
def test_the_journal_suffix_beats_a_subqueue_of_that_name(word):
    name = parse_format_name(rf"DIRECT=OS:host\q;{word}")
    assert (name.journal, name.subqueue) == (True, None)
    assert parse_format_name(rf"DIRECT=OS:host\q;{word}s").subqueue == f"{word}s"
    assert refused(rf"DIRECT=OS:host\q;{word};JOURNAL") == 17


@pytest.mark.parametrize("queue", ["order_queue$"])
def test_the_order_queue_over_spx_on_demand(queue):
    text = rf"DIRECT=SPX:0000001A.00A0C9112233\PRIVATE$\{queue}"
    name = parse_format_name(text, spx=True)
    assert name == DirectName("SPX", "0000001A.00A0C9112233", queue, private=True)
    assert name.text == text
    assert refused(text) == 7
    assert refused(rf"DIRECT=SPX:1A.00A0C9112233\PRIVATE$\{queue}", spx=True) == 11


def test_a_direct_name_needs_no_directory():
    assert not parse_format_name(r"DIRECT=OS:a\q").needs_directory
    assert not parse_format_name(r"DIRECT=OS:a\SYSTEM$;JOURNAL").needs_directory
