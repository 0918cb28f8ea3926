"""The options of the data source ``msmq``, validated; the jobs take theirs from here too."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, cast

from msmqwire.analysis.dissection.message_security import Examiner, contents_of
from msmqwire.analysis.dissection.readings import readings_of
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.paths import capture_files, local_path
from msmqwire.capture.splits import whole_file
from msmqwire.capture.stores import StorageOptions, is_url
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import InvalidArgument, InvalidValue, MsmqError, UnsupportedStore
from msmqwire.names.nearest import unknown_name
from msmqwire.tables.exact_parts import ExactPart, MapWindows, plan_exact_parts
from msmqwire.tables.part_reader import PartReader
from msmqwire.tables.parts import SPLITS, Part, Splits, plan_parts, plan_windows

Read = Literal["packets", "segments", "sessions"]
Mode = Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""Capture files, patterns or folders: one capture, in this order."""

SPLIT_SIZE: Final = 512 << 20
OVERLAP: Final = 16 << 20
BATCH_ROWS: Final = 16_384
"""Rows of a batch of packets."""
_READS: Final = ("packets", "segments", "sessions")
_MODES: Final = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_SWITCH: Final = ("true", "false")
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NAMES: Final = (
    "read", "ports", "columns", "bodyLimit", "mode", "columnNameOfCorruptRecord", "splitSize", "splits",
    "overlap", "pushdown", "notRead", "keyFile", "certFile", "readings", "storageOptions", "path", "paths",
)  # fmt: skip


SEE: Final = "docs/spark.md lists all"
"""The page that lists all options."""


class BadOption(MsmqError, ValueError):
    """An unknown option of the data source, or an invalid value of one."""


