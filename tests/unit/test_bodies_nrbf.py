"""Bodies of BinaryMessageFormatter: records of [MS-NRBF] read to plain data."""

from __future__ import annotations

from msmqwire.bodies import decode, nrbf
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.nrbf.gadgets import GADGETS, dangerous, type_names
from msmqwire.bodies.nrbf.records import Binary, Primitive
from tests.support.nrbf_streams import (
    NULL,
    SHOP,
    array,
    header,
    int32,
    klass,
    objects,
    order,
    primitives,
    stream,
    string,
)
from tests.support.paths import VECTORS

INT32 = Primitive.INT32


def read(body, limits=DEFAULT):
    return nrbf.read(body, Budget(limits, len(body)))


def value(*records, root=1):
    """The value of a stream without problems."""
    content = read(stream(*records, root=root))
    assert content.problems == ()
    return content.value


def problems(*records, root=1):
    content = read(stream(*records, root=root))
    return content.value, [(problem.path, problem.offset, problem.error) for problem in content.problems]


def vector(name):
    return bytes.fromhex((VECTORS / "bodies" / name).read_text())


ADDRESS = {
    "$type": "DOJRemotingMetadata.Address, DOJRemotingMetadata, Version=1.0.2622.31326, Culture=neutral, "
    "PublicKeyToken=null",
    "$id": 2,
    "Street": "One Microsoft Way",
    "City": "Redmond",
    "State": "WA",
    "Zip": "98054",
}


def test_the_printed_call():
    content = read(vector("nrbf_methodcall.hex"))
    assert content.problems == ()
    assert content.value == {
        "$call": "SendAddress",
        "type": "DOJRemotingMetadata.MyServer, DOJRemotingMetadata, Version=1.0.2622.31326, Culture=neutral, "
        "PublicKeyToken=null",
        "args": [ADDRESS],
        "context": None,
    }


def test_the_printed_return():
    content = read(vector("nrbf_methodreturn.hex"))
    assert content.problems == ()
    assert content.value == {"$return": "Address received"}


def test_an_order():
    content = decode(order(2), body_type=0x300)
    assert content.format == "nrbf"
    assert content.problems == ()
    items = content.value["Items"]
    assert content.value["$type"] == f"Shop.Order, {SHOP}"
    assert content.value["Status"] == {"$type": f"Shop.Status, {SHOP}", "$id": -6, "value__": 2}
    assert content.value["Created"] == {"$date": "2026-07-04T04:00:00.123456700", "$kind": "local"}
    assert content.value["Total"] == {"$decimal": "1299.50"}
    assert items["$type"] == f"System.Collections.Generic.List`1[[Shop.Item, {SHOP}]]"
    assert [(item["$id"], item["Article"]) for item in items["_items"]] == [
        (9, "A-1000 screws, box of 100"),
        (10, "A-1001 screws, box of 100"),
    ]


def test_a_text_and_a_primitive_value_are_their_own_line():
    assert read(stream(string(1, "order 7"))).text == "order 7"
    boxed = klass(1, "System.Int32", [("m_value", Binary.PRIMITIVE, INT32)]) + int32(5)
    assert read(stream(boxed)).text == "5"
    assert value(boxed) == {"$type": "System.Int32", "$id": 1, "m_value": 5}


def test_gadgets_are_found_wherever_a_stream_names_them():
    name = "System.Windows.Data.ObjectDataProvider"
    inner = stream(klass(1, name, []))
    delegate = [("type", Binary.STRING), ("assembly", Binary.STRING)]
    for body in (
        inner,
        stream(klass(1, "A", [("b", Binary.SYSTEM_CLASS, name)]), NULL),
        stream(array(1, 0, [0], Binary.SYSTEM_CLASS, name)),
        stream(klass(1, f"System.Collections.Generic.List`1[[{name}, PresentationFramework]]", [])),
        stream(klass(1, "System.UnitySerializationHolder", delegate), string(2, name), string(3, "x")),
        stream(objects(1, 1), string(2, f"{name}, PresentationFramework, Version=4.0.0.0")),
        stream(objects(1, 1), string(2, f'<a msdata:DataType="{name}, PresentationFramework"/>')),
        stream(primitives(1, Primitive.BYTE, list(inner))),
        stream(klass(1, name, []))[:-1] + b"\x30",
        header() + b"\x30" + name.encode(),
    ):
        assert dangerous(type_names(body)) == [(name, GADGETS[name])]


def test_ordinary_bodies_name_no_gadget():
    assert type_names(order()) == (
        "Shop.Order",
        "Shop.Status",
        f"System.Collections.Generic.List`1[[Shop.Item, {SHOP}]]",
        "Shop.Item[]",
        "Shop.Item",
    )
    assert dangerous(type_names(order())) == []
    assert type_names(b"") == type_names(b"text" * 10) == ()


def test_a_text_that_speaks_of_a_type_names_none():
    assert type_names(stream(string(1, "System.Diagnostics.Process has ended, sorry"))) == ()
