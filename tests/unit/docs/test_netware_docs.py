"""docs/netware-wire.md: its example runs, its tables are those of the code."""

from __future__ import annotations

import re

from msmqwire.ncp.constants import CompletionCode
from msmqwire.ncp.framing import UNIT_SIZE_MAX
from msmqwire.ncp.packets import CALLS
from msmqwire.ncp.readings import Readings
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "netware-wire.md").read_text(encoding="utf-8")


def test_the_example_runs() -> None:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(source, "netware-wire.md", "exec"), {})


def test_every_completion_code_with_its_name() -> None:
    rows = re.findall(r"^\| 0x([0-9A-F]{2}) \| ([A-Z_]+) \|", PAGE, re.MULTILINE)
    assert [(int(code, 16), name) for code, name in rows] == [
        (code.value, code.name) for code in CompletionCode
    ]
    assert all(name in PAGE for name in CompletionCode.__members__)


def test_every_reading_with_its_default() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| [^|]* \| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert dict(rows) == {name: forms[0] for name, forms in Readings.fields().items()}


def test_every_call_of_two_sizes() -> None:
    numbers = re.findall(r"^\| (1\d\d) [A-Z]", PAGE, re.MULTILINE)
    assert sorted(map(int, numbers)) == sorted(
        call.number for call in CALLS.values() if len(call.requests) > 1 or len(call.replies) > 1
    )


def test_the_largest_unit() -> None:
    assert f"{UNIT_SIZE_MAX:,} bytes" in PAGE
