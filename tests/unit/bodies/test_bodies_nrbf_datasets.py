"""DataSets and DataTables in bodies of BinaryMessageFormatter, in both forms, as tables."""

from __future__ import annotations

import tracemalloc

import pytest

from msmqwire.bodies import Limits, nrbf
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.nrbf.records import Binary, Primitive
from tests.support.nrbf_streams import (
    array,
    int32,
    klass,
    library,
    objects,
    primitives,
    ref,
    stream,
    string,
    strings,
)

DATA = "System.Data, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089"
INT32 = Primitive.INT32

SCHEMA = """<?xml version="1.0" encoding="utf-16"?>
<xs:schema id="Shop" xmlns="" xmlns:xs="http://www.w3.org/2001/XMLSchema"
    xmlns:msdata="urn:schemas-microsoft-com:xml-msdata">
  <xs:element name="Shop" msdata:IsDataSet="true" msdata:UseCurrentLocale="true">
    <xs:complexType><xs:choice minOccurs="0" maxOccurs="unbounded">
      <xs:element name="Order_x0020_Lines"><xs:complexType><xs:sequence>
        <xs:element name="Id" msdata:ReadOnly="true" type="xs:int" />
        <xs:element name="Name" minOccurs="0"><xs:simpleType><xs:restriction base="xs:string">
          <xs:maxLength value="50" /></xs:restriction></xs:simpleType></xs:element>
        <xs:element name="Price" type="xs:decimal" minOccurs="0" />
        <xs:element name="At" type="xs:dateTime" minOccurs="0" />
        <xs:element name="Key" msdata:DataType="System.Guid, mscorlib, Version=4.0.0.0" type="xs:string" />
        <xs:element name="Raw" type="xs:base64Binary" minOccurs="0" />
      </xs:sequence><xs:attribute name="Paid" type="xs:boolean" /></xs:complexType></xs:element>
      <xs:element name="Empty"><xs:complexType><xs:sequence>
        <xs:element name="X" type="xs:long" minOccurs="0" /></xs:sequence></xs:complexType></xs:element>
    </xs:choice></xs:complexType>
  </xs:element>
</xs:schema>"""
DIFFGRAM = """<diffgr:diffgram xmlns:msdata="urn:schemas-microsoft-com:xml-msdata"
    xmlns:diffgr="urn:schemas-microsoft-com:xml-diffgram-v1">
  <Shop>
    <Order_x0020_Lines diffgr:id="Order Lines1" msdata:rowOrder="0" diffgr:hasChanges="inserted" Paid="true">
      <Id>1</Id><Name>screws &amp; nuts</Name><Price>12.50</Price><At>2026-11-28T08:00:00.5+01:00</At>
      <Key>557358d1-9150-9595-4997-0c1a2b3c4d5e</Key><Raw>AAH/</Raw>
    </Order_x0020_Lines>
    <Order_x0020_Lines diffgr:id="Order Lines2" msdata:rowOrder="1"><Id>2</Id></Order_x0020_Lines>
  </Shop>
  <diffgr:before><Order_x0020_Lines diffgr:id="Order Lines2"><Id>9</Id></Order_x0020_Lines></diffgr:before>
</diffgr:diffgram>"""
COLUMNS = [
    {"name": "Id", "type": "System.Int32"},
    {"name": "Name", "type": "System.String"},
    {"name": "Price", "type": "System.Decimal"},
    {"name": "At", "type": "System.DateTime"},
    {"name": "Key", "type": "System.Guid"},
    {"name": "Raw", "type": "System.Byte[]"},
    {"name": "Paid", "type": "System.Boolean"},
]
ROWS = [
    [
        1, "screws & nuts", {"$decimal": "12.50"}, {"$date": "2026-11-28T08:00:00.500000000+01:00"},
        {"$guid": "557358d1-9150-9595-4997-0c1a2b3c4d5e"}, {"$bytes": "0001ff"}, True,
    ],
    [2, None, None, None, None, None, None],
]  # fmt: skip


def read(body, limits=DEFAULT):
    return nrbf.read(body, Budget(limits, len(body)))


def xml_form(schema=SCHEMA, diffgram=DIFFGRAM, name="System.Data.DataSet"):
    members = [
        ("DataSet.RemotingVersion", Binary.SYSTEM_CLASS, "System.Version"),
        ("XmlSchema", Binary.STRING),
        ("XmlDiffGram", Binary.STRING),
    ]
    version = [(part, Binary.PRIMITIVE, INT32) for part in ("_Major", "_Minor", "_Build", "_Revision")]
    return stream(
        library(2, DATA),
        klass(1, name, members, 2),
        ref(3),
        string(4, schema),
        string(5, diffgram),
        klass(3, "System.Version", version),
        int32(2, 0, -1, -1),
    )


