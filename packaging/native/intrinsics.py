"""What compiled code has of LLVM itself, for numba: in place of functions marked with `in_llvm`."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def _move(context: Any, target: Any, offset: Any, source: Any, start: Any, count: Any) -> Any:
    def generate(target_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointers = []
        for number in (0, 2):
            array = target_context.make_array(signature.args[number])(target_context, builder, values[number])
            pointers.append(builder.gep(array.data, [values[number + 1]]))
        cgutils.raw_memmove(  # type: ignore[no-untyped-call]
            builder, pointers[0], pointers[1], values[4], 1
        )
        return target_context.get_dummy_value()

    return types.none(target, types.intp, source, types.intp, types.intp), generate


@intrinsic
def _prefetch(context: Any, source: Any, offset: Any) -> Any:
    def generate(target_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = target_context.make_array(signature.args[0])(target_context, builder, values[0])
        pointer = builder.gep(array.data, [values[1]])
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        for_reading, in_all_caches, data = (ir.Constant(word, n) for n in (0, 3, 1))
        builder.call(fetch, [pointer, for_reading, in_all_caches, data])
        return target_context.get_dummy_value()

    return types.none(source, types.intp), generate


INTRINSICS: Final[dict[str, Any]] = {"_move": _move, "_prefetch": _prefetch}
"""By the names of the functions that they replace."""
