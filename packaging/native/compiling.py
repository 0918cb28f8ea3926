"""Compiled functions to one module of LLVM, with a function for each that interpreted code calls.

numba makes what LLVM compiles, and nothing else: it neither optimizes nor compiles each function with all
that it calls, as it does to run them, but all are put together first, so that nothing is compiled twice.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from typing import Any, Final

# Which processor the code is for has to be known before numba is imported; else it is that of this machine.
PROCESSOR: Final = {"x86_64": "x86-64-v2", "AMD64": "x86-64-v2"}.get(platform.machine(), "generic")
os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = PROCESSOR, ""

import llvmlite.binding as llvm  # noqa: E402
import numba  # noqa: E402
from numba.core import cgutils, types  # noqa: E402
from numba.core.codegen import CPUCodeLibrary  # noqa: E402
from numba.core.compiler_lock import global_compiler_lock  # noqa: E402
from numba.core.cpu import CPUContext  # noqa: E402
from numba.extending import intrinsic  # noqa: E402
from numba.np.arrayobj import populate_array  # noqa: E402
from with_numba import OPTIONS, compile_with_numba  # noqa: E402

from msmqwire.tables.compiled.arrays import ArrayOf  # noqa: E402
from msmqwire.tables.compiled.calling import SHAPE_AT, Record, Signature, signature_of  # noqa: E402
from msmqwire.tables.compiled.decorators import COMPILED, EXPORTED, Exported  # noqa: E402
from msmqwire.tables.compiled.library import SYMBOL, modules  # noqa: E402

_WITHOUT_WRAPPERS: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@intrinsic
def view(context: Any, pointer: Any, shape: Any) -> Any:
    """Return the array at an address, contiguous, of this shape; `numba.carray` needs numba's allocator."""
    kind = types.Array(pointer.dtype, len(shape), "C")

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = target.make_array(kind)(target, builder)
        sizes = cgutils.unpack_tuple(builder, values[1])
        element = target.get_data_type(kind.dtype)
        item_size = target.get_constant(types.intp, target.get_abi_sizeof(element))
        strides, stride = [], item_size
        for size in reversed(sizes):
            strides.insert(0, stride)
            stride = builder.mul(stride, size)
        populate_array(
            array,
            data=builder.bitcast(values[0], element.as_pointer()),
            shape=sizes,
            strides=strides,
            itemsize=item_size,
            meminfo=None,
        )
        return array._getvalue()

    return kind(pointer, shape), generate


def _flat(entry: Exported, signature: Signature) -> tuple[Callable[..., None], list[Any]]:
    """Return a function of integers and addresses that calls a compiled function, and their types."""
    names: dict[str, Any] = {"view": view, "function": entry.call}
    parameters, kinds, arguments = list[str](), list[Any](), list[str]()

    def array(wanted: ArrayOf) -> str:
        start = f"p{len(parameters)}"
        sizes = [f"n{len(parameters)}_{number}" for number in range(wanted.dimensions)]
        parameters.extend([start, *sizes])
        kinds.append(types.CPointer(getattr(types, "boolean" if wanted.kind == "bool" else wanted.kind)))
        kinds.extend([types.int64] * wanted.dimensions)
        return f"view({start}, ({', '.join(sizes)},))"

    for name, parameter in signature.parameters.items():
        if isinstance(parameter, ArrayOf):
            arguments.append(array(parameter))
        elif isinstance(parameter, Record):
            names[parameter.kind.__name__] = parameter.kind
            arguments.append(f"{parameter.kind.__name__}({', '.join(map(array, parameter.fields))})")
        else:
            parameters.append(f"v_{name}")
            kinds.append(types.int64)
            arguments.append(f"v_{name} != 0" if parameter is bool else f"v_{name}")
    call = f"function({', '.join(arguments)})"
    lines = [call]
    if signature.results:
        parameters.append("results")
        kinds.append(types.CPointer(types.int64))
        count = len(signature.results)
        numbers = [f"r{number}" for number in range(count)]
        lines = [f"{', '.join(numbers)} = {call}", f"out = view(results, ({count},))"]
        lines += [f"out[{number}] = r{number}" for number in range(count)]
    body = "\n    ".join(lines)
    exec(f"def flat({', '.join(parameters)}):\n    {body}\n", names)
    return names["flat"], kinds


