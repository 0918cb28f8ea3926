"""Live capture by dumpcap of Wireshark or by tcpdump, whichever is installed."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable
from io import RawIOBase
from typing import TYPE_CHECKING, Any, Final, cast

from msmqwire.capture.tcp import START_NS
from msmqwire.errors import MsmqError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_TOOLS: Final = ("dumpcap", "tcpdump")
_PATH_MORE: Final = "/usr/sbin:/sbin:/usr/local/sbin"
"""Folders of the tools that are not in the PATH of every user."""
_LINES_MAX: Final = 50
"""Lines of the tool's messages that are kept."""
_LINE_SIZE_MAX: Final = 1000
_CHATTER: Final = re.compile(
    r"(Capturing on|File:|Packets|listening on|\d+ packets? |Dropped privs|.*data link type"
    r"|.*verbose output suppressed)"
)
"""The lines with which the tools tell that all is well."""
_DROPPED: Final = re.compile(
    r"Packets received/dropped on interface .*: \d+/(\d+)|(\d+) packets? dropped by (?:kernel|interface)"
)
_READ_MAX: Final = 1 << 16
"""Bytes of one read: as many as a pipe holds."""
QUIET_S: Final = START_NS / 1e9
"""The time without a frame after which a live view shows items that only wait for time to pass."""
_STOP_SECONDS: Final = 5
"""The time that a tool may take to end before it is killed."""


class CaptureFailed(MsmqError):
    """Nothing, or nothing more, can be captured: there is no tool, no such interface, no permission."""


class EndlessInput(RawIOBase):
    """A stream that is waited for, and tells when nothing comes.

    Attributes:
        on_quiet: called once nothing has come for `QUIET_S`, until more comes; the stream is not to be read
            meanwhile.
    """

    on_quiet: Callable[[], None] | None = None

    def _wait(self, *sources: Any) -> list[Any]:
        """Wait until some of these files or descriptors can be read; return them."""
        if self.on_quiet is not None:
            ready, _, _ = select.select(sources, [], [], QUIET_S)
            if ready:
                return ready
            self.on_quiet()
        return select.select(sources, [], [])[0]


