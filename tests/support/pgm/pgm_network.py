"""A source and receivers in virtual time on a network that loses, delays and repeats packets."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from ipaddress import ip_address

from msmqwire.pgm.effects import Deliver, Ended, Joined, Lost, Multicast, Transmitted, Unicast
from msmqwire.pgm.receiver import Receiver, ReceiverSettings
from msmqwire.pgm.source import Source, SourceSettings

SOURCE, GROUP = ip_address("10.0.0.1"), ip_address("234.1.1.1")
GSI, PORT, GROUP_PORT = bytes.fromhex("a1a2a3a4a5a6"), 50_000, 8001


def source_settings(**more) -> SourceSettings:
    return SourceSettings(gsi=GSI, port=PORT, group_port=GROUP_PORT, address=SOURCE, group=GROUP, **more)


def receiver(draw=lambda: 0.5) -> Receiver:
    return Receiver(ReceiverSettings(group=GROUP, group_port=GROUP_PORT), draw)


@dataclass
class Seen:
    """The notices of a receiver to its application, in order."""

    events: list = field(default_factory=list)

    def of(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]


class Network:
    """One source at number -1 and receivers from 0 on; one seed, one story."""

    def __init__(self, seed: int, receivers: int = 2, *, loss=0.0, copies=0.0, jitter=0.0, first=0, **more):
        self.rng = random.Random(seed)
        self.loss, self.copies, self.jitter = loss, copies, jitter
        self.now = 0.0
        self.source = Source(source_settings(**more), self.now, first=first)
        self.receivers = [receiver(self.rng.random) for _ in range(receivers)]
        self.seen = [Seen() for _ in range(receivers)]
        self.flying: list[tuple[float, int, int, bytes]] = []
        self.sent: list[tuple[float, int, bytes]] = []
        self.sourced: list = []
        self.count = self.transmitted = 0

    def carry(self, sender: int, effects) -> None:
        for effect in effects:
            match effect:
                case Multicast(data):
                    self.sent.append((self.now, sender, data))
                    for to in range(-1, len(self.receivers)):
                        if to != sender and not (to == -1 and sender >= 0):
                            self.fly(to, data)
                case Unicast(data, address):
                    assert address == SOURCE
                    self.fly(-1, data)
                case Joined() | Deliver() | Lost() | Ended():
                    self.seen[sender].events.append(effect)
                case Transmitted():
                    self.transmitted += 1
                case _:
                    self.sourced.append(effect)

    def fly(self, to: int, data: bytes) -> None:
        for _ in range(1 + (self.rng.random() < self.copies)):
            if self.rng.random() >= self.loss:
                self.count += 1
                at = self.now + 0.001 + self.rng.random() * self.jitter
                heapq.heappush(self.flying, (at, self.count, to, data))

    def send(self, apdu: bytes) -> None:
        self.carry(-1, self.source.send(apdu, self.now))

    def run(self, seconds: float) -> None:
        """Let time pass; every event happens at its time."""
        end = self.now + seconds
        for _ in range(1_000_000):
            arrival = self.flying[0][0] if self.flying else float("inf")
            timers = [self.source.next_time(), *(one.next_time() for one in self.receivers)]
            if min(arrival, *timers) > end:
                self.now = end
                return
            self.now = max(self.now, min(arrival, *timers))
            if arrival <= min(timers):
                _, _, to, data = heapq.heappop(self.flying)
                if to == -1:
                    self.carry(-1, self.source.received(data, self.now))
                else:
                    self.carry(to, self.receivers[to].received(data, SOURCE, self.now))
                continue
            who = timers.index(min(timers)) - 1
            self.carry(who, (self.source if who == -1 else self.receivers[who]).tick(self.now))
        raise AssertionError("time does not pass")
