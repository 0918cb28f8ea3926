"""Captures of real traffic on the loopback."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
LINKTYPE_ETHERNET = 1


@contextmanager
def captured(path: Path, addresses: tuple[str, ...]) -> Iterator[None]:
    """Write a pcap file of the loopback traffic of these addresses."""
    if not hasattr(socket, "AF_PACKET"):
        pytest.skip("captures need packet sockets, which only Linux has")
    try:
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    except PermissionError:
        pytest.skip("captures need the right to open packet sockets")
    sniffer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    with suppress(PermissionError):  # more than the system lets everybody have
        sniffer.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    sniffer.bind(("lo", 0))
    packed_addresses = {socket.inet_aton(address) for address in addresses}
    stop = threading.Event()

    def listen() -> None:
        with path.open("wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, LINKTYPE_ETHERNET))
            while not stop.is_set() or select.select([sniffer], [], [], 0.2)[0]:
                if not select.select([sniffer], [], [], 0.1)[0]:
                    continue
                frame, source = sniffer.recvfrom(1 << 18)
                outgoing = source[2] == socket.PACKET_OUTGOING  # each is seen twice: outgoing and incoming
                if (
                    outgoing
                    and frame[12:14] == b"\x08\x00"
                    and {frame[26:30], frame[30:34]} & packed_addresses
                ):
                    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
                    file.write(struct.pack("<IIII", seconds, nanoseconds, len(frame), len(frame)) + frame)

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sniffer.close()
