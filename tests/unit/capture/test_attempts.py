"""Attempts to connect to ports of MSMQ that failed: the same in both readers, `--stats`, reports and fate."""

from __future__ import annotations

import io
import json
import random
import struct
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.capture import attempts as module
from msmqwire.capture.attempts import FailedAttempts
from msmqwire.tables import decoder, record_batches
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.captures import ACK, CLIENT, CLIENT_6, FIN, RST, SERVER, SERVER_6, SYN
from tests.support.paths import EXAMPLES, VECTORS
from tests.support.running import in_process as command

CASES = VECTORS / "cases" / "14_refused_connections"
PORT = 1801
ISN = 1000


def segment(
    flags: int,
    seq: int = 0,
    ack: int = 0,
    *,
    client: tuple[str, int] = (CLIENT, 50_001),
    server: tuple[str, int] = (SERVER, PORT),
    back: bool = False,
    payload: bytes = b"",
) -> bytes:
    """An IP packet with a TCP segment of a client, or of its server."""
    (src, src_port), (dst, dst_port) = (server, client) if back else (client, server)
    inner = c.tcp(payload, src, src_port, dst, dst_port, seq=seq, ack=ack, flags=flags)
    return c.ip(inner, src, dst, protocol=6)


def syn(seq: int = ISN, **ends: Any) -> bytes:
    return segment(SYN, seq, **ends)


def refusal(seq: int = ISN, **ends: Any) -> bytes:
    return segment(RST | ACK, 0, seq + 1, back=True, **ends)


def answer(seq: int = ISN, **ends: Any) -> bytes:
    return segment(SYN | ACK, 5000, seq + 1, back=True, **ends)


def unreachable(packet: bytes, *, router: str = "10.0.0.254", kind: int | None = None) -> bytes:
    """A Destination unreachable that quotes the header of a packet and 8 bytes of its payload."""
    is_4 = packet[0] >> 4 == 4
    head = packet[:28] if is_4 else packet[:48]
    to = CLIENT if is_4 else CLIENT_6
    message = struct.pack("!BBHI", kind if kind is not None else (3 if is_4 else 1), 1, 0, 0) + head
    return c.ip(message, router if is_4 else "fd00::fe", to, protocol=1 if is_4 else 58)


def capture(packets: list[bytes], **options: Any) -> bytes:
    return c.pcap_bytes([c.ethernet(packet) for packet in packets], **options)


def failed(*files: bytes, ports: tuple[int, ...] = (), **arguments: Any) -> tuple[list[FailedAttempts], int]:
    """Return the failed attempts, which both readers find alike."""

    def dissection() -> Any:
        found = dissect([io.BytesIO(data) for data in files], lint=False, ports=ports, **arguments)
        found.follow_attempts()
        return found

    by_items = dissection()
    list(by_items)
    by_columns = dissection()
    for _ in record_batches(by_columns, columns=["kind"]):
        pass
    assert by_columns.attempts.failed() == by_items.attempts.failed()
    assert by_columns.counters() == by_items.counters()
    result: tuple[list[FailedAttempts], int] = by_items.attempts.failed()
    return result


def of(*packets: bytes, ports: tuple[int, ...] = ()) -> list[tuple[int, int, int, int]]:
    """Return the counts of each pair."""
    return [one[3:] for one in failed(capture(list(packets)), ports=ports)[0]]


