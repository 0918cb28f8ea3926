"""A server on a small disk that is filled and drained; run in a separate mount namespace.

    unshare -m python -m tests.support.qm.small_disk FOLDER    (as root; else `unshare -rm`)

mounts a file system of 16 MiB on FOLDER and prints the events there as one JSON object.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from msmqwire.errors import QueueError
from msmqwire.qm.runtime.local import attach
from tests.support.running import ORDERS, PATIENCE_S, Process, bodies, process, put, recoverable, until

SIZE_MIB = 16
MIN_FREE_MIB = 4
BODY = 100_000


def fill(server: Process) -> list[bytes]:
    """Send until no more messages are accepted; return the accepted ones."""
    stored: list[bytes] = []
    with attach(server.data) as local:
        while True:
            body = b"%09d" % len(stored) + bytes(BODY)
            try:
                put(local, ORDERS, *recoverable(body))
            except QueueError:
                return stored
            stored.append(body)


def drain(server: Process) -> list[bytes]:
    """Receive everything."""
    received: list[bytes] = []
    with attach(server.data) as local:
        while messages := local.call("receive", queue=ORDERS, count=10)["messages"]:
            received += bodies(messages)
            local.call("end", done=[message["receipt"] for message in messages])
    return received


def accepts(server: Process) -> bool:
    with attach(server.data) as local:
        return bool(local.call("status")["disk"]["accepts"])


def main(folder: Path) -> dict[str, object]:
    size = f"size={SIZE_MIB}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", folder], check=True, timeout=PATIENCE_S)
    report: dict[str, object] = {}
    options = ("--queue", ORDERS, "--min-free", str(MIN_FREE_MIB), "--ping", "off")
    with process(folder / "alpha", *options) as server:
        for turn in ("first", "second"):
            stored = fill(server)
            report[f"{turn} stored"] = len(stored)
            report[f"{turn} received"] = drain(server) == stored
            until(lambda: accepts(server), "publishers are let in again")
        stored = fill(server)
        free = (SIZE_MIB << 20) - sum(path.stat().st_blocks * 512 for path in server.data.iterdir())
        filler = folder / "filler"  # of somebody else, up to the last byte
        with filler.open("wb") as file:
            try:
                while True:
                    file.write(bytes(4096))
                    file.flush()
            except OSError:
                report["others left nothing"] = filler.stat().st_size > free - (1 << 20)
                report["received on a full disk"] = drain(server) == stored
        server.process.send_signal(signal.SIGTERM)
        report["status"] = server.process.wait(PATIENCE_S)
    return report


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
