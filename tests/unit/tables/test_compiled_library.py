"""The library of compiled functions: what is called in it and how, when it is refused, and what it spares."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import weakref
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from msmqwire.tables.compiled import library
from msmqwire.tables.compiled.arrays import ArrayOf
from msmqwire.tables.compiled.calling import HEAD, Checked, CheckedEachTime, Record, caller, signature_of
from msmqwire.tables.compiled.certificates import codes_if, remember
from msmqwire.tables.compiled.decorators import EXPORTED, Exported
from msmqwire.tables.compiled.flow_events import discard
from msmqwire.tables.compiled.flow_table import compact, find
from msmqwire.tables.compiled.library import FOLDER, NAME, Refused, load
from tests.support.paths import EXAMPLES, ROOT

PATH = FOLDER / NAME
BUILT = pytest.mark.skipif(
    not PATH.exists() and "MSMQWIRE_TEST_COMPILED" not in os.environ, reason="make native"
)


def run(program: str, path: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    others = {name: value for name, value in os.environ.items() if name != "MSMQWIRE_ENGINE"}
    folder = path if path.is_dir() else path.parent
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=others | {"PYTHONPATH": str(path)} | environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip


# -- reading -----------------------------------------------------------------------------------------


@BUILT
def test_the_library_reads_without_a_compiler() -> None:
    program = (
        "import msmqwire, sys\n"
        f"rows = msmqwire.read_capture({str(EXAMPLES / 'session.pcap')!r}).num_rows\n"
        "print(rows, *{'numba', 'llvmlite'} & sys.modules.keys())"
    )
    assert run(program, MSMQWIRE_ENGINE="library").stdout == "8\n"


@BUILT
def test_the_library_is_chosen_where_it_is() -> None:
    program = (
        "import logging; logging.basicConfig(level=logging.DEBUG)\n"
        "from msmqwire.tables.compiled.engine import chosen; print(chosen().about)"
    )
    done = run(program)
    assert done.stdout == f"the library {PATH}\n"
    assert done.stderr == f"DEBUG:msmqwire.tables:captures are read by the library {PATH}\n"


STALE = """
from msmqwire.tables.compiled import library
library.stamp = lambda: "other"
from msmqwire.tables.compiled.engine import chosen
print(chosen().name)
"""


@BUILT
def test_a_library_of_other_sources_is_passed_over_with_a_line() -> None:
    done = run(STALE)
    assert done.stdout == "portable\n"
    assert done.stderr == f"{PATH} is not used: it was built from other sources; `make native` builds it\n"


@BUILT
def test_a_library_that_is_asked_for_and_stale_is_an_error() -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run(STALE, MSMQWIRE_ENGINE="library")
    assert f"InvalidArgument: MSMQWIRE_ENGINE: {PATH}: it was built from other sources" in caught.value.stderr


def test_an_engine_that_is_not_there_is_refused() -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run("from msmqwire.tables.compiled.engine import chosen; chosen()", MSMQWIRE_ENGINE="other")
    assert (
        "MSMQWIRE_ENGINE: 'other' is no engine: it can be library, portable, interpreted"
        in caught.value.stderr
    )


# -- files that are refused --------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return Path(shutil.copy(PATH, tmp_path / NAME))


@BUILT
def test_a_library_in_a_folder_that_is_ours_is_loaded(place: Path) -> None:
    shared, keeping = load(place)
    assert isinstance(shared, ctypes.CDLL)
    assert isinstance(keeping, ctypes.PyDLL)


@BUILT
@pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")
@pytest.mark.parametrize("writable", ["file", "folder", "ancestor"])
def test_a_library_that_others_can_write_is_refused(place: Path, writable: str) -> None:
    path = place
    if writable == "ancestor":
        place.parent.joinpath("inner").mkdir()
        path = place.rename(place.parent / "inner" / NAME)
    changed = path if writable == "file" else place.parent
    changed.chmod(changed.stat().st_mode | 0o002)
    with pytest.raises(Refused, match=f"others can write {changed}$"):
        load(path)


@BUILT
@pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")
def test_a_link_that_others_can_replace_is_refused(place: Path) -> None:
    """What it leads to is safe, but could be any library of a user who is trusted."""
    folder = place.parent / "shared"
    folder.mkdir()
    (folder / NAME).symlink_to(place)
    load(folder / NAME)
    folder.chmod(0o777)
    with pytest.raises(Refused, match=f"others can write {folder}$"):
        load(folder / NAME)


@BUILT
@pytest.mark.skipif(sys.platform == "win32" or not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root")
def test_a_group_writable_library_needs_its_users_own_group(place: Path) -> None:
    place.chmod(0o775)
    os.chown(place, -1, 0)
    load(place)
    os.chown(place, -1, 4711)
    with pytest.raises(Refused, match=f"others can write {place}$"):
        load(place)
    place.chmod(0o755)
    load(place)


@BUILT
@pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")
def test_a_library_of_another_user_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.stat

    def stat(path: Path, **options: Any) -> Any:
        status = real(path, **options)
        return SimpleNamespace(st_uid=4711, st_mode=status.st_mode) if path == place else status

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(Refused, match="others can write"):
        load(place)


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="can't be loaded"):
        load(tmp_path / NAME)
    (tmp_path / NAME).write_bytes(b"text")
    with pytest.raises(Refused, match="can't be loaded"):
        load(tmp_path / NAME)


def test_a_library_of_something_else_is_refused(tmp_path: Path) -> None:
    other = shutil.copy(sys.modules["_ctypes"].__file__ or "", tmp_path / NAME)
    with pytest.raises(Refused, match="can't be loaded"):
        load(Path(other))


def test_the_stamp_covers_compiled_sources_and_constants(tmp_path: Path) -> None:
    copy = shutil.copytree(
        ROOT / "msmqwire", tmp_path / "msmqwire", ignore=shutil.ignore_patterns("__pycache__")
    )

    def stamp() -> str:
        return run("from msmqwire.tables.compiled.library import stamp; print(stamp())", tmp_path).stdout

    def change(name: str, old: str, new: str) -> None:
        source = copy.joinpath(name).read_text(encoding="utf-8")
        assert old in source
        copy.joinpath(name).write_text(source.replace(old, new), encoding="utf-8")

    here = f"{library.stamp()}\n"
    assert stamp() == here
    change("capture/segment_buffer.py", "from __future__", "# a note\nfrom __future__")
    assert stamp() == here, "a source of another part, which gives the same constants"
    change("tables/compiled/tcp/reassembly.py", "from __future__", "# a note\nfrom __future__")
    compiled = stamp()
    assert compiled != here
    change("headers/acknowledgements.py", 'ACK_LABEL: Final = "QM', 'ACK_LABEL: Final = "XM')
    label = stamp()
    assert label not in (compiled, here), "an array of bytes that is made of a text of another part"


# -- in an archive -----------------------------------------------------------------------------------

WHICH = "from msmqwire.tables.compiled.engine import chosen; print(chosen().about)"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The package as Spark ships it to executors."""
    path = tmp_path / "msmqwire.zip"
    with zipfile.ZipFile(path, "w") as made:
        for file in [*(ROOT / "msmqwire").rglob("*.py"), *filter(Path.exists, [PATH])]:
            made.write(file, file.relative_to(ROOT))
    return path