@pytest.mark.parametrize(
    ("name", "refused", "words"),
    [
        ("stuck_rst", 3, "all refused: no queue manager listens there"),
        ("stuck_syn", 0, "none answered: the host is down, or a firewall drops them"),
    ],
)
def test_the_captured_cases(tmp_path: Path, name: str, refused: int, words: str) -> None:
    path = CASES / f"{name}.pcap"
    expected = [
        {
            "src": CLIENT, "dst": SERVER, "dst_port": PORT,
            "attempts": 3, "refused": refused, "unanswered": 3 - refused, "unreachable": 0,
        }
    ]  # fmt: skip
    line = f"{CLIENT} > {SERVER}:{PORT}: 3 attempts to connect, {words}"
    failed(path.read_bytes())
    counts = json.loads(command("dissect", str(path), "--stats", "--json").stdout)
    assert (counts["attempts"], counts["left_out"]["attempts"]) == (expected, 0)
    text = command("dissect", str(path), "--stats").stdout.decode()
    assert text.endswith(f"\nFailed attempts to connect\n  {line}\n")
    assert command("fate", str(path)).stdout.decode() == f"{line}\n"
    assert command("fate", str(path), "--summary").stdout.decode() == f"{line}\n"
    assert command("fate", str(path), "--json").stdout == b""
    page = tmp_path / "report.html"
    assert command("report", str(path), "-o", str(page)).returncode == 0
    report = page.read_text().replace('": ', '":').replace(', "', ',"')
    assert json.dumps(expected, separators=(",", ":")) in report


def test_the_line_is_last_behind_the_messages(tmp_path: Path) -> None:
    path = tmp_path / "both.pcap"
    path.write_bytes((EXAMPLES / "session.pcap").read_bytes())
    alone = command("fate", str(path)).stdout.decode()
    other = CASES / "stuck_syn.pcap"
    both = command("fate", str(path), str(other)).stdout.decode()
    assert both.startswith(f"{alone}\n{CLIENT} > {SERVER}:1801: 3 attempts to connect, none answered: ")
    assert both.count("\n") == alone.count("\n") + 2


def test_each_end_of_an_attempt() -> None:
    assert of(syn()) == [(1, 0, 1, 0)]
    assert of(syn(), refusal()) == [(1, 1, 0, 0)]
    assert of(syn(), unreachable(syn())) == [(1, 0, 0, 1)]
    assert of(syn(), syn(), refusal(), syn(), unreachable(syn()), syn()) == [(4, 1, 2, 1)]
    assert of(syn(), segment(RST, 0, back=True)) == [(1, 1, 0, 0)]  # by a firewall, without ACK
    assert of(syn(), refusal(), syn(), refusal(), syn(), refusal()) == [(3, 3, 0, 0)]  # as Windows does


def test_what_answers_nothing_counts_for_nothing() -> None:
    assert of(syn(), refusal(), refusal()) == [(1, 1, 0, 0)]
    assert of(syn(), refusal(ISN + 100_000)) == [(1, 0, 1, 0)]
    assert of(syn(), unreachable(syn(ISN + 1))) == [(1, 0, 1, 0)]
    assert of(syn(), unreachable(syn(), kind=11)) == [(1, 0, 1, 0)]  # Time exceeded
    assert of(syn(), refusal(), unreachable(syn())) == [(1, 1, 0, 0)]
    assert of(syn(), segment(RST, ISN + 1)) == [(1, 0, 1, 0)]  # the client has given up
    assert of(refusal()) == of(unreachable(syn())) == of(answer()) == of(segment(RST, 5)) == []


@pytest.mark.parametrize(
    "packets",
    [
        [syn(), answer()],
        [syn(), syn(), answer()],
        [syn(), refusal(), syn(), answer()],
        [syn(), answer(), syn()],  # a copy that comes late
        [answer(), syn()],  # merged taps
        [syn(), segment(ACK, ISN + 1, 5001)],  # one direction only
        [syn(), segment(ACK | FIN, ISN + 1, 5001)],
        [syn(), segment(ACK, ISN + 1, 5001, payload=b"x")],
        [syn(), segment(ACK, 5001, ISN + 1, back=True, payload=b"x")],
        [syn(), answer(), segment(RST | ACK, ISN + 1, 5001)],
        [syn(), answer(), refusal()],
        [answer(), segment(ACK, ISN + 1, 5001), syn()],
    ],
)
def test_an_established_connection_has_no_failed_attempt(packets: list[bytes]) -> None:
    assert of(*packets) == []


