"""The specification: what a kernel computes, on which arguments and sizes, and what judges it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .dtypes import DTYPES, DType
from .expressions import Expression, ExpressionError
from .values import KINDS, Range, Values

Sizes = Mapping[str, int]
"""A shape: a number for each size."""


MAX_GRID, MAX_BLOCK, MAX_THREADS = (2**31 - 1, 65535, 65535), (1024, 1024, 64), 1024
"""What devices take: blocks and threads along each axis, and threads of a block."""


class SpecError(Exception):
    """What is wrong with a specification: the key, the rule, and what to do."""


@dataclass(frozen=True)
class Argument:
    """An argument of the kernel."""

    name: str
    role: str
    """in, out, inout or scalar."""
    dtype: DType
    shape: tuple[Expression, ...]
    values: Values | None
    """Of `in`, `inout`, and scalars that are no expression."""
    value: Expression | None
    """Of a scalar that follows from the sizes."""
    rtol: float
    atol: float
    align: int
    """Its address is a multiple of it, in bytes."""

    @property
    def is_array(self) -> bool:
        return self.role != "scalar"

    @property
    def is_output(self) -> bool:
        return self.role in ("out", "inout")

    @property
    def is_input(self) -> bool:
        return self.role in ("in", "inout")


@dataclass(frozen=True)
class LaunchOf:
    """How a kernel of PTX or CUDA C++ is launched."""

    entry: str | None
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    shared: Expression
    cooperative: bool
    options: tuple[str, ...]
    """For the compiler of CUDA C++."""


@dataclass(frozen=True)
class KernelFile:
    """A kernel that the specification names."""

    file: Path
    launch: LaunchOf


@dataclass(frozen=True)
class FunctionFile:
    """A function of Python that the specification names."""

    file: Path
    function: str
    is_exact: bool
    """Whether it gets floats as float64, and not as the kernel does."""


@dataclass(frozen=True)
class Run:
    """How often and how a candidate is run."""

    orders: tuple[str, ...]
    seeds: int
    check: str
    race: str
    max_instructions: int
    seconds: float
    host_bytes: Expression
    scratch_bytes: int
    total_seconds: float

    def has(self, check: str) -> bool:
        """Whether a check is on."""
        return any(name.strip() in ("all", check) for name in self.check.split(","))


@dataclass(frozen=True)
class Limits:
    """What a candidate may cost, as multiples."""

    instructions: float | None
    bytes: float | None
    traffic: float | None


@dataclass(frozen=True)
class Spec:
    """A specification that was read."""

    file: Path
    name: str
    sm: str
    function: str
    launch: LaunchOf | None
    arguments: tuple[Argument, ...]
    shapes: tuple[Sizes, ...]
    reference: KernelFile | FunctionFile
    reference_seconds: float
    """For one call, or one run."""
    baseline: KernelFile | None
    run: Run
    limits: Limits

    @property
    def arrays(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if argument.is_array)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if argument.is_output)

    def extents(self, argument: Argument, sizes: Sizes) -> tuple[int, ...]:
        """The extents of an array."""
        return tuple(extent.value(sizes) for extent in argument.shape)


def read(file: Path) -> Spec:
    """Reads a specification. SpecError if it is wrong, in whatever way."""
    try:
        import tomllib
    except ImportError:
        try:
            import tomli as tomllib  # type: ignore[no-redef]
        except ImportError:
            raise SpecError("Python before 3.11 reads no TOML: pip install tomli") from None
    try:
        with file.open("rb") as opened:
            document = tomllib.load(opened)
    except OSError as error:
        raise SpecError(f"{file}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{file} is not TOML: {error}") from None
    return _Reader(file).spec(Table(file, "", document))


T = TypeVar("T")


class Table:
    """A table of the document. Each key is taken once; what is left is refused."""

    def __init__(self, file: Path, path: str, entries: Mapping[str, Any]) -> None:
        self._file, self._path, self._entries = file, path, dict(entries)
        self._known: list[str] = []

    def error(self, key: str, why: str) -> SpecError:
        """An error about a key."""
        path = ".".join(part for part in (self._path, key) if part)
        return SpecError(f"{self._file}: {path}: {why}")

    def take(self, key: str, kind: type[T], shown: str, default: T | None = None) -> T:
        """A value of a type, which `shown` describes."""
        self._known.append(key)
        value = self._entries.pop(key, default)
        if value is None:
            raise self.error(key, f"it is missing, and must be {shown}")
        if kind is float and type(value) is int:
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(key, f"{value!r} is not {shown}")
        return value

    def optional(self, key: str, kind: type[T], shown: str) -> T | None:
        """The same, of a key that may be missing."""
        self._known.append(key)
        return self.take(key, kind, shown) if key in self._entries else None

    def number(self, key: str, default: float | None, low: float) -> float | None:
        """A number from `low` on, which may be missing."""
        value = self.optional(key, float, f"a number from {low} on")
        if value is not None and not low <= value < float("inf"):
            raise self.error(key, f"{value} is not a number from {low} on")
        return default if value is None else value

    def whole(self, key: str, default: int, low: int) -> int:
        """A whole number from `low` on."""
        value = self.take(key, int, f"a whole number from {low} on", default)
        if value < low:
            raise self.error(key, f"{value} is not a whole number from {low} on")
        return value

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of some texts."""
        value = self.take(key, str, f"one of {', '.join(choices)}", default)
        if value not in choices:
            raise self.error(key, f"{value!r} is not one of {', '.join(choices)}")
        return value

    def texts(self, key: str, default: Sequence[str]) -> tuple[str, ...]:
        """A list of texts."""
        values = self.take(key, list, "a list of texts", list(default))
        if not all(isinstance(value, str) for value in values):
            raise self.error(key, f"{values!r} is not a list of texts")
        return tuple(values)

    def expression(self, key: str, names: Sequence[str], default: object = None) -> Expression:
        """An expression."""
        self._known.append(key)
        value = self._entries.pop(key, default)
        if value is None:
            raise self.error(key, 'it is missing, and must be a whole number or an expression such as "2 * n"')
        return self._read(key, value, names)

    def expressions(self, key: str, names: Sequence[str], low: int, high: int) -> tuple[Expression, ...]:
        """From `low` to `high` expressions; one needs no list."""
        self._known.append(key)
        value = self._entries.pop(key, None)
        shown = f"a list of {low} to {high} whole numbers or expressions"
        if value is None:
            raise self.error(key, f"it is missing, and must be {shown}")
        values = value if isinstance(value, list) else [value]
        if not low <= len(values) <= high:
            raise self.error(key, f"{values!r} is not {shown}")
        return tuple(self._read(key, part, names) for part in values)

    def _read(self, key: str, value: object, names: Sequence[str]) -> Expression:
        try:
            return Expression.read(value, names)
        except ExpressionError as error:
            raise self.error(key, str(error)) from None

    def table(self, key: str, default: Mapping[str, Any] | None = None, short: str | None = None) -> Table:
        """A table inside of it. A text instead is that of its key `short`."""
        if short is not None and isinstance(self._entries.get(key), str):
            self._entries[key] = {short: self._entries[key]}
        value = self.take(key, dict, f"a table: [{key}]", None if default is None else dict(default))
        return Table(self._file, f"{self._path}.{key}" if self._path else key, value)

    def tables(self, key: str) -> list[Table]:
        """A list of tables."""
        values = self.take(key, list, f"a list of tables, each under [[{key}]]")
        if not values or not all(isinstance(value, dict) for value in values):
            raise self.error(key, f"it must be a list of tables, each under [[{key}]], and have one at least")
        return [Table(self._file, f"{key}[{number}]", value) for number, value in enumerate(values)]

    def has(self, key: str) -> bool:
        self._known.append(key)
        return key in self._entries

    def rest(self) -> dict[str, Any]:
        """All that was not taken."""
        rest, self._entries = self._entries, {}
        return rest

    def end(self) -> None:
        """Refuses what was not taken."""
        for key in self._entries:
            raise self.error(key, f"there is no such key: those here are {', '.join(dict.fromkeys(self._known))}")


