"""``msmqwire queue why`` and ``msmqwire manage HOST --why``: the same words, from a folder and from afar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.constants import ManagementMachineProperty as M
from msmqwire.constants import VarEnum
from msmqwire.management.variants import variant
from msmqwire.qm.model.enumerations import ManageAccess
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.rpc.constants import AuthLevel
from tests.support.rpc.management_server import ManagedMachine, managed_machine
from tests.support.running import ADDRESS, ORDERS, Run, called, options, put, recoverable, served, until
from tests.support.terminal import on_a_terminal

BILLS = r"DIRECT=OS:other\private$\bills"
NOWHERE = r"DIRECT=OS:nowhere.invalid\PRIVATE$\x"
AGE = re.compile(r"(?:just now|\d+ seconds? ago)")


@pytest.fixture
def machine() -> Iterator[ManagedMachine]:
    with managed_machine() as machine:
        machine.has_private("orders", 3)
        machine.has_outgoing(r"other\private$\bills", 7)
        yield machine


def manage(machine: ManagedMachine, *words: str | Path) -> Run:
    return called("manage", "127.0.0.1", *words, "--rpc-port", str(machine.port))


# -- another computer ----------------------------------------------------------------------------------------


def test_a_stuck_queue_of_another_computer(machine: ManagedMachine) -> None:
    told = manage(machine, "--why", BILLS)
    assert told.status == 0
    state, history, eod = [line for line in told.out.splitlines() if line.startswith("- ")]
    assert state == "- Its state is WAITING; it holds 7 messages (700 bytes). Next hop: IP=10.0.0.9."
    assert history.startswith("- The last connection failed at 2023-11-14 22:13:20 UTC, ")
    assert "error 0xC00E0027 (the queue manager has no room left for the message or call)" in history
    assert eod == "- 7 transactional messages lack their order acknowledgement; none ever came."
    assert "msmqwire ping 10.0.0.9 --session" in told.out


def test_json_has_the_report_with_the_advice(machine: ManagedMachine) -> None:
    found = manage(machine, "--why", BILLS, "--json").one
    assert (found["state"], found["messages"]) == ("WAITING", 7)
    assert [one.keys() for one in found["why"]] == [{"fact", "meaning", "action"}] * 3
    reported = manage(machine, "queue", BILLS).one
    assert {name: value for name, value in found.items() if name != "why"} == reported


def test_a_computer_off_the_network(machine: ManagedMachine) -> None:
    machine.machine[M.PROPID_MGMT_MSMQ_CONNECTED] = variant(VarEnum.VT_LPWSTR, "DISCONNECTED")
    first, *_ = manage(machine, "--why", BILLS, "--json").one["why"]
    assert first["fact"] == "The queue manager is disconnected from the network."
    assert first["action"] == "Connect it: msmqwire manage 127.0.0.1 connect."


@pytest.mark.parametrize(
    "words, status, told",
    [
        (("queues", "--why", BILLS), 2, "it goes with no command, as 'queues'"),
        (("--why", "private$"), 2, "private$"),
        (("--why", BILLS, "--watch"), 2, "--why is done once"),
        (("--why", BILLS, "--queues", "x"), 2, "it is for the list: queues"),
        (("--why", r"private$\ordrs"), 66, "there is no such queue"),
    ],
)
def test_wrong_usage(machine: ManagedMachine, words: tuple[str, ...], status: int, told: str) -> None:
    done = manage(machine, *words)
    assert (done.status, done.out) == (status, "")
    assert told in json.loads(done.err)["error"]


def test_a_queue_that_nobody_may_ask_for(machine: ManagedMachine) -> None:
    machine.denied = 0xC00E0025
    done = manage(machine, "--why", BILLS)
    assert (done.status, done.out) == (69, "")


# -- a folder ------------------------------------------------------------------------------------------------


def test_a_folder_without_a_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    called("queue", "create", ORDERS, "--data", data)
    called("send", NOWHERE, "--recoverable", "--body", "x", "--data", data)
    expected = (
        f"{NOWHERE}\n"
        "- No server runs on the folder.\n"
        "  Nothing is sent or received until one does.\n"
        f"  What to do: Start it: msmqwire serve --data {data}.\n"
        "- It is an outgoing queue; it holds 1 message (SIZE bytes).\n"
        "  What it holds is sent once a server runs.\n"
    )
    for words in (
        ("why", NOWHERE, "--data", data),
        ("--why", NOWHERE, "--data", data),
        ("--data", data, "--why", NOWHERE),
    ):
        told = called("queue", *words)
        assert told.status == 0, told.err
        assert re.sub(r"\d+ bytes", "SIZE bytes", told.out) == expected
    assert on_a_terminal("queue", "why", NOWHERE, "--data", data).startswith(NOWHERE)


@pytest.mark.parametrize(
    "words, status, told",
    [
        (("why", r"private$\ordrs"), 66, rf"did you mean {ORDERS}?"),
        (("why", "orders;x;y"), 2, "';' can't stand here"),
        (("--why",), 2, "it is missing, as in msmqwire queue why"),
        (("why", ORDERS, "--jsn"), 2, "did you mean --json?"),
    ],
)
def test_a_mistyped_queue_of_a_folder(tmp_path: Path, words: tuple[str, ...], status: int, told: str) -> None:
    data = tmp_path / "data"
    called("queue", "create", ORDERS, "--data", data)
    done = called("queue", *words, "--data", data)
    assert (done.status, done.out) == (status, "")
    assert told in json.loads(done.err)["error"]


def test_a_paused_queue_and_one_without_an_address_of_a_server(tmp_path: Path) -> None:
    with served(options(tmp_path / "data", ORDERS)) as running:
        with attach(running.data) as local:
            put(local, ORDERS, *recoverable(b"1", b"2"))
            local.call("send", to=NOWHERE, messages=recoverable(b"1"))
            until(
                lambda: local.call("report", queue=NOWHERE)["report"]["connection_history"],
                "an attempt to connect",
            )
        told = called("queue", "why", NOWHERE, "--data", running.data).out
        assert told.startswith(f"{NOWHERE}\n- Its state is NEED VALIDATION; it holds 1 message ")
        assert ": the name of the destination has no address, error 0xC00E0069 " in told
        assert called("queue", "set", NOWHERE, "--pause", "--data", running.data).status == 0
        [paused, *_] = called("queue", "why", NOWHERE, "--json", "--data", running.data).one["why"]
        assert paused["meaning"] == "The queue is paused, and nothing is sent."
        assert (
            paused["action"] == f"Resume it: msmqwire queue set '{NOWHERE}' --data {running.data} --resume."
        )
        command = paused["action"].removeprefix("Resume it: msmqwire ").removesuffix(".")
        assert called(*command.replace("'", "").split()).status == 0
        assert called("queue", "show", NOWHERE, "--data", running.data).one["state"] != "OnHold"
        of_orders = called("queue", "why", ORDERS, "--data", running.data).out
        assert "- It is a local queue; it holds 2 messages (" in of_orders


def test_both_commands_say_the_same(tmp_path: Path) -> None:
    rpc = RpcOptions((ADDRESS, 0), level=AuthLevel.NONE, manage=ManageAccess.CALLERS)
    with served(options(tmp_path / "data", ORDERS, rpc=rpc)) as running:
        port = running.do(lambda server: server.rpc_network.listen[1])
        with attach(running.data) as local:
            put(local, ORDERS, *recoverable(b"1"))
            local.call("send", to=NOWHERE, messages=recoverable(b"1"))
            local.call("set", queue=NOWHERE, paused=True)
        for queue in (ORDERS, NOWHERE):
            ours = called("queue", "why", queue, "--data", running.data)
            theirs = called("manage", ADDRESS, "--rpc-port", str(port), "--why", queue)
            assert (ours.status, theirs.status) == (0, 0), theirs.err
            resume = f"msmqwire queue set '{NOWHERE}' --data {running.data} --resume"
            by_manage = ours.out.replace(resume, f"msmqwire manage {ADDRESS} resume '{NOWHERE}'")
            assert AGE.sub("AGE", theirs.out) == AGE.sub("AGE", by_manage)
        assert called("manage", ADDRESS, "disconnect", "--yes", "--rpc-port", str(port)).status == 0
        for told in (
            called("queue", "why", NOWHERE, "--json", "--data", running.data).one,
            called("manage", ADDRESS, "--rpc-port", str(port), "--why", NOWHERE, "--json").one,
        ):
            assert told["why"][0]["fact"] == "The queue manager is disconnected from the network."
