"""An llvmlite builder that writes every instruction as text immediately.

Kernels are long, and llvmlite's own instruction objects take several times as long to create and
to print. An instruction without side effects that the block already contains is not emitted again.
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
    """An instruction as text.

    **Attributes:** `type`, of the result; `reference`, name of the result; `typed`, the name with
    its type in front, as operands are written; `text`; `block`, the basic block.
    """

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
    """Return the text of a type, which is cached in the type."""
    cache = type_.__dict__
    if "text" not in cache:
        cache["text"] = str(type_)
    return cache["text"]


def _reference_of(value: Value) -> str:
    """Return the name of a value."""
    return value.reference if type(value) is TextInstruction else value.get_reference()


def _operand(value: Value) -> str:
    """Return the name of a value with its type in front."""
    if type(value) is TextInstruction:
        return value.typed
    cache = value.__dict__
    if "typed" not in cache:
        cache["typed"] = f"{_text_of(value.type)} {value.get_reference()}"
    return cache["typed"]


@functools.lru_cache(1 << 16, typed=True)
def int64(value: int) -> ir.Constant:
    """Return a 64-bit integer constant; cached, because addresses repeat the same offsets."""
    return ir.Constant(I64, value)


@functools.lru_cache(1 << 10, typed=True)
def int32(value: int) -> ir.Constant:
    """Return a 32-bit integer constant."""
    return ir.Constant(I32, value)


def _splat_constant(type_: ir.Type, value: int) -> ir.Constant:
    """Return an integer constant of a scalar or vector type, equal in all lanes."""
    constant = [value] * type_.count if isinstance(type_, ir.VectorType) else value
    return ir.Constant(type_, constant)


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


# `Any`, because some methods have fewer arguments than llvmlite's and return a `TextInstruction`.
_Builder: Any = ir.IRBuilder


class Builder(_Builder):
    """An llvmlite builder whose arithmetic, memory and vector instructions are text."""

    def __init__(self, block: ir.Block):
        super().__init__(block)
        self._register_numbers = itertools.count()

    def emit_pure(self, type_: ir.Type, text: str) -> TextInstruction:
        """Return the result of an instruction without side effects; reuse it within a block."""
        block: Any = self._block
        emitted_instructions = block.__dict__.setdefault("known", {})
        instruction = emitted_instructions.get(text)
        if instruction is None:
            instruction = emitted_instructions[text] = self.emit(type_, text)
        return instruction

    @contextlib.contextmanager
    def at_definition_of(self, value: Value) -> Iterator[None]:
        """Emit into the block that defines a value, outside the loops entered since then."""
        block = value.block if type(value) is TextInstruction else getattr(value, "parent", None)
        if not isinstance(block, ir.Block) or block is self._block:
            yield
            return
        with self.goto_block(block):
            yield

    def emit(self, type_: ir.Type, text: str) -> TextInstruction:
        """Append an instruction to the block and return its result."""
        reference = f"%r{next(self._register_numbers)}"
        instruction = TextInstruction(type_, reference, f"{reference} = {text}", self._block)
        self._block.instructions.insert(self._anchor, instruction)
        self._anchor += 1
        return instruction

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
        return self.sub(_splat_constant(value.type, 0), value)

    def not_(self, value: Value) -> TextInstruction:
        return self.xor(value, _splat_constant(value.type, -1))

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
        operands = f"{_operand(cond)}, {_operand(lhs)}, {_operand(rhs)}"
        return self.emit_pure(lhs.type, f"select {operands}")

    def extract_element(self, vector: Any, idx: Value) -> TextInstruction:
        kind = vector.type.element
        return self.emit_pure(kind, f"extractelement {_operand(vector)}, {_operand(idx)}")

    def insert_element(self, vector: Value, value: Value, idx: Value) -> TextInstruction:
        text = f"insertelement {_operand(vector)}, {_operand(value)}, {_operand(idx)}"
        return self.emit_pure(vector.type, text)

    def splat(self, scalar: Value, width: int) -> TextInstruction:
        """Return a vector with the same scalar in all lanes."""
        kind = ir.VectorType(scalar.type, width)
        first = self.insert_element(ir.Constant(kind, ir.Undefined), scalar, int32(0))
        operand, lanes = _operand(first), f"<{width} x i32> zeroinitializer"
        return self.emit_pure(kind, f"shufflevector {operand}, {operand}, {lanes}")

    def gep(self, ptr: Value, indices: Values, source_etype: ir.Type) -> TextInstruction:
        index_operands = ", ".join(map(_operand, indices))
        text = f"getelementptr {_text_of(source_etype)}, {_operand(ptr)}, {index_operands}"
        return self.emit_pure(ptr.type, text)

    def load(self, ptr: Value, typ: ir.Type, align: int | None = None) -> TextInstruction:
        alignment = "" if align is None else f", align {align}"
        return self.emit(typ, f"load {_text_of(typ)}, {_operand(ptr)}{alignment}")

    def store(self, value: Value, ptr: Value, align: int | None = None) -> None:
        alignment = "" if align is None else f", align {align}"
        text = f"store {_operand(value)}, {_operand(ptr)}{alignment}"
        instruction = TextInstruction(value.type, "", text, self._block)
        self._block.instructions.insert(self._anchor, instruction)
        self._anchor += 1

    def intrinsic(self, function: ir.Function, args: Values) -> TextInstruction:
        """Call an intrinsic or another function without side effects."""
        kind = function.function_type.return_type
        operands = ", ".join(map(_operand, args))
        return self.emit_pure(kind, f"call {_text_of(kind)} {function.get_reference()}({operands})")
