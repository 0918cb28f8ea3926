"""SQL and Python functions on columns of raw bytes: ``SELECT msmq_parse(raw).label FROM packets``.

They are ordinary functions over Arrow arrays, registered as Arrow UDFs. Null gives null. A value that can't
be read never fails a query: the field ``error`` of the result gives the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.analysis.dissection.message_security import NOTHING_GIVEN, Examiner, FileContent, contents_of
from msmqwire.bodies import inspect_body, plain, whole_text
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import InvalidName
from msmqwire.names import FormatName, parse_format_name
from msmqwire.tables import PACKET_COLUMNS, read_packets
from msmqwire.tables.columns import BY_NAME, COLUMNS, INT32, INT64, TEXT, TEXTS, Column, arrow_schema
from msmqwire.tables.packet_findings import packet_findings
from spark_udfs.source.schema import TIME, spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARSE_COLUMNS: Final = PACKET_COLUMNS
"""The fields of the struct that ``msmq_parse`` returns."""
PING_COLUMNS: Final[tuple[Column, ...]] = (
    *(column for column in COLUMNS if column.group == "ping"),
    *(BY_NAME[name] for name in ("error", "error_path", "error_offset")),
)
"""The fields of the struct that ``msmq_ping`` returns."""
FINDING: Final = pa.struct({"id": TEXT, "severity": TEXT, "path": TEXT, "offset": INT64, "message": TEXT})
"""A finding, as `msmqwire.analysis.lint.Finding`."""
BODY: Final = pa.struct(
    {
        "format": TEXT,
        "text": TEXT,
        "headers_format": TEXT,
        "headers": TEXTS,
        "value": TEXT,
        "error": TEXT,
    }
)
"""The decoded body of a message, as `msmqwire.bodies.Body`; the value is JSON, the error all problems."""
NAME: Final = pa.struct(
    {
        "kind": TEXT,
        "guid": TEXT,
        "number": INT64,
        "protocol": TEXT,
        "address": TEXT,
        "host": TEXT,
        "port": INT32,
        "queue": TEXT,
        "private": pa.bool_(),
        "system": TEXT,
        "journal": pa.bool_(),
        "subqueue": TEXT,
        "domain": TEXT,
        "suffix": TEXT,
        "xact_only": pa.bool_(),
        "elements": pa.list_(TEXT),
        "canonical": TEXT,
        "error": TEXT,
        "error_offset": INT64,
    }
)
"""The parts of a format name, by the names of the classes of `msmqwire.names`."""


def register(
    spark: SparkSession,
    *,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
) -> None:
    """Register the functions with SQL: ``msmq_parse``, ``msmq_kind``, ``msmq_lint``, ``msmq_ping``,
    ``msmq_body``, ``msmq_body_text`` and ``msmq_format_name``.

    In Python: ``F.call_function("msmq_kind", "raw")``.

    With keys and certificates ``msmq_parse`` has bodies decrypted and signatures verified.

    Raises:
        ImportError: pyspark is older than 4.1, and pandas is missing.
        InvalidValue: a file is not a private key, or not a certificate.
    """
    examined = ExaminedParser(tuple(contents_of(keys)), tuple(contents_of(certificates)), readings)
    for name, (function, kind) in FUNCTIONS.items():
        chosen = examined if function is parse_raw and examined.differs else function
        spark.udf.register(name, _arrow_udf(chosen, kind))


def _arrow_udf(function: Callable[..., Any], kind: Any) -> Any:
    return_type = spark_type(kind)
    from pyspark.sql import functions as F

    arrow_udf, scalar = getattr(F, "arrow_udf", None), getattr(F, "ArrowUDFType", None)
    if arrow_udf is None or scalar is None:  # pyspark 4.0
        return _pandas_udf(function, return_type)
    arrow_type = with_spark_times(kind)

    def over_arrays(*columns: Any) -> Any:
        return function(*columns).cast(arrow_type, safe=False)

    with warnings.catch_warnings():
        # It asks for type hints, which can't express functions with an optional column.
        warnings.simplefilter("ignore", UserWarning)
        return arrow_udf(over_arrays, return_type, scalar.SCALAR)


def _pandas_udf(function: Callable[..., Any], return_type: Any) -> Any:
    from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf
    from pyspark.sql.types import StructType

    def over_series(*columns: Any) -> Any:
        array = function(*(pa.Array.from_pandas(column) for column in columns))
        if isinstance(return_type, StructType):
            return pa.RecordBatch.from_struct_array(array).to_pandas()
        return array.to_pandas()

    return pandas_udf(over_series, return_type, PandasUDFType.SCALAR)


def with_spark_times(kind: Any) -> Any:
    """Return an Arrow type with its times as Spark has them."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, with_spark_times(field.type)) for field in kind])
    return TIME if pa.types.is_timestamp(kind) else kind


# -- the functions, over arrays ----------------------------------------------------------------------------


def parse_raw(raw: Any, protocol: Any = None) -> Any:
    """``msmq_parse(raw [, protocol])``: the columns of packets; each value is one whole packet."""
    return _columns_of(raw, PARSE_COLUMNS, protocol)


