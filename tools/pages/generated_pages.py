"""Shared functions of the tools that generate pages of the documentation, or parts of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path


def row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def write_or_check(page: Callable[[], str], target: Path, tool: str, arguments: list[str] | None) -> int:
    """Write a page, or with ``--check`` compare it; return the exit status.

    Args:
        page: returns its text.
        target: its file.
        tool: the name of the script that writes it.
        arguments: the arguments of the command line; by default those of the process.
    """
    parser = argparse.ArgumentParser(description=f"Writes {target.name}.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page is not up to date"
    )
    check = parser.parse_args(arguments).check
    text = page()
    if not check:
        target.write_text(text, encoding="utf-8", newline="\n")
    elif not target.exists() or target.read_text(encoding="utf-8") != text:
        print(f"{target} is not up to date: run python tools/pages/{tool}", file=sys.stderr)
        return 1
    return 0


def part_replaced(page: str, name: str, text: str) -> str:
    """Return a page with the text between the marks of a generated part replaced.

    The marks are comments of HTML, on lines of their own: ``<!-- NAME -->`` and ``<!-- end of NAME -->``.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"{begin.strip()} and {end.strip()} are not there, or more than once")
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{text.strip()}\n\n{end}{rest.partition(end)[2]}"
