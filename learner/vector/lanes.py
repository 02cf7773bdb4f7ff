"""Lanes: a type of the compiler that holds one number for each of ``WIDTH`` rows.

Kernels that load, use and store lanes hold intermediate results in registers. Loops over rows that
the compiler vectorises go through memory instead. The same code serves single numbers, so that a
row has the same bits in each lane and alone. Nothing is fused or reordered unless a kernel says so.
Without the compiler, lanes are arrays.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import extending, types
from numba.core import cgutils, config
from numba.core.typeconv.castgraph import Conversion
from numba.extending import lower_cast, models, overload, register_model

from .compiler import Array, kernel

WIDTH = 16
"""Rows of one lane vector: enough that chains of dependent operations overlap."""

FEWEST_LANES = 4
"""Numbers that a vector register of most processors holds."""

_TOLD = config.CPU_FEATURES  # type: ignore[attr-defined]
_FEATURES = get_host_cpu_features().flatten() if _TOLD is None else _TOLD

SUMS = 4 if "+avx512f" in _FEATURES else 2
"""Sums of lanes that registers hold beside what is added: one more would go through memory."""

INTEGER_SHIFT = 6755399441055744.0
"""1.5 * 2**52: adding it rounds to an integer and leaves that in the low bits."""

INTEGER_SHIFT_BITS = 0x4338000000000000
HALF_SQRT2_BITS = 0x3FE6A09E667F3BCD
ONE_BITS = 0x3FF0000000000000
EXPONENT_BIAS = 1023
MANTISSA_BITS = 52
DOUBLE_BYTES, CACHE_LINE_BYTES = 8, 64

Value = Any
"""A number, or lanes of numbers."""

intrinsic: Any = extending.intrinsic
"""numba's decorator, typed as callers see its result: without the context argument."""


class LanesType(types.Type):
    """Lanes of numbers or of booleans."""

    def __init__(self, element: types.Type) -> None:
        self.element = element
        super().__init__(name=f"Lanes({element})")

    def can_convert_from(self, typing_context: Any, other: Any) -> Any:
        """Accept a number in place of lanes that are all equal."""
        return Conversion.promote if isinstance(other, types.Float) else None


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """Lanes are one LLVM vector."""

    def __init__(self, manager: Any, lanes: LanesType) -> None:
        element = ir.IntType(1) if lanes.element == types.boolean else ir.DoubleType()
        super().__init__(manager, lanes, _vector(element))


NUMBERS, TRUTHS = LanesType(types.float64), LanesType(types.boolean)


@lower_cast(types.Float, LanesType)
def _spread_number(context: Any, builder: Any, given: Any, wanted: Any, value: Any) -> Any:
    kind = context.get_value_type(wanted)
    number = context.cast(builder, value, given, types.float64)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, first, ir.Constant(_vector(ir.IntType(32)), [0] * WIDTH))


def aligned_stack() -> None:
    """Align the stack of the kernel that calls this to cache lines.

    Lanes that do not fit into registers are stored on the stack. Without alignment some of them
    would lie across two cache lines, in some processes and not in others.
    """


@kernel
def padded(m: int) -> int:
    """Return the columns that ``m`` rows need in whole lanes; a single row needs no lanes."""
    return (m + WIDTH - 1) // WIDTH * WIDTH if m > 1 else 1


def load(rows: Array, i: int, r: int) -> Value:
    """Load lanes from row ``i`` of a matrix, from column ``r`` on."""
    return rows[i, _columns(rows, r)].copy()


def store(rows: Array, i: int, r: int, lanes: Value) -> None:
    """Store lanes in row ``i`` of a matrix, from column ``r`` on."""
    rows[i, _columns(rows, r)] = lanes


def spread(x: float) -> Value:
    """Repeat a number in all lanes."""
    return np.full(WIDTH, x)


def fma(a: Value, b: Value, c: Value) -> Value:
    """Compute a * b + c, rounded once (in kernels; as plain Python twice)."""
    return a * b + c


def choose(condition: Value, a: Value, b: Value) -> Value:
    """Return ``a`` where the condition holds, else ``b``, without a branch (in kernels)."""
    return np.choose(condition, (b, a))