def test_the_xml_form():
    content = read(xml_form())
    assert content.problems == ()
    assert content.value == {
        "$dataset": "Shop",
        "tables": [
            {"name": "Order Lines", "columns": COLUMNS, "rows": ROWS},
            {"name": "Empty", "columns": [{"name": "X", "type": "System.Int64"}], "rows": []},
        ],
    }
    assert content.text == "Shop{Order Lines: 2 rows, Empty: 0 rows}"


def test_a_dataset_of_a_class_of_its_own():
    assert read(xml_form(name="Shop.Orders")).value["$dataset"] == "Shop"


@pytest.mark.parametrize(
    "schema, diffgram, why",
    [
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", DIFFGRAM, "no tables: XmlSchema has a document type"),
        ("<a", DIFFGRAM, "no tables: XmlSchema is not well-formed XML: unclosed token"),
    ],
    ids=["document type", "unclosed token"],
)
def test_a_schema_that_is_not_read(schema, diffgram, why):
    content = read(xml_form(schema, diffgram))
    assert content.value["XmlDiffGram"] == diffgram
    assert [problem.error for problem in content.problems] == [why]


def test_a_diffgram_that_breaks_off_keeps_its_rows():
    content = read(xml_form(diffgram=DIFFGRAM[: DIFFGRAM.index("</Shop>")]))
    assert content.value["tables"][0]["rows"] == ROWS
    assert content.problems[0].path == "XmlDiffGram"


def test_a_value_that_is_none_of_its_type():
    content = read(xml_form(diffgram=DIFFGRAM.replace("<Id>1</Id>", "<Id>one</Id>")))
    assert content.value["tables"][0]["rows"][0][0] == "one"
    assert [(problem.path, problem.error) for problem in content.problems] == [
        ("XmlDiffGram.Order Lines.Id", "'one' is not an int")
    ]


def test_columns_and_tables_that_the_schema_does_not_have():
    diffgram = "<d><Shop><New><A>1</A></New><New><B>2</B></New></Shop></d>"
    table = read(xml_form(diffgram=diffgram)).value["tables"][2]
    assert table["name"] == "New"
    assert table["rows"] == [["1", None], [None, "2"]]


def test_names_with_escapes_that_are_no_characters():
    tables = read(xml_form(diffgram="<d><Shop><A_xD800__x0041_><B/></A_xD800__x0041_></Shop></d>")).value[
        "tables"
    ]
    assert tables[2]["name"] == "A_xD800_A"


