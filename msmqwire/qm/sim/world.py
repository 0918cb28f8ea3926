"""One run: its assembly, its phases and its outcome."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass
from typing import BinaryIO, Final

from msmqwire.errors import EngineFailed
from msmqwire.qm.sim import end_state
from msmqwire.qm.sim.capture import Capture
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.ledger import MessageLedger
from msmqwire.qm.sim.network import Network
from msmqwire.qm.sim.node import Node
from msmqwire.qm.sim.plan import BUSY_MS, FAULTS, FULL_DISK, Plan
from msmqwire.qm.sim.protection import Keys
from msmqwire.qm.sim.reader_ledger import ReaderLedger
from msmqwire.qm.sim.rpc_network import SimulatedRpcNetwork
from msmqwire.qm.sim.store_contents import StoreContents
from msmqwire.qm.sim.story import Story
from msmqwire.qm.sim.violation import Invariant
from msmqwire.qm.sim.workload import Workload
from msmqwire.service.virtual.violation import Violation

PREPARED_MS: Final = 100
"""The plan begins at this time, when the queues exist and are durable."""
FAULTS_END_MS: Final = BUSY_MS + 40_000
SETTLE_MS: Final = 900_000
"""Everything must have come to rest within this time after the end of all faults."""
REST_MS: Final = 3_000


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run.

    Attributes:
        plan: the plan of the run.
        violation: the invariant that did not hold; None if all did.
        counts: the count of each kind of event.
        story: the story of the run, if it was recorded.
    """

    plan: Plan
    violation: Violation | None
    counts: Counter[str]
    story: Story


class World:
    """The environment of a run and everything in it."""

    def __init__(self, plan: Plan, *, story: bool = False, capture: BinaryIO | None = None) -> None:
        self.environment = Environment(plan, story=story)
        self.nodes: dict[str, Node] = {}
        self.ledger = MessageLedger(self.environment)
        self.contents = StoreContents(self.environment, self.ledger, self.nodes)
        self.network = Network(
            self.environment, self.nodes, self.nodes, self.ledger, self.contents,
            Capture(capture) if capture else None,
        )  # fmt: skip
        self.rpc = SimulatedRpcNetwork(self.network)
        self.reader_ledger = ReaderLedger(self.environment, self.ledger)
        self.workload = Workload(
            self.environment,
            self.nodes,
            self.ledger,
            self.reader_ledger,
            self.contents,
            self.network,
            self.rpc,
        )
        self.keys = Keys(self.environment)
        for name in plan.nodes:
            self.nodes[name] = Node(
                self.environment,
                name,
                self.ledger,
                self.reader_ledger,
                self.contents,
                self.network,
                self.workload,
                self.keys,
            )

    def run(self) -> RunOutcome:
        """Run the plan to its end."""
        environment = self.environment
        violation = None
        try:
            try:
                self._run()
            except EngineFailed as failed:
                raise failed.why from failed
        except Violation as violated:
            violation = violated
        except Exception as error:  # neither the engine nor the rules may raise
            frame = traceback.extract_tb(error.__traceback__)[-1]
            details = f"{type(error).__name__}: {error} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
            violation = Violation(Invariant.NO_ERRORS, details)
            violation.__cause__ = error
        if violation is not None:
            environment.log("", f"VIOLATED {violation}")
        return RunOutcome(environment.plan, violation, environment.counts, environment.story)

    def _run(self) -> None:
        environment = self.environment
        for node in self.nodes.values():
            node.boot()
        self.workload.prepare()
        environment.run_until(PREPARED_MS)
        for item in environment.plan.items:
            environment.after(item.at, self.workload.action(item))
            if item.kind in (*FAULTS, FULL_DISK):
                environment.counts[item.kind] += 1
        environment.run_until(FAULTS_END_MS)
        environment.faults_over = True
        for node in self.nodes.values():
            node.end_faults()
        self.workload.end_transactions()
        self._settle("settling")
        self.workload.drain()
        self._settle("settling after the last reads")
        end_state.check(environment, self.nodes, self.ledger, self.contents)
        environment.counts["virtual seconds"] += environment.now // 1000
        environment.counts["messages"] += len(self.ledger.messages)

    def _settle(self, phase: str) -> None:
        """Run until nothing has been pending for a while.

        Raises:
            Violation: something is still pending after `SETTLE_MS`.
        """
        environment = self.environment
        limit = environment.now + SETTLE_MS
        at_rest_since = environment.now
        while environment.now < limit:
            environment.run_until(min(environment.now + REST_MS, limit))
            pending = end_state.pending_work(
                self.nodes, self.network, self.ledger, drained=self.workload.drained
            )
            if pending is not None:
                at_rest_since = environment.now
                if self.workload.drained:
                    self.workload.drain()  # later events may need the room
            elif environment.now - at_rest_since >= 2 * REST_MS:
                return
        if pending is not None:
            raise Violation(Invariant.HANGS, f"{pending} after {SETTLE_MS // 1000} s of {phase}")
