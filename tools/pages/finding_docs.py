"""Writes `docs/findings.md`: each finding of lint, with its meaning, its importance and advice.

python tools/pages/finding_docs.py            writes the page
python tools/pages/finding_docs.py --check    fails if the page is out of date
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from msmqwire.analysis.lint import Check, checks  # noqa: E402
from tools.pages.findings.texts import MEASURED, RESERVED, TEXTS  # noqa: E402

TARGET: Final = ROOT / "docs" / "findings.md"
TABLES: Final = ROOT / "docs" / "conformance"
SPECIFICATIONS: Final = {
    "DMPR": "[MS-MQDMPR]",
    "MQMQ": "[MS-MQMQ]",
    "MQMR": "[MS-MQMR]",
    "MQQB": "[MS-MQQB]",
    "MQRR": "[MS-MQRR]",
    "SRMP": "[MC-MQSRM]",
    "QMS": "NetWare Queue Services",
}
GROUPS: Final = {
    "ATTACK": "Known shapes of attack",
    "MQMQ": "Headers of messages",
    "MQQB": "Sessions, acknowledgements and pings",
    "DMPR": "Queue managers",
    "MQRR": "Remote read",
    "MQMR": "Queue management",
    "SRMP": "Messages over HTTP",
    "PGM": "Multicast by PGM",
    "QMS": "NetWare queues",
    "READING": "How a sender of NCP writes its numbers",
}
HEAD: Final = """\
---
hide:
  - toc
---

# Findings

What `lint`, `dissect`, reports, Spark and the Wireshark dissector find, by id. An id is that of the
requirement, in the tables of [conformance](conformance/index.md), with a word after it for a second rule
about one requirement, or begins with `ATTACK`, `PGM` or `READING`. `msmqwire dissect FILE --findings ID
--hexdump` shows the packets.

| severity | meaning | `lint --check` |
| --- | --- | --- |
| ATTACK | a known shape of attack | fails |
| MUST | a broken requirement: who keeps to the text refuses or misreads the packet | fails |
| SHOULD | a departure from a recommendation | passes |
| NOTE | unusual, but not a fault: ordinary programs do it, or receivers do not care | passes |

A finding in a capture may have another cause than its packet: frames that the capture lacks.
`msmqwire dissect FILE --kind Skipped` shows such gaps. This page is made from the register of rules by
`python tools/pages/finding_docs.py`.
"""


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD, *(f"- [{heading}](#{_slug(heading)})" for heading in GROUPS.values()), ""]
    listed = list(checks())
    if strange := {check.id.partition("-")[0] for check in listed} - GROUPS.keys():
        raise LookupError(f"no group of tools/pages/finding_docs.py has {', '.join(sorted(strange))}")
    for prefix, heading in GROUPS.items():
        parts.append(f"## {heading}\n")
        parts += [_entry(check) for check in listed if check.id.partition("-")[0] == prefix]
    return "\n".join(parts)


def anchor(id: str) -> str:
    """Return the name of the entry in the page: ``findings.md#mqmq-22193-12``."""
    return re.sub(r"[^a-z0-9-]", "", id.lower())


def _slug(heading: str) -> str:
    """Return the anchor that mkdocs gives a heading."""
    return re.sub(r"[^a-z ]", "", heading.lower()).replace(" ", "-")


def texts(check: Check) -> tuple[str, str]:
    """Return the importance of a finding and the advice about it. Raises LookupError if there is none."""
    if check.measured and check.id not in _OWN:
        return MEASURED
    if check.mask or re.match(r"(m_r|R)eserved1? is not 0|Reserved bits|Unused bits", check.title):
        return RESERVED
    for pattern, why, advice in TEXTS:
        if re.fullmatch(pattern, check.id):
            return why, advice
    raise LookupError(f"tools/pages/findings has nothing about {check.id}")


_OWN: Final = frozenset({"MQMQ-2.2.19.1-19", "MQMQ-2.2.19.1-11"})
"""Rules that packets with their bytes break as well as made ones."""


@cache
def requirements() -> dict[str, tuple[str, str]]:
    """Return section and text of each requirement, by id."""
    found = {}
    for path in sorted(TABLES.glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            cells = line.split("\t")
            if len(cells) > 6:
                found[cells[0]] = cells[1], cells[6]
    return found


def _entry(check: Check) -> str:
    why, advice = texts(check)
    lines = [
        f"### {check.id} {{: #{anchor(check.id)} }}",
        "",
        f"**{_escaped(check.title)}.** {check.severity}",
    ]
    lines[-1] += f", at `{check.path}`." if check.path else "."
    lines += ["", *(f"{line}\n" for line in _rule(check)), f"*Why it matters.* {why}", ""]
    return "\n".join([*lines, f"*What to do.* {advice}", ""])


def _rule(check: Check) -> Iterator[str]:
    known = requirements().get(check.requirement)
    if known is not None:
        section, text = known
        source = SPECIFICATIONS[check.id.partition("-")[0]]
        yield f"*The requirement.* {_escaped(text)} ({source}, {section})"


def _escaped(text: str) -> str:
    """Return text as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]#|$~])", r"\\\1", escape(text, quote=False))


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8", newline="\n")