def test_rows_within_rows():
    schema = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
        xmlns:msdata="urn:schemas-microsoft-com:xml-msdata">
      <xs:element name="D" msdata:IsDataSet="true"><xs:complexType><xs:choice><xs:element name="Order">
        <xs:complexType><xs:sequence><xs:element name="Id" type="xs:int"/><xs:element name="Item">
          <xs:complexType><xs:simpleContent msdata:ColumnName="Text" msdata:Ordinal="0">
            <xs:extension base="xs:string"><xs:attribute name="N" type="xs:int"/></xs:extension>
          </xs:simpleContent></xs:complexType>
        </xs:element></xs:sequence></xs:complexType>
      </xs:element></xs:choice></xs:complexType></xs:element></xs:schema>"""
    diffgram = "<d><D><Order><Id>1</Id><Item N='5'>bolt</Item><Item N='6'>nut</Item></Order></D></d>"
    tables = read(xml_form(schema, diffgram)).value["tables"]
    assert [(table["name"], table["rows"]) for table in tables] == [
        ("Order", [[1]]),
        ("Item", [["bolt", 5], ["nut", 6]]),
    ]


@pytest.mark.parametrize("rows", ["<T/>" * 20_000, "".join(f"<p:T{n}/>" for n in range(10_000))])
def test_long_names_of_namespaces_take_linear_memory(rows):
    schema = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'/>"
    names = "u" * 100_000
    body = xml_form(schema, f"<d><D xmlns='{names}' xmlns:p='{names}'>{rows}</D></d>")
    tracemalloc.start()
    try:
        content = read(body)
        assert tracemalloc.get_traced_memory()[1] <= 16 * len(body) + (16 << 20)
    finally:
        tracemalloc.stop()
    assert "the names of elements with their namespaces are too long" in str(content.problems[0])


def column(number, holder, name):
    prefix = f"DataTable.DataColumn_{number}."
    return (
        [(prefix + "ColumnName", Binary.STRING), (prefix + "DataType", Binary.SYSTEM_CLASS, HOLDER)],
        [string(900 + number, name), ref(holder)],
    )


HOLDER = "System.UnitySerializationHolder"
HOLDER_MEMBERS = [
    ("Data", Binary.STRING),
    ("UnityType", Binary.PRIMITIVE, INT32),
    ("AssemblyName", Binary.STRING),
]
VERSION_MEMBERS = [
    ("DataTable.TableName", Binary.STRING),
    ("DataTable.Columns.Count", Binary.PRIMITIVE, INT32),
]


def described(root=1, rows=((), ())):
    """A table of four columns, two of them of the same type."""
    parts = [column(0, 20, "Id"), column(1, 21, "Name"), column(2, 21, "Note"), column(3, 22, "Key")]
    members = [*VERSION_MEMBERS, *(member for names, _ in parts for member in names), *rows[0]]
    return [
        library(2, DATA),
        klass(root, "System.Data.DataTable", members, 2),
        string(10, "Orders"),
        int32(len(parts)),
        *(value for _, values in parts for value in values),
        *rows[1],
        klass(20, HOLDER, HOLDER_MEMBERS),
        string(30, "System.Int32"),
        int32(4),
        string(31, "mscorlib"),
        b"\x01" + int32(21, 20),
        string(32, "System.String"),
        int32(4),
        ref(31),
        b"\x01" + int32(22, 20),
        string(33, "System.Guid, mscorlib"),
        int32(4),
        ref(31),
    ]


def bits(number, words, first):
    """A BitArray."""
    members = [
        ("m_array", Binary.PRIMITIVE_ARRAY, INT32),
        ("m_length", Binary.PRIMITIVE, INT32),
        ("_version", Binary.PRIMITIVE, INT32),
    ]
    start = klass(number, "System.Collections.BitArray", members) if first else b"\x01" + int32(number, 100)
    return start + ref(number + 50) + int32(32 * len(words), 0) + primitives(number + 50, INT32, words)


def array_list(number, items, first):
    members = [
        ("_items", Binary.OBJECT_ARRAY),
        ("_size", Binary.PRIMITIVE, INT32),
        ("_version", Binary.PRIMITIVE, INT32),
    ]
    start = klass(number, "System.Collections.ArrayList", members) if first else b"\x01" + int32(number, 200)
    inner = objects(number + 50, len(items)) + b"".join(ref(item) for item in items)
    return start + ref(number + 50) + int32(len(items), 0) + inner


def data(number=0):
    """Members and values of the rows: unchanged, deleted, added, modified; then what they refer to."""
    prefix = f"DataTable_{number}."
    members = [
        (prefix + "Rows.Count", Binary.PRIMITIVE, INT32),
        (prefix + "Records.Count", Binary.PRIMITIVE, INT32),
        (prefix + "RowStates", Binary.SYSTEM_CLASS, "System.Collections.BitArray"),
        (prefix + "Records", Binary.SYSTEM_CLASS, "System.Collections.ArrayList"),
        (prefix + "NullBits", Binary.SYSTEM_CLASS, "System.Collections.ArrayList"),
    ]
    states = 0b011 << 3 | 0b010 << 6 | 0b001 << 9
    guid = [("_a", Binary.PRIMITIVE, INT32), ("_b", Binary.PRIMITIVE, Primitive.INT16)]
    guid += [("_c", Binary.PRIMITIVE, Primitive.INT16)]
    guid += [(f"_{letter}", Binary.PRIMITIVE, Primitive.BYTE) for letter in "defghijk"]
    key = int32(0x557358D1) + bytes.fromhex("5091959549970c1a2b3c4d5e")
    rest = [
        bits(100, [states], True),
        array_list(200, [300, 301, 302, 303], True),
        array_list(201, [101, 102, 103, 104], False),
        primitives(300, INT32, [1, 2, 3, 40, 4]),
        strings(301, 5),
        *(string(310 + index, text) for index, text in enumerate(("a", "b", "c", "old", "new"))),
        strings(302, 5),
        b"\x0d\x05",
        array(303, 0, [5], Binary.SYSTEM_CLASS, "System.Guid"),
        klass(-1, "System.Guid", guid) + key,
        *(b"\x01" + int32(-2 - index, -1) + key for index in range(4)),
        *(bits(101 + index, [word], False) for index, word in enumerate((0, 0b00100, 0, 0b10000))),
    ]
    return members, [int32(4, 5), ref(100), ref(200), ref(201)], rest


KEY = {"$guid": "557358d1-9150-9595-4997-0c1a2b3c4d5e"}
ORDERS = {
    "name": "Orders",
    "columns": [
        {"name": "Id", "type": "System.Int32"},
        {"name": "Name", "type": "System.String"},
        {"name": "Note", "type": "System.String"},
        {"name": "Key", "type": "System.Guid"},
    ],
    "rows": [[1, "a", None, KEY], [3, None, None, KEY], [4, "new", None, None]],
}


def binary_form(inner, members=(), values=(), rest=()):
    names = [
        ("DataSet.RemotingFormat", Binary.CLASS, "System.Data.SerializationFormat", 2),
        ("DataSet.DataSetName", Binary.STRING),
        ("DataSet.Tables.Count", Binary.PRIMITIVE, INT32),
        ("DataSet.Tables_0", Binary.PRIMITIVE_ARRAY, Primitive.BYTE),
        *members,
    ]
    return stream(
        library(2, DATA),
        klass(1, "System.Data.DataSet", names, 2),
        klass(-1000, "System.Data.SerializationFormat", [("value__", Binary.PRIMITIVE, INT32)], 2),
        int32(1),
        string(11, "Shop"),
        int32(1),
        ref(12),
        *values,
        primitives(12, Primitive.BYTE, list(inner)),
        *rest,
    )


def test_the_binary_form():
    # GetBuffer of the stream of a table has zeros after its end.
    body = binary_form(stream(*described()) + bytes(9), *data())
    content = read(body)
    assert content.value == {"$dataset": "Shop", "tables": [ORDERS]}
    assert content.problems == ()
    assert content.text == "Shop{Orders: 3 rows}"


def test_types_of_columns_as_net_since_core_writes_them():
    prefix = "DataTable.DataColumn_0."
    names = [
        (prefix + "ColumnName", Binary.STRING),
        (prefix + "DataType_AssemblyQualifiedName", Binary.STRING),
    ]
    inner = stream(
        library(2, DATA),
        klass(1, "System.Data.DataTable", [*VERSION_MEMBERS, *names], 2),
        string(10, "Orders"),
        int32(1),
        string(11, "Id"),
        string(12, "System.Int32, System.Private.CoreLib, Version=8.0.0.0, Culture=neutral"),
    )
    rows = [
        ("DataTable_0.Rows.Count", Binary.PRIMITIVE, INT32),
        ("DataTable_0.RowStates", Binary.SYSTEM_CLASS, "System.Collections.BitArray"),
    ]
    content = read(binary_form(inner, rows, [int32(0), ref(100)], [bits(100, [0], True)]))
    table = {"name": "Orders", "columns": [{"name": "Id", "type": "System.Int32"}], "rows": []}
    assert content.value == {"$dataset": "Shop", "tables": [table]}


def test_a_table_on_its_own():
    members, values, rest = data()
    content = read(stream(*described(rows=(members, values)), *rest))
    assert content.value == {"$dataset": None, "tables": [ORDERS]}
    assert content.text == "Orders: 3 rows"


def test_a_table_within_an_object():
    members, values, rest = data()
    body = stream(
        klass(5, "Letter", [("Table", Binary.OBJECT), ("Again", Binary.OBJECT)]),
        ref(1),
        ref(1),
        *described(rows=(members, values)),
        *rest,
        root=5,
    )
    value = read(body).value
    assert value["Table"]["tables"] == [ORDERS]
    assert value["Again"] == {"$ref": 1}


@pytest.mark.parametrize("cut", ["DataTable_0.RowStates", "DataTable_0.Records", "DataSet.Tables_0"])
def test_members_that_are_missing(cut):
    body = binary_form(stream(*described()), *data()).replace(cut.encode(), cut.upper().encode())
    content = read(body)
    assert content.value["$type"] == f"System.Data.DataSet, {DATA}"
    assert content.problems[0].error.startswith("no tables: ")


def test_the_stream_of_a_table_that_breaks_off():
    inner = stream(*described())
    content = read(binary_form(inner[:-30], *data()))
    assert content.problems[0].path.startswith("DataSet.Tables_0.")
    assert content.value["tables"][0]["rows"] == ORDERS["rows"]


def test_tables_are_within_the_limits():
    content = read(binary_form(stream(*described()), *data()), Limits(items=20))
    assert "more than 20 items" in content.problems[-1].error
    assert content.value["$type"].startswith("System.Data.DataSet")


def test_rows_of_many_unknown_columns_are_within_the_limits():
    rows = "".join(f"<T><C{number}>x</C{number}></T>" for number in range(3000))
    content = read(xml_form(diffgram=f"<d><Shop>{rows}</Shop></d>"))
    assert "more memory than the limit" in content.problems[-1].error
