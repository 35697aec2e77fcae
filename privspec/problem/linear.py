"""Linear answers with additive noise, in numbers: what is held, what each answer is, who may tell what apart.

The base vector holds the numbers of all inputs, one after another; what is released is a linear map of it, an offset
and noise. Matrices are exact: they are the rational numbers that the doubles of `problem.linear_lowering` stand for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.core.matrices import least_top, whole_numbers
from privspec.core.records import replace
from privspec.core.rounding import sqrt_up
from privspec.core.sparse import sparse_of
from privspec.kernel.changes import COUNTED, PERSON
from privspec.kernel.core import linear as judged
from privspec.kernel.core.linear import (
    Ball,
    Column,
    Difference,
    InputLayout,
    Matrix,
    Measured,
    Part,
    Released,
    first_cells,
)
from privspec.kernel.core.problem import of_person
from privspec.kernel.core.reading import Grid
from privspec.kernel.derived import sides
from privspec.kernel.rows import Intervals, Rows, laid_out, matrix_of
from privspec.kernel.writing import SPARSE
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import every
from privspec.model.domains import Between, Cut, Domain, IntegerRange, L1Ball, L2Ball, Table
from privspec.model.graph import Model
from privspec.model.neighbours import (
    Asserted,
    InputBlock,
    NeighbourRelation,
    ReplacingEverything,
    ReplacingOneOf,
    ReplacingPerson,
    ReplacingRecord,
    ReplacingVoter,
    Spaced,
    UnboundedError,
)
from privspec.model.reports import Failure, listing
from privspec.model.requirements import Requirement
from privspec.model.values import word
from privspec.problem.linear_affine import Layout
from privspec.problem.linear_lowering import (
    Errors,
    Lowered,
    Reached,
    check_priced,
    lowered,
    noisy_site_map,
    raise_failure,
)
from privspec.problem.linear_vectors import reduced, scalars_of

SHORT = 10**6
"""Denominators up to which a double is read as the fraction that it stands for."""
COMMON = 2**40
"""Common denominators of such fractions up to which a matrix is written over one."""
WORD = 62
"""Bits of the largest entry of a matrix in one unit that is written over a power of two."""
TALL = 4
"""Rows, in multiples of the columns, from which on those of ones in a row are written by their ends."""

# --- exact numbers ------------------------------------------------------------------------------------


def numbers_of(values: Any, shape: tuple[int, ...], least: float | None = None) -> Grid:
    """The numbers that doubles stand for.

    Those are fractions of one small denominator where the nearest doubles of these are the ones given; else the
    doubles themselves, up to `WORD` bits below `least`: that of the largest entries of each row and column.
    """
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    distinct, inverse = np.unique(flat, return_inverse=True)
    below = short_denominator(distinct.tolist())
    if below:
        whole = [round(Fraction(value) * below) for value in distinct.tolist()]
        return Grid(shape, Fraction(1, below), tuple(np.array(whole, dtype=object)[inverse].tolist()))
    digits, exponent = np.frexp(distinct[distinct != 0])
    odd = np.ldexp(digits, 53).astype(np.int64)
    finest = int((53 - exponent - np.log2((odd & -odd).astype(np.float64)).astype(np.int64)).max())
    top = least_top(flat.reshape(shape)) if least is None else least
    shift = min(finest, WORD - int(np.frexp(top)[1]))
    return Grid(shape, Fraction(2) ** -shift, tuple(whole_numbers(flat, shift).tolist()))


def short_denominator(values: list[float]) -> int | None:
    """A common denominator of the short fractions that these doubles stand for; None if they are not short."""
    below = 1
    for value in values:
        near = Fraction(value).limit_denominator(SHORT)
        if near.numerator / near.denominator != value:
            return None
        below = lcm(below, near.denominator)
        if below > COMMON:
            return None
    small = all(abs(value) * below < 2**WORD for value in values)
    return below if small and all(round(Fraction(v) * below) / below == v for v in values) else None


def exact_matrix(found: Any) -> Matrix:
    """A matrix of doubles, dense or sparse, in exact numbers."""
    shape = tuple(int(n) for n in found.shape)
    if isinstance(found, np.ndarray) and SPARSE * np.count_nonzero(found) >= found.size:
        return matrix_of(numbers_of(found, shape))
    entries = sparse_of(found)
    kept = entries.data != 0
    places = (entries.rows * shape[1] + entries.indices)[kept]
    values = numbers_of(entries.data[kept], (len(places),), least_top(entries.data, (entries.rows, entries.indices)))
    flat = [0] * (shape[0] * shape[1])
    for place, value in zip(places.tolist(), values.entries, strict=True):
        flat[place] = value
    return matrix_of(Grid(shape, values.unit, tuple(flat)))


def as_floats(matrix: Rows) -> NDArray[np.float64]:
    """The nearest doubles."""
    if isinstance(matrix, Intervals):
        places = np.arange(matrix.width)
        starts, ends = np.array(matrix.starts)[:, None], np.array(matrix.ends)[:, None]
        return np.asarray((starts <= places) & (places < ends), dtype=np.float64)
    whole, unit = laid_out(matrix).numer_denom()
    below = int(unit)
    entries = [int(entry) / below for entry in whole.entries()]
    return np.array(entries, dtype=np.float64).reshape(matrix.nrows(), matrix.ncols())


def rows_of(found: Any) -> Matrix | Intervals:
    """The same, but of many rows of ones in a row, such as all ranges, the ends of each."""
    m, n = map(int, found.shape)
    if m > TALL * n and isinstance(found, np.ndarray):
        starts, lengths, columns = found.argmax(axis=1), np.count_nonzero(found, axis=1), np.arange(n)
        inside = (columns >= starts[:, None]) & (columns < (starts + lengths)[:, None])
        if lengths.all() and np.array_equal(found, inside):
            return Intervals(tuple(starts.tolist()), tuple((starts + lengths).tolist()), n)
    return exact_matrix(found)


# --- what is held, and wanted -------------------------------------------------------------------------


class Linear(judged.Linear):
    """Answers that are linear in the data, with unbiased additive noise."""

    __slots__ = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs that it gives, in order."""
        return tuple(one.name for one in self.released)

    def words(self) -> tuple[str, ...]:
        over = "at the worst data" if self.law is None else "on average over the model of the data"
        return (
            *map(_held_words, self.held),
            *(_released_words(one, biased=bool(self.biased)) for one in self.released),
            *(f"{name} is given when the plan is run, and added after the noise." for name, *_ in self.constants),
            *self._loss_words(),
            *self._vector_words(),
            *dict.fromkeys(_accuracy_words(*limit) for limit in self.accuracy),
            *(
                f"Requirement {number + 1}: {self._difference_words(difference)}."
                for number, some in enumerate(self.differences)
                for difference in some
            ),
            "Noise may enter "
            + ("anywhere." if self.sites is None else f"at {listing([name for name, *_ in self.sites])} only."),
            *((f"Noise may be of the family {listing(list(self.families), 'or')} only.",) if self.families else ()),
            *((f"Averages may be off: the loss is that {over}.",) if self.biased else ()),
        )

    def _loss_words(self) -> Iterator[str]:
        what, count = "the largest" if self.worst else "the sum", len(self.errors.weights)
        if count:
            kind = "expected size of an error" if self.errors.sizes else "expected squared error"
            several = (
                f"{what} of {count} {kind.replace(' of an error', 's of errors').replace('ed error', 'ed errors')}"
            )
            yield f"The loss is {f'the {kind}' if count == 1 else several}: `{self.loss}`."

    def _vector_words(self) -> Iterator[str]:
        if self.vectors:
            yield f"Inputs and answers are vectors of {self.vectors} numbers, to each of which the same is done."
            yield "The squared error of a vector is the mean of those of its numbers."

    def _difference_words(self, difference: Difference) -> str:
        names = [held.name for held in self.held if _touches(difference, held)]
        if (first := difference.parts[0]).shape in PERSON:
            each = " and ".join(
                f"up to {part.amount} records of {name}" + (f", {part.most} in one cell," if part.most else "")
                for part, name in zip(difference.parts, names, strict=True)
            )
            what = "come or go" if first.shape == PERSON[0] else "come, and as many go"
            return f"{each} {what}, those of one person"
        if first.shape in COUNTED:
            what = "moves to another cell" if first.shape == "swap" else "comes or goes"
            if (most := first.amount * difference.count) == 1:
                return f"one record of {names[0]} {what}"
            return f"up to {most} records of {names[0]} {MANY[what]}"
        told = []
        for part, name in zip(difference.parts, names, strict=True):
            count = part.length // part.dimension
            if part.shape == "box":
                each = "its number" if part.length == 1 else f"each of its {part.length} numbers"
            else:
                each = "its vector" if count == 1 else f"each of its {count} vectors"
                each += " (Euclidean length)" if part.shape == "l2" else " (sum of absolute values)"
            sizes = f"at most {part.amount}"
            if part.middle is not None:
                # a unit that comes or goes
                sizes = f"{part.middle - part.amount} to {part.middle + part.amount}, or all by the opposite"
            told.append(f"{each} in {name} by {sizes}")
        unit = "one unit changes" if difference.count == 1 else f"up to {difference.count} units change at once, each"
        if difference.apart is not None:
            spacing = "exactly" if difference.exactly else "at least"
            unit = f"up to {difference.count} units, {spacing} {difference.apart} apart, change at once, each"
        return f"{unit} {', and '.join(told)}{', all together' if len(told) > 1 else ''}"