def test_a_port_used_again_is_another_connection() -> None:
    assert of(syn(), answer(), syn(ISN + 70_000)) == [(1, 0, 1, 0)]
    assert of(syn(), syn(ISN + 70_000), answer(ISN + 70_000)) == [(1, 0, 1, 0)]
    assert of(syn(), refusal(), syn(7), refusal(7)) == [(2, 2, 0, 0)]


def test_pairs_the_most_attempts_first() -> None:
    other = (SERVER, 1802)
    packets = [syn(client=("10.0.0.9", 7))]
    packets += [syn(client=(CLIENT, port)) for port in (1, 2)]
    packets += [syn(server=("10.0.0.3", PORT)), syn(server=other)]
    assert failed(capture(packets))[0] == [
        FailedAttempts(CLIENT, SERVER, PORT, 2, 0, 2, 0),
        FailedAttempts(CLIENT, "10.0.0.3", PORT, 1, 0, 1, 0),
        FailedAttempts("10.0.0.9", SERVER, PORT, 1, 0, 1, 0),
    ]
    assert (CLIENT, SERVER, 1802) in [one[:3] for one in failed(capture(packets), ports=(1802,))[0]]


def test_ipv6_tags_and_other_frames() -> None:
    ends: dict[str, Any] = {"client": (CLIENT_6, 9), "server": (SERVER_6, PORT)}
    packets = [syn(**ends), refusal(**ends), syn(**ends), unreachable(syn(**ends)), syn(**ends)]
    assert of(*packets) == [(3, 1, 1, 1)]
    line = str(failed(capture(packets))[0][0])
    assert line.startswith(f"{CLIENT_6} > [{SERVER_6}]:1801: 3 attempts to connect: 1 refused (no queue")
    for wrap in (lambda p: c.ethernet(p, vlan=[7]), lambda p: c.ethernet(p, vlan=[(0x88A8, 3), 7])):
        tagged = [wrap(packet) for packet in [*packets, syn(), refusal(), syn(), unreachable(syn())]]
        assert [one[3:] for one in failed(c.pcap_bytes(tagged))[0]] == [(3, 1, 1, 1), (2, 1, 0, 1)]
    for link, wrap in ((number, link) for number, link in c.LINKS.items() if number != 228):
        data = c.pcap_bytes([wrap(packet) for packet in packets], linktype=link)
        assert [one[3:] for one in failed(data)[0]] == [(3, 1, 1, 1)]


def test_fragments() -> None:
    """A SYN with data in fragments is one, an ICMP message in fragments is none."""
    pieces = c.fragments_4(syn(), 8)
    assert of(*pieces) == [(1, 0, 1, 0)]
    assert of(syn(), *c.fragments_4(unreachable(syn()), 16)) == [(1, 0, 1, 0)]


def test_a_quotation_that_is_cut_at_any_byte() -> None:
    for packet in (unreachable(syn()), unreachable(syn(client=(CLIENT_6, 9), server=(SERVER_6, PORT)))):
        ends = {} if packet[0] >> 4 == 4 else {"client": (CLIENT_6, 9), "server": (SERVER_6, PORT)}
        frames = [c.ethernet(syn(**ends), padded=False), c.ethernet(packet, padded=False)]
        for size in range(14, len(frames[1])):
            data = c.pcap_bytes([frames[0], frames[1][:size]])
            assert failed(data)[0][0].unanswered == 1


def test_it_goes_on_from_file_to_file() -> None:
    assert failed(capture([syn()]), capture([answer()])) == ([], 0)
    assert [one[3:] for one in failed(capture([syn()]), capture([refusal()]))[0]] == [(1, 1, 0, 0)]
    assert failed(capture([syn()]), capture([refusal()]), warm_up=1) == ([], 0)


