"""Input that has no end of its own, a network interface, a pipe, a growing file: rows while they come."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final, TextIO

from click import BadParameter

from msmqwire.analysis.dissection import Dissection, Item
from msmqwire.capture.followed import FollowedFile
from msmqwire.capture.live import CaptureFailed, LiveCapture, StoppableInput
from msmqwire.capture.stores import is_url
from msmqwire.cli.common import EX_NOINPUT, NoInput, say, standard_input
from msmqwire.cli.options import Option
from msmqwire.names.printable import counted

Interface = Annotated[
    str | None,
    Option("--interface", metavar="NAME", help="Capture from this network interface, by dumpcap or tcpdump."),
]
CaptureFilter = Annotated[
    str | None,
    Option(
        "--capture-filter",
        metavar="TEXT",
        help="Frames to capture, such as 'tcp port 1801 or (vlan and tcp port 1801)'. A port alone "
        "leaves out frames with a VLAN tag or in a tunnel, and all but the first fragment of a datagram.",
    ),
]
Follow = Annotated[
    bool,
    Option("--follow", help="At the end of the last capture, wait for more until Ctrl-C or SIGTERM."),
]
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_ENDED_BY_FORCE: Final = 2
"""Signals after which nothing more of a tool is waited for."""


EndlessStream = LiveCapture | StoppableInput


class LiveInput:
    """The sources of a command, of which one may go on until Ctrl-C or SIGTERM.

    Attributes:
        sources: paths, URLs and streams.
        is_live: whether one of them goes on, so that rows are to be shown as they come.
    """

    def __init__(self, sources: list[Any], stream: EndlessStream | None) -> None:
        self.sources, self._stream = sources, stream
        self.is_live = stream is not None

    @property
    def has_summary(self) -> bool:
        """Whether `end` prints one: for an interface, and for a run that was stopped."""
        return self._stream is not None and (isinstance(self._stream, LiveCapture) or self._stream.is_stopped)

    def show_when_quiet(self, dissection: Dissection, show: Callable[[Item], None]) -> None:
        """Have items shown that wait for no frame but for time, once none has come for a while."""

        def show_those_that_wait() -> None:
            for item in dissection.tracker.start_openings():
                show(item)

        if self._stream is not None:
            self._stream.on_quiet = show_those_that_wait

    def end(self, dissection: Dissection, err: TextIO, shown: str) -> int:
        """Report how a live source ended; return the exit status that this alone makes.

        An incomplete packet where it was stopped is not damage.

        Args:
            dissection: after its last item.
            err: the output.
            shown: the items shown, for the summary.
        """
        stream = self._stream
        if isinstance(stream, FollowedFile) and stream.lost:
            print(f"{stream.name} {stream.lost}", file=err)
        if stream is None or not self.has_summary:
            return 0
        failure, dropped = None, None
        if isinstance(stream, LiveCapture):
            failure, dropped = stream.failure(), stream.dropped()
        lost = "" if dropped is None else f", {dropped:,} dropped"
        print(f"{stream.name}: {counted(dissection.records, 'frame')}{lost}; {shown}", file=err)
        if stream.is_stopped:
            errors = dissection.errors
            errors[:] = [error for error in errors if not (error.cut and error.file == stream.name)]
        if failure is not None:
            say(str(failure), err)
            return EX_NOINPUT
        return 0


@contextmanager
def live_input(
    paths: list[str],
    interface: str | None = None,
    capture_filter: str | None = None,
    *,
    follow: bool = False,
) -> Iterator[LiveInput]:
    """Open a source that has no end of its own; Ctrl-C and SIGTERM end it as its end would.

    That is an interface, standard input that is a pipe, or the last capture if it is to be followed.

    A second signal ends the tool by force, a third one the command.

    Raises:
        BadParameter: captures and an interface, or neither; an interface without a name; a filter
            without an interface.
        NoInput: the interface or the file can't be opened; standard input is closed.
    """
    if interface == "":
        raise BadParameter("no name", param_hint="--interface")
    if interface is not None and paths:
        raise BadParameter("captures or an interface, not both", param_hint="--interface")
    if interface is None and not paths:
        raise BadParameter(
            "captures are missing, as in msmqwire dissect examples/session.pcap; or give an --interface",
            param_hint="CAPTURES",
        )
    if capture_filter is not None and interface is None:
        raise BadParameter("goes with --interface", param_hint="--capture-filter")
    if follow and interface is not None:
        raise BadParameter("a capture, not an interface", param_hint="--follow")
    if follow and "-" in paths[:-1]:
        raise BadParameter("not with standard input before the last capture", param_hint="--follow")
    stream: EndlessStream | None = None
    if follow and paths[-1] != "-":
        stream = _followed(paths[-1])
        paths = [*paths[:-1], "-"]
    elif interface is not None:
        try:
            stream = LiveCapture(interface, capture_filter or "")
        except CaptureFailed as exc:
            raise NoInput(str(exc)) from None
        print(f"{interface}: capturing, by {stream.tool}", file=sys.stderr)
    elif "-" in paths:
        stream = _standard_pipe()
    if stream is None:
        yield LiveInput([standard_input() if path == "-" else path for path in paths], None)
        return
    sources = [stream if path == "-" else path for path in paths] or [stream]
    with stream, ended_by_signals(stream.stop, _ENDED_BY_FORCE):
        yield LiveInput(sources, stream)


def _followed(path: str) -> FollowedFile:
    """Open a capture that grows. Raises BadParameter and NoInput."""
    if is_url(path) or os.path.isdir(path):
        raise BadParameter(f"{path}: only a local file can be followed", param_hint="--follow")
    try:
        return FollowedFile(path)
    except OSError as exc:
        raise NoInput(f"{path}: {exc.strerror}") from None


def _standard_pipe() -> StoppableInput | None:
    """Standard input, if it is a pipe, a socket or a terminal."""
    stream = standard_input()
    try:
        descriptor = stream.fileno()
    except OSError:  # a test's
        return None
    if os.name == "nt" or stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    return StoppableInput(descriptor, str(getattr(stream, "name", "<stdin>")))


@contextmanager
def ended_by_signals(stop: Callable[[], None], handled: int = 1) -> Iterator[None]:
    """Have Ctrl-C and SIGTERM call a function in the block; after so many signals they do what they did."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    signals = 0

    def handle(number: int, frame: Any) -> None:
        nonlocal signals
        signals += 1
        stop()
        if signals == handled:
            restore()

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
