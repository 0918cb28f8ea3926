"""``msmqwire fate``: output and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from msmqwire.analysis.fate import State
from msmqwire.cli import app
from msmqwire.cli.captures.fate import duration
from tests.support import handmade as h
from tests.support.capture.fate_captures import (
    RECEIVER,
    RECEIVER_QM,
    Link,
    acknowledgement,
    capture,
    identity,
    message,
    session_ack,
)

RUNNER = CliRunner()
ORDERS = f"PRIVATE={RECEIVER_QM}\\00000009"
OTHERS = f"PRIVATE={RECEIVER_QM}\\0000000a"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two messages that arrive, one that is refused, one that is sent again, one that hangs."""
    link = Link()
    link.send(message(1, body=b"12345")).send(message(2, acks=15))
    link.send(message(3, user={"destination": (3, h.private_id(10))})).send(
        message(3, user={"destination": (3, h.private_id(10))})
    )
    link.answer(session_ack(ack=4)).answer(acknowledgement(2, 0x8003))
    link.send(message(4, label="or\x1b[31mder"))
    path = tmp_path / "a.pcap"
    path.write_bytes(capture(link).read())
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    result = RUNNER.invoke(app, ["fate", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def objects(*arguments: object) -> list[dict]:
    status, output, _ = run(*arguments, "--json")
    assert status == 0
    return [json.loads(line) for line in output.splitlines()]


def test_for_people(path):
    status, output, errors = run(path)
    assert (status, errors) == (0, "")
    blocks = output.split("\n\n")
    assert len(blocks) == 4
    assert blocks[1].splitlines()[0].endswith(f"Z  {identity(2)}  order 2  {ORDERS}")
    assert blocks[1].splitlines()[1].startswith("  refused, NACK_Q_EXCEED_QUOTA, received after ")
    assert (
        f"  the queue manager at {RECEIVER} answered MQMSG_CLASS_NACK_Q_EXCEED_QUOTA: the queue is full"
        in output
    )
    assert ", 1 retransmission\n" in blocks[2]
    assert "  sent (stuck)\n" in blocks[3]
    assert "\x1b" not in output
    assert "or\\x1b[31mder" in output


def test_events(path):
    _, output, _ = run(path, "--events", "--label", "order 2")
    lines = output.splitlines()
    assert len(lines) == 6
    assert lines[-1].endswith("acknowledgement  NACK_Q_EXCEED_QUOTA")


def test_json(path):
    first, second, third, fourth = objects(path)
    assert (first["identity"], first["state"], first["body_size"]) == (identity(1), "received", 5)
    assert second["reason"] == "NACK_Q_EXCEED_QUOTA"
    assert [event["what"] for event in second["events"]] == ["sent", "received", "acknowledgement"]
    assert set(second["latencies"]) == {"received", "refused"}
    assert third["retransmissions"] == 1
    assert (fourth["stuck"], fourth["label"]) == (True, "or\x1b[31mder")
    assert first["sent"].endswith("Z")
    assert first["events"][0]["file"] == str(path)


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (("--stuck",), [4]),
        (("--state", "REFUSED"), [2]),
        (("--state", "received", "--state", "sent"), [1, 3, 4]),
        (("--queue", "*0000000A"), [3]),
        (("--label", "order ?"), [1, 2, 3]),
        (("--label", "order ?", "--state", "sent"), []),
    ],
)
def test_filters(path, options, numbers):
    assert [fate["message_id"] for fate in objects(path, *options)] == numbers


@pytest.mark.parametrize("state", State)
def test_every_state_can_be_chosen(path, state):
    chosen = [fate["message_id"] for fate in objects(path) if fate["state"] == state]
    assert [fate["message_id"] for fate in objects(path, "--state", state.value)] == chosen


def test_summary(path):
    first, second = objects(path, "--summary")
    assert (first["queue"], first["messages"], first["bytes"], first["stuck"]) == (ORDERS, 3, 5, 1)
    assert first["states"] == {"received": 1, "refused": 1, "sent": 1}
    assert first["reasons"] == {"NACK_Q_EXCEED_QUOTA": 1}
    assert first["stuck_messages"] == [identity(4)]
    assert first["latencies"]["received"]["count"] == 2
    assert first["latencies"]["received"]["max"] > first["latencies"]["received"]["p50"] > 0
    assert (second["queue"], second["retransmissions"]) == (OTHERS, 1)
    status, output, _ = run(path, "--summary")
    assert status == 0
    assert output.splitlines()[:2] == [ORDERS, "  3 messages, 5 bytes: 1 received, 1 refused, 1 sent"]
    assert f"  1 stuck: {identity(4)}" in output


def test_acknowledgements_on_request(path):
    assert [fate["message_class"] for fate in objects(path, "--acknowledgements")].count(
        "NACK_Q_EXCEED_QUOTA"
    ) == 1


def test_a_capture_that_is_cut_off(path):
    path.write_bytes(path.read_bytes()[:-7])
    status, output, errors = run(path, "--json")
    assert status == 65
    assert len(output.splitlines()) == 4
    assert json.loads(errors)["error"].startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--json", "--table"), 2),
        (("--state", "lost"), 2),
        (("--events", "--summary"), 2),
        (("--port", "0"), 2),
    ],
)
def test_wrong_usage(path, options, status):
    assert run(path, *options)[0] == status


def test_a_missing_file(tmp_path):
    status, output, errors = run(tmp_path / "none.pcap")
    assert (status, output) == (66, "")
    assert "none.pcap" in json.loads(errors)["error"]


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1500, "1.5 µs"),
        (35_000_000, "35 ms"),
        (1_204_000_000, "1.204 s"),
        (10**14, "100000 s"),
    ],
)
def test_durations(ns, text):
    assert duration(ns) == text
