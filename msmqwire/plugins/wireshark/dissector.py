"""Assembles the dissector: the generated fields and readers, and the parts in ``lua/`` around them.

In those parts ``@NAME@`` is a constant of the specification or a text that protocols have registered,
``@V:path@`` the value of a field kept during the reading of a packet (``N``, ``O`` and ``X`` as in `kept`),
and ``@S:path@`` the reader of a structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pkgutil import resolve_name
from typing import Final

from msmqwire.analysis.protocols import protocols
from msmqwire.headers import EXTENSION_HEADER, FINAL_ACK_BODY, ORDER_ACK_BODY, base, internal
from msmqwire.headers import acknowledgements as acks
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.names.header_names import AT_DESTINATION, DIRECT, PUBLIC
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    FINAL_ACK,
    ORDER_ACK,
    SESSION_ACK,
    USER_MESSAGE,
)
from msmqwire.ping import PING, PING_PORT, PING_SIGNATURE, PING_SIZE
from msmqwire.plugins.wireshark.fields import Fields, quoted, table
from msmqwire.plugins.wireshark.findings import Findings, blamed_sizes, blamed_values
from msmqwire.plugins.wireshark.reader import Readers
from msmqwire.plugins.wireshark.value_slots import Place, ValueSlots, bits_of
from msmqwire.schema import field_offset
from msmqwire.schema.nodes import inner_headers
from msmqwire.schema.sizes import least_size
from msmqwire.schema.texts import encode_text

PORT: Final = 1801
_INTERNAL: Final = {
    internal.PT_SESSION_ACK: SESSION_ACK,
    internal.PT_ESTABLISH_CONNECTION: ESTABLISH_CONNECTION,
    internal.PT_CONNECTION_PARAMETERS: CONNECTION_PARAMETERS,
}
_ACKNOWLEDGEMENTS: Final = (ORDER_ACK, FINAL_ACK)
_PLACES: Final = (
    Place(ORDER_ACK_BODY, ORDER_ACK_BODY.name),
    Place(FINAL_ACK_BODY, FINAL_ACK_BODY.name),
    Place(EXTENSION_HEADER, EXTENSION_HEADER.name),
    Place(PING, PING.name),
)
"""The structures read besides the packets of a session."""
_BEFORE: Final = ("prelude", "packets", "findings", "links", "statistics")
_AFTER: Final = ("body", "stream", "ping")
"""The parts around those of protocols that register theirs."""
_USED: Final = re.compile(r"@([VNOX]):([\w.\[\]]+)@")
_MARK: Final = re.compile(r"@(?:([VNOXS]):([\w.\[\]]+)|([A-Z_]+))@")


def bytes_of(data: bytes) -> str:
    """Return bytes as a string of Lua."""
    return '"' + "".join(f"\\{byte:03d}" for byte in data) + '"'


def dissector() -> str:
    """Return the script: a dissector for Wireshark 4.0 and later."""
    joined = [part for protocol in protocols() if (part := protocol.plugins.lua) is not None]
    parts = [_read(name) for name in (*_BEFORE, *(part.functions for part in joined), *_AFTER)]
    kept = ValueSlots()
    for header in (USER_MESSAGE, *_INTERNAL.values()):
        kept.references(Place(header, ""))
    for place in _PLACES:
        kept.references(place)
    for text in parts:
        for _, path in _USED.findall(text):
            kept.keep(_field(path))
    findings = Findings(kept)
    fields = Fields()
    readers = Readers(fields, kept)
    functions = {place.path: readers.of(place) for place in _PLACES}
    constants = _constants(readers, kept) | {
        "DECLARATIONS": "".join(_read(part.declarations) for part in joined),
        "IN_MESSAGES": "".join(f"    {part.in_message}\n" for part in joined if part.in_message),
        "RPC_INTERFACES": "".join(_interfaces()),
        **{name: str(number) for part in joined for name, number in part.constants.items()},
    }
    prelude, *rest = (_filled(text, kept, functions, constants) for text in parts)
    declared = [*findings.declarations(), *fields.declarations(), "do", "  local all = all_fields"]
    declared += ["  for _, field in ipairs(F) do all[#all + 1] = field end"]
    declared += ["  for _, field in pairs(extra) do all[#all + 1] = field end"]
    declared += ["  msmq.fields, msmq.experts = all, experts", "end"]
    generated = [f"C[{number}] = {fields}" for number, fields in enumerate(readers.runs, 1)]
    generated += [f"S[{number}] = {source}" for number, source in enumerate(readers.sources, 1)]
    packets, *rest = rest
    return "\n".join([_HEAD, prelude, *declared, "", *generated, "", packets, *findings.functions, "", *rest])


def _read(name: str) -> str:
    return files(__package__).joinpath("lua", f"{name}.lua").read_text("utf-8")


_HEAD: Final = """\
-- Dissector of the Microsoft Message Queuing protocols, made by `msmqwire export wireshark`.
"""


def _field(path: str) -> str:
    """Return the path of a field without the name of bits."""
    above = path.rpartition(".")[0]
    return above if above.endswith(".Flags") else path


def _filled(text: str, kept: ValueSlots, functions: Mapping[str, str], constants: Mapping[str, str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        letter, path, name = match.groups()
        if name:
            return constants[name]
        if letter == "S":
            return functions[path]
        return _expression(letter, path, kept)

    return _MARK.sub(replacement, text)


def _expression(letter: str, path: str, kept: ValueSlots) -> str:
    field = _field(path)
    if field != path:
        head, _, rest = path.partition(".")
        header = inner_headers(USER_MESSAGE.part(head))[0]
        return bits_of(kept.value(field), header.bits(rest))
    return {"V": kept.value, "N": kept.length, "O": kept.offset, "X": kept.odd}[letter](path)


def _lists(ids: Mapping[str, str]) -> str:
    return "\n".join(f"  [{quoted(path)}] = {{{quoted(id)}}}," for path, id in ids.items())


def _interfaces() -> Iterator[str]:
    """Yield the rows of the interfaces of DCE/RPC that protocols have registered."""
    for protocol in protocols():
        if protocol.traffic.interface:
            interface = resolve_name(protocol.traffic.interface).interface
            key = interface.identifier.uuid.bytes_le + interface.identifier.major.to_bytes(2, "little")
            names = table({opnum: procedure.name for opnum, procedure in interface.procedures.items()})
            yield f"  [{bytes_of(key)}] = {{name = {quoted(interface.name)}, procedures = {names}}},\n"


def _constants(readers: Readers, kept: ValueSlots) -> dict[str, str]:
    kinds = [
        f"  [{number}] = {{{quoted(schema.name)}, {readers.of(Place(schema, ''))}}},"
        for number, schema in _INTERNAL.items()
    ]
    user = readers.of(Place(USER_MESSAGE, ""))
    tail = f"\\private$\\{acks.ORDER_QUEUE_NAME}"
    return {
        "ACK_BODY_SIZE": str(acks.ACK_BODY_SIZE),
        "ACK_LABEL": bytes_of(encode_text(acks.ACK_LABEL)),
        "AT_DESTINATION": str(AT_DESTINATION),
        "BLAMED_SIZES": _lists(blamed_sizes()),
        "BLAMED_VALUES": _lists(blamed_values()),
        "BASE_HEADER_SIZE": str(base.BASE_HEADER_SIZE),
        "DIRECT": str(DIRECT),
        "FINAL_CLASS": str(FINAL_ACK.defaults["MessagePropertiesHeader.MessageClass"]),
        "FLAGS_OFFSET": str(base.FLAGS_OFFSET),
        "INTERNAL": "\n".join(kinds),
        "INTERNAL_BIT": str(base.INTERNAL_BIT),
        "INTERNAL_SIZE": str(base.BASE_HEADER_SIZE + internal.INTERNAL_HEADER_SIZE),
        "KEPT": str(len(kept)),
        "LEAST": str(min(least_size(schema) for schema in (USER_MESSAGE, *_INTERNAL.values()))),
        "FORGOTTEN": "\n".join(kept.forgotten((USER_MESSAGE, *_ACKNOWLEDGEMENTS))),
        "ORDER_CLASS": str(ORDER_ACK.defaults["MessagePropertiesHeader.MessageClass"]),
        "ORDER_QUEUE_IDENTIFIER": str(acks.ORDER_QUEUE_IDENTIFIER),
        "ORDER_QUEUE_TAIL": bytes_of(encode_text(tail)),
        "PACKET_SIZE_MAX": str(base.PACKET_SIZE_MAX),
        "PACKET_SIZE_MIN": str(base.PACKET_SIZE_MIN),
        "PACKET_SIZE_OFFSET": str(base.PACKET_SIZE_OFFSET),
        "PING_PORT": str(PING_PORT),
        "PING_SIGNATURE_BYTES": bytes_of(PING_SIGNATURE.to_bytes(2, "little")),
        "PING_SIGNATURE_OFFSET": str(field_offset(PING, "Signature")),
        "PING_SIZE": str(PING_SIZE),
        "PORT": str(PORT),
        "PUBLIC": str(PUBLIC),
        "PREFIX_SIZE": str(base.PREFIX_SIZE),
        "PT_OFFSET": str(internal.PT_OFFSET),
        "PT_SESSION_ACK": str(internal.PT_SESSION_ACK),
        "PT_VALUES": str(internal.PT_MASK + 1),
        "SESSION_HEADER_BIT": str(base.SESSION_HEADER_BIT),
        "SESSION_HEADER_SIZE": str(SESSION_HEADER_SIZE),
        "SIGNATURE_BYTES": bytes_of(base.SIGNATURE_BYTES),
        "SIGNATURE_END": str(base.SIGNATURE_END),
        "SIGNATURE_OFFSET": str(base.SIGNATURE_OFFSET),
        "USER_MESSAGE": user,
        "VERSION": str(base.VERSION),
    }
