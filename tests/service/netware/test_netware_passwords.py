"""Passwords over the network and by commands: floods of logins, clients that go, changes meanwhile."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from msmqwire.errors import NcpRefused, Unreachable
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model import passwords
from msmqwire.netware.model.passwords import HashNeeded, PasswordHashing
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.limits import NcpLimits
from msmqwire.netware.runtime.password_hashing import PasswordHasher
from tests.support.many_computers import many_computers
from tests.support.netware.netware_running import InMemory, MemoryDriver, RawNcp, in_memory
from tests.support.netware.netware_station import CREATE, SALT, MemoryServer, named, text
from tests.support.running import PATIENCE_S, called, until

USER = 1
NAMES = ("ALICE", "BOB")


class AtOnce(PasswordHashing):
    """Hashes that cost nothing."""

    def digest(self, password: bytes, salt: bytes) -> bytes:
        return (password.upper() + salt).ljust(32, b"\0")[:32]


class Hashes:
    """Hashes that cost nothing, counted; each waits until `may_go` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[bytes] = []
        self.may_go = threading.Event()
        self.may_go.set()
        monkeypatch.setattr(passwords, "digest", self._digest)

    def _digest(self, password: bytes, salt: bytes) -> bytes:
        self.begun.append(password)
        assert self.may_go.wait(PATIENCE_S)
        return AtOnce().digest(password, salt)


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> Hashes:
    return Hashes(monkeypatch)


def office() -> MemoryServer:
    """A server with ALICE and BOB, whose passwords are their names."""
    server = MemoryServer()
    for name in NAMES:
        user = server.add(name)
        hashing = PasswordHashing(SALT)
        server.service.logins.change_password(server.administrator, user, b"", name.encode(), hashing)
    server.service.take()
    return server


@pytest.fixture
def served(hashes: Hashes) -> Iterator[InMemory]:
    server = office()
    hashes.begun.clear()
    with in_memory(server) as running:
        yield running


def login(name: str, password: str) -> bytes:
    return named(USER, name) + text(password)


def test_a_right_and_a_wrong_password(served: InMemory) -> None:
    with served.connect() as client:
        client.call(20, login("ALICE", ""), code=0xFF)
        client.call(20, login("ALICE", "BOB"), code=0xFF)
        client.call(20, login("ALICE", "alice"))
        client.call(64, named(USER, "ALICE") + text("WRONG") + text("NEW"), code=0xFF)
        client.call(64, named(USER, "ALICE") + text("ALICE") + text("NEW"))
        client.call(20, login("ALICE", "NEW"))


@pytest.mark.usefixtures("hashes")
def test_only_a_given_password_makes_an_address_known() -> None:
    """The last two numbers are for known addresses, and a login by a name alone proves nothing."""
    server, by_password, by_name = office(), "127.0.0.2", "127.0.0.3"
    server.add("CAROL")
    server.service.take()
    with many_computers(), in_memory(server, NcpLimits(connections=16)) as running, ExitStack() as stack:
        stack.enter_context(running.connect(source=by_password)).call(20, login("ALICE", "ALICE"))
        for _ in range(13):
            client = stack.enter_context(running.connect(source=by_name))
            client.call(20, login("CAROL", ""))
        client.call(64, named(USER, "CAROL") + text("") + text("OWN"))
        client.call(20, login("CAROL", "OWN"))
        late = stack.enter_context(running.connect(attach=False, source=by_name))
        assert late.exchange(late.packet(CREATE, sequence=0, function=0))[6] == 0xF9
        stack.enter_context(running.connect(source=by_password)).call(20, login("ALICE", "ALICE"))
        assert (running.listener.service_connections, running.listener.traffic.evicted) == (15, 0)


def test_a_flood_of_logins_leaves_turns_for_others(served: InMemory, hashes: Hashes) -> None:
    hashes.may_go.clear()
    with many_computers(), ExitStack() as stack:
        peers = [stack.enter_context(served.connect()) for _ in range(40)]
        quiet, bob = (stack.enter_context(served.connect(source="127.0.0.2")) for _ in range(2))
        for one in peers:
            one.send(_unit(one, login("ALICE", "ALICE")))
        until(lambda: hashes.begun, "a hash of a peer")
        assert quiet.call(205) == b"\1"  # calls without a password go on
        bob.send(_unit(bob, login("BOB", "BOB")))
        until(lambda: served.do(lambda: _waiting(served)) == 40, "all wait")
        hashes.may_go.set()
        assert bob.reply()[6] == 0
        assert all(one.reply()[6] == 0 for one in peers)
    assert hashes.begun.index(b"BOB") <= 2


