"""Coverage-guided fuzzing: kept inputs through their targets, faults that are planted, guards of arrays."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from fuzz.readers import crypto, management, names, packets, pgm, srmp, stub_checks, tally
from fuzz.readers.__main__ import main
from fuzz.readers.corpora import CORPORA, REGRESSIONS, corpus, keep, regressions
from fuzz.readers.guarded import GuardedNumpy
from fuzz.readers.registry import Target, all_targets, load
from fuzz.readers.runner import Result, run
from fuzz.readers.shrink import shrunk, what_is_wrong
from fuzz.readers.tracing import fewest, lines_of, steps_of
from msmqwire.capture import source
from msmqwire.framing import Framer
from msmqwire.names import parse_path_name
from msmqwire.ncp import packet_json
from msmqwire.ncp.framing import NcpFramer
from msmqwire.ncp.packets import NcpRequest
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.rpc.pdu import PduFramer
from msmqwire.schema.codec import Codec
from msmqwire.srmp.multipart import Multipart
from msmqwire.tables.compiled import engine
from msmqwire.tables.scanning import row_buffer
from tests.support.installed import library
from tests.support.paths import ROOT
from tools.pages import fuzzing_docs

TARGETS = {target.name: target for target in all_targets()}
EVERY_TARGET = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)


TAKES = {"crypto.session-keys": "Cryptodome", "captures.records": "zstandard"}
"""Libraries of extras that the inputs of a target are for."""


def replay(target: Target) -> int:
    """Check all inputs that a target is known to reach something with; return how many there are."""
    if target.name in TAKES:
        library(TAKES[target.name])
    inputs = [*target.seeds(), *corpus(target.name), *regressions(target.name).values()]
    for data in inputs:
        target.check(data)
    return len(inputs)


@EVERY_TARGET
def test_kept_inputs_hold(target: Target) -> None:
    assert replay(target)


def test_what_is_kept_belongs_to_targets_and_is_small() -> None:
    assert {path.stem for path in CORPORA.iterdir()} == TARGETS.keys()
    assert {path.name for path in REGRESSIONS.iterdir() if path.is_dir()} <= TARGETS.keys()
    assert sum(path.stat().st_size for path in CORPORA.iterdir()) < 1 << 20
    for name, target in TARGETS.items():
        assert 0 < max(map(len, corpus(name))) <= target.size_max
        assert all(len(word) < 128 for word in target.words())


def test_the_page_has_what_was_counted() -> None:
    assert fuzzing_docs.main(["--check"]) == 0
    counted = tally.read(fuzzing_docs.TALLY)
    assert counted.keys() == TARGETS.keys()
    assert all(row.executions > 0 for row in counted.values())


def test_one_target_is_loaded_by_its_name() -> None:
    assert load("rpc.towers") is TARGETS["rpc.towers"]
    for name in ("rpc.nothing", "registry.load"):
        with pytest.raises(KeyError):
            load(name)


# -- faults that are planted ---------------------------------------------------------------------------


def forgets(feed: Callable[..., Any]) -> Callable[..., Any]:
    """A framer that drops what is left of a piece if that is short."""

    def broken(self: Any, data: bytes) -> Any:
        found = feed(self, data)
        if len(self._buffer) < 3:
            self._buffer.clear()
        return found

    return broken


def drops_what_is_behind(parse: Callable[..., NcpRequest]) -> Callable[..., NcpRequest]:
    return lambda *arguments: replace(parse(*arguments), trailing=b"")


def raises_a_size(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda preamble, size, fields: make(preamble, size + 1, {**fields, "Length": {}})


def shifts(read: Callable[..., Any]) -> Callable[..., Any]:
    """A reader or writer whose offsets are one too large."""

    def broken(*arguments: Any) -> Any:
        found = read(*arguments)
        return found + 1 if isinstance(found, int) else (found[0], found[1] + 1)

    return broken


def returns(value: Any) -> Callable[[Any], Callable[..., Any]]:
    """A function that returns always the same."""
    return lambda _: lambda *arguments, **options: value


def reads_without_folder(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: parse(text.replace("private$\\", ""))


def loses_a_byte(build: Callable[..., bytes]) -> Callable[..., bytes]:
    return lambda *arguments: build(*arguments)[:-1] + b"\0"


def raises(_: Any) -> Callable[..., Any]:
    def broken(self: Any, request: dict[str, Any]) -> Any:
        return request["no such name"]

    return broken


def turns_round(key_of: Callable[..., Any]) -> Callable[..., Any]:
    return lambda src, src_port, dst, dst_port: key_of(dst, dst_port, src, src_port)


PLANTED = [
    ("packets.session", packets, "build", loses_a_byte),
    ("packets.headers", Codec, "read", shifts),
    ("packets.stream", Framer, "feed", forgets),
    ("names.texts", names, "parse_path_name", reads_without_folder),
    ("crypto.descriptors", crypto, "access_allowed", returns(True)),
    ("pgm.packets", pgm, "checksum_is_right", returns(False)),
    ("ndr.stubs", stub_checks, "build_stub", loses_a_byte),
    ("management.stubs", management, "plain_json", returns((1,))),
    ("rpc.stream", PduFramer, "feed", forgets),
    ("srmp.parts", Multipart, "content_offset", shifts),
    ("srmp.queued", srmp, "verify", returns(None)),
    ("netware.requests", packet_json, "parse_request", drops_what_is_behind),
    ("netware.replies", packet_json, "make_preamble", raises_a_size),
    ("netware.stream", NcpFramer, "add", forgets),
    ("captures.records", source, "_until_damage", returns(())),
    ("control.operations", LocalSession, "run", raises),
    ("columns.segments", row_buffer, "key_of", turns_round),
]


@pytest.mark.parametrize("name, owner, attribute, breaks", PLANTED, ids=[planted[0] for planted in PLANTED])
def test_a_broken_reader_is_caught(
    name: str, owner: Any, attribute: str, breaks: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if owner is row_buffer and engine.chosen().name == engine.PORTABLE:
        pytest.skip("without compiled code there is one reader of columns, which is compared with itself")
    monkeypatch.setattr(owner, attribute, breaks(getattr(owner, attribute)))
    with pytest.raises(AssertionError):
        replay(TARGETS[name])


PLANTED_AT_START = """
from fuzz.readers import registry

