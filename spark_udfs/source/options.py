"""The options of the data source ``msmq``, checked."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast
from urllib.parse import unquote, urlsplit

from msmqwire.capture import expand
from msmqwire.errors import MsmqError

Read = Literal["packets", "segments", "sessions"]
Mode = Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]

SPLIT_SIZE: Final = 512 << 20
OVERLAP: Final = 16 << 20
_READS: Final = ("packets", "segments", "sessions")
_MODES: Final = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_SPLITS: Final = ("walked", "searched")
_SWITCH: Final = ("true", "false")
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_KNOWN: Final = (
    "read", "ports", "columns", "bodyLimit", "mode", "columnNameOfCorruptRecord", "splitSize", "splits",
    "overlap", "pushdown", "path", "paths",
)  # fmt: skip


class BadOption(MsmqError, ValueError):
    """An option of the data source that it does not have, or a value that it can't have."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a load asks for.

    Attributes:
        sources: paths and patterns, as given.
        read: what a row is.
        ports: ports of MSMQ besides the usual ones.
        columns: names of the columns in the order asked for; None for the usual ones.
        body_limit: bytes of a body at most; None for all.
        mode: what becomes of malformed packets and of damaged files.
        corrupt_column: the name of the column for the bytes of malformed packets; None for none.
        split_size: bytes of a file that are one task; 0 for whole files.
        search: find the places where files are split instead of reading them once for it.
        overlap: bytes before a split that are read to know the connections.
        pushdown: whether filters are taken over from Spark.
    """

    sources: tuple[str, ...]
    read: Read = "packets"
    ports: tuple[int, ...] = ()
    columns: tuple[str, ...] | None = None
    body_limit: int | None = None
    mode: Mode = "PERMISSIVE"
    corrupt_column: str | None = None
    split_size: int = SPLIT_SIZE
    search: bool = False
    overlap: int = OVERLAP
    pushdown: bool = False

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """The options of a load. Names and the words of their values may be in any case.

        Raises:
            BadOption: one is not known, or its value can't be.
        """
        known = {name.lower(): name for name in _KNOWN}
        options = {name.lower(): value for name, value in given.items()}
        for name in options:
            if name not in known:
                raise BadOption(f"the data source msmq has no option {name}; it has {', '.join(_KNOWN)}")
        body_limit = options.get("bodylimit", "none").strip().lower()
        return cls(
            sources=_sources(options),
            read=cast(Read, _word("read", options.get("read", "packets").lower(), _READS)),
            ports=_ports(options.get("ports", "")),
            columns=tuple(_listed(options["columns"])) if "columns" in options else None,
            body_limit=None if body_limit == "none" else _size("bodyLimit", body_limit),
            mode=cast(Mode, _word("mode", options.get("mode", "PERMISSIVE").upper(), _MODES)),
            corrupt_column=options.get("columnnameofcorruptrecord") or None,
            split_size=_size("splitSize", options.get("splitsize", str(SPLIT_SIZE))),
            search=_word("splits", options.get("splits", "walked").lower(), _SPLITS) == "searched",
            overlap=_size("overlap", options.get("overlap", str(OVERLAP))),
            pushdown=_word("pushdown", options.get("pushdown", "false").lower(), _SWITCH) == "true",
        )

    def files(self, *, may_miss: bool = False) -> list[str]:
        """The files of the load in their order, as absolute paths; of a folder those in it.

        What a pattern or a folder gives is sorted; hidden files and those whose name starts with ``_``
        are passed over, as Spark does.

        Args:
            may_miss: whether a pattern may name nothing.

        Raises:
            FileNotFoundError: a path or pattern names nothing.
        """
        found: dict[str, None] = {}
        for source in self.sources:
            folder = Path(source)
            if folder.is_dir():
                names = sorted(path for path in folder.iterdir() if path.is_file())
            elif may_miss and set("*?[") & set(source):
                names = sorted(Path(path) for path in glob.glob(source, recursive=True))
                names = [path for path in names if path.is_file()]
            else:
                names = expand([source])
            shown = [name for name in names if name.name[0] not in "._" or len(names) == 1]
            found.update(dict.fromkeys(str(name.absolute()) for name in shown))
        return list(found)


def _sources(options: Mapping[str, str]) -> tuple[str, ...]:
    sources = []
    if "paths" in options:
        try:
            listed = json.loads(options["paths"])
        except ValueError:
            listed = None
        if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
            raise BadOption(f"option paths: a JSON list of texts is wanted, not {options['paths']}")
        sources += listed
    if "path" in options:
        path = options["path"]
        sources += [path] if Path(_local(path)).exists() else _listed(path)
    if not sources:
        raise BadOption("the data source msmq needs a path: load('captures/*.pcapng')")
    return tuple(_local(source) for source in sources)


def _local(source: str) -> str:
    """A path of the local file system, or of one that is mounted there."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", source):
        return source
    url = urlsplit(source)
    if url.scheme.lower() != "file" or url.netloc not in ("", "localhost"):
        raise BadOption(f"{source}: captures are read from mounted file systems, not from {url.scheme}:")
    return unquote(url.path)


def _listed(value: str) -> list[str]:
    return [part for part in (part.strip() for part in value.split(",")) if part]


def _word(name: str, value: str, words: tuple[str, ...]) -> str:
    if value.strip() not in words:
        raise BadOption(f"option {name}: {value} is none of {', '.join(words)}")
    return value.strip()


def _ports(value: str) -> tuple[int, ...]:
    ports = _listed(value)
    for port in ports:
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 0x1_0000):
            raise BadOption(f"option ports: {port} is no port")
    return tuple(int(port) for port in ports)


def _size(name: str, value: str) -> int:
    found = re.fullmatch(r"(\d{1,18})\s*([kmgt]?)(?:i?b)?", value.strip().lower(), re.ASCII)
    if found is None:
        raise BadOption(f"option {name}: {value} is no number of bytes, as 1000000 or 128m")
    return int(found[1]) * _UNITS[found[2]]
