"""Writes the tables in `docs/fuzzing-readers.md`, from the counts of runs of `python -m fuzz.readers`.

python tools/pages/fuzzing_docs.py            writes the tables
python tools/pages/fuzzing_docs.py --check    fails if they are out of date
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fuzz.readers.keeping import read_reached  # noqa: E402
from fuzz.readers.registry import all_targets  # noqa: E402
from fuzz.readers.tally import Tally, read  # noqa: E402
from tools.pages.generated_pages import row, write_or_check  # noqa: E402

TARGET: Final = ROOT / "docs" / "fuzzing-readers.md"
TALLY: Final = ROOT / "docs" / "fuzzing-readers.tsv"
LINES: Final = ROOT / "docs" / "fuzzing-readers-lines.tsv"
START: Final = "<!-- tally: written by python tools/pages/fuzzing_docs.py -->\n"
END: Final = "<!-- end of tally -->\n"
EDGES: Final = (
    "Edges and features are libFuzzer's: branches of the instrumented code, and these with how often they",
    "were taken and the results that were compared.",
    "",
)
REACHED: Final = (
    "",
    "Lines of functions that the kept corpora reach, in the parts of `msmqwire` that read. The rest is",
    "mostly builders, and code that only other parts call:",
    "",
)


def page() -> str:
    """Return the text of the page."""
    before, _, rest = TARGET.read_text(encoding="utf-8").partition(START)
    _, _, behind = rest.partition(END)
    return "".join([before, START, "\n", *(f"{line}\n" for line in _tables()), "\n", END, behind])


def _tables() -> list[str]:
    rows = read(TALLY)
    executions = sum(tally.executions for tally in rows.values())
    faults = sum(tally.faults for tally in rows.values())
    return [
        f"{executions:,} inputs in all; {faults} faults were found and mended, none is open.",
        *EDGES,
        row(["target", "what it checks", "inputs", "edges", "features", "faults"]),
        row(["---", "---", "---:", "---:", "---:", "---:"]),
        *(_line(target.name, target.check.__doc__, rows) for target in all_targets()),
        *REACHED,
        row(["part", "reached", "lines", ""]),
        row(["---", "---:", "---:", "---:"]),
        *(
            row([f"`{part}`", f"{reached:,}", f"{there:,}", f"{reached / there:.0%}"])
            for part, (reached, there) in read_reached(LINES).items()
        ),
    ]


def _line(name: str, meaning: str | None, rows: dict[str, Tally]) -> str:
    tally = rows.get(name, Tally(name))
    numbers = (f"{tally.executions:,}", f"{tally.edges:,}", f"{tally.features:,}", str(tally.faults or ""))
    return row([f"`{name}`", (meaning or "").strip(), *numbers])


def main(arguments: list[str] | None = None) -> int:
    """Write the tables or, with --check, compare them; return the exit status."""
    return write_or_check(page, TARGET, "fuzzing_docs.py", arguments)


if __name__ == "__main__":
    sys.exit(main())
