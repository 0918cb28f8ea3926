"""A file server with queues, written independently: by `struct` and asyncio, without the library.

The bytes are those of the public descriptions of NCP. Where these disagree it takes what the library's server
does not: a job number is 16 bits, most significant first, followed by two zero bytes; ServerID and the like
are unchanged. It is in memory, knows who owns a job and who operates queues, and no other rights.

``requests`` has every packet that has come. ``answers`` replaces the answer to a call: by function, or 23 and
subfunction, a completion code, data, or a function of the request's data that returns one of them. ``spoil``
changes each unit on its way to the client, and may return None to keep silent. ``gates`` are events that the
answer to a call waits for.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from tests.support.patience import limit

USER, PRINT_QUEUE, PRINT_SERVER, JOB_QUEUE = 1, 3, 7, 10
DONE, NO_JOB, NO_JOB_RIGHTS, IN_SERVICE, NOT_SERVER, HALTED = 0, 0xD5, 0xD6, 0xD7, 0xD9, 0xDA
NO_QUEUE, NO_RIGHTS, NO_OBJECT, UNSUPPORTED, BAD_HANDLE = 0xD1, 0xD3, 0xFC, 0xFB, 0x88
RESTART, OPEN, USER_HOLD, OPERATOR_HOLD = 0x10, 0x20, 0x40, 0x80

Answer: TypeAlias = "int | bytes | Callable[[bytes], int | bytes]"


class Refused(Exception):
    """A completion code."""

    def __init__(self, code: int) -> None:
        super().__init__(hex(code))
        self.code = code


@dataclass
class Job:
    """280 bytes of the newer structure, and the file."""

    entry: bytearray
    data: bytearray = field(default_factory=bytearray)

    @property
    def token(self) -> bytes:
        """The four bytes that name it."""
        return bytes(self.entry[38:42])

    @property
    def flags(self) -> int:
        return int.from_bytes(self.entry[46:48], "little")

    @flags.setter
    def flags(self, value: int) -> None:
        self.entry[46:48] = value.to_bytes(2, "little")


@dataclass
class Queue:
    jobs: list[Job] = field(default_factory=list)
    status: int = 0
    servers: dict[int, int] = field(default_factory=dict)
    """Object by station."""
    record: bytes = bytes(64)


def call_of(packet: bytes) -> tuple[int, ...]:
    """The function of a request, 23 with the subfunction."""
    return (packet[6], packet[9]) if packet[6] == 23 else (packet[6],)


class NetwarePeer:
    """The server; see the module."""

    def __init__(self) -> None:
        self.objects: dict[int, tuple[int, str]] = {
            0x00000001: (USER, "SUPERVISOR"),
            0x0A0B0C01: (USER, "ALICE"),
            0x0A0B0C02: (USER, "OPERATOR"),
            0x0A0B0C03: (PRINT_SERVER, "PS1"),
            0x015D0300: (PRINT_QUEUE, "LASER"),
            0x025D0300: (PRINT_QUEUE, "MATRIX"),
            0x035D0300: (JOB_QUEUE, "COMPILE"),
        }
        self.queues = {number: Queue() for number, (kind, _) in self.objects.items() if kind in (3, 10)}
        self.requests: list[bytes] = []
        self.answers: dict[tuple[int, ...], Answer] = {}
        self.spoil: Callable[[bytes], bytes | None] = lambda unit: unit
        self.gates: dict[tuple[int, ...], asyncio.Event] = {}
        self.address = ""
        self.busy = 0
        """The number of times each request is first answered by "still working on it"."""
        self.buffer = 0
        """Bytes of the largest reply that the client takes, from its last request."""
        self.connections = 0
        self.last_number = 0

    def calls(self) -> list[tuple[int, ...]]:
        """The functions and subfunctions that were asked for, in order."""
        return [call_of(packet) for packet in self.requests if packet[:2] == b"\x22\x22"]

    def sent(self, *call: int) -> list[bytes]:
        """The data of the requests of a call."""
        start = 10 if call[0] == 23 else 7
        chosen = (packet for packet in self.requests if packet[:2] == b"\x22\x22")
        return [packet[start:] for packet in chosen if call_of(packet) == call]

    @asynccontextmanager
    async def listening(self, host: str = "127.0.0.1") -> AsyncIterator[str]:
        """Serve in the block; the value is ADDRESS:PORT."""
        server = await asyncio.start_server(self._serve, host, 0)
        tasks = self._tasks = set[asyncio.Task[None]]()
        try:
            self.address = "{}:{}".format(*server.sockets[0].getsockname()[:2])
            yield self.address
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, AssertionError):
                    raise result

    @contextmanager
    def in_thread(self) -> Iterator[str]:
        """Serve in the block, in a thread: for tests of code that runs its own loop."""
        loop = asyncio.new_event_loop()
        block = self.listening()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield asyncio.run_coroutine_threadsafe(block.__aenter__(), loop).result(limit(60))
            asyncio.run_coroutine_threadsafe(block.__aexit__(None, None, None), loop).result(limit(60))
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        connection = Connection(self, self.connections)
        try:
            while head := await reader.readexactly(16):
                signature, size, version, self.buffer = struct.unpack(">4sIII", head)
                assert (signature, version) == (b"DmdT", 1)
                packet = await reader.readexactly(size - 16)
                self.requests.append(packet)
                if packet[:2] == b"\x22\x22" and call_of(packet) in self.gates:
                    await self.gates[call_of(packet)].wait()
                for answer in connection.answers(packet):
                    spoiled = self.spoil(struct.pack(">4sI", b"tNcP", 8 + len(answer)) + answer)
                    writer.write(spoiled or b"")
                    await writer.drain()
                    await asyncio.sleep(0)  # a client in the same loop has its turn
                if packet[:2] == b"\x55\x55":
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            connection.lost()
            writer.close()

    def job(self, queue: int, data: bytes) -> Job:
        """The job that four bytes name."""
        if queue not in self.queues:
            raise Refused(NO_QUEUE)
        found = [job for job in self.queues[queue].jobs if job.token == data]
        if not found:
            raise Refused(NO_JOB)
        return found[0]

    def number_places(self) -> None:
        for queue in self.queues.values():
            for place, job in enumerate(queue.jobs, 1):
                job.entry[44:46] = place.to_bytes(2, "little")


class Connection:
    """A connection of a client."""

    def __init__(self, peer: NetwarePeer, number: int) -> None:
        self.peer, self.number = peer, number
        self.who = 0
        self.files: dict[bytes, Job] = {}

    def answers(self, packet: bytes) -> Iterable[bytes]:
        """The replies to a request; all but the last say that it takes time."""
        peer = self.peer
        kind, sequence, low, task, high, function = struct.unpack(">HBBBBB", packet[:7])
        connection = bytes([self.number & 0xFF]), bytes([self.number >> 8])

        def reply(kind: int, code: int, data: bytes = b"") -> bytes:
            head = struct.pack(">HB", kind, sequence) + connection[0] + bytes([task]) + connection[1]
            return head + bytes([code, 0]) + data

        if kind == 0x1111:
            assert (sequence, low, high, function) == (0, 0xFF, 0xFF, 0)
            code = peer.answers.get((0x1111,), 0)
            return [reply(0x3333, code if isinstance(code, int) else 0)]
        if low | high << 8 != self.number:
            return [reply(0x3333, 0)[:7] + b"\1"]
        if kind == 0x5555:
            return [reply(0x3333, 0)]
        assert kind == 0x2222
        call, data = call_of(packet), packet[7:]
        if function == 23:
            assert int.from_bytes(data[:2], "big") == len(packet) - 9
            data = packet[10:]
        try:
            answer = peer.answers.get(call)
            result = answer(data) if callable(answer) else answer
            if result is None:
                result = CALLS[call](self, data) if call in CALLS else UNSUPPORTED
        except Refused as exc:
            result = exc.code
        last = reply(0x3333, result) if isinstance(result, int) else reply(0x3333, 0, result)
        return chain((reply(0x9999, 0) for _ in range(peer.busy)), [last])

    def lost(self) -> None:
        for queue in self.peer.queues.values():
            queue.servers.pop(self.number, None)

    # -- the bindery --------------------------------------------------------------------------------------

    def find(self, data: bytes) -> tuple[int, int, str]:
        kind, size = struct.unpack(">HB", data[:3])
        wanted = kind, data[3 : 3 + size].decode("ascii").upper()
        for number, known in self.peer.objects.items():
            if known == wanted:
                return number, *known
        raise Refused(NO_OBJECT)

    def login(self, data: bytes) -> bytes:
        self.who, _, name = self.find(data)
        assert data[3 + len(name) :] == b"\0", "an empty password"
        return b""

    def logout(self, data: bytes) -> bytes:
        assert data == b""
        self.who = 0
        return b""

    def get_id(self, data: bytes) -> bytes:
        number, kind, name = self.find(data)
        return struct.pack(">IH48s", number, kind, name.encode())

    def get_name(self, data: bytes) -> bytes:
        number = int.from_bytes(data, "big")
        if number not in self.peer.objects:
            raise Refused(NO_OBJECT)
        kind, name = self.peer.objects[number]
        return struct.pack(">IH48s", number, kind, name.encode())

    def scan(self, data: bytes) -> bytes:
        last, kind, size = struct.unpack(">IHB", data[:7])
        assert data[7 : 7 + size] == b"*"
        order = [number for number, known in sorted(self.peer.objects.items()) if kind == known[0]]
        left = [number for number in order if last == 0xFFFFFFFF or number > last]
        if not left:
            raise Refused(NO_OBJECT)
        found = self.peer.objects[left[0]]
        return struct.pack(">IH48sBBB", left[0], found[0], found[1].encode(), 0, 0x30, 0xFF)

    # -- queues -------------------------------------------------------------------------------------------

    def queue(self, data: bytes) -> tuple[int, Queue]:
        number = int.from_bytes(data[:4], "big")
        if number not in self.peer.queues:
            raise Refused(NO_QUEUE)
        return number, self.peer.queues[number]

    def job(self, data: bytes) -> tuple[Queue, Job]:
        number, queue = self.queue(data)
        return queue, self.peer.job(number, data[4:8])

    @property
    def is_operator(self) -> bool:
        return self.peer.objects.get(self.who, (0, ""))[1] == "OPERATOR"

    def may_control(self, job: Job) -> None:
        owner = int.from_bytes(job.entry[18:22], "big")
        if not (self.is_operator or self.who == owner):
            raise Refused(NO_JOB_RIGHTS)

    def read_status(self, data: bytes) -> bytes:
        number, queue = self.queue(data)
        head = struct.pack(">I", number) + struct.pack(
            "<III", queue.status, len(queue.jobs), len(queue.servers)
        )
        ids = b"".join(server.to_bytes(4, "big") for server in queue.servers.values())
        return head + ids + b"".join(station.to_bytes(4, "little") for station in queue.servers)

    def set_status(self, data: bytes) -> bytes:
        if not self.is_operator:
            raise Refused(NO_RIGHTS)
        assert len(data) == 8
        self.queue(data)[1].status = int.from_bytes(data[4:8], "little")
        return b""

    def create(self, data: bytes) -> bytes:
        number, queue = self.queue(data)
        assert len(data) == 4 + 280
        entry = bytearray(data[4:])
        self.peer.last_number += 1
        token = struct.pack(">H", self.peer.last_number) + b"\0\0"
        entry[0:10] = b"\xff\xff" + bytes(8)  # RecordInUse as one server writes it
        entry[10:18] = struct.pack("<II", self.number, 1)
        entry[18:22] = self.who.to_bytes(4, "big")
        entry[32:38] = bytes((26, 11, 23, 8, 30, 15))
        entry[38:42] = token
        name = f"Q${number & 0xFFFF:04X}.{self.peer.last_number:03}".encode()
        entry[48:62] = (bytes([len(name)]) + name).ljust(14, b"\0")
        entry[62:66] = struct.pack("<I", 0x1000 + self.peer.last_number)
        entry[66:78] = bytes(12)
        job = Job(entry)
        job.flags |= OPEN
        queue.jobs.append(job)
        self.peer.number_places()
        self.files[bytes(entry[62:66])] = job
        return bytes(entry[:78])

    def start(self, data: bytes) -> bytes:
        _, job = self.job(data)
        if job not in self.files.values():
            raise Refused(NO_JOB_RIGHTS)
        self.files.pop(bytes(job.entry[62:66]))
        job.flags &= ~OPEN
        return b""

    def remove(self, data: bytes) -> bytes:
        queue, job = self.job(data)
        self.may_control(job)
        queue.jobs.remove(job)
        self.peer.number_places()
        return b""

    def list_jobs(self, data: bytes) -> bytes:
        _, queue = self.queue(data)
        start = int.from_bytes(data[4:8], "little")
        tokens = [job.token for job in queue.jobs[start - 1 :]][:125]
        return struct.pack("<II", len(queue.jobs), len(tokens)) + b"".join(tokens)

    def read_entry(self, data: bytes) -> bytes:
        return bytes(self.job(data)[1].entry)

    def change_entry(self, data: bytes) -> bytes:
        assert len(data) == 4 + 280
        new = data[4:]
        _, job = self.job(data[:4] + new[38:42])
        self.may_control(job)
        if any(job.entry[74:78]):
            raise Refused(IN_SERVICE)
        kept = job.flags & (OPEN if self.is_operator else OPEN | OPERATOR_HOLD)
        for start, end in ((22, 26), (26, 32), (42, 44), (46, 48), (78, 128), (128, 280)):
            job.entry[start:end] = new[start:end]
        job.flags = job.flags & ~(OPEN if self.is_operator else OPEN | OPERATOR_HOLD) | kept
        return b""

    def change_position(self, data: bytes) -> bytes:
        queue, job = self.job(data)
        if not self.is_operator:
            raise Refused(NO_RIGHTS)
        queue.jobs.remove(job)
        queue.jobs.insert(int.from_bytes(data[8:12], "little") - 1, job)
        self.peer.number_places()
        return b""

    def move(self, data: bytes) -> bytes:
        queue, job = self.job(data)
        if not self.is_operator:
            raise Refused(NO_RIGHTS)
        _, other = self.queue(data[8:12])
        queue.jobs.remove(job)
        other.jobs.append(job)
        self.peer.last_number += 1
        job.entry[38:42] = struct.pack(">H", self.peer.last_number) + b"\0\0"
        self.peer.number_places()
        return job.token

    # -- queue servers ------------------------------------------------------------------------------------

    def attach(self, data: bytes) -> bytes:
        queue = self.queue(data)[1]
        if self.peer.objects.get(self.who, (0, ""))[0] != PRINT_SERVER:
            raise Refused(NO_RIGHTS)
        queue.servers[self.number] = self.who
        return b""

    def detach(self, data: bytes) -> bytes:
        if self.queue(data)[1].servers.pop(self.number, None) is None:
            raise Refused(NOT_SERVER)
        return b""

    def service(self, data: bytes) -> bytes:
        queue = self.queue(data)[1]
        if self.number not in queue.servers:
            raise Refused(NOT_SERVER)
        if queue.status & 4:
            raise Refused(HALTED)
        wanted = data[4:6]
        for job in queue.jobs:
            free = not job.flags & (OPEN | USER_HOLD | OPERATOR_HOLD) and not any(job.entry[74:78])
            if free and wanted in (b"\xff\xff", job.entry[42:44]):
                job.entry[66:78] = struct.pack("<II", self.number, 1) + self.who.to_bytes(4, "big")
                self.files[bytes(job.entry[62:66])] = job
                return bytes(job.entry[:78])
        raise Refused(NO_JOB)

    def serviced(self, data: bytes) -> tuple[Queue, Job]:
        queue, job = self.job(data)
        if job.entry[66:70] != struct.pack("<I", self.number) or not any(job.entry[74:78]):
            raise Refused(NO_JOB_RIGHTS)
        return queue, job

    def finish(self, data: bytes) -> bytes:
        assert len(data) == 12
        queue, job = self.serviced(data)
        queue.jobs.remove(job)
        self.peer.number_places()
        return b""

    def abort(self, data: bytes) -> bytes:
        queue, job = self.serviced(data)
        job.entry[66:78] = bytes(12)
        if not job.flags & RESTART:
            queue.jobs.remove(job)
        self.peer.number_places()
        return b"\0\0"  # as one server does

    def change_rights(self, data: bytes) -> bytes:
        self.serviced(data)
        return b""

    def restore_rights(self, data: bytes) -> bytes:
        assert data == b""
        return b""

    def set_server_status(self, data: bytes) -> bytes:
        queue = self.queue(data)[1]
        if self.number not in queue.servers:
            raise Refused(NOT_SERVER)
        assert len(data) == 4 + 64
        queue.record = data[4:]
        return b""

    def read_server_status(self, data: bytes) -> bytes:
        queue = self.queue(data)[1]
        server, station = data[4:8], int.from_bytes(data[8:12], "little")
        if queue.servers.get(station, 0).to_bytes(4, "big") != server:
            raise Refused(NOT_SERVER)
        return queue.record

    def file_size(self, data: bytes) -> bytes:
        _, job = self.job(data)
        return data + struct.pack(">I", len(job.data))

    # -- files --------------------------------------------------------------------------------------------

    def file(self, data: bytes) -> Job:
        if data[3:7] not in self.files:
            raise Refused(BAD_HANDLE)
        return self.files[data[3:7]]

    def write(self, data: bytes) -> bytes:
        offset, count = struct.unpack(">IH", data[7:13])
        assert len(data) == 13 + count
        self.file(data).data[offset : offset + count] = data[13:]
        return b""

    def read(self, data: bytes) -> bytes:
        offset, count = struct.unpack(">IH", data[7:13])
        found = bytes(self.file(data).data[offset : offset + count])
        return struct.pack(">H", len(found)) + b"\0" * (offset & 1) + found


CALLS: dict[tuple[int, ...], Callable[[Connection, bytes], bytes]] = {
    (23, 20): Connection.login,
    (23, 53): Connection.get_id,
    (23, 54): Connection.get_name,
    (23, 55): Connection.scan,
    (25,): Connection.logout,
    (23, 111): Connection.attach,
    (23, 112): Connection.detach,
    (23, 117): Connection.restore_rights,
    (23, 119): Connection.set_server_status,
    (23, 121): Connection.create,
    (23, 122): Connection.read_entry,
    (23, 123): Connection.change_entry,
    (23, 124): Connection.service,
    (23, 125): Connection.read_status,
    (23, 126): Connection.set_status,
    (23, 127): Connection.start,
    (23, 128): Connection.remove,
    (23, 129): Connection.list_jobs,
    (23, 130): Connection.change_position,
    (23, 131): Connection.finish,
    (23, 132): Connection.abort,
    (23, 133): Connection.change_rights,
    (23, 134): Connection.read_server_status,
    (23, 135): Connection.file_size,
    (23, 136): Connection.move,
    (72,): Connection.read,
    (73,): Connection.write,
}