MANY = {"moves to another cell": "move to other cells", "comes or goes": "come or go"}
"""What one record does, and what several do."""


def _accuracy_words(_: Measured, bound: Fraction, line: int, text: str, probability: Fraction | None) -> str:
    if probability is None:
        return f"Line {line}: {text}: at most {bound} on average."
    return f"Line {line}: {text}: the error is at most {bound}, with a probability of {probability}."


def _touches(difference: Difference, held: InputLayout) -> bool:
    spans = [(part.start, part.stop) for part in difference.parts]
    return any(held.start <= start < stop <= held.stop for start, stop in spans)


def _held_words(held: InputLayout) -> str:
    if held.layout == "cells":
        names = listing([column.name for column in held.columns])
        known = f"{held.records} records" if held.records is not None else "any number of records"
        words = f"{held.name} is a table of {known}, counted into {held.stop - held.start} cells by {names}."
        for column in held.columns:
            if column.cuts:
                words += f" Of {column.name} only this counts: whether it is {listing(sides(column.cuts), 'or')}."
            if column.shared:
                low, high = column.values
                words += (
                    f" A record whose {column.name} lies between {low} and {high} counts for both by its share of each."
                )
        return words
    size = prod(held.shape) if held.ball else held.stop - held.start
    what = "one number" if size == 1 else f"{size} numbers"
    if held.ball is not None:
        norm = "Euclidean length" if held.ball.norm == 2 else "sum of absolute values"
        what += f", every {held.ball.dimension} a vector of {norm} at most {held.ball.radius}"
    elif held.lower is not None and held.upper is not None:
        what += f" from {held.lower} to {held.upper}" + (f" in steps of {held.step}" if held.step else "")
    return f"{held.name} is {what}; what lies outside is moved to the nearest value inside."


