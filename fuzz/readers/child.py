"""One target under atheris, in a separate process: ``python -m fuzz.readers.child TARGET OPTION...``.

The options are libFuzzer's. Only msmqwire is instrumented, with the code that it compiles from schemas and
declarations. The code of columns is not: it may be a library, and the generic reader has the relevant
branches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import atheris

from fuzz.readers import registry

_PACKAGE: Final = Path(__file__).resolve().parents[2] / "msmqwire"
_COLUMNS: Final = "columnar"


def _instrumented(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function, whose results are instrumented."""

    def compile_and_instrument(*arguments: Any) -> Any:
        function = compiled(*arguments)
        return function if function is None else atheris.instrument_func(function)

    return compile_and_instrument


def main() -> None:
    """Fuzz; libFuzzer ends the process."""
    name, *options = sys.argv[1:]
    files = [path.relative_to(_PACKAGE.parent) for path in (_PACKAGE / _COLUMNS).rglob("*.py")]
    columns = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files]
    with atheris.instrument_imports(include=["msmqwire"], exclude=columns, enable_loader_override=False):
        from msmqwire.rpc.ndr import compiled as ndr
        from msmqwire.schema import codec

        codec._compiled = _instrumented(codec._compiled)
        ndr._generated = _instrumented(ndr._generated)
        target = registry.load(name)
    for seed in target.seeds():  # schemas are compiled on first use: no input is to blame
        target.check(seed)
    atheris.Setup([sys.argv[0], f"-max_len={target.size_max}", *options], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
