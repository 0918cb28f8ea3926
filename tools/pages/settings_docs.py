"""Writes `docs/settings.md`: the values that ``serve --set NAME=VALUE`` can change, from the declarations.

python tools/pages/settings_docs.py            writes the page
python tools/pages/settings_docs.py --check    fails if the page is out of date
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from msmqwire.qm.model.settings import Settings  # noqa: E402
from msmqwire.qm.runtime.limits import LIMITS, Limits  # noqa: E402
from msmqwire.qm.runtime.named_values import NamedValue, named_values  # noqa: E402
from msmqwire.qm.runtime.server import SETTINGS  # noqa: E402
from tools.pages.generated_pages import row, write_or_check  # noqa: E402

TARGET: Final = ROOT / "docs" / "settings.md"
HEAD: Final = """\
---
hide:
  - toc
---

# Settings

`msmqwire serve --set NAME=VALUE`, more than once for several, changes any timer, limit or choice of a queue
manager: `--set window_size=32 --set resend_timer_table=5,5,5,60`. Other options for the same value yield to
it; values kept in the folder (`--insecure-nacks`, `--resend-times`) take precedence. A wrong name or value
ends the command with 2. The tables are made from the declarations by `python tools/pages/settings_docs.py`.
"""
SECTIONS: Final = (
    ("The engines", Settings, SETTINGS, "Timers and choices of [MS-MQQB], [MC-MQSRM] and [MS-MQDMPR]."),
    ("Limits on peers", Limits, LIMITS, "Limits on the resources of a server that peers may use."),
)
COLUMNS: Final = ["name", "unit", "default", "values", "meaning"]
_NO_END: Final = 1 << 53
"""A range up to here has no end worth telling."""


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for heading, owner, defaults, words in SECTIONS:
        lines = [f"## {heading}", "", words, "", row(COLUMNS), row(["---"] * len(COLUMNS))]
        for field in fields(owner):
            value = named_values()[field.name]
            lines.append(row(_cells(value, getattr(defaults, field.name))))
        parts.append("\n".join([*lines, ""]))
    return "\n".join(parts)


def _cells(value: NamedValue, default: Any) -> list[str]:
    return [
        f"`{value.name}`",
        value.unit,
        f"`{_text(default)}`" if _text(default) else "none",
        _values(value),
        re.sub(r"([*_|<>])", r"\\\1", re.sub(r"``?(\w+)``?", r"\1", value.meaning)),
    ]


def _text(default: Any) -> str:
    """Return a value as it is given."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    if isinstance(default, Enum):
        return str(default.value)
    return f"{default:g}" if isinstance(default, float) else str(default)


def _values(value: NamedValue) -> str:
    if value.kind is bool:
        return "true, false"
    if issubclass(value.kind, Enum):
        return ", ".join(member.value for member in value.kind)
    most = f" to {value.most:,.10g}" if value.most < _NO_END else " or more"
    words = f"{value.least:,g}{most}" if value.kind is float else f"{value.least:,}{most}"
    return f"numbers, {words}, separated by commas" if value.kind is tuple else words


def main(arguments: list[str] | None = None, target: Path = TARGET) -> int:
    return write_or_check(page, target, "settings_docs.py", arguments)


if __name__ == "__main__":
    sys.exit(main())
