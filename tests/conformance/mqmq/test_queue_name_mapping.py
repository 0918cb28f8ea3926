"""Format names in the UserHeader and in MultiQueueFormat elements: [MS-MQMQ] 2.2.18.1 and 2.2.19.2."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import UUID

import pytest

from msmqwire.errors import InvalidName
from msmqwire.names import (
    PrivateName,
    PublicName,
    from_mqf_element,
    from_user_header_queue,
    parse_format_name,
    to_mqf_element,
    to_user_header_queue,
)

requirement = pytest.mark.requirement
SOURCE = UUID("11111111-2222-3333-4444-555555555555")
DESTINATION = UUID("66666666-7777-8888-9999-aaaaaaaaaaaa")
OTHER = UUID("bbbbbbbb-cccc-dddd-eeee-ffffffffffff")
MANAGERS = {"source_qm": SOURCE, "destination_qm": DESTINATION}
DIRECT = r"DIRECT=OS:host\private$\q"
ILLEGAL, UNSUPPORTED = 0xC00E001E, 0xC00E0020

# role, name, type, field
USER_HEADER = [
    pytest.param(
        "destination",
        DIRECT,
        7,
        {"DirectFormatName": r"OS:host\private$\q"},
        marks=requirement("MQMQ-2.2.18.1.5.2-02"),
    ),
    pytest.param("destination", f"PRIVATE={DESTINATION}\\00000005", 3, {"PrivateQueueIdentifier": 5}),
    pytest.param(
        "destination",
        f"PUBLIC={OTHER}",
        5,
        {"PublicQueueIdentifier": OTHER},
        marks=requirement("MQMQ-2.1.3-03"),
    ),
    pytest.param("admin", DIRECT, 7, {"DirectFormatName": r"OS:host\private$\q"}),
    pytest.param("admin", f"PRIVATE={SOURCE}\\00000006", 2, {"PrivateQueueIdentifier": 6}),
    pytest.param("admin", f"PRIVATE={DESTINATION}\\00000006", 3, {"PrivateQueueIdentifier": 6}),
    pytest.param("admin", f"PUBLIC={OTHER}", 5, {"PublicQueueIdentifier": OTHER}),
    pytest.param(
        "admin",
        f"PRIVATE={OTHER}\\00000007",
        6,
        {"SourceQueueManager": OTHER, "PrivateQueueIdentifier": 7},
        marks=requirement("MQMQ-2.1.4-03"),
    ),
    pytest.param("response", DIRECT, 7, {"DirectFormatName": r"OS:host\private$\q"}),
    pytest.param("response", f"PRIVATE={SOURCE}\\00000006", 2, {"PrivateQueueIdentifier": 6}),
    pytest.param("response", f"PRIVATE={DESTINATION}\\ffffffff", 3, {"PrivateQueueIdentifier": 0xFFFFFFFF}),
    pytest.param("response", f"PUBLIC={OTHER}", 5, {"PublicQueueIdentifier": OTHER}),
    pytest.param(
        "response",
        f"PRIVATE={OTHER}\\00000007",
        6,
        {"SourceQueueManager": OTHER, "PrivateQueueIdentifier": 7},
    ),
]


@pytest.mark.parametrize("role, text, type_value, field", USER_HEADER)
def test_a_queue_of_the_user_header(role, text, type_value, field):
    name = parse_format_name(text)
    assert to_user_header_queue(name, role, **MANAGERS) == (type_value, field)
    for value in (field, SimpleNamespace(**field), {key: _plain(part) for key, part in field.items()}):
        restored = from_user_header_queue(type_value, value, role=role, **MANAGERS)
        assert restored == name
        assert restored.text == text


def _plain(value):
    """A value as in JSON."""
    return str(value) if isinstance(value, UUID) else value


@pytest.mark.parametrize("role", ["destination", "admin", "response"])
def test_no_queue_is_type_0(role):
    assert to_user_header_queue(None, role, **MANAGERS) == (0, None)
    assert from_user_header_queue(0, None, role=role, **MANAGERS) is None


@requirement("MQMQ-2.2.19.2-29")
@pytest.mark.parametrize("text", [DIRECT, f"PUBLIC={OTHER}", f"PRIVATE={SOURCE}\\00000006"])
def test_response_type_1_is_the_administration_queue(text):
    name = parse_format_name(text)
    assert to_user_header_queue(name, "response", admin=name, **MANAGERS) == (1, None)
    assert from_user_header_queue(1, None, role="response", admin=name, **MANAGERS) == name
    assert from_user_header_queue(1, None, role="response", admin=None, **MANAGERS) is None


@requirement("MQMQ-2.2.19.2-30")
def test_response_type_4_is_at_the_admin_queues_host():
    admin, name = PrivateName(OTHER, 7), PrivateName(OTHER, 8)
    assert to_user_header_queue(name, "response", admin=admin, **MANAGERS) == (
        4,
        {"PrivateQueueIdentifier": 8},
    )
    value = {"PrivateQueueIdentifier": 8}
    assert from_user_header_queue(4, value, role="response", admin=admin, **MANAGERS) == name
    for no_host in (None, parse_format_name(DIRECT), PublicName(OTHER)):
        assert from_user_header_queue(4, value, role="response", admin=no_host, **MANAGERS) is None
    with pytest.raises(InvalidName) as caught:
        from_user_header_queue(4, {}, role="response", admin=None, **MANAGERS)
    assert caught.value.path == "UserHeader.ResponseQueue"


@pytest.mark.parametrize(
    "role, types, flag",
    [("destination", (1, 2, 4, 6, 8, -1), "DQ"), ("admin", (1, 4, 8), "AQ"), ("response", (8,), "RQ")],
)
def test_types_that_are_an_error(role, types, flag):
    for type_value in types:
        with pytest.raises(InvalidName) as caught:
            from_user_header_queue(type_value, {"PrivateQueueIdentifier": 1}, role=role, **MANAGERS)
        assert caught.value.path == f"UserHeader.Flags.{flag}"


@pytest.mark.parametrize(
    "text",
    [
        f"DL={OTHER}",
        f"MACHINE={OTHER};JOURNAL",
        f"CONNECTOR={OTHER}",
        "MULTICAST=234.1.1.1:80",
        f"PUBLIC={OTHER};JOURNAL",
        f"PRIVATE={OTHER}\\1;JOURNAL",
        f"PUBLIC={OTHER},PUBLIC={SOURCE}",
    ],
)
@pytest.mark.parametrize("role, field", [("destination", "DestinationQueue"), ("admin", "AdminQueue")])
def test_names_that_the_user_header_has_no_form_for(text, role, field):
    with pytest.raises(InvalidName) as caught:
        to_user_header_queue(parse_format_name(text), role, **MANAGERS)
    assert (caught.value.path, caught.value.hresult) == (f"UserHeader.{field}", UNSUPPORTED)


def test_a_private_destination_is_at_the_destination():
    name = PrivateName(OTHER, 5)
    with pytest.raises(InvalidName):
        to_user_header_queue(name, "destination", **MANAGERS)
    free = {"source_qm": SOURCE, "destination_qm": None}
    assert to_user_header_queue(name, "destination", **free) == (3, {"PrivateQueueIdentifier": 5})
    with pytest.raises(InvalidName):
        from_user_header_queue(3, {"PrivateQueueIdentifier": 5}, role="destination", **free)


@pytest.mark.parametrize(
    "type_value, value, path",
    [
        (7, {"DirectFormatName": {"utf16le": "00d8"}}, "UserHeader.AdminQueue.DirectFormatName"),
        (7, {"DirectFormatName": r"OS:a b\q"}, "UserHeader.AdminQueue.DirectFormatName"),
        (7, {"DirectFormatName": f"OS:a\\q,PUBLIC={OTHER}"}, "UserHeader.AdminQueue.DirectFormatName"),
        (7, {}, "UserHeader.AdminQueue"),
        (7, None, "UserHeader.AdminQueue"),
        (5, {"PublicQueueIdentifier": "x"}, "UserHeader.AdminQueue.PublicQueueIdentifier"),
        (5, {"PublicQueueIdentifier": 5}, "UserHeader.AdminQueue.PublicQueueIdentifier"),
        (6, {"SourceQueueManager": OTHER}, "UserHeader.AdminQueue"),
        (2, {"PrivateQueueIdentifier": -1}, "UserHeader.AdminQueue.PrivateQueueIdentifier"),
        (2, {"PrivateQueueIdentifier": "1"}, "UserHeader.AdminQueue.PrivateQueueIdentifier"),
    ],
)
def test_fields_that_hold_no_name(type_value, value, path):
    with pytest.raises(InvalidName) as caught:
        from_user_header_queue(type_value, value, role="admin", **MANAGERS)
    assert (caught.value.path, caught.value.hresult) == (path, ILLEGAL)


def test_the_place_in_a_direct_name_counts_from_its_own_start():
    with pytest.raises(InvalidName, match=r"character 4\)"):
        from_user_header_queue(7, {"DirectFormatName": r"OS:a b\q"}, role="admin", **MANAGERS)


def test_an_order_queue_over_spx_is_read():
    text = r"SPX:0000001A.00A0C9112233\PRIVATE$\order_queue$"
    name = from_user_header_queue(7, {"DirectFormatName": text}, role="destination", **MANAGERS)
    assert (name.protocol, name.queue) == ("SPX", "order_queue$")
    assert to_user_header_queue(name, "destination", **MANAGERS) == (7, {"DirectFormatName": text})


# name, element
ELEMENTS = [
    pytest.param(
        f"PUBLIC={OTHER}",
        {"FormatType": 1, "FormatName": {"PublicQueueIdentifier": OTHER}},
        marks=requirement("MQMQ-2.2.18.1.4-02"),
        id="public",
    ),
    pytest.param(
        f"PRIVATE={OTHER}\\0000000a",
        {"FormatType": 2, "FormatName": {"SourceQueueManager": OTHER, "PrivateQueueIdentifier": 10}},
        marks=requirement("MQMQ-2.2.18.1.4-02", "MQMQ-2.1.4-03"),
        id="private",
    ),
    pytest.param(
        DIRECT,
        {"FormatType": 3, "FormatName": {"DirectFormatName": r"OS:host\private$\q"}},
        marks=requirement("MQMQ-2.2.18.1.4-02"),
        id="direct",
    ),
    pytest.param(
        f"DL={OTHER}",
        {"FormatType": 6, "FormatName": {"DistributionListIdentifier": OTHER}},
        marks=requirement("MQMQ-2.2.18.1.4-02"),
        id="dl",
    ),
]


@pytest.mark.parametrize("text, element", ELEMENTS)
def test_an_element_of_the_multi_queue_format_header(text, element):
    assert to_mqf_element(parse_format_name(text)) == element
    assert from_mqf_element(element) == parse_format_name(text)
    value = SimpleNamespace(
        FormatType=element["FormatType"], FormatName=SimpleNamespace(**element["FormatName"])
    )
    assert from_mqf_element(value).text == text


@requirement("MQMQ-2.2.18.1.4-01")
def test_only_four_format_types_exist():
    for kind in {*range(10), 0x100, 0xFFFF} - {1, 2, 3, 6}:
        with pytest.raises(InvalidName) as caught:
            from_mqf_element({"FormatType": kind, "FormatName": {"PublicQueueIdentifier": OTHER}})
        assert caught.value.path == "MQFFormatNameElement.FormatType"
    for text in (f"MACHINE={OTHER};JOURNAL", f"CONNECTOR={OTHER}", "MULTICAST=234.1.1.1:80"):
        with pytest.raises(InvalidName) as caught:
            to_mqf_element(parse_format_name(text))
        assert caught.value.hresult == UNSUPPORTED


@requirement("MQMQ-2.2.18.1.4.2-01")
def test_an_element_carries_no_domain():
    element = to_mqf_element(parse_format_name(f"DL={OTHER}@example.com"))
    assert element["FormatName"] == {"DistributionListIdentifier": OTHER}
