"""Bodies of XmlMessageFormatter: how XML becomes plain data, and how it is written."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from msmqwire.bodies import Limits, decode, encode
from msmqwire.errors import InvalidValue

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
XSD = 'xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
GUID = "557358d1-9150-9595-4997-0c1a2b3c4d5e"


def read(xml):
    return decode(xml.encode())


def date(text):
    return {"$date": text}


@pytest.mark.parametrize(
    ("xml", "value"),
    [
        ("<string>a &amp; b</string>", "a & b"),
        ("<string />", ""),
        ("<boolean>1</boolean>", True),
        ("<int> 5 </int>", 5),
        ("<long>9007199254740993</long>", {"$decimal": "9007199254740993"}),
        ("<unsignedLong>18446744073709551615</unsignedLong>", {"$decimal": "18446744073709551615"}),
        ("<char>65</char>", "A"),
        ("<double>1.5E+20</double>", 1.5e20),
        ("<double>NaN</double>", {"$float": "NaN"}),
        ("<float>-INF</float>", {"$float": "-INF"}),
        ("<decimal>1.50</decimal>", {"$decimal": "1.50"}),
        ("<dateTime>2026-11-28T08:00:00</dateTime>", date("2026-11-28T08:00:00.000000000")),
        ("<dateTime>2026-11-28T08:00:00.1234567Z</dateTime>", date("2026-11-28T08:00:00.123456700Z")),
        ("<dateTime>2026-11-28T08:00:00.5+01:00</dateTime>", date("2026-11-28T08:00:00.500000000+01:00")),
        ("<dateTimeOffset>2026-11-28T08:00:00Z</dateTimeOffset>", date("2026-11-28T08:00:00.000000000Z")),
        ("<TimeSpan>P1DT2H</TimeSpan>", {"$timespan": "P1DT2H"}),
        (f"<guid>{GUID}</guid>", {"$guid": GUID}),
        ("<base64Binary>AQID\r\nBA==</base64Binary>", {"$bytes": "01020304"}),
        (f"<string {XSI} xsi:nil='true'/>", None),
        (f"<anyType {XSI} xsi:nil='true'/>", None),
        (f"<anyType {XSI} xsi:type='xsd:int'>5</anyType>", 5),
    ],
)  # fmt: skip
def test_a_root_of_a_simple_type_is_its_value(xml, value):
    body = read('<?xml version="1.0"?>\r\n' + xml)
    assert (body.format, body.value, body.problems) == ("xml", value, ())


@pytest.mark.parametrize(
    ("xml", "value"),
    [
        ("<a/>", {"$type": "a", "#text": ""}),
        ("<a>text</a>", {"$type": "a", "#text": "text"}),
        ("<Order><Id>5</Id></Order>", {"$type": "Order", "Id": "5"}),
        ("<o><a>1</a><b>2</b><a>3</a></o>", {"$type": "o", "a": ["1", "3"], "b": "2"}),
        ('<o v="1"><a w="2">3</a></o>', {"$type": "o", "@v": "1", "a": {"@w": "2", "#text": "3"}}),
        ("<o><a/><b><c/></b></o>", {"$type": "o", "a": "", "b": {"c": ""}}),
        (f"<o {XSI}><a xsi:nil='true'/></o>", {"$type": "o", "a": None}),
        (f"<o {XSI} {XSD}><a xsi:type='xsd:decimal'>1.50</a></o>", {"$type": "o", "a": {"$decimal": "1.50"}}),
        (f"<o {XSI}><a xsi:type='Line'><n>1</n></a></o>", {"$type": "o", "a": {"$type": "Line", "n": "1"}}),
        ("<p>one <b>two</b> three</p>", {"$type": "p", "#mixed": ["one ", {"b": "two"}, " three"]}),
        ('<a xmlns="urn:x"><b>1</b></a>', {"$type": "a", "@xmlns": "urn:x", "b": "1"}),
        ('<a xmlns="urn:x"><y:b xmlns:y="urn:y"><y:c/></y:b></a>',
         {"$type": "a", "@xmlns": "urn:x", "{urn:y}b": {"c": ""}}),
        ('<a><b xmlns="urn:y" c="1"/></a>', {"$type": "a", "{urn:y}b": {"@c": "1"}}),
        ("<a>\r\n  <b>1</b>\r\n</a>", {"$type": "a", "b": "1"}),
        ("<a><!-- c --><b>1</b><?pi?></a>", {"$type": "a", "b": "1"}),
        ("<a><![CDATA[<b>]]></a>", {"$type": "a", "#text": "<b>"}),
    ],
)  # fmt: skip
def test_elements_are_members_and_what_is_repeated_a_list(xml, value):
    body = read(xml)
    assert (body.format, body.value, body.problems) == ("xml", value, ())


@pytest.mark.parametrize(
    ("xml", "value"),
    [
        ("<ArrayOfInt><int>1</int><int>-2</int></ArrayOfInt>", [1, -2]),
        ("<ArrayOfInt><int>1</int></ArrayOfInt>", [1]),
        ("<ArrayOfInt />", []),
        ("<ArrayOfArrayOfInt><ArrayOfInt /></ArrayOfArrayOfInt>", [[]]),
        ("<ArrayOfInt><int> 1 </int><int>+2</int></ArrayOfInt>", [1, 2]),
        ("<ArrayOfString><string>a</string><string /></ArrayOfString>", ["a", ""]),
        (f"<ArrayOfString {XSI}><string xsi:nil='true'/></ArrayOfString>", [None]),
        ("<ArrayOfOrder><Order><Id>1</Id></Order></ArrayOfOrder>", [{"Id": "1"}]),
        ("<ArrayOfArrayOfInt><ArrayOfInt><int>1</int></ArrayOfInt></ArrayOfArrayOfInt>", [[1]]),
        (f"<ArrayOfAnyType {XSI} {XSD}><anyType xsi:type='xsd:int'>5</anyType><anyType xsi:type='Order'>"
         "<Id>1</Id></anyType><anyType xsi:nil='true'/></ArrayOfAnyType>",
         [5, {"$type": "Order", "Id": "1"}, None]),
        ("<o><ArrayOfInt><int>1</int></ArrayOfInt></o>", {"$type": "o", "ArrayOfInt": [1]}),
        ("<ArrayOfInt><other>1</other></ArrayOfInt>", {"$type": "ArrayOfInt", "other": "1"}),
    ],
)  # fmt: skip
def test_an_array_is_a_list(xml, value):
    body = read(xml)
    assert (body.value, body.problems) == (value, ())


@pytest.mark.parametrize(
    ("xml", "value", "error", "path"),
    [
        ("<int>abc</int>", "abc", "'abc' is not an int", "int"),
        ("<int>2147483648</int>", "2147483648", "'2147483648' is not an int", "int"),
        ("<ArrayOfInt><int>1</int><int>x</int></ArrayOfInt>", [1, "x"], "'x' is not an int", "ArrayOfInt[1]"),
        ("<ArrayOfInt><int>23 57</int></ArrayOfInt>", ["23 57"], "'23 57' is not an int", "ArrayOfInt[0]"),
        ("<ArrayOfInt><int>1,2</int></ArrayOfInt>", ["1,2"], "'1,2' is not an int", "ArrayOfInt[0]"),
        (f"<o {XSI}><a xsi:type='xsd:int'>x</a></o>", {"$type": "o", "a": "x"}, "'x' is not an int", "o.a"),
        ("<!DOCTYPE a><a/>", "<!DOCTYPE a><a/>", "has a document type, with which XML is not read",
         "DOCTYPE"),
        ("<a>\x26#x1;b</a>", {"$type": "a", "#text": "\x01b"}, "has characters that XML forbids", ""),
        ("<a><b>1</b><c>2", {"$type": "a", "b": "1", "c": "2"}, "not well-formed XML: no element found",
         "a.c"),
        ("<a><b>1</b></c>", {"$type": "a", "b": "1"}, "not well-formed XML: mismatched tag", "a"),
        ("<a>&x;</a>", {"$type": "a", "#text": ""}, "not well-formed XML: undefined entity", "a"),
    ],
)  # fmt: skip
def test_what_is_read_before_a_fault_is_kept(xml, value, error, path):
    body = read(xml)
    assert (body.format, body.value) == ("xml", value)
    assert [(problem.error, problem.path) for problem in body.problems] == [(error, path)]


def test_what_has_no_root_element_is_text():
    body = read("< not XML")
    assert (body.format, body.value) == ("text", "< not XML")
    body = read("<not XML")
    assert (body.format, body.value) == ("text", "<not XML")
    assert body.problems[0].error.startswith("not well-formed XML")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_the_declared_encoding_does_not_matter(encoding):
    xml = '<?xml version="1.0" encoding="utf-16"?><string>Grüße €</string>'
    assert decode(xml.encode(encoding)).value == "Grüße €"


def test_depth_records_and_attributes_are_limited():
    deep = read("<a>" * 200 + "</a>" * 200)
    assert [problem.error for problem in deep.problems] == ["more than 128 elements deep"]
    assert read("<a>" * 128 + "</a>" * 128).problems == ()
    many = decode(b"<a>" + b"<b/>" * 20 + b"</a>", limits=Limits(records=10))
    assert len(many.value["b"]) == 9
    assert many.problems[0].error == "there are more than 10 records"
    attributes = "<a><b/><c " + " ".join(f'a{n}="1"' for n in range(10_001)) + "/></a>"
    read_ = read(attributes)
    assert read_.value == {"$type": "a", "b": ""}
    assert read_.problems[0].error == "an element has more than 10,000 attributes"


def test_an_array_of_a_large_body_is_read_whole():
    body = decode(b"<ArrayOfInt>" + b"<int>1</int>" * 80_000 + b"</ArrayOfInt>")
    assert (body.value, body.problems) == ([1] * 80_000, ())


START = b'<?xml version="1.0"?>\r\n'
DECLARED = f" {XSI} {XSD}".encode()


@pytest.mark.parametrize(
    ("value", "kind", "xml"),
    [
        ("a & <b>", None, b"<string>a &amp; &lt;b&gt;</string>"),
        ("", None, b"<string />"),
        (5, None, b"<int>5</int>"),
        (5, "unsignedByte", b"<unsignedByte>5</unsignedByte>"),
        (1 << 40, None, b"<long>1099511627776</long>"),
        (True, None, b"<boolean>true</boolean>"),
        (1.5, None, b"<double>1.5</double>"),
        (2.0, None, b"<double>2</double>"),
        ({"$float": "INF"}, None, b"<double>INF</double>"),
        ({"$decimal": "1.50"}, None, b"<decimal>1.50</decimal>"),
        (date("2026-11-28T08:00:00.123456700Z"), None, b"<dateTime>2026-11-28T08:00:00.1234567Z</dateTime>"),
        ({"$guid": GUID}, None, f"<guid>{GUID}</guid>".encode()),
        ({"$bytes": "01020304"}, None, b"<base64Binary>AQIDBA==</base64Binary>"),
        ({"$timespan": "PT1H"}, None, b"<TimeSpan>PT1H</TimeSpan>"),
        ("A", "char", b"<char>65</char>"),
        ([1, 2], None, b"<ArrayOfInt" + DECLARED + b"><int>1</int><int>2</int></ArrayOfInt>"),
        ([], "ArrayOfInt", b"<ArrayOfInt" + DECLARED + b" />"),
        ([{"Id": 1}], "ArrayOfOrder",
         b"<ArrayOfOrder" + DECLARED + b"><Order><Id>1</Id></Order></ArrayOfOrder>"),
        ([[1]], "ArrayOfArrayOfInt",
         b"<ArrayOfArrayOfInt" + DECLARED + b"><ArrayOfInt><int>1</int></ArrayOfInt></ArrayOfArrayOfInt>"),
        ({"$type": "Order", "@v": "1", "Id": 5, "Lines": {"Line": ["a", "b"]}, "None": None}, None,
         b"<Order" + DECLARED + b' v="1"><Id>5</Id><Lines><Line>a</Line><Line>b</Line></Lines>'
         b'<None xsi:nil="true" /></Order>'),
        ({"Id": 5}, "Order", b"<Order" + DECLARED + b"><Id>5</Id></Order>"),
        ({"@xmlns": "urn:x", "b": 1}, "a", b"<a" + DECLARED + b' xmlns="urn:x"><b>1</b></a>'),
        ({"{urn:y}b": {"c": ""}}, "a", b"<a" + DECLARED + b'><b xmlns="urn:y"><c /></b></a>'),
        ({"#mixed": ["a ", {"b": "c"}, " d"]}, "p", b"<p" + DECLARED + b">a <b>c</b> d</p>"),
        (None, None, b"<anyType" + DECLARED + b' xsi:nil="true" />'),
    ],
)  # fmt: skip
def test_xml_is_written_as_xml_serializer_writes_it(value, kind, xml):
    body, body_type, extension = encode(value, "xml", type=kind)
    assert (body, body_type, extension) == (START + xml, 0, b"")


@pytest.mark.parametrize(
    "value",
    [
        {"$type": "Order", "Id": "5", "Lines": {"Line": [{"@q": "1", "#text": "a"}, "b"]}, "None": None},
        {"$type": "a", "@xmlns": "urn:x", "b": "1", "{urn:y}c": {"d": "2"}},
        {"$type": "p", "#mixed": ["one ", {"b": "two"}, " three"]},
        {"$type": "a", "b": {"$type": "Line", "n": "1"}, "c": {"@{urn:z}d": "\"\r\n\t<"}},
        [5, "a", None, {"$guid": GUID}, {"$type": "Order", "Id": "1"}, {"$decimal": "1.50"}, True, 1.5],
        ["\r\n <a> ]]> ", "é", "\U0001f600"],
    ],
)  # fmt: skip
def test_what_is_written_is_read_back(value):
    body, body_type, _ = encode(value, "xml")
    read_ = decode(body, body_type=body_type)
    assert (read_.value, read_.problems) == (value, ())


@pytest.mark.parametrize(
    ("value", "kind", "path", "hint"),
    [
        ({"a": 1}, None, "", "give type, or write the object with a $type"),
        ({"a": [[1]]}, "o", "a[0]", "name the element ArrayOfInt"),
        ({"a": {"b c": 1}}, "o", "a.b c", "is not a name of an element"),
        ({"a": ["x", "\x01"]}, "o", "a[1]", "write the text as base64"),
        ([1, "x"], "ArrayOfInt", "[1]", "'x' is not an int"),
        (300, "unsignedByte", "", "'300' is not an unsignedByte"),
        ({"a": {"$date": "x"}}, "o", "a", 'write {"$date"'),
        ([1], "Order", "", "name the element ArrayOfInt"),
        (5, "a b", "type", "is not a name of an element"),
        ("ab", "char", "", "is not a character"),
    ],
)
def test_values_not_written_are_reported_with_their_path(value, kind, path, hint):
    with pytest.raises(InvalidValue) as caught:
        encode(value, "xml", type=kind)
    assert hint in caught.value.why
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("xml", "value", "errors"),
    [
        ("<ArrayOfInt>\r\n  <int>1</int>\r\n  <int> -22 </int>\r\n</ArrayOfInt>", [1, -22], 0),
        ("<ArrayOfInt><int>1</int>\n<int>2</int><int>3</int></ArrayOfInt>", [1, 2, 3], 0),
        ("<ArrayOfInt><int>1</int><int>x</int></ArrayOfInt>", [1, "x"], 1),
        ("<ArrayOfInt><int></int><int>2</int></ArrayOfInt>", ["", 2], 1),
        ("<ArrayOfInt><string>1</string></ArrayOfInt>", {"$type": "ArrayOfInt", "string": "1"}, 0),
        ("<ArrayOfString><string>a]]>b</string></ArrayOfString>", [""], 1),
        ("<ArrayOfString><string>a</string><string></string><string /></ArrayOfString>", ["a", "", ""], 0),
        ("<ArrayOfString><string>a\r\nb</string></ArrayOfString>", ["a\nb"], 0),
        (
            "<ArrayOfDouble><double>1.5</double><double>NaN</double></ArrayOfDouble>",
            [1.5, {"$float": "NaN"}],
            0,
        ),
        ("<ArrayOfBoolean><boolean>true</boolean><boolean>0</boolean></ArrayOfBoolean>", [True, False], 0),
    ],
)
def test_arrays_that_are_alike_and_those_that_are_not(xml, value, errors):
    body = decode(xml.encode())
    assert body.value == value
    assert bool(body.problems) == bool(errors)


def test_arrays_of_any_size_take_linear_time():
    """The quick way is taken whatever the size, and memory stays within 16 bytes for each of the body."""
    decode(b"<ArrayOfInt><int>12</int></ArrayOfInt>")  # the reader of XML is loaded once
    for count in (1_000, 100_000):
        body = b"<ArrayOfInt>" + b"<int>12</int>" * count + b"</ArrayOfInt>"
        tracemalloc.start()
        try:
            assert decode(body).value == [12] * count
            assert tracemalloc.get_traced_memory()[1] <= 16 * len(body) + 65_536
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["iso-8859-1", "ISO-8859-15", "windows-1252", "latin1"])
def test_an_encoding_that_is_declared(encoding):
    data = f'<?xml version="1.0" encoding="{encoding}"?><string>caf\xe9</string>'.encode(encoding)
    body = decode(data)
    assert (body.format, body.value, body.problems) == ("xml", "caf\xe9", ())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-7", "hex", "idna", "unicode_escape", "no-such"])
def test_an_encoding_that_is_not_taken(encoding):
    data = f'<?xml version="1.0" encoding="{encoding}"?><string>'.encode() + b"\xe9</string>"
    assert decode(data).format == "bytes"


@pytest.mark.parametrize(
    "xml",
    [
        '<r xmlns="{0}">' + "<a/>" * 40_000 + "</r>",
        '<r xmlns:p="{0}">' + "".join(f"<p:a{n}/>" for n in range(20_000)) + "</r>",
        "<r xmlns:p='{0}'>" + '<a p:b=""/>' * 20_000 + "</r>",
    ],
    ids=["default", "elements", "attributes"],
)
def test_long_names_of_namespaces_take_linear_time_and_memory(xml):
    data = xml.format("u" * 200_000).encode()
    tracemalloc.start()
    start = time.process_time()
    try:
        body = decode(data)
        assert time.process_time() - start < 2
        assert tracemalloc.get_traced_memory()[1] <= 16 * len(data) + (16 << 20)
    finally:
        tracemalloc.stop()
    assert body.format == "xml"
    assert body.problems