def _released_words(one: Released, *, biased: bool) -> str:
    size = prod(one.shape)
    how = "as it is defined" if one.defined else "what the loss compares it with"
    noise = "noise" if biased else "noise that averages to 0"
    return f"{one.name}, {'one number' if size == 1 else f'{size} numbers'}, is {how}, plus {noise}."


# --- from a spec --------------------------------------------------------------------------------------


def reads(model: Model) -> bool:
    """Whether these forms can say what the spec says: they are asked last, and refuse with a reason."""
    return bool(model.name)


def block_of(model: Model) -> Linear:
    """The block of a spec: its outputs share noise.

    Raises: SpecError PS05xx for what it cannot say, and for inputs that no finite noise can hide.
    """
    found, alike = lowered(model), scalars_of(model)
    check_priced(model, found)
    at_worst = _over(model) == {"worst"}
    laws = _laws(model, found) if _over(model) == {"E"} else None
    sites = model.noise_at
    return Linear(
        held=tuple(_summed(held_of(block, alike.dimension if alike else 1), found.layout) for block in model.blocks),
        released=tuple(
            Released(o.name, o.start, o.stop, node.type.shape, node.definition is not None)
            for o, node in ((o, model.nodes[o.name]) for o in found.outputs)
        ),
        target=rows_of(found.target),
        offset=_numbers(found.offset),
        constants=tuple((c.name, tuple(c.shape), exact_matrix(c.map)) for c in found.constants),
        errors=_measured(found.errors),
        worst=found.worst,
        loss=spell(model.loss) if model.loss is not None else "",
        accuracy=tuple(
            (_measured(limit.errors), limit.bound, limit.line, limit.text, limit.probability) for limit in found.limits
        ),
        differences=tuple(differences_of(model, requirement) for requirement in model.requirements),
        sites=None if sites is None else tuple(_site(name, noisy_site_map(model, found, name)) for name in sites),
        families=model.families,
        vectors=None if alike is None else alike.dimension,
        biased=at_worst or laws is not None or None,
        law=laws,
    )


