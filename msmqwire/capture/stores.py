"""The file systems that URLs mean: S3, GCS, ABFS and HDFS by pyarrow, further ones by fsspec if it is
installed.

Credentials come from where each store's own tools look for them, or from storage options, which are keyword
arguments of the file system: of `pyarrow.fs.S3FileSystem`, `GcsFileSystem`, `AzureFileSystem` and
`HadoopFileSystem`, or of the class of fsspec. Values may be text, as the command line has them. None of them
is in an error or a ``repr``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msmqwire.capture.ranged import RangedFile
from msmqwire.capture.store_errors import FileChanged, one_line, retried, store_errors
from msmqwire.errors import UnsupportedStore
from msmqwire.names.printable import counted

StorageOptions = Mapping[str, Any]
"""Arguments of a file system by name."""
NO_OPTIONS: Final[StorageOptions] = {}

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(.*)", re.DOTALL)
_VERSION_KEYS: Final = (
    "ETag", "etag", "generation", "md5", "md5Hash", "checksum", "mtime", "modified", "LastModified",
    "last_modified", "modificationTime", "updated", "created",
)  # fmt: skip
"""The names in fsspec file systems of the marks of a file's content."""


class Listed(NamedTuple):
    """An entry of a folder.

    Attributes:
        path: its path in the file system.
        is_folder: whether it is a folder.
        size: bytes of a file.
    """

    path: str
    is_folder: bool
    size: int


