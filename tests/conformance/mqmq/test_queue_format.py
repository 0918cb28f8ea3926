"""Format names in QUEUE_FORMAT: [MS-MQMQ] 2.2.7 to 2.2.11."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import UUID

import pytest

from msmqwire.errors import InvalidName
from msmqwire.names import PublicName, from_queue_format, parse_format_name, to_queue_format

requirement = pytest.mark.requirement
SOURCE = UUID("11111111-2222-3333-4444-555555555555")
OTHER = UUID("bbbbbbbb-cccc-dddd-eeee-ffffffffffff")
DIRECT = r"DIRECT=OS:host\private$\q"
UNSUPPORTED = 0xC00E0020

# name, m_qft, suffix type, flags, member, its value
QUEUE_FORMATS = [
    pytest.param(
        f"PUBLIC={OTHER}",
        1,
        0,
        0,
        "m_gPublicID",
        OTHER,
        marks=requirement("MQMQ-2.2.7-13", "MQMQ-2.2.11-01", "MQMQ-2.2.7-04"),
        id="public",
    ),
    pytest.param(
        f"PUBLIC={OTHER};JOURNAL",
        1,
        1,
        8,
        "m_gPublicID",
        OTHER,
        marks=requirement("MQMQ-2.2.11-02", "MQMQ-2.2.7-05"),
        id="public journal",
    ),
    pytest.param(
        f"PRIVATE={OTHER}\\0000000a",
        2,
        0,
        0,
        "m_oPrivateID",
        {"Lineage": OTHER, "Uniquifier": 10},
        marks=requirement("MQMQ-2.2.7-14", "MQMQ-2.1.4-03"),
        id="private",
    ),
    pytest.param(
        f"PRIVATE={OTHER}\\0000000a;JOURNAL",
        2,
        1,
        8,
        "m_oPrivateID",
        {"Lineage": OTHER, "Uniquifier": 10},
        id="private journal",
    ),
    pytest.param(
        DIRECT,
        3,
        0,
        0,
        "m_pDirectID",
        r"OS:host\private$\q",
        marks=requirement("MQMQ-2.2.7-15", "MQMQ-2.2.11-01"),
        id="direct",
    ),
    pytest.param(
        r"DIRECT=OS:host\q;JOURNAL", 3, 1, 8, "m_pDirectID", r"OS:host\q;JOURNAL", id="direct journal"
    ),
    pytest.param(
        r"DIRECT=OS:host\SYSTEM$;DEADLETTER",
        3,
        2,
        8,
        "m_pDirectID",
        r"OS:host\SYSTEM$;DEADLETTER",
        marks=requirement("MQMQ-2.2.11-03", "MQMQ-2.2.7-06"),
        id="direct dead letters",
    ),
    pytest.param(
        r"DIRECT=OS:host\SYSTEM$;DEADXACT",
        3,
        3,
        8,
        "m_pDirectID",
        r"OS:host\SYSTEM$;DEADXACT",
        marks=requirement("MQMQ-2.2.11-04", "MQMQ-2.2.7-07"),
        id="direct transactional dead letters",
    ),
    *(
        pytest.param(
            f"MACHINE={OTHER};{word}",
            4,
            suffix,
            8,
            "m_gMachineID",
            OTHER,
            marks=requirement("MQMQ-2.2.7-16", "MQMQ-2.1.6-02"),
            id=f"machine {word}",
        )
        for suffix, word in enumerate(("JOURNAL", "DEADLETTER", "DEADXACT"), 1)
    ),
    pytest.param(
        f"CONNECTOR={OTHER}",
        5,
        0,
        0,
        "m_GConnectorID",
        OTHER,
        marks=requirement("MQMQ-2.2.7-17"),
        id="connector",
    ),
    pytest.param(
        f"CONNECTOR={OTHER};XACTONLY",
        5,
        4,
        0,
        "m_GConnectorID",
        OTHER,
        marks=requirement("MQMQ-2.2.7-17", "MQMQ-2.1.6-04", "MQMQ-2.2.11-05", "MQMQ-2.2.7-08"),
        id="transactional connector",
    ),
    pytest.param(
        f"DL={OTHER}@example.com",
        6,
        0,
        0,
        "m_DlID",
        {"m_DlGuid": OTHER, "m_pwzDomain": "example.com"},
        marks=requirement("MQMQ-2.2.7-18"),
        id="dl with domain",
    ),
    pytest.param(
        f"DL={OTHER}",
        6,
        0,
        0,
        "m_DlID",
        {"m_DlGuid": OTHER, "m_pwzDomain": None},
        marks=requirement("MQMQ-2.2.7-18"),
        id="dl",
    ),
    pytest.param(
        "MULTICAST=234.1.2.3:8001",
        7,
        0,
        0,
        "m_MulticastID",
        {"m_address": 0x030201EA, "m_port": 8001},
        marks=requirement("MQMQ-2.2.7-19", "MQMQ-2.2.10-01", "MQMQ-2.2.10-02"),
        id="multicast",
    ),
    pytest.param(
        r"DIRECT=OS:host\private$\q;sub",
        8,
        5,
        0,
        "m_pDirectSubqueueID",
        r"DIRECT=OS:host\private$\q;sub",
        marks=requirement("MQMQ-2.2.7-20", "MQMQ-2.2.11-06", "MQMQ-2.2.7-09"),
        id="subqueue",
    ),
]


@pytest.mark.parametrize("text, kind, suffix, flags, member, arm", QUEUE_FORMATS)
def test_a_queue_format(text, kind, suffix, flags, member, arm):
    name = parse_format_name(text)
    form = {
        "m_qft": kind,
        "m_SuffixAndFlags": {"SuffixType": suffix, "Flags": flags},
        "m_reserved": 0,
        member: arm,
    }
    assert to_queue_format(name) == form
    assert from_queue_format(form) == name
    inner = SimpleNamespace(**arm) if isinstance(arm, dict) else arm
    as_object = SimpleNamespace(m_qft=kind, m_SuffixAndFlags=flags << 4 | suffix, **{member: inner})
    assert from_queue_format(as_object).text == text


@requirement("MQMQ-2.2.7-12")
def test_an_unknown_name_has_no_member():
    form = {"m_qft": 0, "m_SuffixAndFlags": {"SuffixType": 0, "Flags": 0}, "m_reserved": 0}
    assert to_queue_format(None) == form
    assert from_queue_format(form) is None


@requirement("MQMQ-2.2.7-10")
def test_reserved_is_sent_as_zero():
    assert to_queue_format(PublicName(OTHER))["m_reserved"] == 0


@requirement("MQMQ-2.2.7-11")
def test_reserved_is_not_looked_at():
    form = {**to_queue_format(PublicName(OTHER)), "m_reserved": 0xABCD}
    assert from_queue_format(form) == PublicName(OTHER)


ARMS = {
    "m_gPublicID": OTHER,
    "m_oPrivateID": {"Lineage": OTHER, "Uniquifier": 1},
    "m_gMachineID": OTHER,
    "m_GConnectorID": OTHER,
    "m_DlID": {"m_DlGuid": OTHER, "m_pwzDomain": None},
    "m_MulticastID": {"m_address": 0x010101EA, "m_port": 80},
    "m_pDirectSubqueueID": r"OS:host\q;sub",
}


def _takes(byte, kind, direct=r"OS:host\q"):
    try:
        from_queue_format({"m_qft": kind, "m_SuffixAndFlags": byte, "m_pDirectID": direct, **ARMS})
    except InvalidName:
        return False
    return True


@requirement("MQMQ-2.2.7-01")
def test_types_are_0_to_8():
    for kind in (*range(9, 32), 0x83, 255, -1):
        with pytest.raises(InvalidName) as caught:
            from_queue_format({"m_qft": kind, "m_SuffixAndFlags": 0, **ARMS})
        assert caught.value.path == "QUEUE_FORMAT.m_qft"
    assert [kind for kind in range(256) if _takes(0x00, kind)] == [0, 1, 2, 3, 5, 6, 7, 8]


@requirement("MQMQ-2.2.7-02", "MQMQ-2.2.7-03")
def test_the_suffix_is_in_the_low_nibble():
    journal = {"m_qft": 1, "m_gPublicID": OTHER}
    for both in (0x81, {"SuffixType": 1, "Flags": 8}, {"SuffixType": 1, "Flags": 0x80}):
        assert from_queue_format({**journal, "m_SuffixAndFlags": both}) == PublicName(OTHER, journal=True)
    assert not _takes(0x18, 1)


@pytest.mark.parametrize(
    "suffix, bytes_taken, kinds, direct",
    [
        pytest.param(
            0, [0x00], [0, 1, 2, 3, 5, 6, 7, 8], r"OS:host\q", marks=requirement("MQMQ-2.2.7-04"), id="NONE"
        ),
        pytest.param(
            1, [0x81], [0, 1, 2, 3, 4, 8], r"OS:host\q", marks=requirement("MQMQ-2.2.7-05"), id="JOURNAL"
        ),
        pytest.param(
            2, [0x82], [0, 3, 4], r"OS:host\SYSTEM$", marks=requirement("MQMQ-2.2.7-06"), id="DEADLETTER"
        ),
        pytest.param(
            3, [0x83], [3, 4], r"OS:host\SYSTEM$", marks=requirement("MQMQ-2.2.7-07"), id="DEADXACT"
        ),
        pytest.param(4, [0x04, 0x84], [5], r"OS:host\q", marks=requirement("MQMQ-2.2.7-08"), id="XACTONLY"),
        pytest.param(5, [0x05], [8], r"OS:host\q", marks=requirement("MQMQ-2.2.7-09"), id="SUBQUEUE"),
    ],
)
def test_what_a_suffix_goes_with(suffix, bytes_taken, kinds, direct):
    for byte in range(suffix, 256, 16):
        expected = kinds if byte in bytes_taken else []
        assert [kind for kind in range(9) if _takes(byte, kind, direct)] == expected


def test_there_are_no_other_suffixes():
    for byte in range(256):
        if byte & 0x0F > 5:
            assert not any(_takes(byte, kind) for kind in range(9))


@requirement("MQMQ-2.2.7-04")
def test_a_machine_name_without_suffix_has_no_queue_format():
    with pytest.raises(InvalidName):
        to_queue_format(parse_format_name(f"MACHINE={OTHER}"))


@requirement("MQMQ-2.2.7-20")
def test_a_subqueue_name_has_a_subqueue():
    form = {"m_qft": 8, "m_SuffixAndFlags": 0x05}
    name = parse_format_name(r"DIRECT=OS:host\q;sub")
    assert from_queue_format({**form, "m_pDirectSubqueueID": r"OS:host\q;sub"}) == name
    assert from_queue_format({**form, "m_pDirectSubqueueID": r"DIRECT=OS:host\q;sub"}) == name
    assert to_queue_format(name, subqueue_prefix=False)["m_pDirectSubqueueID"] == r"OS:host\q;sub"
    for text in (r"OS:host\q", r"OS:host\q;JOURNAL"):
        with pytest.raises(InvalidName) as caught:
            from_queue_format({**form, "m_pDirectSubqueueID": text})
        assert caught.value.path == "QUEUE_FORMAT.m_pDirectSubqueueID"


@pytest.mark.parametrize(
    "byte, text, name",
    [
        (0x81, r"OS:host\q", r"DIRECT=OS:host\q;JOURNAL"),
        (0x81, r"OS:host\q;journal", r"DIRECT=OS:host\q;JOURNAL"),
        (0x81, r"OS:host\SYSTEM$", r"DIRECT=OS:host\SYSTEM$;JOURNAL"),
        (0x83, r"OS:host\SYSTEM$", r"DIRECT=OS:host\SYSTEM$;DEADXACT"),
        (0x00, r"OS:host\q;JOURNAL", r"DIRECT=OS:host\q;JOURNAL"),
        (0x82, r"OS:host\q", None),
        (0x82, r"OS:host\q;JOURNAL", None),
        (0x81, r"OS:host\SYSTEM$;DEADLETTER", None),
    ],
)
def test_a_suffix_beside_a_direct_name(byte, text, name):
    form = {"m_qft": 3, "m_SuffixAndFlags": byte, "m_pDirectID": text}
    if name is None:
        with pytest.raises(InvalidName):
            from_queue_format(form)
    else:
        assert from_queue_format(form) == parse_format_name(name)


def test_several_elements_have_no_queue_format():
    with pytest.raises(InvalidName) as caught:
        to_queue_format(parse_format_name(f"PUBLIC={OTHER},PUBLIC={SOURCE}"))
    assert caught.value.hresult == UNSUPPORTED


@pytest.mark.parametrize(
    "arm",
    [
        {"m_qft": 6, "m_DlID": {"m_DlGuid": OTHER, "m_pwzDomain": 5}},
        {"m_qft": 6, "m_DlID": {"m_DlGuid": OTHER, "m_pwzDomain": "a b"}},
        {"m_qft": 7, "m_MulticastID": {"m_address": 0x0101010A, "m_port": 80}},
        {"m_qft": 7, "m_MulticastID": {"m_address": 0x010101EA, "m_port": 65536}},
        {"m_qft": 7, "m_MulticastID": {"m_address": 1 << 32, "m_port": 80}},
        {"m_qft": 3, "m_pDirectID": None},
        {"m_qft": 2, "m_oPrivateID": {"Lineage": OTHER}},
    ],
)
def test_members_that_hold_no_name(arm):
    with pytest.raises(InvalidName):
        from_queue_format({"m_SuffixAndFlags": 0, **arm})
