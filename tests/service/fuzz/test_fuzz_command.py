"""`msmqwire fuzz`: its options, what it prints and its exit status."""

from __future__ import annotations

import json
import socket

import pytest

from tests.support.own_addresses import own_loopback
from tests.support.peers.fuzzed_peer import QUEUE, TRANSACTIONAL, fuzzed_peer
from tests.support.running import called

QUEUES = ("--queue", QUEUE, "--transactional-queue", TRANSACTIONAL)


def test_a_right_peer(tmp_path):
    address = own_loopback(33)
    with fuzzed_peer(address) as peer:
        run = called(
            "fuzz",
            f"{address}:{peer.port}",
            *QUEUES,
            "--time",
            "2",
            "--bound",
            "10",
            "--out",
            tmp_path / "out",
            "--json",
        )
    assert run.status == 0
    document = json.loads(run.out)
    assert document["failures"] == []
    assert document["packets"] > 50
    assert document["coverage"]["requirements"]["MQQB-3.1.5.8-01"] > 0
    assert document["coverage"]["kinds"]["UserMessage"] > 0
    assert run.err.splitlines()[0].startswith(f"Testing binary at {address}:{peer.port} for 2 s with seed 0")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("option", ["--queue", "--transactional-queue"])
def test_a_queue_that_the_peer_does_not_have(tmp_path, option):
    address = own_loopback(39)
    with fuzzed_peer(address) as peer:
        at, out = f"{address}:{peer.port}", tmp_path / "out"
        run = called("fuzz", at, *QUEUES, option, "private$\\none", "--time", "60", "--out", out)
    assert (run.status, run.out) == (2, "")
    assert "the peer does not have the queue" in run.err
    assert "NACK_BAD_DST_Q" in run.err
    assert "private$\\\\none; name one that it has with --queue or --transactional-queue" in run.err
    assert not out.exists()


def test_a_wrong_peer_and_its_seed(tmp_path):
    address = own_loopback(34)
    with fuzzed_peer(address, "takes messages before the handshake") as peer:
        at = f"{address}:{peer.port}"
        run = called("fuzz", at, *QUEUES, "--time", "3", "--bound", "0.5", "--out", tmp_path)
        assert run.status == 1
        assert "MQQB-3.1.5.8-01" in run.out
        assert "found: MQQB-3.1.5.8-01: " in run.err
        seeds = {name: json.loads(name.read_text()) for name in tmp_path.glob("failure_*.json")}
        [seed] = [name for name, kept in seeds.items() if "MQQB-3.1.5.8-01" in kept["requirements"]][:1]
        again = called("fuzz", at, "--replay", seed, "--out", tmp_path / "again", "--bound", "0.5", "--json")
        assert again.status == 1
        [failure] = json.loads(again.out)["failures"]
        assert set(failure) >= {"requirements", "text", "packets", "pcap", "seed", "test", "cases"}
        assert failure["requirements"] == ["MQQB-3.1.5.8-01"]
        assert {(tmp_path / "again" / failure[name]).is_file() for name in ("pcap", "seed", "test")} == {True}
    with fuzzed_peer(address) as peer:
        right = called(
            "fuzz", f"{address}:{peer.port}", "--replay", seed, "--out", tmp_path / "right", "--json"
        )
        assert (right.status, json.loads(right.out)["failures"]) == (0, [])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["192.0.2.1:1801"], "name it once more with --consent 192.0.2.1"),
        (["192.0.2.1:1801", "--consent", "192.0.2.2"], "name it once more"),
        (["127.0.0.1"], "HOST:PORT"),
        (["127.0.0.1:1801", "--protocol", "http"], "is not a protocol"),
        (["127.0.0.1:1801", "--port", "srmp"], "PROTOCOL=PORT"),
        (["127.0.0.1:1801", "--port", "http=80"], "is not a protocol"),
        (["127.0.0.1:1801", "--time", "0"], "above 0"),
        (["127.0.0.1:1801", "--bound", "nan"], "is not a number, as 2.5"),
    ],
)
def test_wrong_usage(options, why):
    run = called("fuzz", *options)
    assert run.status == 2
    assert why in json.loads(run.err)["error"]


def test_a_peer_that_is_not_there(tmp_path):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # and does not listen
        run = called(
            "fuzz", f"127.0.0.1:{sock.getsockname()[1]}", "--protocol", "binary", "--out", tmp_path / "out"
        )
    assert run.status == 69
    assert "no connection" in json.loads(run.err.splitlines()[-1])["error"]
    assert not (tmp_path / "out").exists()


def test_seed_files_that_are_none(tmp_path):
    assert called("fuzz", "127.0.0.1:1801", "--replay", tmp_path / "none.json").status == 66
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    run = called("fuzz", "127.0.0.1:1801", "--replay", wrong)
    assert run.status == 65
    assert json.loads(run.err)["error"].startswith("not a seed file")
