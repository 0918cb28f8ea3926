"""tshark finds the same requests, responses and PGM packets in captures of SRMP."""

from __future__ import annotations

from pathlib import Path

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.pgm import PgmPacket
from msmqwire.srmp.fields import CONTENT_LENGTH, value_of
from msmqwire.srmp.http_message import RequestLine
from msmqwire.srmp.message import SrmpMessage
from tests.support import captures as c
from tests.support.capture import srmp_captures as s
from tests.support.capture.tshark import tshark

HTTP = ("pipelined", "chunked", "malformed", "other port")
PGM = ("pgm over udp", "pgm over ip")


def written(tmp_path: Path, names: tuple[str, ...]) -> Path:
    path = tmp_path / "srmp.pcap"
    path.write_bytes(c.pcap_bytes(c.merged(*(s.samples()[name] for name in names))))
    return path


def columns(path: Path, show: str, *fields: str, options: tuple[str, ...] = ()) -> list[list[str]]:
    """The values of these fields in the frames that a filter shows, several of a frame by commas."""
    arguments = [part for field in fields for part in ("-e", field)]
    # A body is not looked into: what it is, is not the question here.
    output = tshark(
        path, "-o", "tcp.desegment_tcp_streams:TRUE", "-o", "http.decompress_body:FALSE", *options,
        "-Y", show, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|", *arguments,
    )  # fmt: skip
    return [line.split("\t") for line in output.splitlines()]


def of_all(rows: list[list[str]], number: int) -> list[str]:
    return [value for row in rows for value in row[number].split("|") if value]


def heads(items: list[Item]) -> tuple[list[str], list[str], list[str]]:
    """The targets, the statuses and the content lengths of all messages, malformed ones too."""
    targets, statuses, lengths = [], [], []
    for item in items:
        if isinstance(item.packet, SrmpMessage):
            start, fields = item.packet.start, item.packet.fields
            if isinstance(start, RequestLine):
                targets.append(start.target)
            elif start is not None:
                statuses.append(str(start.status))
            lengths.append(value_of(fields, CONTENT_LENGTH) or "")
        else:
            for line in item.raw.partition(b"\r\n\r\n")[0].split(b"\r\n"):
                name, _, value = line.decode().partition(" ")
                targets += [value.split()[0]] if name == "POST" else []
                lengths += [value] if name.lower() == "content-length:" else []
    return targets, statuses, [length for length in lengths if length]


def test_requests_responses_and_lengths(tmp_path):
    path = written(tmp_path, HTTP)
    items = [item for item in dissect(path) if item.kind != "Skipped"]
    targets, statuses, lengths = map(sorted, heads(items))
    queues = columns(path, "http.request.method == POST", "http.request.uri", "http.content_length_header")
    assert sorted(of_all(queues, 0)) == targets
    is_answer = 'http.response && !(http.content_type == "text/html")'
    answers = columns(path, is_answer, "http.response.code", "http.content_length_header")
    assert sorted(of_all(answers, 0)) == statuses
    assert sorted(of_all(queues, 1) + of_all(answers, 1)) == lengths
    assert len(targets) == len(statuses) == 8


def test_pgm_packets(tmp_path):
    path = written(tmp_path, PGM)
    packets = [item.packet for item in dissect(path) if isinstance(item.packet, PgmPacket)]
    rows = columns(
        path, "pgm", "pgm.hdr.type", "pgm.hdr.tsdulen", "pgm.hdr.sport",
        options=("-d", "udp.port==3055,pgm"),
    )  # fmt: skip
    assert sorted([int(value, 0) for value in row] for row in rows) == sorted(
        [packet.Type, packet.TSDULength, packet.SourcePort] for packet in packets
    )
    assert len(packets) == 24
