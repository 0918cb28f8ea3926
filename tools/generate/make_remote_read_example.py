"""Make examples/remote_read.pcap; this needs packet sockets.

    python tools/generate/make_remote_read_example.py

A queue manager and its readers talk on the loopback and are captured there, so that ports, identifiers and
times are new each time. An anonymous reader asks the endpoint mapper, looks through the queue, takes a
message, gives one back, and asks for a queue that is not there; a user takes one with privacy. Ports 135 and
2103 of 127.77.0.1 must be free.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import msmqwire  # noqa: E402
from msmqwire.qm.runtime.local import attach  # noqa: E402
from msmqwire.qm.runtime.rpc.network import RpcOptions  # noqa: E402
from msmqwire.rpc.constants import AuthLevel  # noqa: E402
from tests.support.loopback import captured  # noqa: E402
from tests.support.running import ORDERS, options, put, recoverable, served  # noqa: E402

SERVER = "127.77.0.1"
NAME = rf"DIRECT=TCP:{SERVER}\{ORDERS}"
USER, PASSWORD = r"HOME\anne", "a password of nobody"


class _Unwilling(Exception):
    """The exception that makes the reader return a message."""


def read() -> None:
    """Perform the calls of the capture."""
    with msmqwire.connect(NAME, endpoint_mapper=135) as queue:
        with queue.cursor() as cursor:
            for message in cursor:
                print(message.label)
        queue.receive(0)
        with suppress(_Unwilling), queue.receiving(0):
            raise _Unwilling
    with msmqwire.connect(f"{NAME}-lost", rpc_port=2103) as queue, suppress(msmqwire.QueueError):
        queue.peek(0)
    with msmqwire.connect(NAME, rpc_port=2103, user=USER, password=PASSWORD) as queue:
        queue.receive(0)


def main() -> int:
    socket.gethostname = lambda: "alpha"  # NTLM tells it: the capture is not about the computer it is made on
    rpc = RpcOptions(
        (SERVER, 2103),
        endpoint_mapper=(SERVER, 135),
        users={USER: PASSWORD},
        level=AuthLevel.NONE,
    )
    with tempfile.TemporaryDirectory() as folder, captured(ROOT / "examples/remote_read.pcap", (SERVER,)):
        data = Path(folder) / "qm"
        with served(options(data, ORDERS, address=SERVER, rpc=rpc)):
            with attach(data) as local:
                for number in range(1, 4):
                    put(local, ORDERS, *recoverable(b"%d pieces" % (10 * number), label=f"order {number}"))
            read()
            time.sleep(0.3)  # for frames that the sniffer has not read yet
    return 0


if __name__ == "__main__":
    sys.exit(main())