def absolute(lanes: Value) -> Value:
    """Size of each number."""
    return np.abs(lanes)


def all_below(lanes: Value, limit: float) -> bool:
    """Return whether all lanes are below a number; unspecified if some are NaN."""
    return bool(np.all(lanes < limit))


def times_power(x: Value, shifted: Value) -> Value:
    """Multiply by 2**k, with k in the low bits of ``shifted``, where nothing overflows."""
    return np.ldexp(x, (shifted - INTEGER_SHIFT).astype(np.int64))


def split(x: Value) -> tuple[Value, Value]:
    """Split a normal x > 0 into an integer k and m from sqrt(1/2) to sqrt(2), x = 2**k m."""
    m, k = np.frexp(x)
    low = m < np.sqrt(0.5)
    return k - 1.0 * low, choose(low, 2.0 * m, m)


def _columns(rows: Array, r: int) -> slice:
    """Return the columns of lanes; IndexError if the matrix ends before them, unlike a slice."""
    if not 0 <= r <= rows.shape[1] - WIDTH:
        raise IndexError(f"columns {r} to {r + WIDTH} of {rows.shape[1]}")
    return slice(r, r + WIDTH)


def _kind(*given: Any) -> Any:
    """Return the type of lanes if one of the arguments has it, else that of a number."""
    return NUMBERS if NUMBERS in given else types.float64


def _vector(element: Any) -> Any:
    return ir.VectorType(element, WIDTH)


def _integers(value: Any) -> Any:
    """Return the type of as many integers as a value has numbers."""
    return _vector(ir.IntType(64)) if isinstance(value.type, ir.VectorType) else ir.IntType(64)


def _call(builder: Any, name: str, arguments: Any) -> Any:
    """Call LLVM's intrinsic function on lanes."""
    kind = arguments[0].type
    function = ir.FunctionType(kind, [kind] * len(arguments))
    name = f"llvm.{name}.v{WIDTH}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), arguments)


def _part(builder: Any, lanes: Any, start: int, n: int) -> Any:
    """Return ``n`` lanes from ``start`` on."""
    places = ir.Constant(ir.VectorType(ir.IntType(32), n), list(range(start, start + n)))
    return builder.shuffle_vector(lanes, lanes, places)


def _constant(kind: Any, x: float) -> Any:
    return ir.Constant(kind, [x] * WIDTH if isinstance(kind, ir.VectorType) else x)


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind, (rows, i, r) = signature.args[0], arguments[:3]
    matrix = context.make_array(kind)(context, builder, rows)
    first = cgutils.get_item_pointer(context, builder, kind, matrix, [i, r], wraparound=False)
    return builder.bitcast(first, _vector(ir.DoubleType()).as_pointer())


