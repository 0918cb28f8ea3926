"""Format names: [MS-MQMQ] 2.1.2 to 2.1.7."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.errors import InvalidName
from msmqwire.names import (
    ConnectorName,
    DirectName,
    DistributionListName,
    MachineName,
    MulticastName,
    MultipleElementName,
    PrivateName,
    PublicName,
    kind_of,
    parse_format_name,
    split_elements,
)

requirement = pytest.mark.requirement
TEXT = "557358d1-9150-9595-4997-0c1a2b3c4d5e"
GUID = UUID(TEXT)
ILLEGAL, UNSUPPORTED = 0xC00E001E, 0xC00E0020


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


@requirement("MQMQ-2.1-01")
@pytest.mark.parametrize(
    "text, kind",
    [
        (r"DIRECT=OS:host\q", "direct"),
        (f"PUBLIC={TEXT}", "public"),
        (f"PRIVATE={TEXT}\\1", "private"),
        (f"DL={TEXT}", "dl"),
        (f"MACHINE={TEXT}", "machine"),
        (f"CONNECTOR={TEXT}", "connector"),
        ("MULTICAST=234.1.1.1:8001", "multicast"),
        (f"PUBLIC={TEXT},DL={TEXT}", "multiple"),
    ],
)
def test_the_prefix_tells_the_kind(text, kind):
    assert parse_format_name(text).kind == kind
    assert kind_of(text) == kind


@requirement("MQMQ-2.1-01")
@pytest.mark.parametrize(
    "text", ["", "DIRECT", "QUEUE=1", "=", "DIRECTS=OS:a\\b", " DIRECT=OS:a\\b", "os:a\\b"]
)
def test_another_prefix_is_illegal(text):
    assert refused(text) == 0
    assert kind_of("x" + text) is None


@requirement("MQMQ-2.1-02")
@pytest.mark.parametrize(
    "text, same",
    [
        ("Direct=os:a\\PRIVATE$\\q", "DIRECT=OS:a\\private$\\q"),
        ("direct=tcp:10.0.0.5\\System$;Journal", "DIRECT=TCP:10.0.0.5\\SYSTEM$;JOURNAL"),
        ("Direct=Http://h/msmq\\Private$\\q;Journal", "DIRECT=HTTP://h/MSMQ\\PRIVATE$\\q;JOURNAL"),
        (f"Public={TEXT.upper()}", f"PUBLIC={TEXT}"),
        (f"private={TEXT.upper()}\\aB;journal", f"PRIVATE={TEXT}\\Ab;JOURNAL"),
        (f"dl={TEXT}@x", f"DL={TEXT}@x"),
        (f"machine={TEXT};deadXACT", f"MACHINE={TEXT};DEADXACT"),
        (f"connector={TEXT};xactOnly", f"CONNECTOR={TEXT};XACTONLY"),
        ("multicast=234.1.1.1:80", "MULTICAST=234.1.1.1:80"),
    ],
)
def test_literals_match_in_any_letter_case(text, same):
    assert parse_format_name(text) == parse_format_name(same)
    assert parse_format_name(text).text == text


@requirement("MQMQ-2.1-02")
@pytest.mark.parametrize(
    "text", ["D\u0131RECT=OS:a\\q", "DIRECT=O\u017f:a\\q", "DIRECT=HTTP://a/M\u017fMQ\\q"]
)
def test_letters_outside_ascii_are_not_literals(text):
    assert not is_name(text)


@pytest.mark.parametrize(
    "text, parts",
    [
        pytest.param(
            r"DIRECT=OS:host\PRIVATE$\q",
            DirectName("OS", "host", "q", private=True),
            marks=requirement("MQMQ-2.1.2-02"),
        ),
        pytest.param(
            r"DIRECT=OS:host\PRIVATE$\q;JOURNAL",
            DirectName("OS", "host", "q", private=True, journal=True),
            marks=requirement("MQMQ-2.1.2-02", "MQMQ-2.1.2-05"),
        ),
        pytest.param(
            r"DIRECT=TCP:10.0.0.5\q", DirectName("TCP", "10.0.0.5", "q"), marks=requirement("MQMQ-2.1.2-03")
        ),
        pytest.param(
            r"DIRECT=TCP:10.0.0.5\q;JOURNAL",
            DirectName("TCP", "10.0.0.5", "q", journal=True),
            marks=requirement("MQMQ-2.1.2-03", "MQMQ-2.1.2-05"),
        ),
        *(
            pytest.param(
                rf"DIRECT=OS:host\SYSTEM$;{word}",
                DirectName("OS", "host", system=word),
                marks=requirement("MQMQ-2.1.2-04"),
            )
            for word in ("JOURNAL", "DEADLETTER", "DEADXACT")
        ),
        pytest.param(
            r"DIRECT=TCP:10.0.0.5\SYSTEM$;DEADXACT",
            DirectName("TCP", "10.0.0.5", system="DEADXACT"),
            marks=requirement("MQMQ-2.1.2-04"),
        ),
        pytest.param(
            r"DIRECT=OS:host\PRIVATE$\q;sub",
            DirectName("OS", "host", "q", private=True, subqueue="sub"),
            marks=requirement("MQMQ-2.1.2-13", "MQMQ-2.1.2-14"),
        ),
        pytest.param(
            r"DIRECT=OS:host\q;sub;JOURNAL", DirectName("OS", "host", "q", subqueue="sub", journal=True)
        ),
        pytest.param(f"PUBLIC={TEXT}", PublicName(GUID), marks=requirement("MQMQ-2.1.3-01")),
        pytest.param(f"PUBLIC={TEXT};JOURNAL", PublicName(GUID, journal=True)),
        pytest.param(f"PRIVATE={TEXT}\\0000000f", PrivateName(GUID, 15), marks=requirement("MQMQ-2.1.4-01")),
        pytest.param(
            f"PRIVATE={TEXT}\\00000001;JOURNAL",
            PrivateName(GUID, 1, journal=True),
            marks=requirement("MQMQ-2.1.4-01"),
        ),
        pytest.param(f"DL={TEXT}", DistributionListName(GUID), marks=requirement("MQMQ-2.1.5-01")),
        pytest.param(
            f"DL={TEXT}@example.com",
            DistributionListName(GUID, "example.com"),
            marks=requirement("MQMQ-2.1.5-01"),
        ),
        pytest.param(f"MACHINE={TEXT}", MachineName(GUID), marks=requirement("MQMQ-2.1.6-01")),
        *(
            pytest.param(
                f"MACHINE={TEXT};{word}", MachineName(GUID, word), marks=requirement("MQMQ-2.1.6-02")
            )
            for word in ("JOURNAL", "DEADLETTER", "DEADXACT")
        ),
        pytest.param(f"CONNECTOR={TEXT}", ConnectorName(GUID), marks=requirement("MQMQ-2.1.6-03")),
        pytest.param(
            f"CONNECTOR={TEXT};XACTONLY",
            ConnectorName(GUID, xact_only=True),
            marks=requirement("MQMQ-2.1.6-04"),
        ),
        pytest.param(
            "MULTICAST=234.1.1.1:8001", MulticastName("234.1.1.1", 8001), marks=requirement("MQMQ-2.1.6-05")
        ),
        pytest.param(
            f"DIRECT=OS:a\\q,PUBLIC={TEXT}",
            MultipleElementName((DirectName("OS", "a", "q"), PublicName(GUID))),
            marks=requirement("MQMQ-2.1.7-01"),
        ),
    ],
)
def test_a_name_and_its_parts(text, parts):
    name = parse_format_name(text)
    assert name == parts
    assert name.text == str(name) == parts.canonical == parts.text == text
    assert kind_of(text) == parts.kind


@pytest.mark.parametrize(
    "text, offset",
    [
        pytest.param(r"DIRECT=OS:host\PRIVATE$\q\r", 25, marks=requirement("MQMQ-2.1.2-02")),
        pytest.param("DIRECT=OS:host\\PRIVATE$\\", 24, marks=requirement("MQMQ-2.1.2-02")),
        pytest.param(r"DIRECT=OS:host", 14, marks=requirement("MQMQ-2.1.2-03")),
        pytest.param("DIRECT=OS:host\\", 15, marks=requirement("MQMQ-2.1.2-03")),
        pytest.param(r"DIRECT=OS:host\a\b", 16, marks=requirement("MQMQ-2.1.2-03")),
        pytest.param(r"DIRECT=OS:host\SYSTEM$;XACTONLY", 23, marks=requirement("MQMQ-2.1.2-04")),
        pytest.param(r"DIRECT=OS:host\SYSTEM$;", 23, marks=requirement("MQMQ-2.1.2-04")),
        pytest.param(r"DIRECT=OS:host\SYSTEM$;JOURNAL;JOURNAL", 23, marks=requirement("MQMQ-2.1.2-04")),
        pytest.param(f"PUBLIC={TEXT} ", 43, marks=requirement("MQMQ-2.1.3-01")),
        pytest.param(f"PUBLIC={TEXT}\\1", 43, marks=requirement("MQMQ-2.1.3-01")),
        pytest.param("PUBLIC=", 7, marks=requirement("MQMQ-2.1.3-01")),
        pytest.param(f"PUBLIC={{{TEXT}}}", 7, marks=requirement("MQMQ-2.1.3-02")),
        pytest.param(f"PUBLIC= {TEXT}", 7, marks=requirement("MQMQ-2.1.3-02")),
        pytest.param(f"PUBLIC={TEXT[:-1]}", 42, marks=requirement("MQMQ-2.1.3-02")),
        pytest.param(f"PUBLIC={TEXT}0", 43, marks=requirement("MQMQ-2.1.3-02")),
        pytest.param(f"PUBLIC={TEXT[:-1]}g", 42, marks=requirement("MQMQ-2.1.3-02")),
        pytest.param("PUBLIC=557358d1915095954997-0c1a2b3c4d5e", 15, marks=requirement("MQMQ-2.1.3-02")),
        pytest.param("PUBLIC=557358d-19150-9595-4997-0c1a2b3c4d5e", 14, marks=requirement("MQMQ-2.1.3-02")),
        pytest.param(f"PRIVATE={TEXT}", 44, marks=requirement("MQMQ-2.1.4-01")),
        pytest.param(f"PRIVATE={TEXT}\\1;DEADLETTER", 46, marks=requirement("MQMQ-2.1.4-01")),
        pytest.param(f"PRIVATE={TEXT}\\", 45, marks=requirement("MQMQ-2.1.4-02")),
        pytest.param(f"PRIVATE={TEXT}\\123456789", 53, marks=requirement("MQMQ-2.1.4-02")),
        pytest.param(f"PRIVATE={TEXT}\\1g", 46, marks=requirement("MQMQ-2.1.4-02")),
        pytest.param(f"DL={TEXT};JOURNAL", 39, marks=requirement("MQMQ-2.1.5-01")),
        pytest.param(f"DL={TEXT}@", 40, marks=requirement("MQMQ-2.1.5-02")),
        pytest.param(f"MACHINE={TEXT};XACTONLY", 44, marks=requirement("MQMQ-2.1.6-01")),
        pytest.param(f"CONNECTOR={TEXT};JOURNAL", 46, marks=requirement("MQMQ-2.1.6-03")),
        pytest.param("MULTICAST=234.1.1.1", 19, marks=requirement("MQMQ-2.1.6-05")),
        pytest.param("MULTICAST=234.1.1:80", 17, marks=requirement("MQMQ-2.1.6-05")),
        pytest.param("MULTICAST=host:80", 10, marks=requirement("MQMQ-2.1.6-05")),
        pytest.param("MULTICAST=234.1.1.1:80;JOURNAL", 22, marks=requirement("MQMQ-2.1.6-05")),
    ],
)
def test_a_wrong_name_is_refused_where_it_breaks(text, offset):
    assert refused(text) == offset


@requirement("MQMQ-2.1.2-05")
@pytest.mark.parametrize("word", ["DEADLETTER", "DEADXACT", "XACTONLY"])
@pytest.mark.parametrize("queue", ["q", "PRIVATE$\\q"])
def test_a_queue_of_a_direct_name_has_no_other_suffix(queue, word):
    name = f"DIRECT=OS:host\\{queue}"
    assert refused(f"{name};{word}", version=3.0) == len(name)
    parsed = parse_format_name(f"{name};{word}", version=4.0)
    assert (parsed.system, parsed.journal, parsed.subqueue) == (None, False, word)


@requirement("MQMQ-2.1.4-02")
@pytest.mark.parametrize(
    "digits, number", [("0", 0), ("f", 15), ("FFFFFFFF", 0xFFFFFFFF), ("0000000D", 13), ("123", 0x123)]
)
def test_the_number_of_a_private_queue(digits, number):
    name = parse_format_name(f"PRIVATE={TEXT}\\{digits}")
    assert (name.number, name.guid) == (number, GUID)
    assert name.canonical == f"PRIVATE={TEXT}\\{number:08x}"


@requirement("MQMQ-2.1.5-02")
def test_the_domain_of_a_distribution_list():
    assert parse_format_name(f"DL={TEXT}@" + "d" * 255).domain == "d" * 255
    assert refused(f"DL={TEXT}@" + "d" * 256) == 40 + 255
    allowed = [chr(code) for code in range(0x100) if is_name(f"DL={TEXT}@{chr(code)}")]
    assert allowed == [chr(code) for code in range(0x21, 0x7F)]


@requirement("MQMQ-2.1.6-06")
@pytest.mark.parametrize("octet", range(256))
def test_the_first_octet_of_a_multicast_address(octet):
    assert is_name(f"MULTICAST={octet}.0.0.1:80") is (224 <= octet <= 239)


@requirement("MQMQ-2.1.6-07")
@pytest.mark.parametrize("index", [1, 2, 3])
def test_the_other_octets_of_a_multicast_address(index):
    def address(octet):
        octets = ["234", "1", "1", "1"]
        octets[index] = octet
        return f"MULTICAST={'.'.join(octets)}:80"

    assert all(is_name(address(str(octet))) for octet in range(256))
    assert not any(
        is_name(address(octet)) for octet in ("256", "01", "00", "001", "", "-1", "1000", "\u0661")
    )


@requirement("MQMQ-2.1.6-08")
def test_the_port_of_a_multicast_name():
    for port in [*range(0, 1000), 9999, 10000, 59999, 64999, 65499, 65529, 65535]:
        assert parse_format_name(f"MULTICAST=234.1.1.1:{port}").port == port
    for port in ("65536", "65540", "70000", "99999", "100000", "01", "00", "", "-1", "8x"):
        assert not is_name(f"MULTICAST=234.1.1.1:{port}")


@requirement("MQMQ-2.1.6-09")
@pytest.mark.parametrize("version, allowed", [(1.0, False), (2.0, False), (3.0, True), (6.0, True)])
def test_multicast_names_since_msmq_3(version, allowed):
    assert is_name("MULTICAST=234.1.1.1:80", version=version) is allowed


@requirement("MQMQ-2.1.7-01")
def test_each_allowed_kind_is_an_element():
    texts = [
        r"DIRECT=OS:a\PRIVATE$\q",
        f"PUBLIC={TEXT}",
        f"PRIVATE={TEXT}\\00000001",
        f"DL={TEXT}@x,y",
        f"CONNECTOR={TEXT}",
        "MULTICAST=234.1.1.1:80",
    ]
    name = parse_format_name(",".join(texts))
    assert [element.kind for element in name.elements] == [
        "direct",
        "public",
        "private",
        "dl",
        "connector",
        "multicast",
    ]
    assert [element.text for element in name.elements] == texts
    assert name.text == name.canonical == ",".join(texts)
    assert refused(f"PUBLIC={TEXT},,PUBLIC={TEXT}") == 43
    assert refused(f"PUBLIC={TEXT},") == 43
    assert refused(f",PUBLIC={TEXT}") == 0


@requirement("MQMQ-2.1.7-02")
@pytest.mark.parametrize("suffix", ["", ";JOURNAL"])
def test_a_machine_name_is_no_element(suffix):
    assert refused(f"PUBLIC={TEXT},MACHINE={TEXT}{suffix}") == 44


@requirement("MQMQ-2.1.7-03")
@pytest.mark.parametrize(
    "element",
    [
        r"DIRECT=OS:a\q;JOURNAL",
        r"DIRECT=OS:a\SYSTEM$;JOURNAL",
        r"DIRECT=OS:a\SYSTEM$;DEADLETTER",
        r"DIRECT=OS:a\SYSTEM$;DEADXACT",
        f"PUBLIC={TEXT};JOURNAL",
        f"PRIVATE={TEXT}\\1;JOURNAL",
    ],
)
def test_a_read_only_queue_is_no_element(element):
    assert parse_format_name(element).is_read_only
    assert refused(f"PUBLIC={TEXT},{element}", hresult=UNSUPPORTED) == 44
    assert refused(f"{element},PUBLIC={TEXT}", hresult=UNSUPPORTED) == 0


def test_which_elements_need_the_directory():
    direct, multicast, connector = r"DIRECT=OS:a\q", "MULTICAST=234.1.1.1:80", f"CONNECTOR={TEXT}"
    free = parse_format_name(f"{direct},{multicast},{connector}")
    assert not free.needs_directory
    for element in (f"PUBLIC={TEXT}", f"PRIVATE={TEXT}\\1", f"DL={TEXT}"):
        assert parse_format_name(f"{direct},{element}").needs_directory


@requirement("MQMQ-2.1.7-05")
def test_the_example_with_three_elements():
    text = r"DIRECT=ComputerAddress\QueueName,PUBLIC=QueueGUID,DL=DL_GUID"
    elements = split_elements(text)
    assert elements == [r"DIRECT=ComputerAddress\QueueName", "PUBLIC=QueueGUID", "DL=DL_GUID"]
    assert [kind_of(element) for element in elements] == ["direct", "public", "dl"]
    assert kind_of(text) == "multiple"


@requirement("MQMQ-2.1.7-06")
def test_only_a_comma_before_a_known_prefix_separates():
    name = parse_format_name(r"DIRECT=OS:a\b,c", version=1.0)
    assert name == DirectName("OS", "a", "b,c", text="as received")
    assert refused(r"DIRECT=OS:a\b,c", version=2.0) == 13
    name = parse_format_name(f"DL={TEXT}@x,y,public={TEXT},DL={TEXT}@,")
    assert [element.canonical for element in name.elements] == [
        f"DL={TEXT}@x,y",
        f"PUBLIC={TEXT}",
        f"DL={TEXT}@,",
    ]


@pytest.mark.parametrize(
    "build",
    [
        lambda: DirectName("OS", "a b", "q"),
        lambda: DirectName("FTP", "a", "q"),
        lambda: DirectName("OS", "a", "q\\r"),
        lambda: DirectName("OS", "a", ""),
        lambda: DirectName("OS", "a", "q", system="JOURNAL"),
        lambda: DirectName("OS", "a", "q", subqueue="journal"),
        lambda: DirectName("OS", "a", f"q,PUBLIC={TEXT}"),
        lambda: DirectName("OS", "a", "PRIVATE$\\q"),
        lambda: PrivateName(GUID, 1 << 32),
        lambda: PrivateName(GUID, -1),
        lambda: DistributionListName(GUID, ""),
        lambda: MachineName(GUID, "XACTONLY"),
        lambda: MulticastName("223.1.1.1", 80),
        lambda: MulticastName("234.1.1.1", 65536),
        lambda: MultipleElementName(()),
        lambda: MultipleElementName((MachineName(GUID, "JOURNAL"),)),
        lambda: MultipleElementName((DistributionListName(GUID, f"x,PUBLIC={TEXT}"),)),
    ],
)
def test_parts_that_make_no_name_are_refused(build):
    with pytest.raises(InvalidName):
        build()


def test_one_element_makes_a_multiple_element_name_on_request():
    assert str(MultipleElementName((PublicName(GUID),))) == f"PUBLIC={TEXT}"


def test_what_can_be_written_to():
    assert not parse_format_name(r"DIRECT=OS:a\q;sub").is_read_only
    assert not parse_format_name(f"CONNECTOR={TEXT}").is_read_only
    assert parse_format_name(f"MACHINE={TEXT}").is_read_only