load = registry.load

def load_with_fault(name):
    target = load(name)
    from fuzz.readers import names

    parse = names.parse_path_name

    def parse_wrongly(text):
        name = parse(text)
        if "~%~" in name.queue:
            raise IndexError("planted")
        return name

    names.parse_path_name = parse_wrongly
    return target

registry.load = load_with_fault
"""


@pytest.mark.skipif(find_spec("atheris") is None, reason="there is no atheris for this system")
def test_atheris_finds_a_planted_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another process, instrumented, from inputs that do not have it; what is reported is small."""
    (tmp_path / "sitecustomize.py").write_text(PLANTED_AT_START)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    target = replace(TARGETS["names.texts"], words=lambda: [b"~%~"])
    assert not any(b"~%~" in data for data in (*target.seeds(), *corpus(target.name)))
    result = run(target, tmp_path, runs=200_000)
    assert result.executions > 20
    assert result.edges > 50
    (finding,) = result.findings
    assert finding.kind == "IndexError"
    found = Path(finding.file).read_bytes()
    assert b"~%~" in found
    assert len(found) < 20
    assert json.loads(json.dumps(result.to_json()))["findings"][0]["file"] == finding.file


# -- what a run is made of -----------------------------------------------------------------------------


def fails_on_two_marks(data: bytes) -> None:
    if data.count(b"!") >= 2:
        raise ValueError(data)


def test_the_command_lists_its_targets_and_refuses_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["fuzz.readers", "--list"])
    assert main() == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(TARGETS)
    monkeypatch.setattr("sys.argv", ["fuzz.readers", "--target", "names.text", "--runs", "1"])
    assert main() == 2
    message = capsys.readouterr().err
    assert "names.texts" in message
    assert "--list prints all" in message


def test_findings_are_made_small() -> None:
    assert shrunk(fails_on_two_marks, b"some ! text ! of ! marks" * 9, until=lambda: False) == b"!!"
    assert shrunk(fails_on_two_marks, b"none", until=lambda: False) == b"none"
    wrong = what_is_wrong(fails_on_two_marks, b"!!")
    assert wrong is not None
    assert (wrong.kind, wrong.place.partition(",")[0]) == ("ValueError", "fails_on_two_marks")


def test_the_fewest_inputs_take_all_steps() -> None:
    def check(data: bytes) -> None:
        parse_path_name(data.decode())

    short, long = rb"h\q", rb"longer\queue"
    assert fewest(check, [long, short], 100) == [short]
    other = rb"h\q;s"
    assert fewest(check, [long, other, short], 100) == [short, other]
    assert fewest(check, [other, short], 4) == [short]
    path = ROOT / "msmqwire/names/paths.py"
    lines = {line for file, line, _ in steps_of(check, other) if file == str(path)}
    assert lines
    assert lines <= lines_of(path)


def test_the_tally_adds_up(tmp_path: Path) -> None:
    path = tmp_path / "tally.tsv"
    for executions, edges in ((10, 7), (5, 6)):
        tally.add(path, Result("a.b", executions, 1.0, edges, 2, 3))
    assert tally.read(path) == {"a.b": tally.Tally("a.b", 15, 7, 2, 0)}


def test_inputs_are_kept_short_ones_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.readers.corpora.CORPORA", tmp_path)
    keep("a.b", [b"longer", b"", b"b", b"a", b"b"])
    assert corpus("a.b") == [b"a", b"b", b"longer"]


# -- guards of arrays ----------------------------------------------------------------------------------


def signal_of(action: Callable[[], object]) -> int:
    """Return the signal that ends a process that does something; 0 for none."""
    child = os.fork()
    if not child:
        faulthandler.disable()
        action()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_what_is_behind_a_guarded_array_ends_the_process() -> None:
    numpy = GuardedNumpy(0xAA)
    for array in (numpy.empty(5000, np.uint8), numpy.zeros((3, 7), np.int64), numpy.full(9, 1)):
        flat = array.reshape(-1)
        beyond = as_strided(flat, (flat.size + 1,))
        assert signal_of(lambda beyond=beyond: beyond[-2]) == 0
        assert signal_of(lambda beyond=beyond: beyond[-1]) == signal.SIGSEGV
    numpy.check()


def test_what_is_before_a_guarded_array_is_noticed() -> None:
    numpy = GuardedNumpy(0)
    array = numpy.zeros(100, np.uint8)
    before = as_strided(array[::-1], (101,))
    before[100] = 1
    with pytest.raises(AssertionError, match="before the start"):
        numpy.check()


def test_what_is_not_initialised_has_the_pattern() -> None:
    assert (GuardedNumpy(0xAA).empty((2, 3), np.int16) == np.int16(-0x5556)).all()
    assert not GuardedNumpy(0xAA).zeros(10, np.int64).any()