def test_a_wrong_password_delays_its_address_alone(served: InMemory) -> None:
    with many_computers(), served.connect() as peer, served.connect(source="127.0.0.2") as bob:
        start = time.monotonic()
        for _ in range(3):
            peer.call(20, login("ALICE", "GUESS"), code=0xFF)
        assert time.monotonic() - start >= 2 * served.listener._hasher._wrong_s
        start = time.monotonic()
        bob.call(20, login("BOB", "BOB"))
        assert time.monotonic() - start < served.listener._hasher._wrong_s


def test_wrong_passwords_of_many_connections_wait_alike(served: InMemory) -> None:
    hasher = served.listener._hasher
    hasher._wrong_s = 0.2
    with ExitStack() as stack:
        peers = [stack.enter_context(served.connect()) for _ in range(6)]
        start = time.monotonic()
        for one in peers:
            one.send(_unit(one, login("ALICE", "GUESS")))
        assert [one.reply()[6] for one in peers] == [0xFF] * len(peers)
    assert time.monotonic() - start >= (len(peers) - 1) * hasher._wrong_s
    assert hasher.hashes == len(peers)


def test_clients_that_are_gone_cost_no_hash(served: InMemory, hashes: Hashes) -> None:
    hashes.may_go.clear()
    with served.connect() as first:
        first.send(_unit(first, login("ALICE", "ALICE")))
        until(lambda: hashes.begun, "the first hash")
        for _ in range(3):
            with ExitStack() as stack:
                peers = [stack.enter_context(served.connect()) for _ in range(50)]
                for one in peers:
                    one.send(_unit(one, login("ALICE", "ALICE")))
                until(lambda: served.do(lambda: _waiting(served)) == 50, "all wait")
                for one in peers:  # the end of the stream alone would not show that nobody reads
                    one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            until(lambda: served.do(lambda: served.listener.service_connections) == 1, "they are gone")
            assert served.do(lambda: _waiting(served)) == 0
        hashes.may_go.set()
        assert first.reply()[6] == 0
    assert len(hashes.begun) == 1


def test_a_password_changed_while_a_login_waits(served: InMemory, hashes: Hashes) -> None:
    hashes.may_go.clear()
    with served.connect() as client:
        client.send(_unit(client, login("ALICE", "ALICE")))
        until(lambda: hashes.begun, "its hash")
        service, administrator = served.server.service, served.server.administrator
        changed = AtOnce(bytes(len(SALT)))
        change = service.logins.change_password
        served.do(lambda: change(administrator, _alice(served), b"", b"NEW", changed))
        hashes.may_go.set()
        assert client.reply()[6] == 0xFF
        client.call(20, login("ALICE", "NEW"))


def test_stopping_does_not_wait_for_logins(hashes: Hashes) -> None:
    server = MemoryServer()
    user = server.add("ALICE")
    server.service.logins.change_password(server.administrator, user, b"", b"ALICE", PasswordHashing(SALT))
    server.service.take()
    hashes.begun.clear()
    with ExitStack() as stack:
        with in_memory(server) as running:
            peers = [stack.enter_context(running.connect()) for _ in range(20)]
            hashes.may_go.clear()
            for one in peers:
                one.send(_unit(one, login("ALICE", "ALICE")))
            until(lambda: running.do(lambda: _waiting(running)) == 19, "all wait")
            threading.Timer(0.2, hashes.may_go.set).start()
        codes = [one.reply()[6] for one in peers]
    assert sorted(codes) == [0] + [0xD0] * 19
    assert len(hashes.begun) == 1


def test_a_call_is_made_again_a_few_times_only() -> None:
    made: list[int] = []

    def operation(_service: QueueService, hashing: PasswordHashing) -> None:
        made.append(len(made))
        hashing.digest(b"%d" % len(made), SALT)

    async def run() -> None:
        hasher = PasswordHasher()
        try:
            await hasher.run(MemoryDriver(MemoryServer()), operation)
        finally:
            hasher.close()
        with pytest.raises(Unreachable):
            await hasher.run(MemoryDriver(MemoryServer()), operation)

    with pytest.raises(NcpRefused) as caught:
        asyncio.run(run())
    assert caught.value.code == CompletionCode.FAILURE
    assert len(made) == 5


def test_a_cancelled_call_leaves_its_address_the_next_hash(hashes: Hashes) -> None:
    def operation(_service: QueueService, hashing: PasswordHashing) -> bytes:
        return hashing.digest(b"A", SALT)

    async def run() -> bytes:
        hasher, driver = PasswordHasher(), MemoryDriver(MemoryServer())
        try:
            first = asyncio.create_task(hasher.run(driver, operation))
            while not hashes.begun:
                await asyncio.sleep(0)
            first.cancel()
            hashes.may_go.set()
            return await asyncio.wait_for(hasher.run(driver, operation), PATIENCE_S)
        finally:
            hasher.close()

    hashes.may_go.clear()
    assert asyncio.run(run()) == AtOnce().digest(b"A", SALT)
    assert len(hashes.begun) == 2


