"""Make examples/outcomes/*.pcap; this needs packet sockets, and port 1801 of 127.78.0.1 to 127.78.0.3.

    python tools/generate/make_outcome_examples.py

Queue managers talk on the loopback, by the commands of the pages that show these captures, so that ports,
identifiers and times are new each time: `dead_letters.pcap`, docs/dead-letters.md; `forwarding.pcap`,
docs/forwarding.md; `poison.pcap`, docs/poison-messages.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.loopback import captured  # noqa: E402

ALPHA, BETA, GAMMA = "127.78.0.1", "127.78.0.2", "127.78.0.3"
ORDERS, LEDGER = r"private$\orders", r"private$\ledger"
OUTCOMES = ROOT / "examples" / "outcomes"
_READ_S = 0.5
"""Seconds for frames that the sniffer has not read yet."""


def typed(*words: str | Path) -> str:
    """Run a command; return its output."""
    command = [sys.executable, "-m", "msmqwire", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@contextmanager
def serving(folder: Path, name: str, address: str, *options: str) -> Iterator[Path]:
    """Run a server with a folder of its name; yield the folder."""
    command = [sys.executable, "-m", "msmqwire", "serve", "--data", str(folder / name), "--name", name]
    server = subprocess.Popen(
        [*command, "--listen", address, "--ping", "off", "--log", "error", *options],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    if not server.stdout.readline().startswith("ready"):
        raise SystemExit(f"{name} does not start")
    try:
        yield folder / name
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def until(data: Path, queue: str, count: int) -> None:
    """Wait until a queue has a number of messages."""
    while len(typed("peek", queue, "--data", data, "--count", "10").splitlines()) < count:
        time.sleep(0.1)


def dead_letters(folder: Path) -> None:
    """Send a transactional message to a queue that is not transactional, one that is never read, and one to
    nowhere.
    """
    with (
        captured(OUTCOMES / "dead_letters.pcap", (ALPHA, BETA)),
        serving(folder, "beta", BETA, "--queue", ORDERS, "--queue", f"{LEDGER};transactional", "--host",
                f"alpha={ALPHA}"),
        serving(folder, "alpha", ALPHA, "--host", f"beta={BETA}") as alpha,
    ):  # fmt: skip
        to = ("--data", alpha, "--dead-letter", "--transactional")
        typed("send", rf"DIRECT=OS:beta\{ORDERS}", *to, "--label", "wrong kind")
        typed("send", rf"DIRECT=OS:beta\{LEDGER}", *to, "--label", "unread", "--receive-within", "1")
        typed("send", r"DIRECT=OS:beta\private$\lost", *to, "--label", "no queue")
        until(alpha, "system$;deadxact", 3)
        time.sleep(_READ_S)


def forwarding(folder: Path) -> None:
    """Send a message to a queue of gamma over beta."""
    with serving(folder, "gamma", GAMMA, "--queue", ORDERS) as gamma:
        name = json.loads(typed("queue", "show", ORDERS, "--data", gamma))["format_name"]
    computer = name.removeprefix("PRIVATE=").partition("\\")[0]
    with (
        captured(OUTCOMES / "forwarding.pcap", (ALPHA, BETA, GAMMA)),
        serving(folder, "gamma", GAMMA) as gamma,
        serving(folder, "beta", BETA, "--host", f"{computer}={GAMMA}"),
        serving(folder, "alpha", ALPHA, "--host", f"{computer}={BETA}") as alpha,
    ):
        typed("send", name, "--data", alpha, "--recoverable", "--label", "order 7")
        until(gamma, ORDERS, 1)
        time.sleep(_READ_S)


def poison(folder: Path) -> None:
    """Give a message back twice, move it to a subqueue, and look at it there by remote read."""
    reading = (
        "import sys, msmqwire\n"
        "with msmqwire.connect(sys.argv[1], rpc_port=2103) as queue:\n"
        "    for attempt in range(2):\n"
        "        try:\n"
        "            with queue.receiving(timeout=5):\n"
        "                raise ValueError(attempt)\n"
        "        except ValueError:\n"
        "            pass\n"
        "    queue.move(queue.peek(timeout=5), sys.argv[1] + ';poison')\n"
        "with msmqwire.connect(sys.argv[1] + ';poison', rpc_port=2103) as queue:\n"
        "    queue.peek(timeout=5)\n"
    )
    with (
        captured(OUTCOMES / "poison.pcap", (BETA,)),
        serving(folder, "beta", BETA, "--queue", ORDERS, "--rpc", BETA, "--rpc-auth", "none") as beta,
    ):
        to = rf"DIRECT=TCP:{BETA}\{ORDERS}"
        typed("send", rf"DIRECT=OS:beta\{ORDERS}", "--data", beta, "--recoverable", "--label", "order 7")
        subprocess.run([sys.executable, "-c", reading, to], cwd=ROOT, check=True)
        time.sleep(_READ_S)


def main() -> int:
    OUTCOMES.mkdir(exist_ok=True)
    for make in (dead_letters, forwarding, poison):
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
