"""The compiled scan in place of the reader of a dissection, where it is there and pays.

Items, findings and counts are the same. The scan reads files in parts of some MiB, so that a live capture is
not for it; loading it takes longer than a small capture does; and it knows the protocols of this program
only.
"""

from __future__ import annotations

from importlib.util import find_spec
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from msmqwire.analysis.dissection import registry
from msmqwire.capture.paths import file_size

if TYPE_CHECKING:
    from msmqwire.analysis.dissection import Dissection

SIZE_MIN: Final = 2 << 20
"""Bytes of files below which the scan would take longer to load than it saves."""
_READER: Final = "msmqwire.tables.item_reader:usual_reader"
_NEEDS: Final = ("numpy", "pyarrow")
_KNOWN: Final = tuple(registry.STREAMS), tuple(registry.DATAGRAMS)


def reader_of(dissection: Dissection, *, only_findings: bool) -> Any:
    """Return the `ItemReader` of a dissection of which nothing was read; None if it is not for the scan.

    With `only_findings` it yields no other items. Raises UnsupportedStore and OSError if a file can't be
    reached.
    """
    if not dissection.is_plain or (tuple(registry.STREAMS), tuple(registry.DATAGRAMS)) != _KNOWN:
        return None
    if any(hasattr(source, "read") for source in dissection.sources):
        return None
    options = dissection.storage_options
    if sum(file_size(source, options) for source in dissection.sources) < SIZE_MIN:
        return None
    if any(find_spec(name) is None for name in _NEEDS):
        return None
    return resolve_name(_READER)(dissection, only_findings=only_findings)
