"""Exact remainders of floating-point numbers.

LLVM's `frem` is not exact on a GPU, where the rounding error of the quotient enters.
"""

import math

import numpy as np
from llvmlite import ir


def remainder(module: ir.Module, dtype: np.dtype, kind: ir.Type) -> ir.Function:
    """Return the function of a module that computes the remainder with the sign of the dividend.

    Integer multiples of the divisor, scaled by powers of two, are subtracted, the largest first. A
    quotient below `2**digits`, rounded to an integer, is too large by one at most. The remaining
    difference is exact, because it has no more digits than the divisor.

    **Arguments:** `dtype` of the operands; `kind`, the corresponding LLVM type.
    """
    digits = np.finfo(dtype).nmant
    name = f"remainder.f{8 * dtype.itemsize}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(kind, [kind, kind]), name)
    function.linkage = "internal"
    a, b = function.args
    entry, undefined, finite, reduce, scale, larger, subtract, end = (
        function.append_basic_block(k)
        for k in ("entry", "none", "finite", "whole", "head", "larger", "taken", "end")
    )
    build = ir.IRBuilder(entry)

    def intrinsic(name, *args):
        full = f"llvm.{name}.f{8 * dtype.itemsize}"
        declared = module.globals.get(full)
        return build.call(
            declared or ir.Function(module, ir.FunctionType(kind, [kind] * len(args)), full), args
        )

    zero, infinity, most = (ir.Constant(kind, x) for x in (0.0, math.inf, 2.0**digits))
    x, d = intrinsic("fabs", a), intrinsic("fabs", b)
    is_defined = build.and_(build.fcmp_ordered("<", x, infinity), build.fcmp_ordered(">", d, zero))
    build.cbranch(is_defined, finite, undefined)
    build.position_at_end(undefined)
    build.ret(ir.Constant(kind, math.nan))
    build.position_at_end(finite)
    build.cbranch(build.fcmp_ordered("<", d, infinity), reduce, end)
    build.position_at_end(reduce)
    rest = build.phi(kind)
    rest.add_incoming(x, finite)
    build.cbranch(build.fcmp_ordered("<", rest, d), end, scale)
    build.position_at_end(scale)
    step = build.phi(kind)
    step.add_incoming(d, reduce)
    quotient = build.fdiv(rest, step)
    build.cbranch(build.fcmp_ordered(">=", quotient, most), larger, subtract)
    build.position_at_end(larger)
    step.add_incoming(build.fmul(step, most), larger)
    build.branch(scale)
    build.position_at_end(subtract)
    left = intrinsic("fma", build.fneg(intrinsic("trunc", quotient)), step, rest)
    left = build.select(build.fcmp_ordered("<", left, zero), build.fadd(left, step), left)
    rest.add_incoming(left, subtract)
    build.branch(reduce)
    build.position_at_end(end)
    out = build.phi(kind)
    out.add_incoming(x, finite)
    out.add_incoming(rest, reduce)
    build.ret(intrinsic("copysign", out, a))
    return function
