"""``python -m fuzz.readers``: fuzzes the readers of msmqwire, and prints the findings."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fuzz.readers import keeping
from fuzz.readers.inputs import ROOT
from fuzz.readers.registry import Target, all_targets
from fuzz.readers.runner import Result, run
from fuzz.readers.tally import add
from msmqwire.names.nearest import unknown_name


def main() -> int:
    """Run the targets; return 1 if something was found, 2 for wrong usage."""
    options = _options()
    targets = {target.name: target for target in all_targets()}
    unknown = [name for name in options.target if name not in targets]
    if unknown:
        print(unknown_name(unknown[0], targets, "target", see="--list prints all"), file=sys.stderr)
        return 2
    chosen = [targets[name] for name in options.target] or list(targets.values())
    if options.list:
        print("\n".join(f"{target.name:24}{_meaning(target)}" for target in chosen))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    if options.keep:
        keeping.keep_fewest(chosen, options.out)
    if options.lines is not None:
        keeping.write_reached(options.lines, keeping.reached(chosen))
    if options.keep or options.lines is not None:
        return 0
    if find_spec("atheris") is None:
        print("atheris is not installed: the extra fuzz has it, where there is one", file=sys.stderr)
        return 2
    results = []
    for target in chosen:
        print(f"{target.name} ...", file=sys.stderr, flush=True)
        result = run(target, options.out, seconds=options.time / len(chosen), runs=options.runs)
        results.append(result)
        for finding in result.findings:
            print(f"{finding.file}\n{finding.text}", file=sys.stderr)
        if options.tally is not None:
            add(options.tally, result)
    _print(results)
    report = options.out / "report.json"
    report.write_text(json.dumps([result.to_json() for result in results], indent=1) + "\n")
    return 1 if any(result.findings for result in results) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz.readers", description=__doc__)
    parser.add_argument("--target", action="append", default=[], metavar="NAME", help="only this target")
    parser.add_argument("--time", type=float, default=0, metavar="SECONDS", help="for all targets together")
    parser.add_argument("--runs", type=int, default=0, metavar="N", help="inputs for each target")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz", metavar="DIR")
    parser.add_argument(
        "--tally", type=Path, metavar="FILE", help="add executions and coverage to this table"
    )
    parser.add_argument(
        "--keep", action="store_true", help="make the kept corpora from the corpora in DIR; run no target"
    )
    parser.add_argument(
        "--lines", type=Path, metavar="FILE", help="write the lines that they reach; run none"
    )
    parser.add_argument("--list", action="store_true", help="print the targets; run none")
    options = parser.parse_args()
    runs_none = options.keep or options.list or options.lines is not None
    if not runs_none and (options.time > 0) == (options.runs > 0):
        parser.error("either --time or --runs is needed")
    return options


def _meaning(target: Target) -> str:
    return (target.check.__doc__ or "").partition("\n")[0]


def _print(results: list[Result]) -> None:
    table = Table("target", "executions", "per second", "edges", "features", "findings")
    for column in table.columns[1:]:
        column.justify = "right"
    for result in results:
        rate = result.executions / result.seconds if result.seconds else 0
        findings = str(len(result.findings) or "")
        numbers = (f"{result.executions:,}", f"{rate:,.0f}", f"{result.edges:,}", f"{result.features:,}")
        table.add_row(result.target, *numbers, findings)
    executions = sum(result.executions for result in results)
    found = sum(len(result.findings) for result in results)
    table.add_section()
    table.add_row("all", f"{executions:,}", "", "", "", str(found))
    Console(width=None if os.isatty(1) else 100).print(table)


if __name__ == "__main__":
    sys.exit(main())