class ExaminedParser:
    """``msmq_parse`` with keys and certificates, which are the contents of files.

    Tasks get these contents, not the parsed keys.
    """

    def __init__(
        self, keys: tuple[bytes, ...] = (), certificates: tuple[bytes, ...] = (), readings: Readings = DEFAULT
    ) -> None:
        self._files = keys, certificates, readings
        self._examiner: Examiner | None = Examiner.from_files(*self._files)

    @property
    def differs(self) -> bool:
        """Whether anything differs from `parse_raw`."""
        return self._files != ((), (), DEFAULT)

    def __getstate__(self) -> dict[str, Any]:
        return {"_files": self._files, "_examiner": None}

    def __call__(self, raw: Any, protocol: Any = None) -> Any:
        if self._examiner is None:
            self._examiner = Examiner.from_files(*self._files)
        return _columns_of(raw, PARSE_COLUMNS, protocol, self._examiner)


def kind_of_raw(raw: Any) -> Any:
    """``msmq_kind(raw)``: the name of the packet, or Malformed."""
    return pc.struct_field(_columns_of(raw, (BY_NAME["kind"],)), "kind")


def lint_raw(raw: Any) -> Any:
    """``msmq_lint(raw)``: the departures of each packet from the specifications."""
    cells = [
        None if found is None else [finding.to_json() for finding in found] for found in packet_findings(raw)
    ]
    return pa.array(cells, pa.list_(FINDING))


def ping_raw(raw: Any) -> Any:
    """``msmq_ping(raw)``: the columns of ping requests and responses."""
    return _columns_of(raw, PING_COLUMNS, pa.repeat("ping", len(raw)))


def _columns_of(
    raw: Any, columns: tuple[Column, ...], protocols: Any = None, examiner: Examiner = NOTHING_GIVEN
) -> Any:
    names = [column.name for column in columns]
    return read_packets(raw, columns=names, protocols=protocols, examiner=examiner).combine_chunks()


def body_text(body: Any, body_type: Any) -> Any:
    """``msmq_body_text(body, body_type)``: bodies as text, by type or content; null for no valid text."""
    texts = [
        None if data is None else whole_text(data, inspect_body(data, body_type=kind or 0))
        for data, kind in zip(body.to_pylist(), body_type.to_pylist(), strict=True)
    ]
    return pa.array(map(_utf8, texts), TEXT)


def body_content(body: Any, body_type: Any = None, extension: Any = None) -> Any:
    """``msmq_body(body [, body_type [, extension]])``: the contents of messages."""
    types = pa.nulls(len(body), INT64) if body_type is None else body_type
    extensions = pa.nulls(len(body), pa.binary()) if extension is None else extension
    cells = [
        None if data is None else _content(data, kind or 0, more or b"")
        for data, kind, more in zip(body.to_pylist(), types.to_pylist(), extensions.to_pylist(), strict=True)
    ]
    return pa.array(cells, BODY)


def _content(data: bytes, body_type: int, extension: bytes) -> dict[str, Any]:
    found = inspect_body(data, body_type=body_type, extension=extension)
    has_headers = found.headers_format is not None
    headers = [(_utf8(name), _utf8(text)) for name, text in found.headers.items()]
    return {
        "format": found.format,
        "text": _utf8(found.text) or None,
        "headers_format": found.headers_format,
        "headers": headers if has_headers else None,
        "value": _utf8(plain.dumps(found.value)),
        "error": _utf8("; ".join(map(str, found.problems))) or None,
    }


def format_name(text: Any) -> Any:
    """``msmq_format_name(text)``: the parts of format names."""
    return pa.array([None if name is None else _name_parts(name) for name in text.to_pylist()], NAME)


def _name_parts(text: str) -> dict[str, Any]:
    try:
        name: FormatName = parse_format_name(text, spx=True)
    except InvalidName as exc:
        return {"error": exc.why, "error_offset": exc.offset}
    parts = {field.name: getattr(name, field.name, None) for field in NAME}
    guid, elements = parts["guid"], parts["elements"]
    parts["guid"] = None if guid is None else str(guid)
    parts["elements"] = None if elements is None else [element.canonical for element in elements]
    return parts


def _utf8(text: str | None) -> str | None:
    """Text without lone surrogates, which Arrow and Spark can't hold."""
    return None if text is None else text.encode("utf-8", "replace").decode()


FUNCTIONS: Final[dict[str, tuple[Callable[..., Any], Any]]] = {
    "msmq_parse": (parse_raw, pa.struct(list(arrow_schema(PARSE_COLUMNS)))),
    "msmq_kind": (kind_of_raw, TEXT),
    "msmq_lint": (lint_raw, pa.list_(FINDING)),
    "msmq_ping": (ping_raw, pa.struct(list(arrow_schema(PING_COLUMNS)))),
    "msmq_body": (body_content, BODY),
    "msmq_body_text": (body_text, TEXT),
    "msmq_format_name": (format_name, NAME),
}
"""The functions over arrays and the types of their results, by their names in SQL."""