@intrinsic
def _aligned_stack(typing_context: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.alignstack = CACHE_LINE_BYTES
        builder.function.attributes.add("noinline")  # it is the caller's stack where inlined
        return context.get_dummy_value()

    return types.void(), emit


@intrinsic
def _load(typing_context: Any, rows: Any, i: Any, r: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_address(context, builder, signature, arguments), align=DOUBLE_BYTES)

    return NUMBERS(rows, types.intp, types.intp), emit


@intrinsic
def _store(typing_context: Any, rows: Any, i: Any, r: Any, lanes: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature, arguments)
        builder.store(arguments[3], address, align=DOUBLE_BYTES)
        return context.get_dummy_value()

    return types.void(rows, types.intp, types.intp, NUMBERS), emit


@intrinsic
def _spread(typing_context: Any, x: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return NUMBERS(NUMBERS), emit


@intrinsic
def _fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """Emit a fused multiply-add; processors without one get the same bits from a library."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not isinstance(arguments[0].type, ir.VectorType):
            return builder.fma(*arguments)
        return _call(builder, "fma", arguments)

    kind = _kind(a, b, c)
    return kind(kind, kind, kind), emit


@intrinsic
def _choose(typing_context: Any, condition: Any, a: Any, b: Any) -> Any:
    """Emit a selection: a branch may become a masked store, which is slow on some processors."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    kind = _kind(a, b) if condition != TRUTHS else NUMBERS
    return kind(condition, kind, kind), emit


@intrinsic
def _absolute(typing_context: Any, lanes: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, "fabs", arguments)

    return NUMBERS(NUMBERS), emit


@intrinsic
def _all_below(typing_context: Any, lanes: Any, limit: Any) -> Any:
    """Emit maxima that reduce the lanes to one register, and one comparison of that."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        n, (lanes, limit) = FEWEST_LANES, arguments
        most = _part(builder, lanes, 0, n)
        for start in range(n, WIDTH, n):
            part = _part(builder, lanes, start, n)
            # a NaN either stays until the end or is ignored: it never replaces another lane
            most = builder.select(builder.fcmp_ordered(">", part, most), part, most)
        below = builder.fcmp_ordered("<", most, _part(builder, limit, 0, n))
        bits = ir.IntType(n)
        return builder.icmp_unsigned("==", builder.bitcast(below, bits), bits(2**n - 1))

    return types.boolean(NUMBERS, NUMBERS), emit


@intrinsic
def _times_power(typing_context: Any, x: Any, shifted: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = _integers(arguments[0])
        bits, k = (builder.bitcast(argument, kind) for argument in arguments)
        moved = builder.add(bits, builder.shl(k, _constant(kind, MANTISSA_BITS)))
        return builder.bitcast(moved, arguments[0].type)

    kind = _kind(x, shifted)
    return kind(kind, kind), emit


@intrinsic
def _split(typing_context: Any, x: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, kind = arguments[0].type, _integers(arguments[0])
        places = _constant(kind, MANTISSA_BITS)
        bits = builder.bitcast(arguments[0], kind)
        raised = builder.add(bits, _constant(kind, ONE_BITS - HALF_SQRT2_BITS))
        # unsigned, as there is no vector instruction for an arithmetic shift
        k = builder.sub(builder.lshr(raised, places), _constant(kind, EXPONENT_BIAS))
        m = builder.bitcast(builder.sub(bits, builder.shl(k, places)), number)
        shifted = builder.bitcast(builder.add(k, _constant(kind, INTEGER_SHIFT_BITS)), number)
        k = builder.fsub(shifted, _constant(number, INTEGER_SHIFT))
        return context.make_tuple(builder, signature.return_type, (k, m))

    return types.UniTuple(_kind(x), 2)(_kind(x)), emit


def _operation(result: Any, instruction: str, *first: str) -> Any:
    """Return an operation on two numbers, an instruction with ``first`` before them."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, instruction)(*first, *arguments)

        return result(NUMBERS, NUMBERS), emit

    return operation


def _of_lanes(operation: Any) -> Any:
    """Return an overload for lanes; numbers have the compiler's own operation."""
    return lambda a, b: (lambda a, b: operation(a, b)) if NUMBERS in (a, b) else None


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    overload(_function)(_of_lanes(_operation(NUMBERS, _instruction)))

for _function, _sign in ((operator.gt, ">"), (operator.lt, "<"), (operator.eq, "==")):
    overload(_function)(_of_lanes(_operation(TRUTHS, "fcmp_ordered", _sign)))


overload(aligned_stack, inline="always")(lambda: lambda: _aligned_stack())
overload(load)(lambda rows, i, r: lambda rows, i, r: _load(rows, i, r))
overload(store)(lambda rows, i, r, lanes: lambda rows, i, r, lanes: _store(rows, i, r, lanes))
overload(spread)(lambda x: lambda x: _spread(x))
overload(fma)(lambda a, b, c: lambda a, b, c: _fma(a, b, c))
overload(choose)(lambda condition, a, b: lambda condition, a, b: _choose(condition, a, b))
overload(absolute)(lambda lanes: lambda lanes: _absolute(lanes))
overload(all_below)(lambda lanes, limit: lambda lanes, limit: _all_below(lanes, limit))
overload(times_power)(lambda x, shifted: lambda x, shifted: _times_power(x, shifted))
overload(split)(lambda x: lambda x: _split(x))