def bad_option(error: InvalidArgument) -> BadOption:
    """Return the fault of an argument as an error of the data source, in the same words."""
    return BadOption(str(error))


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a load.

    Attributes:
        sources: paths, patterns and URLs, as passed.
        read: the kind of a row.
        ports: ports of MSMQ besides the usual ones.
        columns: names of the columns, in order; None for the usual ones.
        body_limit: the maximum of bytes in a body; None for all.
        mode: the treatment of malformed packets and damaged files.
        corrupt_column: the name of the column for the bytes of malformed packets; None for none.
        split_size: bytes of a file for one task; 0 for whole files.
        splits: the method of finding the offsets at which files are split.
        overlap: bytes before a split that are read to learn the state of connections.
        pushdown: whether filters are taken over from Spark.
        not_read: whether segments have rows that count the frames that were not read.
        keys: contents of files with private keys of receiving queue managers.
        certificates: contents of files with certificates of senders.
        readings: readings of the specification for signatures and session keys.
        ncp_readings: byte orders of the NCP fields that sources dispute.
        storage_options: arguments of the file systems of URLs.
    """

    sources: tuple[str, ...]
    read: Read = "packets"
    ports: tuple[int, ...] = ()
    columns: tuple[str, ...] | None = None
    body_limit: int | None = None
    mode: Mode = "PERMISSIVE"
    corrupt_column: str | None = None
    split_size: int = SPLIT_SIZE
    splits: Splits = "walked"
    overlap: int = OVERLAP
    pushdown: bool = False
    not_read: bool = False
    keys: tuple[bytes, ...] = field(default=(), repr=False)
    certificates: tuple[bytes, ...] = ()
    readings: Readings = DEFAULT
    ncp_readings: NcpReadings = PROPOSED
    storage_options: StorageOptions = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, raw_options: Mapping[str, str]) -> Options:
        """Return the options of a load. Names and the words of their values are case-insensitive.

        Raises:
            BadOption: an option is unknown, or its value is invalid.
        """
        names = {name.lower() for name in _NAMES}
        options = {name.lower(): value for name, value in raw_options.items()}
        for name in options:
            if name not in names:
                raise bad_option(unknown_name(name, _NAMES, "option of the data source msmq", see=SEE))
        body_limit = options.get("bodylimit", "none").strip().lower()
        keys, certificates = (_contents(name, options) for name in ("keyFile", "certFile"))
        readings, ncp_readings = _readings(keys, certificates, options.get("readings", ""))
        return cls(
            sources=_sources(options),
            read=cast(Read, _word("read", options.get("read", "packets").lower(), _READS)),
            ports=_ports(options.get("ports", "")),
            columns=tuple(_split_list(options["columns"])) if "columns" in options else None,
            body_limit=None if body_limit == "none" else _size("bodyLimit", body_limit),
            mode=cast(Mode, _word("mode", options.get("mode", "PERMISSIVE").upper(), _MODES)),
            corrupt_column=options.get("columnnameofcorruptrecord") or None,
            split_size=_size("splitSize", options.get("splitsize", str(SPLIT_SIZE))),
            splits=cast(Splits, _word("splits", options.get("splits", "walked").lower(), SPLITS)),
            overlap=_size("overlap", options.get("overlap", str(OVERLAP))),
            pushdown=_word("pushdown", options.get("pushdown", "false").lower(), _SWITCH) == "true",
            not_read=_word("notRead", options.get("notread", "false").lower(), _SWITCH) == "true",
            keys=keys,
            certificates=certificates,
            readings=readings,
            ncp_readings=ncp_readings,
            storage_options=_storage_options(options.get("storageoptions", "{}")),
        )

    def part_reader(self) -> PartReader:
        """Return the reader of packets that these options ask for."""
        return PartReader(
            ports=self.ports,
            body_limit=self.body_limit,
            batch_rows=BATCH_ROWS,
            keys=self.keys,
            certificates=self.certificates,
            readings=self.readings,
            ncp_readings=self.ncp_readings,
        )

    def files(self, *, may_miss: bool = False) -> list[str]:
        """Return the files of the load; see `msmqwire.capture.paths.capture_files`."""
        return capture_files(self.sources, self.storage_options, may_miss=may_miss)

    def parts(self, map_windows: MapWindows | None = None) -> Sequence[Part | ExactPart]:
        """Return the parts of the load, each for a task. With exact splits all files are read.

        Args:
            map_windows: as for `msmqwire.tables.exact_parts.exact_parts`.

        Raises:
            BadOption: exact splits are for packets.
            FileNotFoundError: a path does not exist, or a pattern matches nothing.
            OSError: a file can't be read.
        """
        if self.splits != "exact":
            windows = plan_windows(
                self.files(),
                self.split_size,
                search=self.splits == "searched",
                overlap=self.overlap,
                storage_options=self.storage_options,
            )
            return plan_parts(windows, self.split_size, self.overlap)
        if self.read != "packets":
            raise BadOption(f"option splits: exact is for packets, not {self.read}")
        files = [whole_file(path, self.storage_options) for path in self.files()]
        plan = plan_exact_parts(
            files,
            self.split_size,
            ports=self.ports,
            ncp_readings=self.ncp_readings,
            map_windows=map_windows,
        )
        return plan.parts


def paths_option(paths: Paths) -> str:
    """Return the value of the option ``paths`` for paths that are passed as Python values."""
    sources = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return json.dumps([os.fspath(source) for source in sources])


def _sources(options: Mapping[str, str]) -> tuple[str, ...]:
    sources = []
    if "paths" in options:
        try:
            paths = json.loads(options["paths"])
        except ValueError:
            paths = None
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise BadOption(f"option paths: not a JSON list of strings: {options['paths']}")
        sources += paths
    if "path" in options:
        path = options["path"]
        sources += [path] if not is_url(path) and Path(_local_path(path)).exists() else _split_list(path)
    if not sources:
        raise BadOption("the data source msmq needs a path: load('captures/*.pcapng')")
    return tuple(_local_path(source) for source in sources)


def _contents(name: str, options: Mapping[str, str]) -> tuple[bytes, ...]:
    """The contents of the files that an option names; PEM text is the content itself."""
    value = options.get(name.lower(), "")
    try:
        if value.lstrip().startswith("-----BEGIN "):
            return tuple(contents_of(value))
        return tuple(contents_of(_local_path(path) for path in _split_list(value)))
    except InvalidValue as exc:
        raise BadOption(f"option {name}: {exc}") from None
    except OSError as exc:
        raise BadOption(f"option {name}: {exc.filename}: {exc.strerror}") from exc


def _readings(
    keys: tuple[bytes, ...], certificates: tuple[bytes, ...], value: str
) -> tuple[Readings, NcpReadings]:
    """The readings of an option, once keys and certificates are checked too."""
    pairs = [part.partition("=") for part in _split_list(value)]
    try:
        readings = readings_of({name.strip(): text.strip() for name, _, text in pairs})
    except InvalidValue as exc:
        raise BadOption(f"option readings: {exc}") from None
    for name, files in (("keyFile", (keys, ())), ("certFile", ((), certificates))):
        try:
            Examiner.from_files(*files)
        except InvalidValue as exc:
            raise BadOption(f"option {name}: {exc}") from None
    return readings


def _storage_options(value: str) -> StorageOptions:
    """The storage options of a load; errors about them do not show them."""
    try:
        options = json.loads(value)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise BadOption('option storageOptions: not a JSON object, as {"region": "eu-west-1"}')
    return options


def _local_path(source: str) -> str:
    """A path as it is, or that of a ``file:`` URL, in the local file system or in one mounted there."""
    try:
        return local_path(source)
    except UnsupportedStore as exc:
        raise BadOption(str(exc)) from None


def _split_list(value: str) -> list[str]:
    return [part for part in (part.strip() for part in value.split(",")) if part]


def _word(name: str, value: str, words: tuple[str, ...]) -> str:
    if value.strip() not in words:
        raise bad_option(unknown_name(value, words, "possible value", path=f"option {name}"))
    return value.strip()


def _ports(value: str) -> tuple[int, ...]:
    ports = _split_list(value)
    for port in ports:
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 0x1_0000):
            raise BadOption(f"option ports: {port} is not a port")
    return tuple(int(port) for port in ports)


def _size(name: str, value: str) -> int:
    match = re.fullmatch(r"(\d{1,18})\s*([kmgt]?)(?:i?b)?", value.strip().lower(), re.ASCII)
    if match is None:
        raise BadOption(f"option {name}: {value} is not a number of bytes, as 1000000 or 128m")
    return int(match[1]) * _UNITS[match[2]]
