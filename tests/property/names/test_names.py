"""Names and bodies: they survive a round trip, and nothing but InvalidName is raised."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire.bodies import decode_body
from msmqwire.errors import InvalidName
from msmqwire.names import (
    ConnectorName,
    DirectName,
    DistributionListName,
    MachineName,
    MulticastName,
    MultipleElementName,
    PathName,
    PrivateName,
    PublicName,
    from_mqf_element,
    from_queue_format,
    from_user_header_queue,
    kind_of,
    parse_format_name,
    parse_path_name,
    split_elements,
    to_mqf_element,
    to_queue_format,
    to_user_header_queue,
)

QUEUE_CHARACTERS = [chr(code) for code in range(0x21, 0x80) if chr(code) not in '"+,;\\']
VISIBLE = [chr(code) for code in range(0x21, 0x7F)]

queues = st.text(QUEUE_CHARACTERS, min_size=1, max_size=124)
subqueues = st.none() | st.text(QUEUE_CHARACTERS, min_size=1, max_size=32).filter(
    lambda name: name.upper() != "JOURNAL"
)
hosts = st.from_regex(r"[a-zA-Z0-9.-]{1,40}", fullmatch=True)
ports = st.integers(0, 65535)
hexadecimal = "0123456789abcdefABCDEF"


@st.composite
def http_addresses(draw):
    host = draw(hosts | st.ip_addresses(v=6).map(lambda address: f"[{address}]"))
    return draw(st.sampled_from([host, f"//{host}/MSMQ", f"{host}:{draw(ports)}"]))


@st.composite
def direct_names(draw):
    protocol = draw(st.sampled_from(["TCP", "OS", "HTTP", "HTTPS", "IPX", "os", "Http"]))
    address = draw(
        {
            "TCP": st.ip_addresses().map(str),
            "OS": hosts,
            "HTTP": http_addresses(),
            "HTTPS": http_addresses(),
            "IPX": st.tuples(
                st.text(hexadecimal, min_size=1, max_size=8), st.text(hexadecimal, min_size=1, max_size=12)
            ).map(":".join),
        }[protocol.upper()]
    )
    if draw(st.booleans()):
        return DirectName(
            protocol, address, system=draw(st.sampled_from(["JOURNAL", "DEADLETTER", "DeadXact"]))
        )
    private, queue, journal = draw(st.booleans()), draw(queues), draw(st.booleans())
    # A public queue whose name begins with the prefix of another form has no name in the grammar.
    return DirectName(protocol, address, queue, private, None, journal, draw(subqueues))


publics = st.builds(PublicName, st.uuids(), st.booleans())
privates = st.builds(PrivateName, st.uuids(), st.integers(0, 0xFFFFFFFF), st.booleans())
# No comma: before a prefix it would split the name.
domains = st.none() | st.text([c for c in VISIBLE if c != ","], min_size=1, max_size=255)
lists = st.builds(DistributionListName, st.uuids(), domains)
machines = st.builds(MachineName, st.uuids(), st.sampled_from([None, "JOURNAL", "DEADLETTER", "DEADXACT"]))
connectors = st.builds(ConnectorName, st.uuids(), st.booleans())
multicasts = st.builds(
    MulticastName,
    st.tuples(st.integers(224, 239), *[st.integers(0, 255)] * 3).map(
        lambda octets: ".".join(map(str, octets))
    ),
    ports,
)
elements = st.one_of(direct_names(), publics, privates, lists, connectors, multicasts).filter(
    lambda name: not name.is_read_only
)
multiples = st.builds(MultipleElementName, st.lists(elements, min_size=2, max_size=5).map(tuple))
single_names = st.one_of(direct_names(), publics, privates, lists, machines, connectors, multicasts)
names = single_names | multiples

fragments = st.lists(
    st.sampled_from(
        [
            "DIRECT=",
            "PUBLIC=",
            "PRIVATE=",
            "DL=",
            "MACHINE=",
            "CONNECTOR=",
            "MULTICAST=",
            "OS:",
            "TCP:",
            "HTTP:",
            "//",
            "host",
            "10.0.0.1",
            ":80",
            "/MSMQ",
            "\\",
            "PRIVATE$\\",
            "SYSTEM$;",
            "q",
            ";JOURNAL",
            ",",
            "@",
            "557358d1-9150-9595-4997-0c1a2b3c4d5e",
            "234.1.1.1",
            ";",
            "\u0131",
            "�",
            "[",
            "]",
            "::1",
            "0",
        ]
    ),
    max_size=8,
).map("".join)


@given(names)
def test_a_built_name_is_read_back(name):
    assert parse_format_name(str(name)) == name
    assert parse_format_name(name.text).text == name.text == name.canonical
    assert kind_of(name.text) == name.kind


@given(names, st.randoms())
def test_the_text_comes_back_as_it_was(name, random):
    text = "".join(random.choice((c.upper(), c.lower())) if c.isascii() else c for c in name.text)
    again = parse_format_name(text)
    assert again.text == text
    assert parse_format_name(again.canonical) == again
    assert parse_format_name(again.canonical).canonical == again.canonical


@given(multiples)
def test_the_elements_are_those_that_were_joined(name):
    assert split_elements(name.text) == [element.text for element in name.elements]


@given(st.text() | fragments)
@example("DIRECT=HTTP://h:" + "9" * 5000 + "/MSMQ\\q")
@example("MULTICAST=" + "9" * 5000)
@example("\ud800")
def test_any_text_is_a_name_or_refused(text):
    for parse in (parse_format_name, parse_path_name):
        try:
            name = parse(text)
        except InvalidName as exc:
            offset = exc.offset
            assert 0 <= offset <= len(text)
        else:
            assert name.text == text
            assert parse(str(name)) == name
    assert ",".join(split_elements(text)) == text


@given(hosts, queues, st.sampled_from(["", "private", "system"]), subqueues)
def test_a_built_path_is_read_back(host, queue, form, subqueue):
    path = PathName(host, queue, form == "private", form == "system", subqueue)
    assert parse_path_name(str(path)) == path


@given(single_names)
def test_a_name_comes_back_from_a_queue_format(name):
    try:
        form = to_queue_format(name)
    except InvalidName:
        assert name.kind == "machine"
        assert name.suffix is None
        return
    again = from_queue_format(form)
    assert again == name
    assert again.text == name.text


@given(elements)
def test_a_name_comes_back_from_a_multi_queue_element(name):
    try:
        element = to_mqf_element(name)
    except InvalidName:
        assert name.kind in ("connector", "multicast")
        return
    expected = DistributionListName(name.guid) if name.kind == "dl" else name
    assert from_mqf_element(element) == expected


@given(
    name=elements,
    admin=st.none() | elements,
    managers=st.tuples(st.uuids(), st.uuids()),
    role=st.sampled_from(["admin", "response"]),
    pick=st.integers(0, 3),
)
def test_a_name_comes_back_from_the_user_header(name, admin, managers, role, pick):
    if pick and isinstance(name, PrivateName):  # at the source, the destination or the administration queue
        hosts_of = [managers[0], managers[1], getattr(admin, "guid", name.guid)]
        name = PrivateName(hosts_of[pick - 1], name.number)
    where = {"source_qm": managers[0], "destination_qm": managers[1], "admin": admin}
    try:
        type_value, value = to_user_header_queue(name, role, **where)
    except InvalidName:
        assert name.kind in ("dl", "connector", "multicast")
        return
    assert from_user_header_queue(type_value, value, role=role, **where) == name


scalars = st.none() | st.booleans() | st.integers(-2, 1 << 33) | st.text(max_size=5) | st.uuids()
junk = st.recursive(
    scalars,
    lambda inner: st.dictionaries(
        st.sampled_from(
            [
                "m_qft",
                "m_SuffixAndFlags",
                "SuffixType",
                "Flags",
                "m_pDirectID",
                "m_DlID",
                "m_gPublicID",
                "m_DlGuid",
                "m_pwzDomain",
                "m_MulticastID",
                "m_address",
                "m_port",
                "FormatType",
                "FormatName",
                "PrivateQueueIdentifier",
                "PublicQueueIdentifier",
                "DirectFormatName",
                "SourceQueueManager",
            ]
        ),
        inner,
    ),
    max_leaves=12,
)


@given(junk, st.integers(-1, 9), st.sampled_from(["destination", "admin", "response"]))
def test_any_field_is_a_name_or_refused(value, type_value, role):
    for read in (
        from_queue_format,
        from_mqf_element,
        lambda value: from_user_header_queue(
            type_value, value, role=role, source_qm=None, destination_qm=None
        ),
    ):
        try:
            read(value)
        except InvalidName as exc:
            path = exc.path
            assert path


@given(
    st.binary(max_size=64) | st.text(max_size=32).map(lambda text: text.encode("utf-16-le", "surrogatepass")),
    st.integers(0, 80) | st.integers(0x1000, 0x1050) | st.integers(0, 0xFFFFFFFF),
)
def test_any_body_is_read(body, body_type):
    read = decode_body(body, body_type)
    assert read.raw == body
    assert read.text is None or read.text.encode("utf-8") is not None


@given(st.text(alphabet=st.sampled_from("<>/!-?[]=\"'& abcstring&;#x\n"), max_size=60))
def test_any_markup_is_read(text):
    read = decode_body(text.encode())
    assert read.kind in ("xml", "utf-8 text", "empty")


@pytest.mark.parametrize("start", ["<!---->", "<?a?>", "<a>", "<a b='", "<", "<![CDATA[", "&amp;"])
def test_long_markup_is_read_in_time(start):
    assert decode_body((start * (200_000 // len(start))).encode()).raw