@BUILT
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG_CACHE_HOME")
def test_an_archived_library_is_extracted_once_for_the_user(archive: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    done = run(WHICH, archive, XDG_CACHE_HOME=str(cache))
    (extracted,) = (cache / "msmqwire").iterdir()
    assert (done.stdout, done.stderr) == (f"the library {extracted}\n", "")
    assert extracted.read_bytes() == PATH.read_bytes()
    assert extracted.parent.stat().st_mode & 0o777 == 0o700
    first = extracted.stat()
    assert run(WHICH, archive, XDG_CACHE_HOME=str(cache)).stdout == done.stdout
    assert extracted.stat() == first


@BUILT
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG_CACHE_HOME")
@pytest.mark.parametrize("why", ["can't be made", "others can write it"])
def test_a_useless_cache_sends_the_library_to_another_folder(archive: Path, tmp_path: Path, why: str) -> None:
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    temporary.mkdir()
    if why == "can't be made":
        cache.write_bytes(b"")
    else:
        (cache / "msmqwire").mkdir(parents=True)
        (cache / "msmqwire").chmod(0o777)
    done = run(WHICH, archive, XDG_CACHE_HOME=str(cache), TMPDIR=str(temporary))
    (extracted,) = (temporary / f"msmqwire-{os.geteuid()}").iterdir()
    assert (done.stdout, done.stderr) == (f"the library {extracted}\n", "")
    assert cache.is_file() or list((cache / "msmqwire").iterdir()) == []


@BUILT
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG_CACHE_HOME")
def test_an_archive_without_an_extraction_folder_uses_python(archive: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.write_bytes(b"")
    (tmp_path / f"msmqwire-{os.geteuid()}").write_bytes(b"")
    done = run(WHICH, archive, XDG_CACHE_HOME=str(cache), TMPDIR=str(tmp_path))
    assert done.stdout == "the portable reader, in Python\n"
    assert f"{NAME} is not used: it can't be extracted: " in done.stderr


def test_an_archive_without_the_library_is_read_by_python(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(tmp_path / "pure.zip", "w") as pure:
        for name in whole.namelist():
            if not name.endswith(NAME):
                pure.writestr(name, whole.read(name))
    done = run(WHICH, tmp_path / "pure.zip", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (done.stdout, done.stderr) == ("the portable reader, in Python\n", "")
    assert not (tmp_path / "cache").exists()


# -- calls -------------------------------------------------------------------------------------------


class Native:
    """A function of a library that notes its arguments, and returns numbers."""

    def __init__(self, *results: int) -> None:
        self.calls: list[tuple[int, ...]] = []
        self._results = results

    def __call__(self, arguments: bytes, results: Any) -> None:
        self.calls.append(struct.unpack(f"{len(arguments) // 8}q", arguments))
        results[:] = self._results


def call(function: Any, native: Native, *arguments: Any) -> Any:
    assert isinstance(function, Exported)
    return caller(function, native)(CheckedEachTime())(*arguments)


def test_all_exported_functions_can_be_called() -> None:
    library.modules()
    assert len(EXPORTED) >= 40
    signatures = {entry.name: signature_of(entry.function) for entry in EXPORTED}
    assert signatures["packet_session_packet"].results == (int,)
    assert signatures["flow_events_discard"].results == (int,)
    assert signatures["flow_table_compact"].results == (int, int)
    parameters = signatures["certificates_remember"].parameters
    assert parameters["memory"] == ArrayOf("uint8", 1, is_written=False)
    assert isinstance(parameters["judged"], Record)
    assert parameters["number"] is int


def test_arrays_are_passed_as_the_addresses_of_their_objects() -> None:
    table, keys, header = np.zeros(8, np.int32), np.zeros((3, 6), np.int64), np.zeros(11, np.int64)
    native = Native(2)
    assert call(find, native, table, keys, header, np.int64(7)) == 2
    assert native.calls == [(HEAD, id(table), id(keys), id(header), 7)]


def test_records_are_passed_as_arrays_and_results_are_typed() -> None:
    def arrays(record: Any) -> Any:
        return record.kind(*(np.zeros([2] * field.dimensions, field.kind) for field in record.fields))

    assert isinstance(discard, Exported)
    parameters = signature_of(discard.function).parameters
    records = [arrays(parameters[name]) for name in ("arrays", "flow_arrays")]
    native = Native(1)
    assert call(discard, native, *records, 5) == 1
    assert native.calls == [(HEAD, *(id(array) for record in records for array in record), 5)]
    rows, numbers, data = np.zeros((1, 6), np.int64), np.zeros(1, np.int64), np.zeros(4, np.uint8)
    assert call(compact, Native(3, 4), rows, numbers, rows, data, rows, data) == (3, 4)


def test_arrays_are_checked_again_only_when_replaced() -> None:
    assert isinstance(find, Exported)
    table, keys, header = np.zeros(8, np.int32), np.zeros((3, 6), np.int64), np.zeros(11, np.int64)
    native, checked = Native(2), Checked()
    repeated = caller(find, native)(checked)
    repeated(table, keys, header, 7)
    packed = checked.packed
    assert struct.unpack("5q", packed) == (HEAD, id(table), id(keys), id(header), 7)
    repeated(table, keys, header, 7)
    assert checked.packed is packed
    with pytest.raises(TypeError, match="table"):
        repeated(np.zeros(8, np.int64), keys, header, 7)
    assert (checked.packed, len(native.calls)) == (packed, 2)
    kept = weakref.ref(table)
    del table
    assert kept() is not None, "its address could be that of another array"
    repeated(np.zeros(4, np.int32), keys, header, 7)
    assert kept() is None


def test_arrays_of_single_calls_are_not_kept_alive() -> None:
    table, keys, header = np.zeros(8, np.int32), np.zeros((3, 6), np.int64), np.zeros(11, np.int64)
    kept = weakref.ref(table)
    call(find, Native(2), table, keys, header, 7)
    del table
    assert kept() is None


CODES, VALID = np.zeros(4, np.int32), np.ones(4, np.bool_)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(4, np.int64),
        np.zeros((4, 1), np.int32),
        np.zeros(8, np.int32)[::2],
        np.frombuffer(bytes(16), np.int32),
        np.zeros(4, ">i4"),
    ],
    ids=["type", "dimensions", "gaps", "read-only", "byte order"],
)
def test_an_array_of_another_kind_is_refused(wrong: Any) -> None:
    native = Native()
    with pytest.raises(TypeError, match="chosen is no ArrayOf"):
        call(codes_if, native, CODES, VALID, wrong)
    with pytest.raises(TypeError, match="chosen is no ArrayOf"):
        call(codes_if, native, CODES, VALID, None)
    assert native.calls == []


def test_bytes_that_are_only_read_need_not_be_writable() -> None:
    assert isinstance(remember, Exported)
    judged = signature_of(remember.function).parameters["judged"]
    assert isinstance(judged, Record)
    record = judged.kind(*(np.zeros(4, field.kind) for field in judged.fields))
    native = Native()
    call(remember, native, record, 0, np.frombuffer(b"abcd", np.uint8), 0, 4, 0)
    assert len(native.calls) == 1


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1, np.uint64(1 << 63)])
def test_integers_beyond_64_bits_are_refused_and_do_not_wrap(number: Any) -> None:
    table, keys, header = np.zeros(8, np.int32), np.zeros((3, 6), np.int64), np.zeros(11, np.int64)
    native = Native(0)
    with pytest.raises(OverflowError, match="seed"):
        call(find, native, table, keys, header, number)
    with pytest.raises(TypeError):
        call(find, native, table, keys, header, 1.5)
    assert native.calls == []
    assert call(find, native, table, keys, header, -(1 << 63)) == 0


def unclear(data: Any) -> int:
    raise AssertionError


def text(number: int) -> str:
    raise AssertionError


@pytest.mark.parametrize("function", [unclear, text])
def test_what_can_not_be_passed_is_refused_when_it_is_declared(function: Any) -> None:
    with pytest.raises(TypeError):
        signature_of(function)