def _over(model: Model) -> set[str]:
    """How the loss takes the data where averages may be off: errors may then hang on these."""
    return set() if model.unbiased or model.accuracy else {one.operator for one in every(model.loss, syntax.Over)}


def _laws(model: Model, found: Lowered) -> tuple[judged.InputLaw, ...] | None:
    """Laws of all inputs, over which squared errors are averaged; None where data come and go, or have none."""
    adding = any(line.neighbours.adding for line in model.requirements)
    if not model.models or found.errors.sizes or adding or scalars_of(model) is not None:
        return None
    from privspec.problem.moments import laws_of  # few specs have them

    return laws_of(model)


def _summed(held: InputLayout, layout: Layout) -> InputLayout:
    """An input with its classes, where it is not laid out."""
    _, share = layout.places[held.name]
    if share.partition is None:
        return held
    return replace(held, units=share.partition.alike(share.length))


def _site(name: str, found: Reached) -> tuple[str, Matrix, tuple[int, ...]]:
    copies = found.alike.numbers if found.alike else [1] * found.map.shape[1]
    return name, exact_matrix(found.map), tuple(copies)


def _numbers(values: Any) -> tuple[Fraction, ...]:
    return tuple(numbers_of(values, (len(values),)).values())


def _measured(errors: Errors) -> Measured:
    size, rows = len(errors.weights), errors.rows
    own = rows.shape == (size, size) and np.array_equal(rows.indices, rows.rows) and rows.data.tolist() == [1.0] * size
    return Measured(None if own else exact_matrix(rows), _numbers(errors.weights), errors.sizes or None)


def held_of(block: InputBlock, each: int = 1) -> InputLayout:
    """An input as it is held; a coordinate stands for so many numbers."""
    cells = block.layout == "cells"
    lower, upper = (Fraction(0), None) if cells else block.domain.bounds
    base = block.base_domain
    ball = Ball(base.radius, base.dimension, base.norm) if isinstance(base, L1Ball | L2Ball) else None
    columns, shape = columns_of(block), tuple(block.type.shape)
    start, stop = block.start // each, block.stop // each
    found = InputLayout(block.name, start, stop, block.layout, shape, lower, upper, ball, columns, block.records, None)
    step = None if cells else spacing_of(block)
    if step is None or lower is None or upper is None:
        return found
    return replace(found, step=step, gaps=block.base_domain.size != (upper - lower) / step + 1 or None)


FINEST = 2**52
"""Most steps from one end of a domain to the other: doubles say which one a value is."""


def spacing_of(block: InputBlock) -> Fraction | None:
    """What the entries of an input are whole multiples of, beyond the lower end; None where some lie anywhere."""
    (low, high), step = block.domain.bounds, block.base_domain.spacing
    return step if step and low is not None and high is not None and 0 < high - low <= FINEST * step else None


def grid_of(block: InputBlock, bits: int) -> Fraction:
    """The grid of an input, as a share of its width: that of its values, of so many bits where they lie anywhere."""
    (low, high), step = block.domain.bounds, spacing_of(block)
    if step is None or low is None or high is None:
        return Fraction(1) if block.whole else Fraction(1, 2**bits)
    return step / (high - low)


def columns_of(block: InputBlock) -> tuple[Column, ...]:
    """The attributes of a table."""
    return tuple(column_of(name, domain) for name, domain in block.schema or ())