def _wrapper(name: str, inner: str, signature: Signature) -> str:
    """Return LLVM's text of the function of the library that calls one with numba's conventions.

    It is called as `msmqwire.tables.compiled.calling` says: the address and the shape of an array are
    taken from numpy's object.
    """
    lines, passed, entry = list[str](), list[str](), 0

    def load(kind: str, place: str) -> str:
        lines.append(f"%v{len(lines)} = load {kind}, ptr {place}")
        return f"%v{len(lines) - 1}"

    def step(kind: str, start: str, index: str | int) -> str:
        lines.append(f"%v{len(lines)} = getelementptr {kind}, ptr {start}, i64 {index}")
        return f"%v{len(lines) - 1}"

    def argument() -> str:
        nonlocal entry
        entry += 1
        return load("i64", step("i64", "%arguments", entry))

    def array(wanted: ArrayOf) -> None:
        number = argument()
        lines.append(f"%v{len(lines)} = inttoptr i64 {number} to ptr")
        fields = step("i8", f"%v{len(lines) - 1}", head)
        passed.append(f"ptr {load('ptr', fields)}")
        sizes = load("ptr", step("i8", fields, SHAPE_AT))
        passed.extend(f"i64 {load('i64', step('i64', sizes, index))}" for index in range(wanted.dimensions))

    head = load("i64", "%arguments")
    for parameter in signature.parameters.values():
        if isinstance(parameter, ArrayOf):
            array(parameter)
        elif isinstance(parameter, Record):
            for field in parameter.fields:
                array(field)
        else:
            passed.append(f"i64 {argument()}")
    if signature.results:
        passed.append("ptr %results")
    taken = ", ".join(each.partition(" ")[0] for each in passed)
    body = "\n  ".join(lines)
    return f"""
declare i32 @"{inner}"(ptr, ptr, {taken})

define dllexport void @{SYMBOL}{name}(ptr %arguments, ptr %results) {{
  %result = alloca ptr
  %raised = alloca ptr
  {body}
  %status = call i32 @"{inner}"(ptr %result, ptr %raised, {", ".join(passed)})
  ret void
}}
"""


class OnlyMade:
    """numba makes functions, and does not optimize or run them, in its context.

    Args:
        on_made: is called with the name of each function that has been made.
    """

    def __init__(self, on_made: Callable[[str], None]) -> None:
        self._on_made = on_made

    def __enter__(self) -> None:
        self._before = CPUCodeLibrary._optimize_final_module, CPUContext.get_executable
        CPUCodeLibrary._optimize_final_module = lambda library: None
        CPUContext.get_executable = self._executable

    def __exit__(self, *_: object) -> None:
        CPUCodeLibrary._optimize_final_module, CPUContext.get_executable = self._before

    def _executable(self, library: Any, description: Any, environment: Any) -> Any:
        self._on_made(f"{description.modname.rpartition('.')[2]}.{description.qualname}")
        return [].append  # one that is built in, another for each function, is wanted; it is never called


def make_module(on_function: Callable[[str, int, int], None]) -> Any:
    """Return one module of LLVM with all functions, not optimized.

    Args:
        on_function: is called for each function with its name, its number and how many they are.
    """
    compile_with_numba(modules(), **_WITHOUT_WRAPPERS)
    ours = {f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}" for function in COMPILED}
    made = set[str]()

    def on_made(name: str) -> None:
        if name in ours - made:
            made.add(name)
            on_function(name, len(made), len(ours))

    whole = llvm.parse_assembly("")
    with OnlyMade(on_made), global_compiler_lock:
        for entry in EXPORTED:
            signature = signature_of(entry.function)
            function, kinds = _flat(entry, signature)
            compiler = numba.njit(**OPTIONS, **_WITHOUT_WRAPPERS)(function)
            compiler.compile(types.none(*kinds))
            (result,) = compiler.overloads.values()
            # What nobody calls is not linked: the caller comes first.
            whole.link_in(llvm.parse_assembly(_wrapper(entry.name, result.fndesc.llvm_func_name, signature)))
            whole.link_in(result.library._get_module_for_linking(), preserve=True)
    for function in whole.functions:
        if not function.is_declaration and not function.name.startswith(SYMBOL):
            function.linkage = "internal"
    whole.verify()
    return whole


def _target_machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=PROCESSOR, features="", opt=3, reloc="pic", codemodel="default")


def optimize(module: Any) -> None:
    """Optimize a module, with the options that numba has for those that it runs."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization = True, False
    passes = llvm.create_pass_builder(_target_machine(), options)
    passes.getModulePassManager().run(module, passes)


def machine_code(module: Any) -> bytes:
    """Return a module as the contents of an object file."""
    code: bytes = _target_machine().emit_object(module)
    return code
