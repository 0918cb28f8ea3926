"""A seed replays exactly in any process; a failing run shrinks to a short story."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from msmqwire.qm.sim.__main__ import main
from msmqwire.qm.sim.mistakes import MISTAKES
from msmqwire.qm.sim.plan import BUSY_MS, QUEUES, Item, make_plan
from msmqwire.qm.sim.shrink import shrink
from msmqwire.qm.sim.world import World
from msmqwire.service.virtual.mistake import injected


def story(seed):
    outcome = World(make_plan(seed), story=True).run()
    return outcome.story.diagram(outcome.plan.nodes), outcome.counts


def test_a_seed_replays_the_same_run():
    assert story(7) == story(7)
    assert story(7) != story(8)


def test_a_seed_replays_the_same_run_in_another_process():
    def printed_story(hash_seed):
        command = [sys.executable, "-m", "msmqwire.qm.sim", "--seed", "11", "--story"]
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        return subprocess.run(command, capture_output=True, check=True, env=environment).stdout

    assert printed_story("1") == printed_story("2") != b""


def test_a_plan_is_short_and_in_order():
    for seed in range(200):
        plan = make_plan(seed)
        assert 2 <= len(plan.nodes) <= 4
        assert len(plan.clock_offsets) == len(plan.nodes)
        assert [item.at for item in plan.items] == sorted(item.at for item in plan.items)
        assert plan.router is None or plan.router in plan.nodes
        sent = sum(item.args["count"] for item in plan.items if item.kind in ("send", "transaction"))
        assert 15 <= sent <= 60
        assert all(0 <= item.at < BUSY_MS + 20_000 for item in plan.items)
        assert all(item.args["queue"] in QUEUES for item in plan.items if item.kind == "send")


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_a_plan_has_the_number_of_nodes_asked_for(nodes):
    assert len(make_plan(0, nodes=nodes).nodes) == nodes


def test_a_failing_run_shrinks_to_a_short_story():
    with injected(MISTAKES["journaled twice"]):
        failing = next(
            outcome for seed in range(50) if (outcome := World(make_plan(seed)).run()).violation is not None
        )
        short = shrink(failing)
        replayed = World(short.plan, story=True).run()
    assert short.violation is not None
    assert failing.violation is not None
    assert short.violation.invariant == failing.violation.invariant
    assert len(short.plan.items) <= 2
    assert len(short.story.lines) < 40
    assert short.story.lines[-1].text == f"VIOLATED {short.violation}"
    assert replayed.story.lines == short.story.lines


def test_a_story_is_a_diagram(capsys):
    assert main(["--seed", "3", "--nodes", "2", "--story"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "seed 3: all invariants hold"
    assert "        ms  alpha     beta" in lines
    assert any("*--------->" in line for line in lines)
    assert any("<---------*" in line for line in lines)
    assert any("UserMessage #" in line for line in lines)


def test_an_item_says_what_it_is():
    assert str(Item(5, "crash", "beta", {"after": 1, "ms": 2})) == "t=5 beta crash after=1 ms=2"


def test_the_command_prints_counts(capsys):
    assert main(["--seeds", "0:3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 seeds, ")
    assert " 0 fail" in out
    assert "messages" in out


def test_the_command_runs_links_of_srmp(capsys):
    assert main(["--seeds", "0:2", "--http", "1"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"requests +[1-9]", out)
    assert main(["--seeds", "0:2", "--http", "0"]) == 0
    assert re.search(r"requests +0\n", capsys.readouterr().out)


def test_the_command_runs_remote_readers(capsys):
    assert main(["--seeds", "0:1", "--remote", "1"]) == 0
    assert re.search(r"remote messages +[1-9]", capsys.readouterr().out)
    assert main(["--seeds", "0:1", "--remote", "0"]) == 0
    assert re.search(r"remote calls +0\n", capsys.readouterr().out)


@pytest.mark.parametrize("option", ["--http", "--remote"])
@pytest.mark.parametrize("share", ["2", "much"])
def test_a_share_is_from_0_to_1(option, share, capsys):
    with pytest.raises(SystemExit):
        main([option, share])
    assert option in capsys.readouterr().err


def test_the_command_reports_failures(capsys):
    with injected(MISTAKES["administration acknowledgements are sent twice"]):
        assert main(["--seed", "0"]) == 1
    out = capsys.readouterr().out
    assert "seed 0: acknowledgements are sent at most as often as allowed" in out
    assert "shortened as far as possible" in out
    assert "VIOLATED" in out
