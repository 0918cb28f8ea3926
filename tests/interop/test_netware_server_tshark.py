"""What tshark makes of the replies of the server to all queue calls: nothing malformed, and our values.

tshark prints the queue ID and the job number of 32 bits in the other byte order: a display of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msmqwire.ncp.headers import NCP_PORT
from tests.support import captures as c
from tests.support.capture.tshark import tshark
from tests.support.netware.netware_running import unit
from tests.support.netware.netware_station import (
    MemoryServer,
    Office,
    Station,
    be16,
    be32,
    le32,
    new_job,
    old_job,
    six_bytes,
    text,
)

ANY, MS = be16(0xFFFF), 1_000_000
RESTART = 0x10


class Recorded(Station):
    """A station whose packets are in a capture."""

    def __init__(self, server: MemoryServer, conversations: list[c.TcpConversation]) -> None:
        number = len(conversations)
        self.conversation = c.TcpConversation(
            (c.CLIENT, 50_000 + number), (c.SERVER, NCP_PORT), start_ns=c.START_NS + number * 1000 * MS
        ).handshake()
        conversations.append(self.conversation)
        super().__init__(server)

    def send(self, packet: bytes, room: int = 0) -> bytes:
        reply = super().send(packet, room)
        self.conversation.send(unit(packet))
        self.conversation.send(b"tNcP" + be32(8 + len(reply)) + reply, by_client=False)
        return reply


def all_calls(office: Office) -> None:
    """Make each queue call at least once, with success."""
    alice, oscar, ps1, supervisor = office.alice, office.oscar, office.ps1, office.supervisor
    queue, status = be32(office.queue), bytes(range(64))
    second = supervisor.call(100, be16(3) + text("SECOND") + b"\0" + text("SYS:SYSTEM"))
    office.server.admit(int.from_bytes(second, "big"), "Q_OPERATORS", 4)
    old = alice.call(104, queue + old_job(type_=0x0102, flags=RESTART, description=b"memo"))
    alice.write(b"\0\0" + old[44:48], 0, b"hello")
    alice.call(105, queue + be16(1))
    for number in range(2, 9):
        alice.call(121, queue + new_job(type_=0x0102, flags=RESTART, description=b"memo"))
        alice.call(127, queue + le32(number))
    alice.call(106, queue + be16(8))
    alice.call(128, queue + le32(7))
    oscar.call(103, queue + b"\0")
    oscar.call(126, queue + le32(0))
    oscar.call(110, queue + be16(6) + b"\1")
    oscar.call(130, queue + le32(6, 6))
    oscar.call(136, queue + le32(6) + second)
    oscar.call(109, queue + old_job(number=5, type_=5))
    oscar.call(123, queue + new_job(number=4, type_=4))
    for subfunction, data in (
        (102, b""), (107, b""), (108, be16(1)), (120, be16(1)), (122, le32(1)), (125, b""), (129, le32(1)),
        (135, le32(1)), (137, le32(1, 1) + b"\4\0"),
    ):  # fmt: skip
        oscar.call(subfunction, queue + data)
    ps1.call(111, queue)
    ps1.call(119, queue + status)
    alice.call(118, queue + be32(office.ps1_id) + bytes((ps1.connection,)))
    alice.call(134, queue + be32(office.ps1_id) + le32(ps1.connection))
    ps1.call(113, queue + be16(0x0102))
    ps1.call(116, queue + be16(1))
    ps1.call(117)
    ps1.call(115, queue + be16(1))
    job = ps1.call(124, queue + be16(0x0102))
    assert ps1.read(six_bytes(job[62:66]), 0, 9)[2:] == b"hello"
    ps1.call(133, queue + le32(1))
    ps1.call(132, queue + le32(1))
    ps1.call(138, queue + le32(1, 1) + b"\4\0")
    ps1.call(131, queue + le32(4, 0))
    ps1.call(124, queue + be16(5))
    ps1.call(114, queue + be16(5) + be32(0))
    ps1.call(102, queue)
    ps1.call(112, queue)
    supervisor.call(101, second)


FIELDS = (
    "subfunc", "completion_code", "queue_id", "client_station", "client_station_long", "client_id_number",
    "job_number", "job_number_long", "job_type", "job_position", "job_position_word", "job_control_flags",
    "job_control_flags_word", "text_job_description", "server_station", "server_station_long",
    "server_id_number", "current_entries", "current_servers", "total_queue_jobs", "file_size",
)  # fmt: skip


@pytest.fixture(scope="module")
def office_and_replies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Office, list[dict[str, str]]]:
    conversations: list[c.TcpConversation] = []
    office = Office(lambda server: Recorded(server, conversations))
    all_calls(office)
    path: Path = tmp_path_factory.mktemp("ncp") / "server.pcap"
    path.write_bytes(c.pcap_bytes(c.merged(*(one.frames for one in conversations))))
    arguments: list[str] = ["-Y", "ncp && tcp.srcport==524", "-T", "fields", "-E", "occurrence=a"]
    for name in FIELDS:
        arguments += "-e", f"ncp.{name}"
    lines = tshark(path, *arguments, "-e", "_ws.malformed").splitlines()
    rows = [dict(zip((*FIELDS, "malformed"), line.split("\t"), strict=True)) for line in lines]
    return office, rows


def first(rows: list[dict[str, str]], subfunction: int) -> dict[str, str]:
    """What the first reply to a call has."""
    row = next(row for row in rows if row["subfunc"] == str(subfunction))
    return {
        name: value for name, value in row.items() if value and name not in ("subfunc", "completion_code")
    }


def test_all_calls_are_answered_and_nothing_is_malformed(
    office_and_replies: tuple[Office, list[dict[str, str]]],
) -> None:
    _, rows = office_and_replies
    assert {int(row["subfunc"]) for row in rows if row["subfunc"]} >= set(range(100, 139))
    assert not [row for row in rows if row["malformed"] or int(row["completion_code"], 16)]


def test_the_fields_of_the_replies(office_and_replies: tuple[Office, list[dict[str, str]]]) -> None:
    office, rows = office_and_replies
    owner, server = f"0x{office.alice_id:08x}", f"0x{office.ps1_id:08x}"
    queue = f"0x{office.queue.to_bytes(4, 'little').hex()}"
    station, served = str(office.alice.connection), str(office.ps1.connection)
    job: dict[str, Any] = {"client_id_number": owner, "job_type": "258", "server_id_number": "0x00000000"}
    old = {"client_station": station, "job_number": "1", "job_position": "1", "server_station": "0"}
    new = {"client_station_long": station, "job_number_long": "0x01000000", "job_position_word": "1"}
    text_field = {"text_job_description": "memo"}
    assert first(rows, 100) == {"queue_id": "0x08000000"}
    assert first(rows, 104) == job | old | {"job_control_flags": "0x30"}
    assert first(rows, 108) == job | old | text_field | {"job_control_flags": "0x10"}
    assert first(rows, 121) == job | new | {
        "job_number_long": "0x02000000", "job_position_word": "2", "job_control_flags_word": "0x0030",
        "server_station_long": "0",
    }  # fmt: skip
    assert first(rows, 122) == job | new | text_field | {
        "job_control_flags_word": "0x0010", "server_station_long": "0",
    }  # fmt: skip
    assert first(rows, 124) == job | new | {
        "job_control_flags_word": "0x0010", "server_station_long": served, "server_id_number": server,
    }  # fmt: skip
    assert first(rows, 113) == job | old | {
        "job_control_flags": "0x10", "server_station": served, "server_id_number": server,
    }  # fmt: skip
    assert first(rows, 125) == {"queue_id": queue, "current_entries": "5", "current_servers": "0"}
    assert first(rows, 129)["total_queue_jobs"] == "5"
    assert first(rows, 129)["job_number_long"] == "0x01000000,0x02000000,0x03000000,0x04000000,0x05000000"
    assert first(rows, 137)["job_number_long"] == "0x04000000"
    assert first(rows, 107)["job_number"] == "1,2,3,4,5"
    assert first(rows, 120) == {"queue_id": queue, "job_number": "1", "file_size": "5"}
    attached = [row for row in rows if row["subfunc"] == "102"][-1]
    assert (attached["current_servers"], attached["server_id_number"]) == ("1", server)