def test_lines_for_people() -> None:
    def line(attempts: int, refused: int, unanswered: int, none: int) -> str:
        return str(FailedAttempts("a", "b", 1801, attempts, refused, unanswered, none)).partition(": ")[2]

    drops = "the host is down, or a firewall drops them"
    assert line(1, 1, 0, 0) == "1 attempt to connect, refused: no queue manager listens there"
    assert line(1, 0, 1, 0) == f"1 attempt to connect, not answered: {drops}"
    assert line(2, 0, 2, 0) == f"2 attempts to connect, none answered: {drops}"
    rejects = "no route leads there, or a firewall rejects them"
    assert line(2000, 0, 0, 2000) == f"2,000 attempts to connect, all unreachable: {rejects}"
    assert line(3, 1, 2, 0) == (
        f"3 attempts to connect: 1 refused (no queue manager listens there), 2 unanswered ({drops})"
    )


def test_memory_is_bounded_and_the_rest_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECTIONS_MAX", 16)
    monkeypatch.setattr(module, "PAIRS_MAX", 30)
    packets = [syn(client=(f"10.1.{number >> 8}.{number & 255}", number)) for number in range(1000)]
    data = capture([syn(), refusal(), *packets])
    pairs, left_out = failed(data)
    assert (len(pairs), left_out) == (30, 971)
    assert pairs[0] == FailedAttempts(CLIENT, SERVER, PORT, 1, 1, 0, 0)
    dissection = dissect(io.BytesIO(data), lint=False)
    dissection.follow_attempts()
    list(dissection)
    assert dissection.attempts is not None
    assert len(dissection.attempts._connections) == 16
    assert sum(dissection.attempts.watched) == len(dissection.attempts._open_at) == 16
    path = tmp_path / "flood.pcap"
    path.write_bytes(data)
    text = command("dissect", str(path), "--stats").stdout.decode()
    assert "  and 10 more: --json has all" in text
    assert text.endswith("There is no room for more attempts: 971 attempts left out\n")
    lines = command("fate", str(path)).stdout.decode().splitlines()
    assert len(lines) == 22
    assert lines[-2] == (
        "and 10 more clients and ports with failed attempts to connect: dissect --stats --json has all"
    )
    assert lines[-1] == "971 more attempts to connect, of too many clients and ports to list"


def test_nothing_is_kept_for_connections_that_were_established() -> None:
    dissection = dissect(EXAMPLES / "session.pcap", lint=False)
    dissection.follow_attempts()
    list(dissection)
    assert dissection.attempts is not None
    assert not any(dissection.attempts.watched)
    assert dissection.attempts.failed() == ([], 0)


def any_segment(rng: random.Random) -> bytes:
    """A segment of one of a few connections, with some sense or none."""
    client, server = (
        (CLIENT, rng.choice((1, 2, 1801))),
        (rng.choice((SERVER, "10.0.0.3")), rng.choice((PORT, 80))),
    )
    ends: dict[str, Any] = {"client": client, "server": server}
    seq = ISN + rng.choice((0, 0, 0, 1, 40_000))
    return rng.choice(
        (
            syn(seq, **ends),
            refusal(seq, **ends),
            answer(seq, **ends),
            segment(ACK, seq + 1, 5001, **ends),
            segment(ACK, seq + 1, 5001, payload=h.session_ack(), **ends),
            segment(ACK, 5001, seq + 1, back=True, payload=h.session_ack(), **ends),
            segment(FIN | ACK, seq + 1, 5001, **ends),
            segment(RST, seq + 1, **ends),
            unreachable(syn(seq, **ends)),
            segment(rng.randrange(256), seq, 5001, **ends),
        )
    )


@pytest.mark.parametrize("rows", [2, 1024])
def test_both_readers_agree_on_any_order(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(decoder, "HANDSHAKES", rows)
    for seed in range(60):
        rng = random.Random(seed)
        failed(capture([any_segment(rng) for _ in range(rng.randrange(1, 60))]))


def test_a_capture_in_three_files_has_the_figures_of_the_whole() -> None:
    packets = [syn(), syn(), refusal(), syn(7, client=(CLIENT, 3)), answer(7, client=(CLIENT, 3)), syn()]
    whole = failed(capture(packets))
    for one, other in combinations(range(len(packets) + 1), 2):
        parts = packets[:one], packets[one:other], packets[other:]
        assert failed(*(capture(part) for part in parts)) == whole
