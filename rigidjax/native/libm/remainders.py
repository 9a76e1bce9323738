"""Remainders of floating-point numbers, exact: LLVM's own are not on a GPU, where they have the
error of the quotient."""

import math

import numpy as np
from llvmlite import ir


def remainder(module: ir.Module, dtype: np.dtype, kind: ir.Type) -> ir.Function:
    """The function of a module that gives the remainder of two numbers, with the first one's sign.

    **Arguments:** `dtype` of the numbers; `kind`, the same as LLVM calls it.

    Multiples of the divisor by powers of two, the largest one first, are taken away as often as
    they fit. A quotient below `2**digits`, rounded to a whole number, is too large by one at most;
    what is left over is exact, since it has no more digits than the divisor.
    """
    digits = np.finfo(dtype).nmant
    name = f"remainder.f{8 * dtype.itemsize}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(kind, [kind, kind]), name)
    function.linkage = "internal"
    a, b = function.args
    entry, none, finite, whole, head, larger, taken, end = (
        function.append_basic_block(k)
        for k in ("entry", "none", "finite", "whole", "head", "larger", "taken", "end")
    )
    build = ir.IRBuilder(entry)

    def called(name, *args):
        full = f"llvm.{name}.f{8 * dtype.itemsize}"
        known = module.globals.get(full)
        return build.call(
            known or ir.Function(module, ir.FunctionType(kind, [kind] * len(args)), full), args
        )

    zero, infinity, most = (ir.Constant(kind, x) for x in (0.0, math.inf, 2.0**digits))
    x, d = called("fabs", a), called("fabs", b)
    is_known = build.and_(build.fcmp_ordered("<", x, infinity), build.fcmp_ordered(">", d, zero))
    build.cbranch(is_known, finite, none)
    build.position_at_end(none)
    build.ret(ir.Constant(kind, math.nan))
    build.position_at_end(finite)
    build.cbranch(build.fcmp_ordered("<", d, infinity), whole, end)
    build.position_at_end(whole)
    rest = build.phi(kind)
    rest.add_incoming(x, finite)
    build.cbranch(build.fcmp_ordered("<", rest, d), end, head)
    build.position_at_end(head)
    step = build.phi(kind)
    step.add_incoming(d, whole)
    quotient = build.fdiv(rest, step)
    build.cbranch(build.fcmp_ordered(">=", quotient, most), larger, taken)
    build.position_at_end(larger)
    step.add_incoming(build.fmul(step, most), larger)
    build.branch(head)
    build.position_at_end(taken)
    left = called("fma", build.fneg(called("trunc", quotient)), step, rest)
    left = build.select(build.fcmp_ordered("<", left, zero), build.fadd(left, step), left)
    rest.add_incoming(left, taken)
    build.branch(whole)
    build.position_at_end(end)
    out = build.phi(kind)
    out.add_incoming(x, finite)
    out.add_incoming(rest, whole)
    build.ret(called("copysign", out, a))
    return function
