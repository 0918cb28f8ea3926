"""The options of commands that read captures, and the captures opened."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any, NamedTuple, TextIO

from click.exceptions import Exit

from msmqwire.analysis.dissection import Dissection, dissect
from msmqwire.capture.folders import PassedOver, captures_of
from msmqwire.capture.not_read import NotRead, sentence
from msmqwire.capture.paths import file_size
from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, parse_options
from msmqwire.cli.captures.readings import capture_readings_of
from msmqwire.cli.common import EX_DATAERR, EX_NOINPUT, EX_USAGE, NoInput, say
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.progress import byte_progress
from msmqwire.errors import UnsupportedStore

Captures = Annotated[
    list[str],
    Argument(help="pcap or pcapng files, also gzip or zstd; folders; patterns; URLs of stores; - ."),
]
_STORED = Argument(help="pcap or pcapng files, also gzip or zstd; folders; patterns; URLs.")
StoredCaptures = Annotated[list[str], _STORED]
AnyStoredCaptures = Annotated[list[str] | None, _STORED]
"""Those of a command that has work without captures."""
RecordSizeMax = Annotated[
    int,
    Option(
        "--record-size-max",
        min=1,
        metavar="BYTES",
        help="Largest frame of a capture; larger ones count as damage and are skipped.",
    ),
]
StorageOption = Annotated[
    list[str] | None,
    Option(
        "--storage-option",
        metavar="NAME=VALUE",
        help="An argument of the file systems of URLs: region=eu-west-1, anonymous=true.",
    ),
]
Key = Annotated[
    list[str] | None,
    Option(
        "--key",
        metavar="FILE|FOLDER",
        help="A private key of a receiving queue manager, PEM or DER, or its folder with the keys of key "
        "create: bodies are decrypted.",
    ),
]
Cert = Annotated[
    list[str] | None,
    Option(
        "--cert",
        metavar="FILE",
        help="Certificates of senders, PEM or DER: signatures made with them are valid.",
    ),
]


class MessageSecurity(NamedTuple):
    """The options about message security and readings, as given.

    Attributes:
        keys, certificates: files.
        readings: names with their values.
    """

    keys: list[str] | None = None
    certificates: list[str] | None = None
    readings: list[str] | None = None

    def arguments(self) -> dict[str, Any]:
        """Return them as arguments of `msmqwire.dissect`. Raises BadParameter."""
        readings, ncp_readings = capture_readings_of(self.readings)
        keys, certificates = self.keys or (), self.certificates or ()
        return {
            "keys": keys,
            "certificates": certificates,
            "readings": readings,
            "ncp_readings": ncp_readings,
        }


def report(dissection: Dissection, err: TextIO) -> int:
    """Report the files that could not be read to their end, and the frames that were not read.

    Returns the exit status; that of frames alone is 0.
    """
    for error in dissection.errors:
        say(f"{error.file}: {error.why}", err, offset=error.offset)
    report_not_read(dissection.frames_not_read, err)
    return EX_DATAERR if dissection.errors else 0


def report_not_read(not_read: Sequence[NotRead], err: TextIO) -> None:
    """Print a line about the frames that were not read, if there are any."""
    if not_read:
        print(sentence(not_read), file=err)


def storage_options_of(texts: list[str] | None) -> StorageOptions:
    """Return the storage options that a command was given. Raises UnsupportedStore."""
    return parse_options(texts) if texts else NO_OPTIONS


def no_input(error: NoInput | OSError | UnsupportedStore) -> Exit:
    """Report input that can't be opened; return the exit. An output error is raised again."""
    if isinstance(error, UnsupportedStore):
        say(str(error))
        return Exit(EX_USAGE)
    if isinstance(error, OSError) and error.filename is None:
        raise error
    say(f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error))
    return Exit(EX_NOINPUT)


def files_of(source: str, storage_options: StorageOptions) -> list[Any]:
    """Return the files that a path means; of a folder the captures in it, and report the files that are
    passed over.

    Raises NoInput, OSError and UnsupportedStore.
    """
    passed: list[PassedOver] = []
    files = captures_of(source, passed.append, storage_options)
    for one in passed:
        say_passed_over(one)
    if not files:
        raise NoInput(f"{source}: a folder without {'captures' if passed else 'files'}")
    return files


def say_passed_over(passed: PassedOver) -> None:
    """Say which files of a folder are passed over."""
    print(passed, file=sys.stderr)


@contextmanager
def opened(
    sources: list[Any],
    ports: list[int],
    *,
    lint: bool = True,
    record_size_max: int = RECORD_SIZE_MAX,
    storage_options: StorageOptions = NO_OPTIONS,
    security: MessageSecurity = MessageSecurity(),
    shows_packets: bool = False,
) -> Iterator[Dissection]:
    """Dissect files and streams.

    There is a progress bar, unless packets are shown on the terminal meanwhile.
    """
    files: list[Any] = []
    for source in sources:
        files += [source] if hasattr(source, "read") else files_of(source, storage_options)
    with ExitStack() as stack:
        progress = None
        if not shows_packets and sys.stderr.isatty():
            known = not any(hasattr(file, "read") for file in files)
            size = sum(file_size(path, storage_options) for path in files) if known else None
            progress = stack.enter_context(byte_progress(size))
        dissection = dissect(
            files,
            ports=ports,
            lint=lint,
            progress=progress,
            record_size_max=record_size_max,
            storage_options=storage_options,
            **security.arguments(),
        )
        dissection.warns = False  # `report` says it
        yield dissection
