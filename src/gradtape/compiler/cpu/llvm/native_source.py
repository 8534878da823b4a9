"""Native functions written in Python's syntax, printed as LLVM IR.

The native side of the runtime (threads, kept memory, entry points) reads like Python and means what
C would mean:

    def pthread_self() -> ptr: ...              # defined elsewhere

    def gt_first_large(numbers: ptr, count: i64, least: i64) -> i64:
        for i in range(count):
            if i64[numbers, i] >= least:        # element i of an array of i64
                return i
        return -1

- Types: `i1`, `i8`, `i32`, `i64`, `double`, `ptr`. `i32(x)` converts; a literal has the type that
  it is used with, i64 if there is none.
- `type[p]` is the value at an address, `type[p, i]` the one `i` elements further on; both can be
  assigned to. `p + n` is an address `n` bytes further on, `stack(n)` memory of the function.
- `acquire.i64[p]` is an atomic access, `seq_cst.xchg(p, x)`, `.add` and `.sub` return what was
  there before, and `acq_rel.swap(p, old, new)` whether it was `old`, and is now `new`.
- Comparisons and `//`, `%` take integers as signed, `>>` as unsigned, as do `ult(x, y)`, `ugt`, ….
- `call(type, p, ...)` calls the function at an address; `return tail(f(...))` leaves no frame.
- `and` and `or` stand in conditions only, and stop early; `a if c else b` computes both. The
  function returns False at `require(c)` unless the condition holds.
- Other names are constants, `X` or `X.y`, or globals, of which a name is the address.

A name that is assigned once is a value, others are memory. Functions named `gt_…` are exported;
those marked `@inline` become part of the functions that call them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gradtape.compiler.cpu.llvm.builder import I64, NULL, PTR, VOID, Builder, Module, Type, Value

_I1 = Type("i1")
_TYPES = {name: Type(name) for name in ("i1", "i8", "i32", "i64", "double", "ptr", "void")}
_UNSIGNED = {"ult", "ule", "ugt", "uge"}
_INTRINSICS = {"smin", "umin", "ctlz"}
# By the names that Python's syntax tree has for them.
_COMPARISONS = {"Eq": "eq", "NotEq": "ne", "Lt": "slt", "LtE": "sle", "Gt": "sgt", "GtE": "sge"}
_ARITHMETIC = {"Add": "add", "Sub": "sub", "Mult": "mul", "FloorDiv": "sdiv", "Mod": "srem"}
_BITS = {"BitAnd": "and", "BitOr": "or", "LShift": "shl", "RShift": "lshr"}
_OPERATORS = _ARITHMETIC | _BITS
_WEIGHTS = '!0 = !{!"branch_weights", i32 2000, i32 1}\n'  # of the blocks of a likely condition


class _Signature(NamedTuple):
    """The types of a function; `variadic` if it takes further arguments of any type."""

    result: Type
    parameters: tuple[Type, ...]
    variadic: bool

    def __str__(self) -> str:
        listed = [*map(str, self.parameters), *["..."] * self.variadic]
        return f"{self.result} ({', '.join(listed)})"


class NativeSource(NamedTuple):
    """Native functions; `str` prints them as LLVM IR.

    Attributes:
        functions: The functions, in the language above.
        constants: The numbers that they name.
        ir: LLVM IR of globals, and of declared functions that the language cannot express.

    Example:
        >>> doubled = "def gt_doubled(x: i64) -> i64: return FACTOR * x"
        >>> print(NativeSource(doubled, {"FACTOR": 2}))
        <BLANKLINE>
        define i64 @gt_doubled(i64 %x) {
        entry:
          %v1 = mul i64 2, %x
          ret i64 %v1
        }
        <BLANKLINE>
    """

    functions: str
    constants: Mapping[str, int] = {}
    ir: str = ""

    @property
    def declared(self) -> list[str]:
        """The functions that are defined elsewhere."""
        return re.findall(r"^def (\w+)\([^)]*\)(?: -> \w+)?: \.\.\.$", self.functions, re.MULTILINE)

    def __str__(self) -> str:
        module, elsewhere = Module(), self.declared
        nodes = [n for n in ast.parse(self.functions).body if isinstance(n, ast.FunctionDef)]
        signatures = {node.name: _signature(node) for node in nodes}
        for node in nodes:
            result, parameters, variadic = signatures[node.name]
            if node.name not in elsewhere:
                _Writer(module, signatures, self.constants, node).write()
            elif f"@{node.name}(" not in self.ir:
                module.declare(node.name, result, [*parameters, *["..."] * variadic])
        text = self.ir + str(module)
        return text + _WEIGHTS if "!prof" in text else text


def _signature(node: ast.FunctionDef) -> _Signature:
    parameters = tuple(_type(arg.annotation) for arg in node.args.args)
    result = VOID if node.returns is None else _type(node.returns)
    return _Signature(result, parameters, node.args.vararg is not None)


def _type(node: ast.expr | None) -> Type:
    assert isinstance(node, ast.Name), "a type is a name"
    return _TYPES[node.id]


class _Writer:
    """Writes one function."""

    def __init__(
        self,
        module: Module,
        signatures: Mapping[str, _Signature],
        constants: Mapping[str, int],
        node: ast.FunctionDef,
    ) -> None:
        self._b = Builder(module)
        self._signatures = signatures
        self._constants = constants
        self._node = node
        self._values: dict[str, Value] = {"null": NULL}
        self._variables: dict[str, tuple[Type, Value]] = {}
        self._loops: list[tuple[str, str]] = []  # where `continue` and `break` go
        names = [name for name in ast.walk(node) if isinstance(name, ast.Name)]
        stored = Counter(name.id for name in names if isinstance(name.ctx, ast.Store))
        stored.update(arg.arg for arg in node.args.args)
        self._changed = {name for name, times in stored.items() if times > 1}

    def write(self) -> None:
        """Add the function to the module."""
        node, signature = self._node, self._signatures[self._node.name]
        names = [arg.arg for arg in node.args.args]
        given = [Value(type, f"%{n}") for type, n in zip(signature.parameters, names, strict=True)]
        for name, value in zip(names, given, strict=True):
            self._set(name, value)
        if self._run(node.body):
            self._b.emit("ret void" if signature.result == VOID else "unreachable")
        linkage = "" if node.name.startswith("gt_") else "internal "
        head = f"define {linkage}{signature.result} @{node.name}({_listed(given)})"
        inline = " alwaysinline" if node.decorator_list else ""
        self._b.module.define(self._b.function(head + inline))

    # ---- statements ------------------------------------------------------------------------

    def _run(self, statements: Sequence[ast.stmt]) -> bool:
        """Write statements; returns whether control gets to their end."""
        return all(map(self._statement, statements))

    def _statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Expr(ast.Call(ast.Name("require"), [test])):
                self._if(test, [], [ast.Return(ast.Constant(False))], likely=True)
            case ast.Expr(value):
                self._value(value)
            case ast.Assign([target], value):
                self._assign(target, self._value(value))
            case ast.AugAssign(target, operator, value):
                self._assign(target, self._binary(operator, target, value))
            case ast.If(test, body, otherwise):
                self._if(test, body, otherwise)
            case ast.While(test, body):
                self._while(test, body)
            case ast.For(ast.Name(name), ast.Call(args=bounds), body):
                self._for(name, bounds, body)
            case ast.Match(subject, cases):
                self._match(self._value(subject), cases)
            case ast.Return(value):
                self._return(value)
                return False
            case ast.Break() | ast.Continue():
                self._b.branch(self._loops[-1][isinstance(node, ast.Break)])
                return False
            case _:
                raise AssertionError(f"not in the language: {ast.unparse(node)}")
        return True

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, value)
            return
        address, type, order = self._place(target)
        self._b.store(_as(value, type), address, order)

    def _set(self, name: str, value: Value) -> None:
        if name not in self._changed:
            self._values[name] = value
            return
        if name not in self._variables:
            self._variables[name] = value.type, self._b.alloca(value.type, align=8)
        type, room = self._variables[name]
        self._b.store(_as(value, type), room)

    def _if(
        self,
        test: ast.expr,
        body: list[ast.stmt],
        otherwise: list[ast.stmt],
        likely: bool = False,
    ) -> None:
        yes, no, after = map(self._b.new_block, ("yes", "no", "after"))
        self._condition(test, yes, no, likely)
        self._block(yes, body, after)
        self._block(no, otherwise, after)
        self._b.start(after)

    def _block(self, label: str, body: list[ast.stmt], after: str) -> None:
        """Write a block that goes on to another one at its end."""
        self._b.start(label)
        if self._run(body):
            self._b.branch(after)

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        head, inside, after = map(self._b.new_block, ("head", "inside", "after"))
        self._b.branch(head)
        self._b.start(head)
        self._condition(test, inside, after)
        self._loops.append((head, after))
        self._block(inside, body, head)
        self._loops.pop()
        self._b.start(after)

    def _for(self, name: str, bounds: list[ast.expr], body: list[ast.stmt]) -> None:
        """Write a loop over `range(stop)` or `range(start, stop)`."""
        b = self._b
        *start, stop = map(self._value, bounds)
        room = b.alloca(I64, align=8)
        b.store(start[0] if start else b.const(I64, 0), room)
        head, inside, latch, after = map(b.new_block, ("head", "inside", "latch", "after"))
        b.branch(head)
        b.start(head)
        self._values[name] = number = b.load(room, I64)
        b.branch_if(b.icmp("slt", number, stop), inside, after)
        self._loops.append((latch, after))
        self._block(inside, body, latch)
        self._loops.pop()
        b.start(latch)
        b.store(b.add(number, b.const(I64, 1)), room)
        b.branch(head)
        b.start(after)

    def _match(self, subject: Value, cases: list[ast.match_case]) -> None:
        """Write a switch; numbers without a case do not occur."""
        b = self._b
        after, never = b.new_block("after"), b.new_block("never")
        labels = [b.new_block("case") for _ in cases]
        numbers = [self._value(case.pattern.value) for case in cases]  # type: ignore[attr-defined]
        listed = " ".join(f"{n}, label %{label}" for n, label in zip(numbers, labels, strict=True))
        b.emit(f"switch {subject}, label %{never} [ {listed} ]")
        for label, case in zip(labels, cases, strict=True):
            self._block(label, case.body, after)
        b.start(never)
        b.emit("unreachable")
        b.start(after)

    def _return(self, node: ast.expr | None) -> None:
        match node:
            case None:
                self._b.emit("ret void")
            case ast.Call(ast.Name("tail"), [ast.Call() as call]):
                self._b.emit(f"ret {self._call(call, 'musttail ')}")
            case _:
                result = self._signatures[self._node.name].result
                self._b.emit(f"ret {_as(self._value(node), result)}")

    # ---- expressions -----------------------------------------------------------------------

    def _condition(self, node: ast.expr, yes: str, no: str, likely: bool = False) -> None:
        """Go to one of two blocks, nearly always the first if it is likely."""
        match node:
            case ast.BoolOp(operator, [*parts, last]):
                for part in parts:
                    following = self._b.new_block("also")
                    if isinstance(operator, ast.And):
                        self._condition(part, following, no, likely)
                    else:
                        self._condition(part, yes, following)
                    self._b.start(following)
                self._condition(last, yes, no, likely)
            case ast.UnaryOp(ast.Not(), operand):
                self._condition(operand, no, yes)
            case _:
                self._b.branch_if(self._truth(node), yes, no, likely=likely)

    def _truth(self, node: ast.expr) -> Value:
        value = self._value(node)
        if value.type == _I1:
            return value
        return self._b.icmp("ne", value, Value(value.type, "null" if value.type == PTR else "0"))

    def _value(self, node: ast.expr) -> Value:
        b = self._b
        match node:
            case ast.Constant(bool(value)):
                return b.const(_I1, value)
            case ast.Constant(int(value)):
                return b.const(I64, value)
            case ast.UnaryOp(ast.USub(), operand):
                return b.const(I64, -int(self._value(operand).text))
            case ast.Name(name):
                return self._named(name)
            case ast.Attribute(ast.Name(owner), name):
                return b.const(I64, self._constants[f"{owner}.{name}"])
            case ast.Subscript():
                return b.load(*self._place(node))
            case ast.BinOp(left, operator, right):
                return self._binary(operator, left, right)
            case ast.Compare(left, [operator], [right]):
                return b.icmp(_COMPARISONS[type(operator).__name__], *self._pair(left, right))
            case ast.IfExp(test, yes, no):
                return b.select(self._truth(test), *self._pair(yes, no))
            case ast.Call():
                return self._call(node)
        raise AssertionError(f"not in the language: {ast.unparse(node)}")

    def _named(self, name: str) -> Value:
        if name in self._values:
            return self._values[name]
        if name in self._variables:
            type, room = self._variables[name]
            return self._b.load(room, type)
        if name in self._constants:
            return self._b.const(I64, self._constants[name])
        return Value(PTR, f"@{name}")

    def _pair(self, left: ast.expr, right: ast.expr) -> tuple[Value, Value]:
        """Two values of the same type."""
        x, y = self._value(left), self._value(right)
        if _is_literal(x) and not _is_literal(y):
            return _as(x, y.type), y
        return x, _as(y, x.type)

    def _binary(self, operator: ast.operator, left: ast.expr, right: ast.expr) -> Value:
        x, y = self._pair(left, right)
        if x.type == PTR and isinstance(operator, ast.Add):
            return self._b.element(x, y, "i8")
        return self._b.instruction(x.type, f"{_OPERATORS[type(operator).__name__]} {x}, {y.text}")

    def _place(self, node: ast.expr) -> tuple[Value, Type, str]:
        """The address and the type that `type[address, index]` names, and the order of access."""
        order = ""
        match node:
            case ast.Subscript(ast.Name(name), where):
                pass
            case ast.Subscript(ast.Attribute(ast.Name(order), name), where):
                pass
            case _:
                raise AssertionError(f"not in the language: {ast.unparse(node)}")
        type = _TYPES[name]
        if not isinstance(where, ast.Tuple):
            return self._value(where), type, order
        start, index = map(self._value, where.elts)
        return self._b.element(start, index, type), type, order

    # ---- calls -----------------------------------------------------------------------------

    def _call(self, node: ast.Call, how: str = "") -> Value:
        """Write a call; `how` is what LLVM is to know of it."""
        match node.func:
            case ast.Attribute(ast.Name(order), name):
                return self._atomic(name, order, *map(self._value, node.args))
            case ast.Name("call"):
                result = _type(node.args[0])
                function, *arguments = map(self._value, node.args[1:])
                return self._called(result, f"call {result} {function.text}", arguments)
            case ast.Name(name) if name in self._signatures:
                result, types, variadic = signature = self._signatures[name]
                arguments = [self._value(arg) for arg in node.args]
                arguments[: len(types)] = map(_as, arguments, types)
                form = signature if variadic else result
                return self._called(result, f"{how}call {form} @{name}", arguments)
            case ast.Name(name):
                return self._built_in(name, node.args)
        raise AssertionError(f"not in the language: {ast.unparse(node)}")

    def _called(self, result: Type, text: str, arguments: Sequence[Value]) -> Value:
        text = f"{text}({_listed(arguments)})"
        if result != VOID:
            return self._b.instruction(result, text)
        self._b.emit(text)
        return Value(VOID, "")

    def _atomic(self, name: str, order: str, place: Value, *given: Value) -> Value:
        b, last = self._b, given[-1]
        if name != "swap":
            return b.instruction(last.type, f"atomicrmw {name} {place}, {last} {order}")
        swap = f"cmpxchg {place}, {_as(given[0], last.type)}, {last} {order} monotonic"
        pair = Type(f"{{ {last.type}, i1 }}")
        return b.instruction(_I1, f"extractvalue {b.instruction(pair, swap)}, 1")

    def _built_in(self, name: str, args: list[ast.expr]) -> Value:
        b = self._b
        if name == "stack":
            return b.alloca(_TYPES["i8"], int(self._value(args[0]).text), align=16)
        if name in _UNSIGNED:
            return b.icmp(name, *self._pair(*args))
        if name in _INTRINSICS:
            x, y = self._pair(*args)
            return b.intrinsic(name, x.type, x, y)
        x, to = self._value(args[0]), _TYPES[name]
        if _is_literal(x) or x.type == to:
            return Value(to, x.text)
        if PTR in (x.type, to):
            return b.convert("inttoptr" if to == PTR else "ptrtoint", x, to.scalar)
        wider = "zext" if x.type.bits < 32 else "sext"
        return b.convert("trunc" if to.bits < x.type.bits else wider, x, to.scalar)


def _is_literal(value: Value) -> bool:
    return value.text.lstrip("-").isdigit()


def _as(value: Value, type: Type) -> Value:
    """The value; a literal takes the type it is used with."""
    return Value(type, value.text) if _is_literal(value) and type != PTR else value


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(map(str, values))
