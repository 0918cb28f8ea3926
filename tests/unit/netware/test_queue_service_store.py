"""The store of a queue service: what rules change comes back from it, and other files are refused."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from msmqwire.errors import (
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreInUse,
    StoreMissing,
    StoreNewer,
)
from msmqwire.ncp.constants import ObjectType
from msmqwire.netware.model.bindery import BinderyObject, Property
from msmqwire.netware.model.changes import (
    DeleteJob,
    DeleteObject,
    DeleteQueue,
    DeleteTrustee,
    MakeQueueDirectory,
    PutJob,
    PutNextObjectId,
    PutObject,
    PutOrder,
    PutQueue,
    PutTrustee,
    PutVolumeEntry,
    RemoveQueueDirectory,
)
from msmqwire.netware.model.contents import Contents
from msmqwire.netware.model.files import Trustee, VolumeEntry
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.queue import QueueRow
from msmqwire.netware.runtime.administration import attach
from msmqwire.netware.runtime.folder import STORE, NetwareFolder
from msmqwire.netware.store.contents import read_contents, unsettled_directories
from msmqwire.netware.store.row_changes import RowChanges, settled, unsettled
from msmqwire.netware.store.tables import LAYOUT, NetwareTable, job_key, open_store
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.service.store import Store
from msmqwire.service.store.changes import Changes
from msmqwire.service.store.memory import MemoryStore
from msmqwire.service.store.sqlite import SqliteStore

ID = 0xFFFFFFFE
"""The greatest ID."""
PEOPLE = BinderyObject(
    ID,
    "A~Z{}",
    0xFFFE,
    0x43,
    True,
    {
        "ITEM": Property("ITEM", False, 0x33, True, (bytes(range(128)), b"", b"\xff")),
        "SET": Property("SET", True, 0x31, members=frozenset({1, ID})),
    },
)
JOB = Job(
    client_station=0xFFFF,
    client_task=255,
    client_id=ID,
    target_server_id=0xFFFFFFFF,
    target_execution_time=b"\xff" * 6,
    job_entry_time=bytes((96, 4, 1, 24, 0, 59)),
    job_number=999,
    job_type=0xFFFF,
    job_control_flags=0xFFFF,
    job_file_name="Q$FFFE.999",
    job_file_handle=0xFFFFFFFF,
    servicing_server_station=1,
    servicing_server_task_number=2,
    servicing_server_id_number=3,
    job_description=bytes(range(50)),
    queue_record=bytes(range(100, 252)),
)
QUEUE = QueueRow(ID, "SYS:SYSTEM\\FFFFFE", 0x07, 999)
ENTRIES = [VolumeEntry("SYS:A", 1, True), VolumeEntry("SYS:A\\B.TXT", ID, False)]
OUTSIDE = b'{"directory":"SYS:..","status":0,"next_number":1}'
TRUSTEES = [Trustee("SYS:", 1, 0xFF), Trustee("SYS:A", ID, 0)]
EVERYTHING = (
    PutObject(PEOPLE),
    PutObject(BinderyObject(1, "SUPERVISOR", ObjectType.NWOT_USER)),
    PutNextObjectId(0xFFFFFFFF),
    PutQueue(QUEUE),
    PutQueue(QueueRow(7, "SYS:7")),
    PutJob(ID, JOB),
    PutJob(7, JOB),
    PutOrder(ID, (999,)),
    PutOrder(7, (3, 999, 1)),
    *map(PutVolumeEntry, ENTRIES),
    *map(PutTrustee, TRUSTEES),
)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with (
        MemoryStore(LAYOUT) if request.param == "memory" else open_store(tmp_path / "s", create=True)
    ) as store:
        yield store


def test_a_new_store_is_empty(store: Store) -> None:
    assert read_contents(store) == Contents(
        objects=[], queues=[], orders={}, jobs=[], entries=[], trustees=[]
    )
    assert unsettled_directories(store) == []
    assert store.version == LAYOUT.version


def test_what_is_written_comes_back(store: Store) -> None:
    changes = RowChanges()
    store.commit(changes.of(EVERYTHING))
    assert read_contents(store) == Contents(
        objects=[BinderyObject(1, "SUPERVISOR", ObjectType.NWOT_USER), PEOPLE],
        next_object_id=0xFFFFFFFF,
        queues=[QueueRow(7, "SYS:7"), QUEUE],
        orders={7: (3, 999, 1), ID: (999,)},
        jobs=[(7, JOB), (ID, JOB)],
        entries=ENTRIES,
        trustees=TRUSTEES,
    )
    deleted = (DeleteObject(ID), DeleteQueue(7), DeleteJob(ID, 999), DeleteTrustee("SYS:A", ID))
    store.commit(changes.of(deleted))
    assert read_contents(store) == Contents(
        objects=[BinderyObject(1, "SUPERVISOR", ObjectType.NWOT_USER)],
        next_object_id=0xFFFFFFFF,
        queues=[QUEUE],
        orders={ID: (999,)},
        jobs=[],
        entries=ENTRIES,
        trustees=TRUSTEES[:1],
    )


def test_a_queue_that_was_restored_is_deleted_with_its_jobs(store: Store) -> None:
    store.commit(RowChanges().of(EVERYTHING))
    jobs = [(queue_id, job.job_number) for queue_id, job in read_contents(store).jobs]
    store.commit(RowChanges(jobs).of([DeleteQueue(ID)]))
    assert [key for key, _ in store.rows(NetwareTable.JOB)] == [job_key(7, 999)]


def test_directory_creation_and_removal_are_announced(store: Store) -> None:
    make, remove = MakeQueueDirectory(7, "SYS:7"), RemoveQueueDirectory(7, "SYS:7")
    store.commit(unsettled([make, PutQueue(QUEUE)]))
    assert unsettled_directories(store) == ["SYS:7"]
    store.commit(RowChanges().of([make]))
    assert unsettled_directories(store) == []
    assert not unsettled([remove])
    store.commit(RowChanges().of([remove]))
    assert unsettled_directories(store) == ["SYS:7"]
    store.commit(settled(["SYS:7"]))
    assert unsettled_directories(store) == []


# -- other files --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a user and a queue in it."""
    data = tmp_path_factory.mktemp("original") / "data"
    with attach(data, create=True) as local:
        local.call("object_create", name="ALICE", type="user")
        local.call("queue_create", name="Q", type="print", path="SYS:SYSTEM", user=["ALICE"])
    return data


