"""Make examples/management.pcap; this needs packet sockets.

    python tools/generate/make_management_example.py

An administrator asks a queue manager on the loopback, and is captured there, so that ports, identifiers and
times are new each time: the endpoint mapper, the machine, a queue with its journal, an outgoing queue that
waits, one that is not there; the outgoing queue is paused and resumed. Then a user asks with privacy. Ports
135 and 2103 of 127.77.0.1 must be free.
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
from msmqwire.qm.model.enumerations import ManageAccess  # noqa: E402
from msmqwire.qm.runtime.local import attach  # noqa: E402
from msmqwire.qm.runtime.rpc.network import RpcOptions  # noqa: E402
from msmqwire.rpc.constants import AuthLevel  # noqa: E402
from tests.support.loopback import captured  # noqa: E402
from tests.support.running import ORDERS, options, put, recoverable, served  # noqa: E402

SERVER = "127.77.0.1"
NAME = rf"DIRECT=TCP:{SERVER}\{ORDERS}"
OUTGOING = r"DIRECT=TCP:127.77.0.9\private$\invoices"
USER, PASSWORD = r"HOME\anne", "a password of nobody"


def administer() -> None:
    """Perform the calls of the capture."""
    with msmqwire.manage(SERVER, mapper_port=135) as manager:
        print(manager.machine())
        for name in (NAME, OUTGOING):
            print(manager.queue(name))
        with suppress(msmqwire.QueueError):
            manager.queue(f"{NAME}-lost")
        manager.pause(OUTGOING)
        print(manager.queue(OUTGOING).state)
        manager.resume(OUTGOING)
    with msmqwire.manage(SERVER, port=2103, user=USER, password=PASSWORD) as manager:
        print(manager.machine())


def main() -> int:
    socket.gethostname = lambda: "alpha"  # NTLM tells it: the capture is not about the computer it is made on
    rpc = RpcOptions(
        (SERVER, 2103),
        endpoint_mapper=(SERVER, 135),
        users={USER: PASSWORD},
        level=AuthLevel.NONE,
        manage=ManageAccess.CALLERS,
    )
    with tempfile.TemporaryDirectory() as folder, captured(ROOT / "examples/management.pcap", (SERVER,)):
        data = Path(folder) / "qm"
        with served(options(data, ORDERS, address=SERVER, rpc=rpc)):
            with attach(data) as local:
                for number in range(1, 4):
                    put(local, ORDERS, *recoverable(b"%d pieces" % (10 * number), label=f"order {number}"))
                local.call("send", to=OUTGOING, messages=recoverable(b"an invoice"))
            time.sleep(1)  # so that a connection to the next hop has failed
            administer()
            time.sleep(0.3)  # for frames that the sniffer has not read yet
    return 0


if __name__ == "__main__":
    sys.exit(main())