def column_of(name: str, domain: Domain) -> Column:
    """An attribute of a table by its domain."""
    if isinstance(domain, Cut):
        return replace(column_of(name, domain.whole), shared=False, cuts=domain.words())
    if isinstance(domain, IntegerRange):
        return Column(name, (), domain.low, domain.high, shared=False, cuts=())
    values = tuple(map(word, domain.elements()))
    return Column(name, values, None, None, shared=isinstance(domain, Between), cuts=())


def difference_of(model: Model, moved: Requirement) -> tuple[Difference, ...] | None:
    """What one unit changes; None where it has no limit."""
    try:
        return differences_of(model, moved)
    except SpecError:
        return None


def differences_of(model: Model, requirement: Requirement) -> tuple[Difference, ...]:
    """Sets whose union holds every difference of the base vector that one requirement is about.

    Raises: SpecError PS0526 where one unit can change an input without limit.
    """
    try:
        return moved_by(model, requirement)
    except UnboundedError as error:
        label = Label(error.block.span, error.why)
        raise SpecError(
            Diagnostic(
                "PS0526", f"{error.why}: no finite noise hides it", (label,), help=error.suggestion, source=model.source
            )
        ) from error
    except Failure as failure:
        raise_failure(model, failure)


def moved_by(model: Model, requirement: Requirement) -> tuple[Difference, ...]:
    """The same.

    Raises: UnboundedError where one unit can change an input without limit, Failure PS0511 where there are only words,
        which enter no answer by themselves.
    """
    blocks = [model.block(node.name) for node in model.numeric_inputs if node.name in requirement.wrt]
    if not blocks:
        text = f"no output shows anything of {listing(requirement.wrt)}, so this line protects nothing"
        raise Failure("PS0511", requirement.span, text, help="leave the line out")
    found, alike = moved(blocks, requirement.neighbours), scalars_of(model)
    return found if alike is None else reduced(found, alike.dimension)


def moved(blocks: Sequence[InputBlock], relation: NeighbourRelation) -> tuple[Difference, ...]:
    """The same for some inputs."""
    every = tuple(block.name for block in blocks)
    joined = relation.joined if isinstance(relation, ReplacingOneOf) else ((relation, every),)
    parts = ((own, [block for block in blocks if block.name in names]) for own, names in joined)
    return tuple(difference for own, some in parts for difference in _differences(some, own))


def _differences(blocks: list[InputBlock], relation: NeighbourRelation) -> tuple[Difference, ...]:
    """Those of one relation: one difference for each input, or for all of them where they change together."""
    if isinstance(relation, ReplacingPerson) and relation.by_id:
        for block in blocks:
            block.check_size()
        held = [(block.start, block.stop, relation.kept, first_cells(columns_of(block))) for block in blocks]
        cover = None if all(map(free, blocks)) else Fraction(0)
        return tuple(
            Difference(tuple(Part(*one) for one in some), 1, cover=cover)
            for some in of_person(held, adding=relation.adding)
        )
    if isinstance(relation, ReplacingVoter | ReplacingEverything) and len(blocks) > 1:
        tallied = [block for block in blocks if block.tallied]
        if isinstance(relation, ReplacingVoter) and tallied and len(tallied) < len(blocks):
            text = f"solve cannot compute a histogram beside numbers that change with {tallied[0].name}"
            raise Failure("PS0501", tallied[0].span, text, help=f"give {tallied[0].name} a line of its own")
        found = _units([_part(block, relation, alone=False) for block in blocks], relation.group)
        # the counts of a table beside other numbers, as if each of them moved by itself
        wide = any(
            part.shape == "box" and block.layout == "cells" for part, block in zip(found.parts, blocks, strict=True)
        )
        return (replace(found, cover=Fraction(0)) if wide else found,)
    return tuple(_of_block(block, relation) for block in blocks)


