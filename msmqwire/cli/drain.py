"""``msmqwire drain``: a server takes nothing new, and what is under way ends, before it is stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, Final

from click import BadParameter

from msmqwire.cli.api_client import ApiClient, TokenFile, is_url
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.progress import waiting_shown
from msmqwire.errors import StoreMissing, Unreachable
from msmqwire.json_text import dumps
from msmqwire.names.printable import counted
from msmqwire.qm.runtime.data_folder import STORE, DataFolder
from msmqwire.service.control.client import server_of

_TIMEOUT_S: Final = 60.0
_TIMEOUT_MAX_S: Final = 86_400.0
_POLL_S: Final = 0.2
"""Seconds between two looks at what is held."""

State = dict[str, Any]


def command(
    place: Annotated[
        str,
        Argument(metavar="DIR|URL", help="Folder of a queue manager, or the URL of its console."),
    ],
    timeout: Annotated[
        float,
        Option(metavar="S", min=0, max=_TIMEOUT_MAX_S, help="Seconds to wait for what is under way."),
    ] = _TIMEOUT_S,
    cancel: Annotated[
        bool, Option("--cancel", help="Take new messages again; ends the draining at once.")
    ] = False,
    token_file: TokenFile = None,
    as_json: Annotated[bool, Option("--json", help="Print the state as one JSON object.")] = False,
) -> None:
    """Drain a server before it is stopped: nothing new begins, and what is under way ends.

    Sends are refused; other computers keep their messages, and send them again later. Receives that wait end.
    Messages that programs have received can still be ended. The server runs on until it is stopped, and a
    start forgets that it drained.

    Exit statuses: 0 once nothing is held; 69 if something still is after the timeout, or no server is there;
    66 if there is no such folder or no queue manager in it.
    """

    def run() -> None:
        if token_file is not None and not is_url(place):
            raise BadParameter("--token-file is for a URL")
        ask = _of_url(place, token_file) if is_url(place) else _of_folder(place)
        state = ask(not cancel)
        if not cancel:
            state = _until_nothing_is_held(ask, state, timeout)
        _show(state, as_json)

    run_reporting_errors(run)


def _of_url(url: str, token_file: str | None) -> Callable[[bool | None], State]:
    """Return a function that begins or ends draining, or for None only asks, and returns the state."""
    client = ApiClient(url, token_file)

    def ask(on: bool | None) -> State:
        if on is None:
            return _checked(client.done("GET", "/api/v1/drain"))
        return _checked(client.done("POST", "/api/v1/drain", {"on": on}))

    return ask


def _of_folder(path: str) -> Callable[[bool | None], State]:
    """Return such a function for the server of a folder. Raises StoreMissing and Unreachable."""
    folder = DataFolder(path)
    server = server_of(folder)
    if server is None:
        if not (folder.path / STORE).exists():
            raise StoreMissing("there is no queue manager in this folder", file=path)
        raise Unreachable(f"no server runs for {path}: nothing has to be drained")
    return lambda on: _checked(server.call("drain", **({} if on is None else {"on": on})))


def _checked(state: Any) -> State:
    if not (isinstance(state, dict) and isinstance(state.get("held"), int)):
        raise Unreachable("the answer is not that of msmqwire")
    return state


def _until_nothing_is_held(ask: Callable[[bool | None], State], state: State, timeout: float) -> State:
    """Wait until nothing is held; return the state then. Raises Unreachable if that takes too long."""
    until = time.monotonic() + timeout
    shown = [state]
    with waiting_shown(lambda: f"waits for {_held(shown[0])}, {max(0, until - time.monotonic()):.0f} s more"):
        while state["held"]:
            if (left := until - time.monotonic()) <= 0:
                raise Unreachable(
                    f"after {timeout:g} s {_held(state, 'are')} still held, and it drains on: wait, stop it "
                    "so that they return to their queues, or take new messages with --cancel"
                )
            time.sleep(min(_POLL_S, left))
            state = shown[0] = ask(None)
            if not state["draining"]:
                raise Unreachable("somebody has ended the draining meanwhile")
    return state


def _held(state: State, verb: str = "") -> str:
    return counted(state["held"], "message", verb)


def _show(state: State, as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        print(dumps(state))
    elif state["draining"]:
        print("drained: nothing is held, and the server can be stopped")
    else:
        print("the server takes new messages")
