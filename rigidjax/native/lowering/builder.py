"""llvmlite's builder with instructions that are their text at once.

Kernels are long: llvmlite's own instructions take several times as long to make and to print. An
instruction that computes what the same block has computed is not emitted again.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir

_ORDERS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_FLAGS = {(): "", ("contract",): " contract"}
_I1 = ir.IntType(1)
I32, I64 = ir.IntType(32), ir.IntType(64)


class TextInstruction(ir.Value):
    """An instruction: its text, its block, and how others refer to its result, alone and typed."""

    __slots__ = ("block", "reference", "text", "type", "typed")

    def __init__(self, type_: ir.Type, reference: str, text: str, block: ir.Block):
        self.type, self.reference, self.text, self.block = type_, reference, text, block
        self.typed = f"{_text_of(type_)} {reference}"

    def __str__(self) -> str:
        return self.text

    def get_reference(self) -> str:
        return self.reference


Value = ir.NamedValue | ir.Constant | TextInstruction
Values = Sequence[Value]


def _text_of(type_: ir.Type) -> str:
    """The text of a type, written once."""
    kept = type_.__dict__
    if "text" not in kept:
        kept["text"] = str(type_)
    return kept["text"]


def _reference_of(value: Value) -> str:
    return value.reference if type(value) is TextInstruction else value.get_reference()


def _operand(value: Value) -> str:
    if type(value) is TextInstruction:
        return value.typed
    kept = value.__dict__
    if "typed" not in kept:
        kept["typed"] = f"{_text_of(value.type)} {value.get_reference()}"
    return kept["typed"]


@functools.lru_cache(1 << 16, typed=True)
def int64(number: int) -> ir.Constant:
    """An integer of 64 bits; one object for each, as addresses are many."""
    return ir.Constant(I64, number)


@functools.lru_cache(1 << 10, typed=True)
def int32(number: int) -> ir.Constant:
    """An integer of 32 bits."""
    return ir.Constant(I32, number)


def _uniform_constant(type_: ir.Type, number: int) -> ir.Constant:
    """An integer, the same in all lanes."""
    lanes = [number] * type_.count if isinstance(type_, ir.VectorType) else number
    return ir.Constant(type_, lanes)


def _binary(name: str) -> Callable[..., TextInstruction]:
    def method(self, a: Value, b: Value, flags: tuple[str, ...] = ()) -> TextInstruction:
        text = f"{name}{_FLAGS[flags]} {_text_of(a.type)} {_reference_of(a)}, {_reference_of(b)}"
        return self.emit_pure(a.type, text)

    return method


def _conversion(name: str) -> Callable[..., Value]:
    def method(self, value: Value, to: ir.Type) -> Value:
        if _text_of(value.type) == _text_of(to):
            return value
        return self.emit_pure(to, f"{name} {_operand(value)} to {_text_of(to)}")

    return method


# Methods of the builder take fewer arguments here, and types are those of `Line`.
_Builder: Any = ir.IRBuilder


class Builder(_Builder):
    """Emits at the end of a block."""

    def __init__(self, block: ir.Block):
        super().__init__(block)
        self._register_numbers = itertools.count()

    def emit_pure(self, type_: ir.Type, text: str) -> TextInstruction:
        """The result of an instruction without effects, emitted unless the block has it."""
        block: Any = self._block
        known = block.__dict__.setdefault("known", {})
        line = known.get(text)
        if line is None:
            line = known[text] = self.emit(type_, text)
        return line

    @contextlib.contextmanager
    def at_definition_of(self, value: Value) -> Iterator[None]:
        """Emit where a value is computed: loops around the present place do not do it again."""
        block = value.block if type(value) is TextInstruction else getattr(value, "parent", None)
        if not isinstance(block, ir.Block) or block is self._block:
            yield
            return
        with self.goto_block(block):
            yield

    def emit(self, type_: ir.Type, text: str) -> TextInstruction:
        """The result of an instruction."""
        reference = f"%r{next(self._register_numbers)}"
        line = TextInstruction(type_, reference, f"{reference} = {text}", self._block)
        self._block.instructions.insert(self._anchor, line)
        self._anchor += 1
        return line

    fadd, fsub, fmul, fdiv = map(_binary, ("fadd", "fsub", "fmul", "fdiv"))
    add, sub, mul = map(_binary, ("add", "sub", "mul"))
    sdiv, udiv, srem, urem = map(_binary, ("sdiv", "udiv", "srem", "urem"))
    and_, or_, xor = map(_binary, ("and", "or", "xor"))
    shl, lshr, ashr = map(_binary, ("shl", "lshr", "ashr"))
    trunc, zext, sext = map(_conversion, ("trunc", "zext", "sext"))
    fptrunc, fpext, uitofp, sitofp = map(_conversion, ("fptrunc", "fpext", "uitofp", "sitofp"))
    bitcast = _conversion("bitcast")

    def fneg(self, value: Value) -> TextInstruction:
        return self.emit_pure(value.type, f"fneg {_operand(value)}")

    def neg(self, value: Value) -> TextInstruction:
        return self.sub(_uniform_constant(value.type, 0), value)

    def not_(self, value: Value) -> TextInstruction:
        return self.xor(value, _uniform_constant(value.type, -1))

    def _compare(self, name: str, a: Value, b: Value) -> TextInstruction:
        kind = ir.VectorType(_I1, a.type.count) if isinstance(a.type, ir.VectorType) else _I1
        return self.emit_pure(kind, f"{name} {_operand(a)}, {_reference_of(b)}")

    def icmp_signed(self, cmpop: str, lhs: Value, rhs: Value) -> TextInstruction:
        sign = "" if cmpop in ("==", "!=") else "s"
        return self._compare(f"icmp {sign}{_ORDERS[cmpop]}", lhs, rhs)

    def icmp_unsigned(self, cmpop: str, lhs: Value, rhs: Value) -> TextInstruction:
        sign = "" if cmpop in ("==", "!=") else "u"
        return self._compare(f"icmp {sign}{_ORDERS[cmpop]}", lhs, rhs)

    def fcmp_ordered(self, cmpop: str, lhs: Value, rhs: Value) -> TextInstruction:
        return self._compare(f"fcmp o{_ORDERS[cmpop]}", lhs, rhs)

    def fcmp_unordered(self, cmpop: str, lhs: Value, rhs: Value) -> TextInstruction:
        return self._compare(f"fcmp u{_ORDERS[cmpop]}", lhs, rhs)

    def select(self, cond: Value, lhs: Value, rhs: Value) -> TextInstruction:
        return self.emit_pure(
            lhs.type,
            f"select {_operand(cond)}, {_operand(lhs)}, {_operand(rhs)}",
        )

    def extract_element(self, vector: Any, idx: Value) -> TextInstruction:
        kind = vector.type.element
        return self.emit_pure(kind, f"extractelement {_operand(vector)}, {_operand(idx)}")

    def insert_element(self, vector: Value, value: Value, idx: Value) -> TextInstruction:
        text = f"insertelement {_operand(vector)}, {_operand(value)}, {_operand(idx)}"
        return self.emit_pure(vector.type, text)

    def splat(self, scalar: Value, width: int) -> TextInstruction:
        """A vector of the same scalar."""
        kind = ir.VectorType(scalar.type, width)
        first = self.insert_element(ir.Constant(kind, ir.Undefined), scalar, int32(0))
        both, lanes = _operand(first), f"<{width} x i32> zeroinitializer"
        return self.emit_pure(kind, f"shufflevector {both}, {both}, {lanes}")

    def gep(self, ptr: Value, indices: Values, source_etype: ir.Type) -> TextInstruction:
        places = ", ".join(map(_operand, indices))
        text = f"getelementptr {_text_of(source_etype)}, {_operand(ptr)}, {places}"
        return self.emit_pure(ptr.type, text)

    def load(self, ptr: Value, typ: ir.Type, align: int | None = None) -> TextInstruction:
        at = "" if align is None else f", align {align}"
        return self.emit(typ, f"load {_text_of(typ)}, {_operand(ptr)}{at}")

    def store(self, value: Value, ptr: Value, align: int | None = None) -> None:
        at = "" if align is None else f", align {align}"
        line = TextInstruction(
            value.type,
            "",
            f"store {_operand(value)}, {_operand(ptr)}{at}",
            self._block,
        )
        self._block.instructions.insert(self._anchor, line)
        self._anchor += 1

    def intrinsic(self, function: ir.Function, args: Values) -> TextInstruction:
        """A call of a function of LLVM that has no effects."""
        kind = function.function_type.return_type
        given = ", ".join(map(_operand, args))
        return self.emit_pure(kind, f"call {_text_of(kind)} {function.get_reference()}({given})")
