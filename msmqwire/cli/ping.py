"""``msmqwire ping``: is a queue manager there, and would it open a session?"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import Annotated, Any, Final

from click.exceptions import Exit

from msmqwire.cli.common import EX_UNAVAILABLE, say
from msmqwire.cli.options import Argument, Option
from msmqwire.errors import HostNotFound, MalformedPacket, Unreachable
from msmqwire.json_text import dumps
from msmqwire.names.printable import counted
from msmqwire.ping import PING_PORT
from msmqwire.qm.client.probing import SESSION_PORT, Handshake, PingAnswer, handshake, ping

_SECONDS_MAX: Final = 3600


def command(
    host: Annotated[str, Argument(metavar="HOST", help="Name or address of the computer.")],
    count: Annotated[int, Option("--count", "-c", min=1, help="Pings to send.")] = 4,
    interval_s: Annotated[
        float, Option("--interval", "-i", min=0.01, max=_SECONDS_MAX, help="Seconds between them.")
    ] = 1.0,
    timeout_s: Annotated[
        float,
        Option("--timeout", "-W", min=0.001, max=_SECONDS_MAX, help="Seconds to wait for an answer."),
    ] = 2.0,
    session: Annotated[
        bool, Option("--session", help="Open a session too: version, queue manager, times, refusal.")
    ] = False,
    no_ping: Annotated[bool, Option("--no-ping", help="Only open a session.")] = False,
    ping_port: Annotated[
        int, Option("--ping-port", min=1, max=65535, metavar="PORT", help="UDP port.")
    ] = PING_PORT,
    port: Annotated[
        int, Option("--port", "-p", min=1, max=65535, metavar="PORT", help="TCP port of the session.")
    ] = SESSION_PORT,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Ping a queue manager, as [MS-MQQB] 2.1.2 has it, and open a session with it.

    Nothing is sent to a queue. Ends with status 69 if no ping was answered, all were refused, or no session
    was opened.
    """
    host = host.removeprefix("[").removesuffix("]")
    reached = no_ping or _ping(host, count, interval_s, timeout_s, ping_port, as_json=as_json)
    if session or no_ping:
        reached = _session(host, timeout_s, port, as_json=as_json) and reached
    if not reached:
        raise Exit(EX_UNAVAILABLE)


def _ping(host: str, count: int, interval_s: float, timeout_s: float, port: int, *, as_json: bool) -> bool:
    """Send pings and print their answers; return whether a session would be accepted."""
    answers: list[PingAnswer] = []
    for number in range(count):
        began = time.monotonic()
        try:
            answer = ping(host, port=port, timeout_s=timeout_s)
        except HostNotFound as exc:  # no other ping would find it
            say(str(exc))
            raise Exit(EX_UNAVAILABLE) from None
        except Unreachable as exc:
            say(str(exc))
        else:
            answers.append(answer)
            _tell_ping(number + 1, answer, as_json=as_json)
        if number + 1 < count:
            time.sleep(max(0.0, began + interval_s - time.monotonic()))
    accepted = sum(not answer.is_refused for answer in answers)
    times = [answer.seconds * 1000 for answer in answers]
    if not as_json:
        summary = f"{count} sent, {len(answers)} answered, {len(answers) - accepted} would refuse a session"
        if times:
            spread = f"{min(times):.3f}/{sum(times) / len(times):.3f}/{max(times):.3f} ms"
            summary += f"; least/mean/most {spread}"
        print(summary)
    return accepted > 0


def _tell_ping(number: int, answer: PingAnswer, *, as_json: bool) -> None:
    if as_json:
        _print_json({"ping": number}, answer)
    else:
        state = "would refuse a session" if answer.is_refused else "ready"
        print(
            f"{answer.address}: ping {number}, queue manager {answer.queue_manager}, {state},"
            f" {answer.seconds * 1000:.3f} ms"
        )
    sys.stdout.flush()


def _session(host: str, timeout_s: float, port: int, *, as_json: bool) -> bool:
    """Open a session and tell how it began; return whether it did."""
    try:
        done = handshake(host, port=port, timeout_s=timeout_s)
    except Unreachable as exc:
        say(str(exc))
        return False
    except MalformedPacket as exc:
        say(exc)
        return False
    if as_json:
        _print_json({"session": port}, done)
    else:
        _tell_session(port, done)
    return done.refused is None


def _tell_session(port: int, done: Handshake) -> None:
    def ms(seconds: float) -> str:
        return f"{seconds * 1000:.3f} ms"

    times = f"connected after {ms(done.connect_s)}, answered after {ms(done.establish_s)}"
    if done.parameters_s is not None:
        times += f", open after {ms(done.parameters_s)}"
    state = "open" if done.refused is None else f"refused by {done.refused} (CS)"
    print(f"{done.address}: session on port {port} {state}; {times}")
    kind = "server-class" if done.is_server else "workstation-class"
    print(f"  queue manager {done.queue_manager}, {kind}, packet version 0x{done.version:02x}")
    if done.window_size is not None:
        print(
            f"  window {counted(done.window_size, 'message')}, AckTimeout {done.ack_timeout_ms} ms,"
            f" RecoverableAckTimeout {done.recoverable_ack_timeout_ms} ms"
        )


def _print_json(what: dict[str, Any], answer: PingAnswer | Handshake) -> None:
    values = {
        name: str(value) if name == "queue_manager" else value for name, value in asdict(answer).items()
    }
    print(dumps(what | values))
