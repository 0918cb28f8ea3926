"""SRMP messages as JSON, and the commands that read and write it: contract section 1."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from msmqwire.cli import build, parse
from msmqwire.errors import InvalidValue
from msmqwire.srmp.envelope import parse_envelope
from msmqwire.srmp.fields import Field
from msmqwire.srmp.http_message import HttpMessage
from msmqwire.srmp.message import SrmpMessage, parse_message
from msmqwire.srmp.message_json import from_json, to_json
from tests.support.paths import ROOT
from tests.support.patience import limit

VECTORS = {path.stem: path.read_bytes() for path in sorted((ROOT / "tests/vectors/srmp").glob("*.http"))}
DELIMITER = b"--MSMQ - SOAP boundary, 292"


def message(name: str = "4.5") -> SrmpMessage:
    return parse_message(VECTORS[name])


def forms() -> dict[str, bytes]:
    entity = message().content.to_bytes()
    broken = entity.replace(DELIMITER, b"\r\n" + DELIMITER)[:-2]
    chunked = (*message().fields[:2], Field("Transfer-Encoding", "chunked"))
    return {
        **VECTORS,
        "line breaks": HttpMessage(
            message().start, (message().fields[1], Field("content-length", str(len(broken)))), broken
        ).to_bytes(),
        "folded": VECTORS["4.5"].replace(b"; type=", b";\r\n\ttype="),
        "chunks": HttpMessage(message().start, chunked).to_bytes()
        + b"42b;x\r\n"
        + entity
        + b"\r\n0\r\nA:\r\n\r\n",
        "envelope": message("4.1").envelope_bytes,
        "error page": b"HTTP/1.1 500 \r\n\r\n<html>\xff",
    }


@pytest.mark.parametrize("name", forms())
def test_json_gives_back_the_bytes(name):
    data = forms()[name]
    out, err, built = io.StringIO(), io.StringIO(), io.BytesIO()
    assert parse.run(data, out, err, kind="srmp") == 0
    assert out.getvalue().count("\n") == 1
    packet = json.loads(out.getvalue())
    assert (set(packet), packet["packet"], packet["size"]) == (
        {"packet", "size", "fields"},
        "SrmpMessage",
        len(data),
    )
    assert build.run(out.getvalue().encode(), built, err) == 0
    assert (built.getvalue(), err.getvalue()) == (data, "")
    automatic = io.StringIO()
    assert parse.run(data, automatic, err) == 0
    assert automatic.getvalue() == out.getvalue()


def test_the_commands_in_a_pipe():
    commands = [["parse", "--protocol", "srmp"], ["build"]]
    data = VECTORS["4.5"]
    for arguments in commands:
        run = subprocess.run([sys.executable, "-m", "msmqwire", *arguments], input=data, capture_output=True,
                             cwd=ROOT, timeout=limit(60), check=True)  # fmt: skip
        data = run.stdout
    assert data == VECTORS["4.5"]


def test_the_command_tells_where_a_message_is_wrong():
    out, err = io.StringIO(), io.StringIO()
    assert parse.run(VECTORS["4.5"][:-1], out, err, kind="srmp") == 65
    assert out.getvalue() == ""
    assert json.loads(err.getvalue())["offset"] == len(VECTORS["4.5"]) - 1


def test_a_changed_json_object():
    packet = to_json(message("4.2"))
    fields, parts = packet["fields"], packet["fields"]["Multipart"]["Parts"]
    assert "EnvelopeBytes" in parts[0]  # the blank that 4.2 has more
    parts[0]["Envelope"]["Header"]["path"]["action"] = "MSMQ:other"
    parts[1]["Content"] = "0001"
    for item in (fields, *parts):
        for field in item["HeaderFields"]:
            if field["Name"] == "Content-Length":
                del field["Value"]
    changed = from_json(packet)
    assert parse_message(changed.to_bytes()) == changed
    assert changed.envelope == parse_envelope(
        message("4.2").envelope_bytes.replace(b"MSMQ:<", b"MSMQ:other<")
    )
    assert changed.body == b"\0\1"
    assert changed.departures == []


def test_a_wrong_length_is_built_as_it_is_given():
    packet = to_json(message())
    packet["fields"]["HeaderFields"][2]["Value"] = "7"
    assert from_json(packet).to_bytes() == VECTORS["4.5"].replace(
        b"Content-Length: 1067", b"Content-Length: 7"
    )


@pytest.mark.parametrize(
    "change, path",
    [
        (lambda p: p.pop("fields"), "fields"),
        (lambda p: p["fields"].update(StatusLine={"Status": 200}), "StatusLine"),
        (lambda p: p["fields"].update(RequestLine=3), "RequestLine"),
        (lambda p: p["fields"]["RequestLine"].pop("Target"), "RequestLine.Target"),
        (lambda p: p["fields"]["HeaderFields"].append({"Name": "A"}), "HeaderFields[5].Value"),
        (lambda p: p["fields"]["HeaderFields"].append({"Name": "A", "Value": "b", "Raw": "x"}),
         "HeaderFields[5].Raw"),
        (lambda p: p["fields"]["HeaderFields"].append(1), "HeaderFields[5]"),
        (lambda p: p["fields"].update(HeaderFields={}), "HeaderFields"),
        (lambda p: p["fields"].update(Chunking={"Lines": [1]}), "Chunking.Lines"),
        (lambda p: p["fields"]["Multipart"].update(Boundary=None), "Multipart.Boundary"),
        (lambda p: p["fields"]["Multipart"].update(Boundary="a\r\nb"), "Multipart.Boundary"),
        (lambda p: p["fields"]["Multipart"].update(FinalLineBreak=1), "Multipart.FinalLineBreak"),
        (lambda p: p["fields"]["Multipart"]["Parts"][1].pop("Content"), "Multipart.Parts[1].Content"),
        (lambda p: p["fields"]["Multipart"]["Parts"][0].update(Envelope=[]), "Envelope"),
        (lambda p: p["fields"].pop("Multipart"), "Envelope"),
    ],
)  # fmt: skip
def test_json_that_is_refused(change, path):
    packet = to_json(message())
    change(packet)
    with pytest.raises(InvalidValue) as caught:
        from_json(packet)
    assert caught.value.path == path


@pytest.mark.parametrize("status", [True, 99, 600, 10**5000, "200", None], ids=range(6))
def test_statuses_that_are_refused(status):
    with pytest.raises(InvalidValue):
        from_json({"packet": "SrmpMessage", "fields": {"StatusLine": {"Status": status}, "Content": ""}})