class _Reader:
    """Reads a document."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._names: tuple[str, ...] = ()

    def spec(self, document: Table) -> Spec:
        kernel = document.table("kernel", {})
        name = kernel.take("name", str, "what reports call the kernel", self._file.stem)
        sm = str(kernel.take("sm", str, 'a compute capability as text, such as "80"', "80")).removeprefix("sm_")
        function = kernel.take("function", str, "the function of candidates that are programs of Python", "launch")
        kernel.end()
        shapes = self._shapes(document)
        arguments = tuple(self._argument(table) for table in document.tables("argument"))
        names = [argument.name for argument in arguments]
        for number, repeated in enumerate(names):
            if repeated in names[:number]:
                raise document.error(f"argument[{number}].name", f"{repeated!r} is the name of another argument")
        if not any(argument.is_output for argument in arguments):
            raise document.error("argument", 'a kernel writes something: one of the roles must be "out" or "inout"')
        launch = self._launch(document.table("launch")) if document.has("launch") else None
        reference_table = document.table("reference")
        seconds = reference_table.number("seconds", 300.0, 0.1) or 300.0
        reference = self._named(reference_table)
        baseline = self._named(document.table("baseline")) if document.has("baseline") else None
        if isinstance(baseline, FunctionFile):
            raise document.error("baseline.file", "what a candidate's cost is compared with is a kernel: .ptx or .cu")
        if baseline is None and isinstance(reference, KernelFile):
            baseline = reference
        run = self._run(document.table("run", {}))
        limits_table = document.table("limits", {})
        limits = Limits(*(limits_table.number(key, None, 0) for key in ("instructions", "bytes", "traffic")))
        limits_table.end()
        if baseline is None and (limits.instructions is not None or limits.bytes is not None):
            raise document.error(
                "limits", "instructions and bytes are multiples of those of a kernel: name it under [baseline]"
            )
        document.end()
        spec = Spec(
            self._file, name, sm, function, launch, arguments, shapes, reference, seconds, baseline, run, limits
        )
        self._try(spec, document)
        return spec

    def _shapes(self, document: Table) -> tuple[Sizes, ...]:
        """The shapes: each size must be odd in one of them."""
        shapes: list[dict[str, int]] = []
        for table in document.tables("shapes"):
            shape = table.rest()
            if not shape or (shapes and set(shape) != set(shapes[0])):
                raise table.error("", f"every shape has a number for each size, such as {{ n = 1000 }}, not {shape}")
            for size, value in shape.items():
                if not size.isidentifier():
                    raise table.error(size, "a size has a name that an expression can have")
                if type(value) is not int or value < 1:
                    raise table.error(size, f"{value!r} is not a whole number from 1 on")
            shapes.append(shape)
        multiples = document.table("multiples", {})
        for size in shapes[0]:
            multiple = multiples.whole(size, 1, 1)
            for number, shape in enumerate(shapes):
                if shape[size] % multiple:
                    raise document.error(f"shapes[{number}].{size}", f"{shape[size]} is no multiple of {multiple}")
            if not any(shape[size] // multiple % 2 == 1 and shape[size] > multiple for shape in shapes):
                example = f"{multiple} times an odd number from 3 on" if multiple > 1 else "odd and 3 or more"
                raise document.error(
                    "shapes",
                    f"`{size}` must be {example} in one shape, since many kernels are wrong only for such sizes. If "
                    f"kernels may rely on multiples, say so: `{size} = 16` under [multiples]",
                )
        multiples.end()
        self._names = tuple(shapes[0])
        return tuple(shapes)

    def _argument(self, table: Table) -> Argument:
        name = table.take("name", str, "the argument's name")
        if not name.isidentifier():
            raise table.error("name", f"{name!r} is no name that a function's argument can have")
        role = table.choice("role", ("in", "out", "inout", "scalar"))
        dtype = DTYPES[table.choice("dtype", tuple(DTYPES))]
        shape: tuple[Expression, ...] = ()
        values, value, rtol, atol, align = None, None, dtype.rtol, dtype.atol, 256
        if role == "scalar":
            if dtype.name == "bfloat16":
                raise table.error("dtype", "a scalar cannot be bfloat16: pass it as float32")
            if table.has("values") or (dtype.is_float and not table.has("value")):
                values = self._values(table, dtype)
            else:
                value = table.expression("value", self._names)
        else:
            shape = table.expressions("shape", self._names, 1, 8)
            align = table.whole("align", 256, dtype.bytes)
            if align & (align - 1) or align > 4096:
                raise table.error("align", f"{align} is not a power of two up to 4096")
            if role != "out":
                values = self._values(table, dtype)
            if role != "in":
                rtol, atol = (table.number(key, default, 0) or 0.0 for key, default in (("rtol", rtol), ("atol", atol)))
        table.end()
        return Argument(name, role, dtype, shape, values, value, rtol, atol, align)

    def _values(self, table: Table, dtype: DType) -> Values:
        """How values are drawn: a kind, or a table with the kind and its numbers."""
        if not table.has("values") and not dtype.is_float:
            raise table.error(
                "values", 'it is missing: integers need bounds: { kind = "integers", low = 0, high = "n" }'
            )
        given = table.table("values", {"kind": "normal"}, short="kind")
        kind = given.choice("kind", tuple(KINDS))
        if kind in ("normal", "uniform") and not dtype.is_float:
            raise given.error("kind", f"{kind} numbers are no {dtype.name}: take integers")
        found: dict[str, Any] = {}
        for key in KINDS[kind]:
            if not given.has(key):
                continue
            if key in ("scale", "offset"):
                found[key] = self._range(given, key)
            elif key == "value":
                found[key] = given.take(key, float, "a number")
            else:
                found[key] = given.expression(key, self._names)
        if kind == "integers" and "high" not in found:
            raise given.error("high", "it is missing: integers are drawn from `low` (0) to `high`, that not included")
        given.end()
        return Values(kind, **found)

    def _range(self, table: Table, key: str) -> Range:
        value: Any = table.take(key, object, "a number, or a list of the lowest and the highest")
        ends: list[Any] = value if isinstance(value, list) else [value, value]
        right = len(ends) == 2 and all(type(end) in (int, float) and abs(end) < float("inf") for end in ends)
        if not right or ends[0] > ends[1]:
            raise table.error(key, f"{value!r} is neither a number nor a list of the lowest and the highest")
        return Range(float(ends[0]), float(ends[1]))

    def _launch(self, table: Table) -> LaunchOf:
        entry = table.optional("entry", str, "the kernel's name")
        grid = table.expressions("grid", self._names, 1, 3)
        block = table.expressions("block", self._names, 1, 3)
        shared = table.expression("shared", self._names, 0)
        cooperative = table.take("cooperative", bool, "true or false", False)
        launch = LaunchOf(entry, grid, block, shared, cooperative, table.texts("options", ()))
        table.end()
        return launch

    def _named(self, table: Table) -> KernelFile | FunctionFile:
        """A kernel, or a function, that the specification names by a file beside it."""
        given = table.take("file", str, "the path of a .py, .ptx or .cu file, from the folder of the specification")
        file = self._file.parent / given
        if not file.is_file():
            raise table.error("file", f"{file} is no file" if file.exists() else f"{file} is not there")
        if file.suffix in (".ptx", ".cu"):
            return KernelFile(file, self._launch(table))
        if file.suffix != ".py":
            raise table.error("file", f"{given!r} ends neither in .py, .ptx nor .cu")
        function = table.take("function", str, "the function's name", "reference")
        precision = table.choice("precision", ("float64", "same"), "float64")
        table.end()
        return FunctionFile(file, function, precision == "float64")

    def _run(self, table: Table) -> Run:
        orders = table.texts("orders", ("issue", "reverse", "random"))
        for order in orders:
            head, _, seed = order.partition(":")
            if head not in ("issue", "reverse", "random") or (
                ":" in order and (head != "random" or not seed.isdigit())
            ):
                raise table.error("orders", f"{order!r} is not issue, reverse, random or random: and a whole number")
        if not orders:
            raise table.error("orders", "there is none: take issue, reverse and random")
        run = Run(
            orders,
            table.whole("seeds", 2, 1),
            table.take("check", str, 'the checks: "all", or names between commas', "all"),
            table.choice("race", ("normal", "strict"), "normal"),
            table.whole("max_instructions", 200_000_000, 1),
            table.number("seconds", 60.0, 0.1) or 60.0,
            table.expression("host_bytes", self._names, 0),
            table.whole("scratch_bytes", 1 << 30, 0),
            table.number("total_seconds", 3600.0, 0.1) or 3600.0,
        )
        names = [name.strip() for name in run.check.split(",")]
        known = ("all", "memcheck", "racecheck", "initcheck", "synccheck", "synccheck=strict")
        for name in names:
            if name not in known:
                raise table.error("check", f"{name!r} is not one of {', '.join(known)}")
        table.end()
        return run

    def _try(self, spec: Spec, document: Table) -> None:
        """Computes every expression once."""
        kernels = [("launch", spec.launch)] if spec.launch else []
        for key, named in (("reference", spec.reference), ("baseline", spec.baseline)):
            if isinstance(named, KernelFile):
                kernels.append((key, named.launch))
        for number, sizes in enumerate(spec.shapes):
            for index, argument in enumerate(spec.arguments):
                for extent in argument.shape:
                    self._from(document, f"argument[{index}].shape, for shapes[{number}]", extent, sizes, 1)
                if argument.value is not None:
                    key = f"argument[{index}].value, for shapes[{number}]"
                    value = self._from(document, key, argument.value, sizes, None)
                    if not argument.dtype.has(value):
                        raise document.error(
                            key, f"`{argument.value.text}` is {value}, which no {argument.dtype.name} is"
                        )
                if argument.values is not None:
                    try:
                        argument.values.check(argument.dtype, spec.extents(argument, sizes), sizes)
                    except ExpressionError as error:
                        raise document.error(f"argument[{index}].values, for shapes[{number}]", str(error)) from None
            for key, launch in kernels:
                self._try_launch(document, key, f"for shapes[{number}]", launch, sizes)
            self._from(document, f"run.host_bytes, for shapes[{number}]", spec.run.host_bytes, sizes, 0)

    def _try_launch(self, document: Table, path: str, where: str, launch: LaunchOf, sizes: Sizes) -> None:
        """Refuses a launch that no device takes, whatever the kernel is."""
        for name, extents, limits in (("grid", launch.grid, MAX_GRID), ("block", launch.block, MAX_BLOCK)):
            key = f"{path}.{name}, {where}"
            values = [self._from(document, key, extent, sizes, 1) for extent in extents]
            for axis, extent, value, limit in zip("xyz", extents, values, limits):
                if value > limit:
                    raise document.error(
                        key, f"`{extent.text}` is {value}, and a {name} has up to {limit} along {axis}"
                    )
            threads = math.prod(values)
            if name == "block" and threads > MAX_THREADS:
                raise document.error(key, f"a block of {threads} threads has more than {MAX_THREADS}")
        self._from(document, f"{path}.shared, {where}", launch.shared, sizes, 0)

    def _from(self, document: Table, key: str, expression: Expression, sizes: Sizes, low: int | None) -> int:
        try:
            value = expression.value(sizes)
        except ExpressionError as error:
            raise document.error(key, str(error)) from None
        if low is not None and value < low:
            raise document.error(key, f"`{expression.text}` is {value}, and must be {low} or more")
        return value
