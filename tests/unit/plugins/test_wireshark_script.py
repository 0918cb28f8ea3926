"""The script for Wireshark: a field for every field of the schemas, the documented rules, bounded loops."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from msmqwire.analysis.lint import checks
from msmqwire.cli import app
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    FINAL_ACK,
    ORDER_ACK,
    SESSION_ACK,
    USER_MESSAGE,
)
from msmqwire.ping import PING
from msmqwire.plugins.wireshark import dissector, filter_name
from msmqwire.plugins.wireshark.findings import Findings
from msmqwire.plugins.wireshark.value_slots import ValueSlots
from msmqwire.schema import Flags, Header
from msmqwire.schema.nodes import Close, View, inner_headers
from tests.support.paths import ROOT

PACKETS = (USER_MESSAGE, ORDER_ACK, FINAL_ACK, SESSION_ACK, ESTABLISH_CONNECTION, CONNECTION_PARAMETERS)
SCRIPT = dissector()


def filters(header: Header, path: str) -> Iterator[str]:
    """The filters of all fields and bits of a structure."""
    for part in header.parts:
        if isinstance(part, Close):
            continue
        inner = part.name if isinstance(part, View) or not path else f"{path}.{part.name}"
        yield filter_name(inner)
        if isinstance(part, Flags):
            yield from (filter_name(f"{inner}.{bits.name}") for bits in part.parts)
        for structure in inner_headers(part):
            yield from filters(structure, inner)


def declared() -> dict[str, str]:
    """The type of each field that the script registers, by its filter."""
    return {name: kind for kind, name in re.findall(r'ProtoField\.(\w+)\("(msmq\.[^"]+)"', SCRIPT)}


@pytest.mark.parametrize("header", [*PACKETS, PING], ids=lambda header: header.name)
def test_every_field_and_bit_is_registered(header):
    path = "Ping" if header is PING else ""
    assert not set(filters(header, path)) - declared().keys()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("msmq.user.messageid", "uint32"),
        ("msmq.base.flags.pr", "uint16"),
        ("msmq.base.flags.in", "bool"),
        ("msmq.user.senttime", "absolute_time"),
        ("msmq.user.sourcequeuemanager", "guid"),
        ("msmq.messageproperties.label", "string"),
        ("msmq.messageproperties.label.utf16le", "bytes"),
        ("msmq.ping.cookie", "uint32"),
        ("msmq.link.acknowledged_in", "framenum"),
    ],
)
def test_fields_have_the_type_of_their_node(name, kind):
    kinds = declared()
    if name.startswith("msmq.link."):
        assert f'{{"{name.rpartition(".")[2]}", ' in SCRIPT
        assert f'ProtoField.{kind}("msmq.link." .. name' in SCRIPT
    else:
        assert kinds[name] == kind


def test_masks_and_names_of_values():
    assert '"msmq.user.flags.dq", "DQ", base.DEC, {[0] = "none", [3] = "PrivateQueueFormatNameId"' in SCRIPT
    assert re.search(r'"msmq\.user\.flags\.dq".*0x1c00, ', SCRIPT)
    assert re.search(
        r'"msmq\.messageproperties\.messageclass".*\[32769\] = "MQMSG_CLASS_NACK_DELETED"', SCRIPT
    )


def test_the_documentation_lists_rules_missing_in_the_script():
    text = (ROOT / "docs" / "wireshark.md").read_text(encoding="utf-8")
    listed = text.partition("## Expert information")[2].partition("## Statistics")[0]
    missing = set(Findings(ValueSlots()).untranslated)
    assert set(re.findall(r"`((?:MQ\w\w|ATTACK)-[\w.-]+)`", listed)) == missing
    judged = {check.id for check in checks() if check.judge is not None and check.kinds & {"UserMessage"}}
    assert len(judged - missing) > 80


def test_the_command_writes_the_script():
    result = CliRunner().invoke(app, ["export", "wireshark"])
    assert (result.exit_code, result.output) == (0, SCRIPT)


def test_it_keeps_to_what_all_versions_of_lua_have():
    """Lua 5.2 to 5.4: nothing that came or went between them."""
    assert not re.search(r"\b(bit32|setfenv|getfenv|loadstring|table\.getn|math\.pow|goto)\b", SCRIPT)
    assert not re.search(r"[^-]//|<<|>>", re.sub(r'"[^"]*"|--.*', "", SCRIPT))
    assert "while true" not in SCRIPT
    assert not re.search(r"@[A-Z]+[:@]", SCRIPT)