class LiveCapture(EndlessInput):
    """The frames of a network interface as the stream of a capture file, from now until `stop`.

    Attributes:
        name: the interface.
        tool: the program that captures, ``dumpcap`` or ``tcpdump``.
        is_stopped: whether `stop` was called.
    """

    def __init__(self, interface: str, capture_filter: str = "") -> None:
        """Start to capture.

        Args:
            interface: its name.
            capture_filter: in the language of pcap-filter(7); empty for all frames.

        Raises:
            CaptureFailed: neither tool is installed, or the tool can't capture there.
        """
        super().__init__()
        self.name = interface
        path = f"{os.environ.get('PATH', os.defpath)}:{_PATH_MORE}"
        found = [(tool, program) for tool in _TOOLS if (program := shutil.which(tool, path=path))]
        if not found:
            raise CaptureFailed(f"{interface}: neither dumpcap nor tcpdump is installed")
        self.tool, program = found[0]
        self._messages = deque[str](maxlen=_LINES_MAX)
        self.is_stopped = False
        try:
            self._process = subprocess.Popen(
                [program, *_arguments(self.tool, interface, capture_filter)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for us, and `stop` for the tool
            )
        except OSError as exc:
            raise CaptureFailed(f"{interface}: {self.tool}: {exc.strerror}") from None
        self._output = cast(Any, self._process.stdout)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        # The head of a capture comes as soon as the interface is open.
        self._first: bytes = self._output.read(_READ_MAX)
        if not self._first:
            failure = self.failure() or CaptureFailed(f"{interface}: {self.tool} captured nothing")
            self.close()
            raise failure

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read captured bytes, waiting for a frame; 0 when the tool has ended, as after `stop`."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def read(self, size: int = -1) -> bytes:
        """Return captured bytes, waiting for a frame; none when the tool has ended, as after `stop`."""
        count = _READ_MAX if size < 0 else min(size, _READ_MAX)
        if not self._first and os.name != "nt":  # where pipes can be waited for
            self._wait(self._output)
        data: bytes = self._first or self._output.read(count)
        self._first = data[count:]
        return data[:count]

    def stop(self) -> None:
        """Ask the tool to end, the second time by force: the bytes captured so far can still be read.

        Signal handlers may call it.
        """
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL if self.is_stopped else signal.SIGINT)
        self.is_stopped = True

    def close(self) -> None:
        """End the tool, by force if it takes long."""
        if self.closed:
            return
        if not self.is_stopped:
            self.stop()
        self._output.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(_STOP_SECONDS)
        super().close()

    def failure(self) -> CaptureFailed | None:
        """Return why the tool ended by itself; None if it was stopped, or ended without a complaint.

        Meant for after the end of the stream.
        """
        status = self._process.wait()
        self._listener.join(_STOP_SECONDS)
        complaints = [line for line in self._messages if not _CHATTER.match(line)]
        if not status or (self.is_stopped and not complaints):
            return None
        why = complaints[0] if complaints else f"{self.tool} ended with status {status}"
        for told in (self.tool, self.name):
            why = why.removeprefix(f"{told}: ")
        return CaptureFailed(f"{self.name}: {why}")

    def dropped(self) -> int | None:
        """Return how many frames were lost before the tool got them; None if it does not tell.

        Meant for after the end of the stream.
        """
        self._listener.join(_STOP_SECONDS)
        counts = [match for line in self._messages if (match := _DROPPED.match(line))]
        return sum(int(match[1] or match[2]) for match in counts) if counts else None

    def _listen(self) -> None:
        """Keep the last lines of the tool's messages."""
        messages = cast(Any, self._process.stderr)
        rest = b""
        while data := messages.read(1 << 12):
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[:_LINE_SIZE_MAX]
            self._note(lines)
        self._note([rest])
        messages.close()

    def _note(self, lines: list[bytes]) -> None:
        texts = (line[:_LINE_SIZE_MAX].decode("utf-8", "replace").strip() for line in lines)
        self._messages.extend(text for text in texts if text)


def _arguments(tool: str, interface: str, capture_filter: str) -> list[str]:
    """The arguments of a tool that writes captured frames to its standard output, without delay."""
    if tool == "dumpcap":
        return ["-q", "-i", interface, "-w", "-", *(["-f", capture_filter] if capture_filter else [])]
    return [
        "-U",
        "-n",
        "-s",
        "0",
        "-i",
        interface,
        "-w",
        "-",
        "--",
        *([capture_filter] * bool(capture_filter)),
    ]


class StoppableInput(EndlessInput):
    """A file descriptor as a stream that `stop` ends, even while it is being read.

    Attributes:
        name: the name of the stream.
        is_stopped: whether it was stopped.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__()
        self.name, self.is_stopped = name, False
        self._descriptor = descriptor
        self._wake_reader, self._wake_writer = os.pipe()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read the bytes that are there, waiting for some; 0 at the end and after `stop`."""
        if self._wake_reader in self._wait(self._descriptor, self._wake_reader):
            return 0
        return os.readv(self._descriptor, [buffer])

    def read(self, size: int = -1) -> bytes:
        """Return the bytes that are there, waiting for some; none at the end and after `stop`."""
        buffer = bytearray(_READ_MAX if size < 0 else min(size, _READ_MAX))
        return bytes(memoryview(buffer)[: self.readinto(buffer)])

    def wait_for_stop(self, seconds: float) -> None:
        """Wait so long, or until it is stopped."""
        select.select([self._wake_reader], [], [], seconds)

    def stop(self) -> None:
        """End the stream. Signal handlers may call it."""
        if not self.is_stopped:
            self.is_stopped = True
            os.write(self._wake_writer, b"\0")

    def close(self) -> None:
        if not self.closed:
            os.close(self._wake_reader)
            os.close(self._wake_writer)
        super().close()
