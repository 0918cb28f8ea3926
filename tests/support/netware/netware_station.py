"""NCP by hand: requests from numbers and bytes, without the schemas of msmqwire, to a service in memory."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import SUPERVISOR_ID, ObjectType
from msmqwire.ncp.readings import PROPOSED
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.changes import CopyJobFile, DeleteJobFile
from msmqwire.netware.model.files import AnyFile, StoredJobFile
from msmqwire.netware.model.passwords import SALT_SIZE, PasswordHashing
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.protocol.calls import Host, ToRead, ToWrite
from msmqwire.netware.protocol.connection_numbers import ConnectionNumbers
from msmqwire.netware.protocol.dispatch import perform
from msmqwire.netware.protocol.files import data_read
from msmqwire.netware.protocol.session import Answer, GiveUp, Later, NcpSession, Perform
from msmqwire.netware.rules.service import QueueService

NOW = datetime(2026, 3, 1, 12, 30, 45, tzinfo=UTC)
SALT = bytes(range(SALT_SIZE))
ENTRY_TIME = bytes((26, 3, 1, 12, 30, 45))
AT_ONCE = b"\xff" * 6
ANY = 0xFFFFFFFF
USER, GROUP, PRINT_QUEUE, PRINT_SERVER = 1, 2, 3, 7
CREATE, REQUEST, DESTROY, REPLY, BUSY = 0x1111, 0x2222, 0x5555, 0x3333, 0x9999


def be16(*values: int) -> bytes:
    return struct.pack(f">{len(values)}H", *values)


def be32(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


def le32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def text(value: str) -> bytes:
    """Text after a byte with its length."""
    return bytes((len(value),)) + value.encode()


def named(object_type: int, name: str) -> bytes:
    """An object by its type and name."""
    return be16(object_type) + text(name)


def old_job(
    *, target: int = ANY, at: bytes = AT_ONCE, number: int = 0, type_: int = 0, position: int = 0,
    flags: int = 0, description: bytes = b"", record: bytes = b"", junk: int = 0,
) -> bytes:  # fmt: skip
    """An old job structure as a client sends it; `junk` fills the fields that are not the client's."""
    fill = bytes((junk,))
    return b"".join((
        fill * 6, be32(target), at, fill * 6, be16(number, type_), bytes((position, flags)), fill * 26,
        description.ljust(50, b"\0"), record.ljust(152, b"\0"),
    ))  # fmt: skip


def new_job(
    *, target: int = ANY, at: bytes = AT_ONCE, number: int = 0, type_: int = 0, position: int = 0,
    flags: int = 0, description: bytes = b"", record: bytes = b"", junk: int = 0,
) -> bytes:  # fmt: skip
    """A newer job structure as a client sends it; `junk` fills the fields that are not the client's."""
    fill = bytes((junk,))
    return b"".join((
        fill * 22, be32(target), at, fill * 6, le32(number), be16(type_), struct.pack("<HH", position, flags),
        fill * 30, description.ljust(50, b"\0"), record.ljust(152, b"\0"),
    ))  # fmt: skip


def six_bytes(handle: bytes) -> bytes:
    """The handle of a newer job structure as file calls have it, with anything in front."""
    return b"\xab\xcd" + handle


class MemoryServer:
    """A queue service without disk or network, its bindery made by `add` and the calls of stations."""

    def __init__(self, connections: int = 16, settings: Settings | None = None) -> None:
        self.service = QueueService(settings)
        self.service.bindery.restore()
        self.numbers = ConnectionNumbers(connections)
        self.host = Host("OFFICE", self.numbers)
        self.files: dict[AnyFile, bytearray] = {}
        self.now = NOW
        self.readings = PROPOSED
        self.administrator = Caller(0, object_id=SUPERVISOR_ID)

    def add(self, name: str, type_: int = ObjectType.NWOT_USER) -> int:
        """Create an object."""
        return self.service.bindery.create_object(self.administrator, name, type_).id

    def admit(self, queue_id: int, property_name: str, *members: int) -> None:
        """Add members to a set of a queue."""
        for member in members:
            self.service.properties.add_member(self.administrator, queue_id, property_name, member)

    def queue(self, name: str = "PRINTQ", type_: int = ObjectType.NWOT_PRINT_QUEUE) -> int:
        """Create a queue."""
        return self.service.queues.create(self.administrator, name, type_, "SYS:SYSTEM")

    def perform(self, call: Perform) -> dict[str, object]:
        """Perform a call with its files in memory. Raises NcpRefused."""
        result = perform(self.service, call, self.now, self.host, PasswordHashing(SALT))
        self.settle()
        match result:
            case ToRead(access):
                file = self.files.get(access.file, bytearray())
                return dict(data_read(access, bytes(file[access.offset : access.offset + access.count])))
            case ToWrite(access, data):
                self.write(access.file, access.offset, data)
                return {}
        return dict(result)

    def write(self, name: AnyFile, offset: int, data: bytes) -> None:
        """Write to a file in memory."""
        file = self.files.setdefault(name, bytearray())
        file.extend(bytes(max(0, offset - len(file))))
        file[offset : offset + len(data)] = data

    def settle(self) -> None:
        """Apply the file changes of the last call to the files in memory."""
        for change in self.service.take():
            match change:
                case DeleteJobFile(queue_id, number, _):
                    self.files.pop(StoredJobFile(queue_id, number), None)
                case CopyJobFile(queue_id, number, _, to_queue, to_number, _):
                    copied = self.files.get(StoredJobFile(queue_id, number), bytearray())
                    self.files[StoredJobFile(to_queue, to_number)] = bytearray(copied)


