"""One target under atheris, in a process of its own: ``python -m fuzz.readers.child TARGET [libFuzzer's options]``.

Only msmqwire is instrumented, and what it compiles of schemas and declarations: the code whose branches count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import atheris


def _instrumented(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function, whose results are instrumented."""

    def compile_and_instrument(*arguments: Any) -> Any:
        function = compiled(*arguments)
        return function if function is None else atheris.instrument_func(function)

    return compile_and_instrument


def main() -> None:
    """Fuzz; libFuzzer ends the process."""
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["msmqwire"], enable_loader_override=False):
        from msmqwire.rpc.ndr import compiled as ndr
        from msmqwire.schema import codec

        codec._compiled = _instrumented(codec._compiled)
        ndr._generated = _instrumented(ndr._generated)
        from fuzz.readers.registry import load

        target = load(name)
    atheris.Setup([sys.argv[0], f"-max_len={target.size_max}", *options], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