class Store:
    """One file system of a store.

    Attributes:
        filesystem: it, as a `pyarrow.fs.FileSystem`.
    """

    def __init__(
        self, place: _Place, filesystem: Any, options: StorageOptions, *, other: Any | None = None
    ) -> None:
        """Wrap a file system.

        Args:
            place: the scheme and authority of its URLs.
            filesystem: the file system of pyarrow.
            options: those of the file system, for messages without them.
            other: the file system of fsspec that it stands for.
        """
        self.filesystem = filesystem
        self._place, self._options, self._other = place, options, other

    def __repr__(self) -> str:
        return f"<Store {self._place.scheme}://{self._place.authority}>"

    def path(self, url: str) -> str:
        """Return the path in the file system that a URL means."""
        if self._other is not None:
            path: str = self._other._strip_protocol(url)
            return path
        return self._place.path_of(_split(url)[2])

    def url(self, path: str) -> str:
        """Return the URL of a path in the file system."""
        if self._other is not None:
            url: str = path if _URL.match(path) else self._other.unstrip_protocol(path)
            return url
        return self._place.url_of(path)

    def info(self, url: str) -> Listed | None:
        """Return the file that a URL names; None if there is nothing. Raises OSError."""
        from pyarrow.fs import FileType

        with store_errors(url, self._options):
            (info,) = self.filesystem.get_file_info([self.path(url)])
            if info.type == FileType.NotFound:
                self._check_bucket(url)
                return None
            return Listed(info.path, info.type == FileType.Directory, info.size or 0)

    def list(self, folder: str, *, recursive: bool = False, missing_ok: bool = False) -> list[Listed]:
        """Return the entries of a folder, given by its path in the file system; none of a missing one with
        ``missing_ok``. Raises OSError.
        """
        from pyarrow.fs import FileSelector, FileType

        with store_errors(self.url(folder), self._options):
            entries = self.filesystem.get_file_info(
                FileSelector(folder, recursive=recursive, allow_not_found=missing_ok)
            )
            return [
                Listed(entry.path, entry.type == FileType.Directory, entry.size or 0) for entry in entries
            ]

    def open(self, url: str, *, stop: int | None = None, version: str = "") -> RangedFile:
        """Open a file for reading by ranges.

        Args:
            url: its URL.
            stop: the offset beyond which nothing is fetched before it is needed.
            version: that of the content that must be read; by default that of the present one.

        Raises:
            FileChanged: the file has changed, now or while it is read.
            OSError: the file can't be read.
        """
        path = self.path(url)
        with store_errors(url, self._options):
            try:
                read, size, present = self._opened(path)
            except FileNotFoundError:
                self._check_bucket(url)
                raise
        expected = version or present

        def check(version: str) -> None:
            if version != expected:
                raise FileChanged(None, "the file changed while it was read", url)

        def fetch_once(offset: int, count: int) -> bytes:
            with store_errors(url, self._options):
                data: bytes = read(offset, count)
                if len(data) != count:
                    raise OSError(
                        f"{counted(len(data), 'byte')} came instead of {count:,} from byte {offset}"
                    )
                check(self._opened(path)[2])  # after the bytes, so that all of them are of this version
                return data

        check(present)
        return RangedFile(
            url, size, expected, lambda offset, count: retried(lambda: fetch_once(offset, count)), stop=stop
        )

    def create(self, url: str) -> Any:
        """Create a file, in place of the one that is there; return its stream, a `pyarrow.NativeFile`.

        Raises OSError.
        """
        path = self.path(url)
        with store_errors(url, self._options):
            if "/" in path.strip("/") and not self._place.is_flat:
                self.filesystem.create_dir(path.rsplit("/", 1)[0], recursive=True)
            return self.filesystem.open_output_stream(path)

    def remove(self, url: str) -> None:
        """Remove a file. Raises OSError."""
        with store_errors(url, self._options):
            self.filesystem.delete_file(self.path(url))

    def _opened(self, path: str) -> tuple[Callable[[int, int], bytes], int, str]:
        """A function that reads a range of a file, its size, and the version of its content."""
        if self._other is not None:
            other, details = self._other, self._other.info(path)
            if details["type"] == "directory":
                raise IsADirectoryError(21, "a folder", path)
            if details.get("size") is None:
                raise OSError("its server does not report its size")
            signs = [str(details[key]) for key in _VERSION_KEYS if details.get(key)]
            return (
                lambda offset, count: other.cat_file(path, start=offset, end=offset + count),
                details["size"],
                " ".join([str(details["size"]), *signs]),
            )
        file = self.filesystem.open_input_file(path)
        size = file.size()
        metadata = {} if self._place.scheme in _HDFS else file.metadata() or {}
        sign = metadata.get("ETag") or metadata.get("etag")
        if not sign:
            (info,) = self.filesystem.get_file_info([path])
            size, sign = info.size, info.mtime_ns
        return lambda offset, count: file.read_at(count, offset), size, f"{size} {sign!r}"

    def _check_bucket(self, url: str) -> None:
        """Raise FileNotFoundError if it is not a file that is missing but the whole bucket."""
        from pyarrow.fs import FileType

        if not self._place.is_flat:
            return
        (bucket,) = self.filesystem.get_file_info([self._place.path_of("")])
        if bucket.type == FileType.NotFound:
            raise FileNotFoundError(2, "no such bucket", url)


