"""`msmqwire netware object` and `msmqwire netware queue`, on a folder with and without a server."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import InvalidValue, NcpRefused, StoreRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.job import JobRequest
from msmqwire.netware.runtime.administration import attach, control_server
from msmqwire.netware.runtime.driver import ServiceDriver
from msmqwire.netware.runtime.folder import NetwareFolder
from msmqwire.service.control import client as local_module
from tests.support.netware.netware_folder import NOON
from tests.support.paths import ROOT
from tests.support.running import PATIENCE_S, Run, called

requirement = pytest.mark.requirement
Netware = Callable[..., Run]


@contextmanager
def served(data: Path) -> Iterator[tuple[ServiceDriver, asyncio.AbstractEventLoop]]:
    """A service with its control channel, in a thread."""
    folder = NetwareFolder(data)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def await_(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE_S)

    async def prepared(driver_of: Callable[[], Any]) -> Any:
        return driver_of()

    try:
        with folder.open_store(create=True) as store:
            driver = await_(prepared(lambda: ServiceDriver(store, folder.open_volumes())))
            await_(driver.start())
            control = control_server(driver, folder)
            await_(control.start())
            yield driver, loop
            await_(control.stop())
            await_(driver.close())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


@pytest.fixture(params=["alone", "served"])
def netware(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Netware]:
    """Runs a command on one folder, on which a server runs or not."""
    data = tmp_path / "data"

    def run(*arguments: str) -> Run:
        return called("netware", *arguments, "--data", data, "--json")

    if request.param == "alone":
        yield run
        return
    with served(data):
        yield run


@requirement("QMS-createqs-01", "QMS-createqs-02", "QMS-createqs-03", "QMS-createqs-09", "QMS-qservers-06")
def test_objects(netware: Netware) -> None:
    assert netware("object", "create", "alice", "--type", "user").one == {"id": "00000002"}
    assert netware("object", "create", "STAFF", "--type", "group").one == {"id": "00000003"}
    created = netware(
        "object", "create", "bob", "--type", "user", "--member-of", "staff", "--equivalent-to", "Alice",
        "--equivalent-to", "SUPERVISOR:user", "--equivalent-to", "staff", "--member-of", "STAFF",
        "--trustee", "SYS:DATA/IN=RWC",
    )  # fmt: skip
    assert created.one == {"id": "00000004"}
    for number, (word, type_) in enumerate(
        (
            ("print-server", "print-server"),
            ("job-server", "job-server"),
            ("archive-server", "archive-server"),
            ("0x0009", "archive-server"),
            ("file-server", "file-server"),
            ("0x1234", "0x1234"),
        )
    ):
        netware("object", "create", f"S{number}", "--type", word)
        assert netware("object", "show", f"S{number}").one["type"] == type_
    listed = netware("object", "list").lines
    assert [one["name"] for one in listed] == [
        "SUPERVISOR",
        "ALICE",
        "STAFF",
        "BOB",
        *(f"S{n}" for n in range(6)),
    ]
    assert listed[0] == {"id": "00000001", "name": "SUPERVISOR", "type": "user"}
    assert [one["name"] for one in netware("object", "list", "--type", "group").lines] == ["STAFF"]
    assert netware("object", "show", "bob:user").one == {
        "id": "00000004",
        "name": "BOB",
        "type": "user",
        "security": "0x31",
        "dynamic": False,
        "password": False,
        "properties": {
            "GROUPS_I'M_IN": ["STAFF:group"],
            "SECURITY_EQUALS": ["SUPERVISOR:user", "ALICE:user", "STAFF:group"],
        },
    }
    assert netware("object", "show", "staff").one["properties"] == {"GROUP_MEMBERS": ["BOB:user"]}
    assert netware("object", "delete", "BOB").one == {"id": "00000004", "name": "BOB", "type": "user"}
    assert netware("object", "show", "staff").one["properties"] == {"GROUP_MEMBERS": []}
    assert netware("object", "show", "bob").error(66)["name"] == "NO_SUCH_OBJECT"


@requirement("QMS-createqs-08", "QMS-qobject-05", "QMS-qdir-04", "QMS-createq-12", "QMS-createq-13")
@requirement("QMS-createq-15", "QMS-qservers-03", "QMS-qoperators-06")
def test_queues(netware: Netware, tmp_path: Path) -> None:
    for name, type_ in (("ALICE", "user"), ("EVERYONE", "group"), ("PS1", "print-server"), ("PS1", "user")):
        netware("object", "create", name, "--type", type_)
    created = netware(
        "queue", "create", "laser", "--type", "print", "--path", "sys:system", "--user", "EVERYONE",
        "--user", "ALICE", "--user", "alice", "--operator", "SUPERVISOR", "--server", "PS1",
    )  # fmt: skip
    assert created.one == {"id": "00000006", "directory": "SYS:SYSTEM\\000006"}
    directory = tmp_path / "data/volumes/SYS/SYSTEM/000006"
    assert directory.is_dir()
    assert netware("queue", "show", "LASER").one == {
        "id": "00000006",
        "queue": "LASER",
        "type": "print",
        "directory": "SYS:SYSTEM\\000006",
        "status": [],
        "jobs": 0,
        "Q_USERS": ["ALICE:user", "EVERYONE:group"],
        "Q_OPERATORS": ["SUPERVISOR:user"],
        "Q_SERVERS": ["PS1:print-server"],
        "attached": [],
    }
    netware("queue", "create", "batch", "--type", "job", "--path", "SYS:")
    assert [(one["queue"], one["type"]) for one in netware("queue", "list").lines] == [
        ("LASER", "print"),
        ("BATCH", "job"),
    ]
    grant = netware("queue", "grant", "laser", "--property", "Q_OPERATORS", "--member", "ALICE")
    assert grant.one == {
        "queue": "LASER",
        "property": "Q_OPERATORS",
        "members": ["SUPERVISOR:user", "ALICE:user"],
    }
    revoke = netware(
        "queue", "revoke", "laser:print", "--property", "q_operators", "--member", "SUPERVISOR:user"
    )
    assert revoke.one["members"] == ["ALICE:user"]
    again = netware("queue", "revoke", "laser", "--property", "Q_OPERATORS", "--member", "SUPERVISOR")
    assert again.error(69)["name"] == "NO_SUCH_MEMBER"
    for wrong, status in (
        (("grant", "laser", "--property", "Q_SERVERS", "--member", "NOBODY"), 66),
        (("grant", "laser", "--property", "Q_OPERATORS", "--member", "PS1:print-server"), 66),
        (("grant", "nowhere", "--property", "Q_USERS", "--member", "ALICE"), 66),
        (("grant", "ALICE:user", "--property", "Q_USERS", "--member", "ALICE"), 66),
        (("create", "LASER", "--type", "print", "--path", "SYS:SYSTEM"), 69),
    ):
        assert netware("queue", *wrong).error(status)["code"]
    directory_property = netware("queue", "grant", "laser", "--property", "Q_DIRECTORY", "--member", "ALICE")
    assert (directory_property.status, directory_property.out) == (2, "")
    assert netware("object", "delete", "LASER").error(69)["name"] == "NO_OBJECT_DELETE_RIGHTS"
    assert netware("queue", "delete", "LASER").one == {"queue": "LASER", "deleted": 0}
    assert not directory.exists()
    assert netware("queue", "show", "LASER").error(66)["name"] == "NO_SUCH_OBJECT"


@pytest.mark.parametrize(
    "arguments",
    [
        ("object", "create", "a b", "--type", "user"),
        ("object", "create", "A*", "--type", "user"),
        ("object", "create", "A", "--type", "printer"),
        ("object", "create", "A", "--type", "0xFFFF"),
        ("object", "create", "A", "--type", "print-queue"),
        ("object", "create", "A", "--type", "user", "--trustee", "SYS:A=XYZ"),
        ("object", "create", "A", "--type", "user", "--trustee", "RWC"),
        ("object", "create", "A", "--type", "user", "--trustee", "SYS:..=R"),
        ("object", "create", "A"),
        ("queue", "create", "Q", "--type", "user", "--path", "SYS:SYSTEM"),
        ("queue", "create", "Q", "--type", "print", "--path", "SYS:.."),
        ("queue", "create", "Q", "--type", "print"),
    ],
)
def test_wrong_usage_changes_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    run = called("netware", *arguments, "--data", tmp_path / "data", "--json")
    assert run.error(2)["error"]
    if (tmp_path / "data").exists():
        assert [
            one["name"] for one in called("netware", "object", "list", "--data", tmp_path / "data").lines
        ] == ["SUPERVISOR"]


def test_a_name_of_several_types_needs_its_type(tmp_path: Path) -> None:
    with attach(tmp_path / "data", create=True) as local:
        for type_ in ("user", "group"):
            local.call("object_create", name="SAME", type=type_)
        with pytest.raises(InvalidValue, match="say SAME:user or SAME:group"):
            local.call("object_show", name="same")
        assert local.call("object_show", name="same:group")["id"] == "00000003"


def test_a_request_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    with attach(tmp_path / "data", create=True) as local:
        for number in range(64):
            local.call("object_create", name=f"G{number}", type="group")
        with pytest.raises(NcpRefused) as caught:
            local.call("object_create", name="A", type="user", trustee=["SYS:A=R", "SYS:" + "LONGNAMES=R"])
        assert caught.value.code == CompletionCode.INVALID_PATH
        with pytest.raises(NcpRefused):
            local.call("object_show", name="A")
        with pytest.raises(NcpRefused) as caught:
            local.call(
                "queue_create",
                name="Q",
                type="print",
                path="SYS:",
                user=["G1"],
                operator=["G2:group", "G3:user"],
            )
        assert caught.value.code == CompletionCode.NO_SUCH_OBJECT
        assert local.call("queue_list") == {"queues": []}


def test_requests_that_are_none(tmp_path: Path) -> None:
    with attach(tmp_path / "data", create=True) as local:
        for request in (
            {"op": "nonsense"},
            {"op": "object_create"},
            {"op": "object_create", "name": 7, "type": "user"},
            {"op": "object_create", "name": "A", "type": "user", "member_of": "STAFF"},
            {"op": "object_create", "name": "A", "type": "user", "member_of": [1]},
            {"op": "object_create", "name": "A", "type": ["user"]},
            {"op": "object_list", "after": -1},
            {"op": "object_list", "after": True},
            {"op": "queue_create", "name": "A", "type": None, "path": "SYS:"},
        ):
            with pytest.raises(InvalidValue):
                local.call(request.pop("op"), **request)  # type: ignore[arg-type]
        assert [one["name"] for one in local.call("object_list")["objects"]] == ["SUPERVISOR"]


def test_a_list_of_many_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmqwire.netware.runtime.bindery_requests._LIST_MAX", 2)
    with attach(tmp_path / "data", create=True) as local:
        for number in range(4):
            local.call("object_create", name=f"U{number}", type="user")
    listed = called("netware", "object", "list", "--data", tmp_path / "data").lines
    assert [one["name"] for one in listed] == ["SUPERVISOR", "U0", "U1", "U2", "U3"]


def test_a_missing_folder_and_one_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    for arguments in (("object", "list"), ("queue", "list"), ("queue", "show", "Q")):
        assert called("netware", *arguments, "--data", data).error(66)
    assert not data.exists()
    monkeypatch.setattr(local_module, "STARTING_S", 0.0)
    with NetwareFolder(data).open_store(create=True):
        assert called("netware", "object", "list", "--data", data).error(69)


@requirement("QMS-monitor-17")
def test_administration_of_a_running_server_takes_effect_at_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(data) as (driver, loop):

        def do(operation: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(driver.run(operation), loop).result(PATIENCE_S)

        with attach(data) as local:
            assert local.served
            alice = Caller(1, object_id=int(local.call("object_create", name="ALICE", type="user")["id"], 16))
            server = Caller(
                2, object_id=int(local.call("object_create", name="PS", type="print-server")["id"], 16)
            )
            queue = int(local.call("queue_create", name="Q", type="print", path="SYS:")["id"], 16)
            create = lambda s: s.jobs.create(alice, queue, JobRequest(), NOON)  # noqa: E731
            with pytest.raises(NcpRefused):
                do(create)
            local.call("queue_grant", queue="Q", property="Q_USERS", member="ALICE")
            do(create)
            local.call("queue_grant", queue="Q", property="Q_SERVERS", member="PS")
            do(lambda s: s.servicing.attach(server, queue))
            shown = local.call("queue_show", queue="Q")
            assert (shown["jobs"], shown["attached"]) == (1, [{"server": "PS:print-server", "station": 2}])
            local.call("object_delete", name="PS")
            assert local.call("queue_show", queue="Q")["attached"] == [{"server": None, "station": 2}]
            assert local.call("queue_delete", queue="Q") == {"queue": "Q", "deleted": 1}


def test_a_disk_that_refuses_is_reported_and_outlived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    with served(data) as (driver, _), attach(data) as local:
        with monkeypatch.context() as patched:

            def refuse(changes: object) -> None:
                raise StoreRefused("the disk is full", file="netware.qms")

            patched.setattr(driver._store, "commit", refuse)
            with pytest.raises(StoreRefused, match="full"):
                local.call("object_create", name="A", type="user")
            assert json.loads(called("netware", "object", "list", "--data", data).out.splitlines()[0])
        assert local.call("object_create", name="A", type="user") == {"id": "00000002"}


def test_the_session_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/netware-bindery.md").read_text(encoding="utf-8")
    (session,) = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    steps = re.findall(r"\$ (?:echo (.*) \| )?msmqwire (.*)\n((?:[^$].*\n)*)", session)
    assert len(steps) == len(re.findall(r"^\$ ", session, re.MULTILINE)) == 12
    for given, command, printed in steps:
        assert called(*shlex.split(command), data=f"{given}\n".encode()).out == printed