@pytest.fixture
def data(tmp_path: Path, original: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(original, tmp_path / "data"))


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {LAYOUT.version + 1}")


def another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE object (key INTEGER PRIMARY KEY, content BLOB)")


def queue_manager(path: Path) -> None:
    path.unlink()
    DataFolder(path.parent).open_store(create=True).close()
    (path.parent / "queues.msmq").rename(path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def row_of(table: NetwareTable, content: bytes) -> Callable[[Path], None]:
    def overwrite(path: Path) -> None:
        with SqliteStore(path, LAYOUT) as store:
            changes = Changes()
            for key, _ in store.rows(table):
                changes.put(table, key, content)
            assert changes
            store.commit(changes)

    return overwrite


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        pytest.param(Path.unlink, StoreMissing, id="missing"),
        pytest.param(another_program, StoreForeign, id="another program"),
        pytest.param(queue_manager, StoreForeign, id="queue manager"),
        pytest.param(lambda path: path.write_bytes(b"no database at all" * 9), StoreForeign, id="text"),
        pytest.param(newer, StoreNewer, id="newer"),
        pytest.param(cut, StoreDamaged, id="cut"),
        pytest.param(row_of(NetwareTable.OBJECT, b'{"name":1}'), StoreDamaged, id="object"),
        pytest.param(row_of(NetwareTable.QUEUE, OUTSIDE), StoreDamaged, id="queue"),
        pytest.param(row_of(NetwareTable.ORDER, b"[1,1]"), StoreDamaged, id="order"),
        pytest.param(row_of(NetwareTable.META, b""), StoreDamaged, id="counter"),
    ],
)
def test_a_file_that_is_not_a_store_is_refused(
    data: Path, spoil: Callable[[Path], None], error: type[StoreError]
) -> None:
    spoil(data / STORE)
    before = (data / STORE).read_bytes() if (data / STORE).exists() else None
    with pytest.raises(StoreError) as caught:
        attach(data)
    assert type(caught.value) is error
    assert ((data / STORE).read_bytes() if (data / STORE).exists() else None) == before


def test_one_process_has_the_store(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmqwire.service.control.client.STARTING_S", 0.0)
    with NetwareFolder(data).open_store(create=False), pytest.raises(StoreInUse):
        attach(data)
    attach(data).close()


def test_a_folder_may_be_of_a_queue_manager_as_well(data: Path) -> None:
    with DataFolder(data).open_store(create=True), attach(data) as local:
        assert [queue["queue"] for queue in local.call("queue_list")["queues"]] == ["Q"]