class _Place(NamedTuple):
    """The scheme and the authority of a URL.

    Attributes:
        scheme: in lower case.
        authority: the text between ``//`` and the next ``/``.
        shown_scheme: the scheme as it was written.
    """

    scheme: str
    authority: str
    shown_scheme: str

    @property
    def is_flat(self) -> bool:
        """Whether paths start with the name of a bucket, in which folders need not be made."""
        return self.scheme not in _HDFS and self.scheme in _FILE_SYSTEMS

    @property
    def bucket(self) -> str:
        """The bucket or container."""
        return self.authority.partition("@")[0]

    def path_of(self, rest: str) -> str:
        """Return the path of the text after the authority in a URL."""
        return self.bucket + rest.rstrip("/") if self.is_flat else rest or "/"

    def url_of(self, path: str) -> str:
        """Return the URL of a path."""
        rest = path.removeprefix(self.bucket) if self.is_flat else path
        return f"{self.shown_scheme}://{self.authority}{rest}"


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the URL of a store; ``file:`` names a local path."""
    match = _URL.match(os.fspath(path))
    return match is not None and match[1].lower() != "file"


def has_credentials(url: str) -> bool:
    """Whether a URL holds a password, or a key of a store that has no users; code that shows URLs refuses
    them.
    """
    scheme, authority, _ = _split(url)
    user, has_password, _ = authority.rpartition("@")[0].partition(":")
    return bool(has_password or (user and scheme in _S3 + _GCS))


def open_store(url: str, options: StorageOptions = NO_OPTIONS) -> Store:
    """Return the store of a URL, the same for URLs with the same authority and options.

    Raises:
        UnsupportedStore: an unknown scheme, a package that is not installed, an unknown or invalid option, or
            credentials in the URL.
        OSError: the store can't be reached.
    """
    scheme, authority, _ = _split(url)
    if has_credentials(url):
        raise UnsupportedStore(f"{scheme}: credentials in a URL would be shown; pass them as storage options")
    if scheme in _FILE_SYSTEMS and not authority and scheme not in _HDFS:
        raise UnsupportedStore(f"{url}: it names no bucket")
    shown = url[: len(scheme)]
    frozen = tuple((name, _Hidden(value)) for name, value in sorted(options.items()))
    with store_errors(url, options):
        return _open_store(_Place(scheme, authority, shown), frozen, os.getpid())


@lru_cache(maxsize=64)
def _open_store(place: _Place, frozen: tuple[tuple[str, _Hidden], ...], process: int) -> Store:
    """Make a store. A process has its own: connections and threads of its parent are not in a fork."""
    options = {name: hidden.value for name, hidden in frozen}
    make = _FILE_SYSTEMS.get(place.scheme)
    if make is None:
        from_fsspec = _fsspec(place, options)
        from pyarrow.fs import FSSpecHandler, PyFileSystem

        return Store(place, PyFileSystem(FSSpecHandler(from_fsspec)), options, other=from_fsspec)
    try:
        return Store(place, make(place, _values(place.scheme, options)), options)
    except ImportError:
        raise UnsupportedStore(f"{place.scheme}: the installed pyarrow was built without it") from None
    except UnsupportedStore:
        raise
    except (TypeError, ValueError) as exc:
        raise _refused(place.scheme, exc, options) from None


class _Hidden:
    """The value of an option: compared, and never shown."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = repr(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hidden) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return "***"


def _split(url: str) -> tuple[str, str, str]:
    match = _URL.match(url)
    if match is None:
        raise UnsupportedStore(f"{url}: no URL")
    return match[1].lower(), match[2], match[3]


# -- options --------------------------------------------------------------------------------------------


def parse_options(texts: Iterable[str]) -> dict[str, Any]:
    """Return storage options from ``NAME=VALUE`` texts; a value in JSON is decoded, any other is text.

    Raises UnsupportedStore for a text without a name or ``=``; the value is not shown.
    """
    options: dict[str, Any] = {}
    for text in texts:
        name, has_value, value = text.partition("=")
        if not has_value or not name.isidentifier():
            raise UnsupportedStore("a storage option is NAME=VALUE, as region=eu-west-1")
        options[name] = _json_or_text(value)
    return options


def _json_or_text(value: str) -> Any:
    """The value of JSON objects, lists, true, false and null; numbers stay text, as a key may be one."""
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    return value if isinstance(parsed, (int, float, str)) and not isinstance(parsed, bool) else parsed


