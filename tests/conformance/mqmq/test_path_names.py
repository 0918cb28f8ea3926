"""Path names: [MS-MQMQ] 2.1.1."""

from __future__ import annotations

import pytest

from msmqwire.errors import InvalidName
from msmqwire.names import PathName, parse_path_name

requirement = pytest.mark.requirement

# The characters from 0x20 to 0x80, written out.
IN_MSMQ_1 = (
    "!\"#$%&'()*+,-./0123456789:<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~\x7f"
)
IN_MSMQ_2 = "!#$%&'()*-./0123456789:<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~\x7f"
AROUND = [chr(code) for code in range(0x100)]


def refused(path, version=6.0):
    with pytest.raises(InvalidName) as caught:
        parse_path_name(path, version)
    assert caught.value.hresult == 0xC00E0014
    assert caught.value.path == ""
    return caught.value.offset


@pytest.mark.parametrize(
    "text, parts",
    [
        pytest.param(
            r"host\orders", PathName("host", "orders"), marks=requirement("MQMQ-2.1.1-01"), id="public"
        ),
        pytest.param(
            r"host\private$\orders",
            PathName("host", "orders", private=True),
            marks=requirement("MQMQ-2.1.1-02"),
            id="private",
        ),
        pytest.param(
            r"host\system$;DEADXACT",
            PathName("host", "DEADXACT", system=True),
            marks=requirement("MQMQ-2.1.1-03"),
            id="system",
        ),
        pytest.param(
            r"Host\PRIVATE$\Orders",
            PathName("Host", "Orders", private=True),
            marks=requirement("MQMQ-2.1-02"),
            id="letter case",
        ),
        pytest.param(
            r"Host\SYSTEM$;deadxact",
            PathName("Host", "deadxact", system=True),
            marks=requirement("MQMQ-2.1-02"),
            id="letter case of a system queue",
        ),
        pytest.param(r"host\private$", PathName("host", "private$"), id="a public queue named private$"),
    ],
)
def test_the_three_forms(text, parts):
    path = parse_path_name(text)
    assert path == parts
    assert path.text == text
    assert str(parts) == path.canonical


@requirement("MQMQ-2.1.1-01", "MQMQ-2.1.1-02", "MQMQ-2.1.1-03")
@pytest.mark.parametrize(
    "text, offset",
    [
        ("host", 4),
        ("host/orders", 11),
        (r"host\a\b", 6),
        (r"host\private$\a\b", 15),
        (r"host\private$\\", 14),
        (r"host\system$;a\b", 14),
        (r"host\system$\a", 12),
    ],
)
def test_nothing_else_is_a_path(text, offset):
    assert refused(text) == offset


@requirement("MQMQ-2.1.1-04")
def test_the_computer_has_1_to_256_visible_characters():
    assert parse_path_name("c" * 256 + r"\q").computer == "c" * 256
    assert refused("c" * 257 + r"\q") == 256
    assert refused(r"\q") == 0
    allowed = [c for c in AROUND if c != "\\" and _is_path(f"{c}\\q")]
    assert allowed == [chr(code) for code in range(0x21, 0x7F) if code != 0x5C]
    assert refused("a\\b\\q") == 3  # the first backslash ends the computer


def _is_path(text, version=6.0):
    try:
        parse_path_name(text, version)
    except InvalidName:
        return False
    return True


@pytest.mark.parametrize(
    "version, characters",
    [
        pytest.param(1.0, IN_MSMQ_1, marks=requirement("MQMQ-2.1.1-05"), id="1.0"),
        pytest.param(2.0, IN_MSMQ_2, marks=requirement("MQMQ-2.1.1-06"), id="2.0"),
        pytest.param(3.0, IN_MSMQ_2, marks=requirement("MQMQ-2.1.1-06"), id="3.0"),
        pytest.param(4, IN_MSMQ_2, marks=requirement("MQMQ-2.1.1-07"), id="4"),
        pytest.param(5, IN_MSMQ_2, marks=requirement("MQMQ-2.1.1-07"), id="5"),
        pytest.param(6.0, IN_MSMQ_2, marks=requirement("MQMQ-2.1.1-07"), id="6.0"),
    ],
)
def test_the_characters_of_a_queue_name(version, characters):
    assert [c for c in AROUND if _is_path(f"host\\{c}", version)] == list(characters)
    assert parse_path_name("host\\" + "q" * 124, version).queue == "q" * 124
    assert not _is_path("host\\" + "q" * 125, version)
    assert not _is_path("host\\", version)


@requirement("MQMQ-2.1.1-09")
@pytest.mark.parametrize(
    "character, allowed", [("\x20", False), ("\x21", True), ("\x7f", True), ("\x80", False)]
)
@pytest.mark.parametrize("version", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
def test_the_edges_of_the_characters(character, allowed, version):
    assert _is_path(f"host\\a{character}b", version) is allowed


@requirement("MQMQ-2.1.1-07")
@pytest.mark.parametrize("version", [4.0, 5.0, 6.0])
def test_a_subqueue_from_msmq_4(version):
    path = parse_path_name(r"host\private$\orders;late", version)
    assert path == PathName("host", "orders", private=True, subqueue="late")
    assert path.canonical == r"host\private$\orders;late"


@requirement("MQMQ-2.1.1-08")
def test_a_subqueue_has_1_to_32_characters():
    assert parse_path_name("host\\q;" + "s" * 32).subqueue == "s" * 32
    assert refused("host\\q;" + "s" * 33) == 39
    assert refused("host\\q;") == 7
    assert refused("host\\q;a;b") == 8
    assert [c for c in AROUND if _is_path(f"host\\q;{c}")] == list(IN_MSMQ_2)


@requirement("MQMQ-2.1.1-10")
@pytest.mark.parametrize(
    "text, version, offset",
    [
        ("\\q", 6.0, 0),
        ("host\\", 6.0, 5),
        ("", 6.0, 0),
        ("host\\" + "q" * 125, 6.0, 129),
        ("host\\a+b", 2.0, 6),
        ("host\\q;sub", 3.0, 6),
        ("host\\q;sub", 1.0, 6),
        ("host\\a b", 6.0, 6),
    ],
)
def test_a_wrong_path_is_refused_where_it_breaks(text, version, offset):
    assert refused(text, version) == offset


def test_parts_that_make_no_path_are_refused():
    with pytest.raises(InvalidName):
        PathName("host", "a\\b")
    with pytest.raises(InvalidName):
        PathName("host", "")