def _of_block(block: InputBlock, relation: NeighbourRelation) -> Difference:
    if isinstance(relation, Asserted):
        return replace(_units([_part(block, relation)], 1), cover=ROUNDED_UP)
    if isinstance(relation, Spaced):
        part = _part(block, relation.inner)
        whole = replace(_units([part], relation.group), apart=relation.apart, exactly=relation.exactly)
        return replace(whole, cover=Fraction(0)) if _in_balls(block, part, relation.group) else whole
    if block.layout != "cells":
        return _of_numbers(block, relation)
    block.check_size()
    records, adding, parties = block.records, relation.adding, prod(block.type.shape)
    most = records if isinstance(relation, ReplacingEverything) else relation.group
    if most is None or (adding and not block.tallied and not isinstance(relation, ReplacingRecord)):
        most = int(block.reach(adding=adding))
    most = most if adding or records is None else min(most, records)
    size, shape = max(block.stop - block.start, 1), "cell" if adding else "swap"
    stay = block.index and not adding and not block.tallied
    each = min(most, records // parties) if stay and records else 0
    if each and not most % each:
        # records of which everybody knows how many a party has stay with it
        length = max(block.party_length, 1)
        return _units([Part(block.start, block.stop, length, shape, length, Fraction(each))], most // each)
    # they may all have, or move between, the same cells; not those of several parties, nor some that no record has,
    # which is told as if they did
    part = Part(block.start, block.stop, size, shape, size, Fraction(most))
    return Difference((part,), 1, cover=Fraction(0) if stay or not free(block) else None)


def free(block: InputBlock) -> bool:
    """Whether a record may stand in every cell of a table."""
    table = block.base_domain
    return not isinstance(table, Table) or table.free


def _in_balls(block: InputBlock, part: Part, group: int) -> bool:
    """Whether several numbers of one ball may change at once, so that each is less free than it would be alone."""
    base = block.base_domain
    return group > 1 and part.length == 1 and isinstance(base, L1Ball | L2Ball) and base.dimension > 1


def _of_numbers(block: InputBlock, relation: NeighbourRelation) -> Difference:
    """Numbers of one ball that change at once stay in it, and so their difference lies in one of twice its radius.

    That of up to k numbers in the l1 norm is a mixture of differences of one number, and all of these are reached. In
    the Euclidean norm it is cut into pieces of k numbers, whose lengths add up to at most the root of their number
    times its own. What numbers of several balls do is told as if each of them were alone.
    """
    part, group, base = _part(block, relation), relation.group, block.base_domain
    if not _in_balls(block, part, group):
        return _units([part], group)
    assert isinstance(base, L1Ball | L2Ball)
    if block.size > base.dimension:
        return replace(_units([part], group), cover=Fraction(0))
    whole = Part(block.start, block.stop, block.size, f"l{base.norm}", base.dimension, part.amount)
    pieces = 1 if base.norm == 1 else -(-base.dimension // group)
    return replace(_units([whole], 1), cover=sqrt_up(Fraction(pieces)) if pieces > 1 else None)


ROUNDED_UP = 1 + Fraction(1, 2**22)
"""Factor by which what is asserted of a function is enlarged, for the rounding of its values to a grid."""


def _units(parts: list[Part], group: int) -> Difference:
    units = {(part.stop - part.start) // part.length for part in parts}
    return Difference(tuple(parts), min(group, *units) if len(units) == 1 else group)


def _part(block: InputBlock, relation: NeighbourRelation, *, alone: bool = True) -> Part:
    """What one unit changes in one input, or in the one `alone`."""
    if isinstance(relation, Asserted):
        shape, most = {"linf": "box"}.get(relation.norm, relation.norm), relation.amount * ROUNDED_UP
        return Part(block.start, block.stop, block.size, shape, 1 if shape == "box" else block.size, most)
    if block.tallied:
        records, size = block.records or 0, block.size
        most = Fraction(records if isinstance(relation, ReplacingEverything) else min(relation.group, records))
        shape = "box" if most > 1 else PERSON[0] if relation.adding else PERSON[1]
        return Part(block.start, block.stop, size, shape, 1 if shape == "box" else size, most)
    length = max(relation.length(block), 1)
    base, amount = block.base_domain, block.reach(adding=relation.adding)
    if isinstance(base, L1Ball | L2Ball) and length > 1:
        return Part(block.start, block.stop, length, f"l{base.norm}", base.dimension, amount)
    low, high = block.domain.bounds
    if not relation.adding or (alone and length == 1) or low is None or high is None or low == -high:
        return Part(block.start, block.stop, length, "box", 1, amount)
    return Part(block.start, block.stop, length, "box", 1, (high - low) / 2, middle=(high + low) / 2)