def _flag(value: Any) -> bool:
    flags = {"true": True, "false": False, "1": True, "0": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in flags:
        raise ValueError("neither true nor false")
    return flags[str(value).lower()]


def _seconds(value: Any) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(seconds=float(value))


def _time(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


_KINDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "anonymous": _flag,
    "force_virtual_addressing": _flag,
    "connect_timeout": float,
    "request_timeout": float,
    "load_frequency": int,
    "retry_time_limit": _seconds,
    "credential_token_expiration": _time,
    "replication": int,
    "buffer_size": int,
}
"""The types of the options of pyarrow's file systems, if not text."""


def _values(scheme: str, options: StorageOptions) -> dict[str, Any]:
    values = {}
    for name, value in options.items():
        try:
            values[name] = _KINDS.get(name, lambda value: value)(value)
        except (TypeError, ValueError) as exc:
            raise UnsupportedStore(f"{scheme}: the storage option {name} is {_reason(exc)}") from None
    return values


def _reason(exc: Exception) -> str:
    """Why a value is wrong, without the value."""
    return str(exc) if str(exc) == "neither true nor false" else "no such value"


# -- file systems ---------------------------------------------------------------------------------------


def _s3(place: _Place, options: dict[str, Any]) -> Any:
    from pyarrow.fs import S3FileSystem, resolve_s3_region

    elsewhere = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION")
    if not {"region", "endpoint_override"} & set(options) and not any(os.environ.get(x) for x in elsewhere):
        options["region"] = resolve_s3_region(place.bucket)
    return S3FileSystem(**options)


def _gcs(place: _Place, options: dict[str, Any]) -> Any:
    from pyarrow.fs import GcsFileSystem

    return GcsFileSystem(**{"retry_time_limit": timedelta(seconds=30), **options})


def _azure(place: _Place, options: dict[str, Any]) -> Any:
    from pyarrow.fs import AzureFileSystem

    _, _, host = place.authority.partition("@")
    account, _, authority = host.partition(".")
    if account:
        options.setdefault("account_name", account)
    if authority and authority != "dfs.core.windows.net":
        options.setdefault("dfs_storage_authority", f".{authority}")
    if "account_name" not in options:
        raise UnsupportedStore(
            "abfs: no account; abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH has one"
        )
    return AzureFileSystem(**options)


def _hdfs(place: _Place, options: dict[str, Any]) -> Any:
    from pyarrow.fs import HadoopFileSystem

    user, _, host = place.authority.rpartition("@")
    name, _, port = host.partition(":")
    if user:
        options.setdefault("user", user)
    if place.scheme == "viewfs":
        name = f"viewfs://{name}"
    try:
        return HadoopFileSystem(name or "default", int(port or 0), **options)
    except OSError as exc:
        raise UnsupportedStore(
            f"hdfs: {one_line(exc, options)}; needed are Java, libhdfs and the CLASSPATH of Hadoop"
        ) from None


def _fsspec(place: _Place, options: dict[str, Any]) -> Any:
    """A file system of fsspec, which does not cache its lists."""
    scheme = place.scheme
    try:
        import fsspec
    except ImportError:
        raise UnsupportedStore(
            f"{scheme}: an unknown scheme; schemes other than {_NAMES} need fsspec"
        ) from None
    try:
        kind = fsspec.get_filesystem_class(scheme)
    except ImportError as exc:
        raise UnsupportedStore(f"{scheme}: {one_line(exc, options)}") from None
    except ValueError:
        raise UnsupportedStore(
            f"{scheme}: an unknown scheme; known are {_NAMES} and those of fsspec"
        ) from None
    url_options = kind._get_kwargs_from_urls(f"{scheme}://{place.authority}/")
    try:
        return kind(**{**url_options, "use_listings_cache": False, "skip_instance_cache": True, **options})
    except TypeError as exc:
        raise _refused(scheme, exc, options) from None


def _refused(scheme: str, exc: Exception, options: StorageOptions) -> UnsupportedStore:
    """The error of a file system that does not take its options."""
    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(exc))
    why = f"it has no storage option {unknown[1]}" if unknown else one_line(exc, options)
    return UnsupportedStore(f"{scheme}: {why}")


_S3: Final = ("s3", "s3a", "s3n")
_GCS: Final = ("gs", "gcs")
_AZURE: Final = ("abfs", "abfss")
_HDFS: Final = ("hdfs", "viewfs")
_NAMES: Final = "s3, gs, abfs and hdfs"
_FILE_SYSTEMS: Final[Mapping[str, Callable[[_Place, dict[str, Any]], Any]]] = {
    **dict.fromkeys(_S3, _s3),
    **dict.fromkeys(_GCS, _gcs),
    **dict.fromkeys(_AZURE, _azure),
    **dict.fromkeys(_HDFS, _hdfs),
}