class Station:
    """A client: it attaches, and numbers its requests."""

    def __init__(self, server: MemoryServer, *, attach: bool = True, task: int = 3) -> None:
        self.server, self.task = server, task
        self.session = NcpSession(server.numbers, server.readings)
        self.sequence, self.connection = 0, 0xFFFF
        if attach:
            self.attach()

    def attach(self) -> None:
        reply = self.send(self.packet(CREATE, connection=0xFFFF, sequence=0, function=0))
        assert (reply[:3], reply[6:]) == (b"\x33\x33\0", b"\0\0"), reply
        self.connection, self.sequence = reply[3] | reply[5] << 8, 0

    def login(self, name: str, type_: int = USER) -> Station:
        self.call(20, named(type_, name) + text(""))
        return self

    def packet(
        self, type_: int, data: bytes = b"", *, connection: int | None = None, sequence: int | None = None,
        function: int = 23,
    ) -> bytes:  # fmt: skip
        """A request of this station, with the next sequence number."""
        number = self.connection if connection is None else connection
        if sequence is None:
            sequence = self.sequence = (self.sequence + 1) % 256
        head = bytes((sequence, number & 0xFF, self.task, number >> 8, function))
        return be16(type_) + head + data

    def send(self, packet: bytes, room: int = 0) -> bytes:
        """Send a packet; return the reply to it."""
        outcome = self.session.received(packet, room)
        match outcome:
            case Answer(reply):
                return reply
            case GiveUp(caller):
                self.server.service.connection_lost(caller)
                self.server.settle()
                return self.session.given_up(outcome)
            case Perform():
                try:
                    fields = self.server.perform(outcome)
                except NcpRefused as exc:
                    assert not self.server.service.take(), "what is refused changes nothing"
                    return self.session.refused(outcome, exc.code)
                return self.session.performed(outcome, fields)
            case Later():
                raise AssertionError("the session is busy")

    def lose(self) -> None:
        """The connection breaks."""
        caller, self.session.caller = self.session.caller, None
        assert caller is not None
        self.server.service.connection_lost(caller)
        self.server.settle()
        self.server.numbers.give_back(caller.connection)

    def call(self, subfunction: int, data: bytes = b"", *, code: int = 0, room: int = 0) -> bytes:
        """Make a call of function 23, which has this completion code; return the data of its reply."""
        return self._answered(23, be16(len(data) + 1) + bytes((subfunction,)) + data, code, room)

    def file(self, function: int, data: bytes, *, code: int = 0, room: int = 0) -> bytes:
        """Make a call of another function."""
        return self._answered(function, data, code, room)

    def _answered(self, function: int, data: bytes, code: int, room: int) -> bytes:
        request = self.packet(REQUEST, data, function=function)
        reply = self.send(request, room)
        head = bytes((self.sequence, self.connection & 0xFF, self.task, self.connection >> 8, code, 0))
        assert reply[:8] == be16(REPLY) + head, reply[:8].hex()
        assert code == 0 or len(reply) == 8, "no data with a code"
        return reply[8:]

    def write(self, handle: bytes, offset: int, data: bytes, *, code: int = 0) -> None:
        """Write to a file by its handle of six bytes."""
        self.file(73, b"\0" + handle + be32(offset) + be16(len(data)) + data, code=code)

    def read(self, handle: bytes, offset: int, count: int, *, code: int = 0, room: int = 0) -> bytes:
        """Read from a file; return the data of the reply."""
        return self.file(72, b"\0" + handle + be32(offset) + be16(count), code=code, room=room)

    def submit(self, queue_id: int, data: bytes = b"", **fields: object) -> int:
        """Create a job with data and start it; return its number."""
        reply = self.call(121, be32(queue_id) + new_job(**fields))  # type: ignore[arg-type]
        if data:
            self.write(six_bytes(reply[62:66]), 0, data)
        self.call(127, be32(queue_id) + reply[38:42])
        return int.from_bytes(reply[38:42], "little")


class Office:
    """A server with the queue PRINTQ, and a station of each kind.

    Attributes:
        queue: the ID of the queue.
        alice, bob: users of the queue; `alice_id` and `ps1_id` are IDs of the objects.
        oscar: its operator.
        ps1: its queue server, not attached.
        outsider: logged in, and in none of its sets.
        supervisor: SUPERVISOR, likewise.
    """

    def __init__(self, station: Callable[[MemoryServer], Station] = Station) -> None:
        self.server = server = MemoryServer()
        self.alice_id, bob, oscar = (server.add(name) for name in ("ALICE", "BOB", "OSCAR"))
        self.ps1_id = server.add("PS1", PRINT_SERVER)
        server.add("OTTO")
        self.queue = server.queue()
        server.admit(self.queue, "Q_USERS", self.alice_id, bob)
        server.admit(self.queue, "Q_OPERATORS", oscar)
        server.admit(self.queue, "Q_SERVERS", self.ps1_id)
        server.service.take()
        self.alice, self.bob, self.oscar = (station(server).login(name) for name in ("ALICE", "BOB", "OSCAR"))
        self.ps1 = station(server).login("PS1", PRINT_SERVER)
        self.outsider = station(server).login("OTTO")
        self.supervisor = station(server).login("SUPERVISOR")

    def jobs(self) -> list[int]:
        """The numbers of the jobs in the queue."""
        return list(self.server.service.queue_table[self.queue].order)

    def serve(self, job_type: int = 0xFFFF) -> bytes:
        """Attach PS1 and hand it a job; return the head of that."""
        self.ps1.call(111, be32(self.queue))
        return self.ps1.call(124, be32(self.queue) + be16(job_type))