def test_a_hash_without_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(_password: bytes, _salt: bytes) -> bytes:
        raise MemoryError("malloc failure")

    def operation(_service: QueueService, _hashing: PasswordHashing) -> None:
        raise HashNeeded(b"A", SALT)

    async def run() -> None:
        hasher = PasswordHasher()
        try:
            for _ in range(2):  # the first leaves the address its next hash
                with pytest.raises(NcpRefused) as caught:
                    await asyncio.wait_for(hasher.run(MemoryDriver(MemoryServer()), operation), PATIENCE_S)
                assert caught.value.code == CompletionCode.SERVER_OUT_OF_MEMORY
        finally:
            hasher.close()

    monkeypatch.setattr(passwords, "digest", digest)
    asyncio.run(run())


# -- the command --------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert called("netware", "object", "create", "ALICE", "--type", "user", "--data", tmp_path).status == 0
    return tmp_path


def command(folder: Path, *arguments: str, data: bytes = b"") -> tuple[int, str, str]:
    run = called("netware", "object", "password", "ALICE", *arguments, "--data", folder, data=data)
    return run.status, run.out, run.err


def has_password(folder: Path) -> bool:
    shown = called("netware", "object", "show", "ALICE", "--data", folder).out
    assert "scrypt" not in shown
    return bool(json.loads(shown)["password"])


def test_a_program_sets_and_removes_a_password(folder: Path) -> None:
    brief = {"id": "00000002", "name": "ALICE", "type": "user"}
    for given in (b"secret", b"secret\n", b"secret\r\n"):
        status, out, _ = command(folder, data=given)
        assert (status, json.loads(out)) == (0, {**brief, "password": True})
        assert has_password(folder)
    status, out, _ = command(folder, "--table", data=b"other\n")
    assert (status, out) == (0, "ALICE:user logs in by its new password.\n")
    status, out, _ = command(folder, "--remove")
    assert (status, json.loads(out)) == (0, {**brief, "password": False})
    assert command(folder, "--remove", "--table")[1] == "ALICE:user has no password.\n"
    assert not has_password(folder)


@pytest.mark.parametrize(
    "given, said",
    [
        (b"", "1 to 127 printable characters"), (b"\n", "1 to 127 printable characters"),
        (b"a\nb\n", "1 to 127 printable characters"), (128 * b"a", "1 to 127 printable characters"),
        ("\N{EURO SIGN}".encode(), "code page 437"), (b"\xff", "UTF-8"), (5000 * b"a", "more than 4,096"),
    ],
)  # fmt: skip
def test_what_is_no_password_changes_nothing(folder: Path, given: bytes, said: str) -> None:
    status, out, err = command(folder, data=given)
    assert (status, out) == (2, "")
    assert said in " ".join(err.replace("│", "").split())
    assert not has_password(folder)


def test_a_wrong_name_is_reported_before_the_question(folder: Path) -> None:
    run = called("netware", "object", "password", "NOBODY", "--data", folder)
    assert run.status == 66
    assert "NO_SUCH_OBJECT" in run.err


class Terminal:
    """A person at a terminal who gives these answers, None for Ctrl-D."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: str | None) -> None:
        self.questions: list[str] = []
        self._answers = list(answers)
        monkeypatch.setattr("msmqwire.cli.passwords._is_terminal", lambda: True)
        monkeypatch.setattr("msmqwire.cli.passwords.getpass", self._asked)

    def _asked(self, question: str, stream: object = None) -> str:
        self.questions.append(question)
        answer = self._answers.pop(0)
        if answer is None:
            raise EOFError
        return answer


def test_a_person_is_asked_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch, "secret", "secret")
    assert command(folder)[0] == 0
    assert terminal.questions == ["New password of ALICE:user: ", "The same again: "]
    assert has_password(folder)


@pytest.mark.parametrize("answers, status", [(("one", "two"), 2), ((None,), 1), (("one", None), 1)])
def test_two_answers_that_differ_or_ctrl_d(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answers: tuple[str | None, ...], status: int
) -> None:
    Terminal(monkeypatch, *answers)
    assert command(folder)[0] == status
    assert not has_password(folder)


def _unit(client: RawNcp, data: bytes) -> bytes:
    from tests.support.netware.netware_running import unit

    return unit(client.request(20, data))


def _alice(served: InMemory) -> int:
    return served.server.service.objects.named("ALICE", USER).id


def _waiting(served: InMemory) -> int:
    return served.listener._hasher.waiting
