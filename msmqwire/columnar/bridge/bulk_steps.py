"""What is done with many connections at once, some of which the tracker has and some only the scan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from msmqwire.capture.direction import Direction
from msmqwire.capture.events import Event
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.columnar.bridge.flow_numbers import FlowNumbers
from msmqwire.columnar.compiled.endings import discard_held, end_connections
from msmqwire.columnar.compiled.flow_table import PACKET_BYTES, PACKET_SEGMENTS, RUN_FRAMES, STREAM
from msmqwire.columnar.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.columnar.compiled.state import HELD
from msmqwire.columnar.compiled.stop_codes import StopCode
from msmqwire.dissection import Item, Tracker
from msmqwire.dissection.finder import FRAME_COST
from msmqwire.dissection.tracker import HELD_MAX

Items = Iterator[Item | StopCode]
"""Items of the tracker, and between them what asks for room for the rows of the scan."""
_Step = Callable[[ScanArrays, FlowArrays, Any, int], tuple[int, int]]


class RowSink(Protocol):
    """Destination of rows.

    Attributes:
        tcp_ports: for each port of TCP whether it is one of MSMQ.
    """

    tcp_ports: Any

    def scan_arrays(self) -> ScanArrays:
        """Return the arrays of the scan."""


class BulkSteps(ABC):
    """The part of a connection table that ends many connections, or frees what they hold, in their order.

    Of those that only the scan knows, as many as follow each other are passed to it together. One that it
    can't judge is registered, and left to the tracker.
    """

    _state: Any
    _flows: FlowNumbers
    _tracker: Tracker

    @property
    @abstractmethod
    def flow_arrays(self) -> FlowArrays:
        """The flows of the scan."""

    @abstractmethod
    def _register(self, number: int) -> None:
        """Inform the tracker of a connection that the scan has seen begin."""

    @abstractmethod
    def _release(self, direction: Direction) -> None:
        """Give a direction back to the tracker."""

    @abstractmethod
    def _release_registered(self) -> None:
        """Release every direction of which the tracker knows the connection."""

    def _items_of(self, events: list[Event], sink: RowSink) -> Items:
        """Yield the items that events complete, and those of what is let go then, if too much is held."""
        for event in events:
            yield from self._tracker.items_of(event)
            if self._tracker.held > HELD_MAX:
                yield from self._free_memory(sink)

    def _end(
        self, order: Any, numbers: Any, registered: list[Direction], end: Callable[[Direction], list[Event]],
        sink: RowSink,
    ) -> Items:  # fmt: skip
        """End connections.

        Args:
            order: the connections in their order, each by its place in ``numbers`` and ``registered``.
            numbers: the numbers of those that only the scan knows.
            registered: directions first seen of those that the tracker knows.
            end: lets the tracker end a connection.
            sink: where rows go.
        """

        def step(arrays: ScanArrays, flow_arrays: FlowArrays, some: Any, first: int) -> tuple[int, int]:
            return end_connections(arrays, flow_arrays, some, first, sink.tcp_ports)

        for run in _runs(order, numbers.size):
            if run[0] < numbers.size:
                left = numbers[run]
                for number in self._pass(step, left, sink):
                    if isinstance(number, StopCode):
                        yield number
                        continue
                    self._leave_to_tracker(number)
                    yield from self._items_of(end(self._flows.directions[number]), sink)
                self._flows.drop(left[np.isin(left, list(self._flows.unregistered))])
                continue
            for at in run.tolist():
                direction = registered[at - numbers.size]
                self._release(direction)
                self._release(direction.peer)
                yield from self._items_of(end(direction), sink)

    def _free_memory(self, sink: RowSink) -> Items:
        """Skip the incomplete packets of the connections that hold most: `Tracker._free_memory`."""
        self._release_registered()
        tracker, flows = self._tracker, self.flow_arrays.flows
        streams = sorted(tracker.connections)
        numbers = np.array(sorted(self._flows.unregistered), np.int64)
        pairs = flows[numbers] + flows[numbers + 1]
        ours = pairs[:, PACKET_BYTES] + SEGMENT_COST * pairs[:, PACKET_SEGMENTS]
        ours += FRAME_COST * pairs[:, RUN_FRAMES]
        theirs = np.array([tracker.connections[stream].held for stream in streams], np.int64)
        keys = np.concatenate([flows[numbers, STREAM], np.array(streams, np.int64)])

        def discard(arrays: ScanArrays, flow_arrays: FlowArrays, some: Any, first: int) -> tuple[int, int]:
            return discard_held(arrays, flow_arrays, some, first, HELD_MAX // 2)

        for run in _runs(np.lexsort([keys, -np.concatenate([ours, theirs])]), numbers.size):
            if run[0] < numbers.size:
                for number in self._pass(discard, numbers[run], sink):
                    if isinstance(number, StopCode):
                        yield number
                        continue
                    self._leave_to_tracker(number)
                    yield from tracker.discard(int(flows[number, STREAM]))
            else:
                for at in run.tolist():
                    if tracker.held > HELD_MAX // 2:
                        yield from tracker.discard(streams[at - numbers.size])

    def _pass(self, step: _Step, numbers: Any, sink: RowSink) -> Iterator[int | StopCode]:
        """Pass connections to a compiled step; yield what asks for room, and the numbers that it can't judge.

        A connection whose number is yielded is passed over.
        """
        at, stop_code = 0, int(StopCode.GENERIC_RECORD)
        while stop_code >= 0:
            self._state[HELD] = self._tracker.held
            at, stop_code = step(sink.scan_arrays(), self.flow_arrays, numbers, at)
            self._tracker.held = int(self._state[HELD])
            if stop_code == StopCode.GENERIC_RECORD:
                yield int(numbers[at])
                at += 1
            elif stop_code >= 0:
                yield StopCode(stop_code)

    def _leave_to_tracker(self, number: int) -> None:
        """Register a connection, and release both its directions."""
        self._register(number)
        for flow in (number, number + 1):
            self._release(self._flows.directions[flow])


def _runs(order: Any, count: int) -> list[Any]:
    """Divide an order into runs of places below ``count``, and of others."""
    if not order.size:
        return []
    changes = np.flatnonzero(np.diff(order < count)) + 1
    return np.split(order, changes)
