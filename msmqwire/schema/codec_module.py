"""The source of modules with generated readers, writers, composers or writers of JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

from msmqwire.schema.codec_build import BuilderSource
from msmqwire.schema.codec_compose import ComposerSource
from msmqwire.schema.codec_json import JsonSource
from msmqwire.schema.codec_parse import ParserSource
from msmqwire.schema.codec_parts import Constants, identifier
from msmqwire.schema.nodes import Header

Kind: TypeAlias = "type[ParserSource] | type[BuilderSource] | type[ComposerSource] | type[JsonSource]"
KINDS: Final[dict[str, Kind]] = {
    "readers": ParserSource,
    "writers": BuilderSource,
    "composers": ComposerSource,
    "json_writers": JsonSource,
}
"""The maker of the functions of a room."""
_HELPERS: Final = {
    "msmqwire.schema.codec_support": (
        "Refused",
        "flags_of",
        "guid",
        "guid_bytes",
        "maker_of",
        "part_of",
        "reader_of",
        "record_of",
        "writer_of",
    ),
    "msmqwire.schema.json_support": ("FlagTexts", "guid_text", "quoted"),
    "msmqwire.schema.record": ("OddPadding",),
    "msmqwire.schema.texts": (
        "encode_oem",
        "encode_padded",
        "encode_text",
        "oem_counted",
        "oem_exact",
        "oem_padded",
        "text_units",
    ),
    "msmqwire.schema.utf16": ("chosen_length", "ends_on_null", "find_null", "text_exact", "text_padded"),
}


def module_source(kind: Kind, headers: Iterable[Header], about: str) -> str:
    """Return the source of a module with a function for each of these structures: `FUNCTIONS`, by key."""
    constants = Constants()
    functions, table = [], []
    for header in headers:
        functions.append(kind(header, constants).source)
        table.append(f"    {header.key!r}: {kind.verb}_{identifier(header.key)},")
    values = [f"{name}: Final = {expression}" for name, expression in sorted(constants.expressions.items())]
    used = set(re.findall(r"\w+", "\n".join([*values, *functions])))
    imports = ["from struct import Struct"] if "Struct" in used else []
    imports.append("from typing import Any, Final")
    imports += ["from uuid import UUID\n"] if "UUID" in used else ["\n"]
    for module, names in _HELPERS.items():
        if wanted := [name for name in names if name in used]:
            imports.append(f"from {module} import {', '.join(wanted)}")
    by_key = ["FUNCTIONS: Final[dict[str, Any]] = {", *table, "}"]
    head = [f'"""{about}"""', "", "from __future__ import annotations", "", *imports, "", *values]
    return "\n".join([*head, "\n", *(f"{function}\n" for function in functions), *by_key]) + "\n"
