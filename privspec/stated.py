"""What a plan states, in types: the one place that knows the keys of its JSON.

Whatever shows a plan reads it here. Keys that are not named are passed over; one that is missing or null has the value
that stands for that here. What carries a guarantee is read strictly, by the kernel and by nobody else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

from privspec.core.records import MISSING, dataclass, field, fields, replace
from privspec.kernel.core.problem import Frame, executed, read_frame
from privspec.kernel.core.reading import JsonNode, Refused, read
from privspec.kernel.measures import BY_PERSON, FIGURES, Measure, named

if TYPE_CHECKING:
    from privspec.kernel.designs import Design

T = TypeVar("T", bound="Part")


def parse_exact(text: object) -> Fraction:
    """The number that a plan writes as a JSON number, a decimal string, a fraction or a power of two ("2^-30").

    Raises: ValueError if it is none of these or not finite.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float | Fraction):
        raise ValueError(f"not a number: {text!r}")
    if isinstance(text, float):
        if not math.isfinite(text):
            raise ValueError(f"not finite: {text!r}")
        text = repr(text)  # a double in a plan is the number its shortest decimal says, as in the spec it came from
    try:
        return Fraction(2) ** int(text[2:]) if isinstance(text, str) and text.startswith("2^") else Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"not a number: {text!r}") from error


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Part:
    """An object of the JSON; whatever derives from it is a frozen dataclass of the keys that are read."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    @classmethod
    def read(cls: type[T], data: object) -> T:
        """The part as JSON has it; a list may be given by the one thing that it would hold.

        Raises: KeyError, TypeError, ValueError if it is not of that form.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"{data!r} is no object")
        known = {key: item for key, item in data.items() if item is not None}
        for one in fields(cls):  # type: ignore[arg-type]
            if one.name not in known and one.default is one.default_factory is MISSING:
                raise KeyError(one.name)
        return cls(**{name: _read(hint, known[name]) for name, hint in _hints(cls).items() if name in known})  # type: ignore[arg-type]


def _read(kind: Any, value: Any) -> Any:
    inner, origin = get_args(kind), get_origin(kind)
    if kind is Any or value is None:
        return value
    if NoneType in inner:
        return _read(inner[0], value)
    if origin is tuple:
        return tuple(_read(inner[0], item) for item in (value if isinstance(value, list | tuple) else [value]))
    if origin is Mapping:
        return {str(key): _read(inner[1], item) for key, item in value.items()}
    if issubclass(kind, Part):
        return kind.read(value)
    return parse_exact(value) if kind is Fraction else kind(value)


@lru_cache(maxsize=256)
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


class Spec(Part):
    """The spec that was solved."""

    name: str = ""
    path: str = ""
    source: str = ""
    sha256: str = ""
    components: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)


class Loss(Part):
    """The loss in the units of its expression; bound and gap are None where none was derived, as of a simulated one."""

    value: float
    lower_bound: float | None = None
    relative_gap: float | None = None
    expression: str = ""
    units: str = ""
    among: str = ""
    kind: str = ""
    standard_error: float | None = None
    without_noise: float | None = None
    crowds: int = 0
    parties: int = 0


class Guarantee(Part):
    """One requirement and what the mechanism achieves for it; amounts are exact, as strings."""

    outputs: tuple[str, ...]
    wrt: tuple[str, ...]
    neighbours: str
    measure: str
    observer: str = "anyone"
    achieved: Mapping[str, Any] = field(default_factory=dict)
    because: tuple[str, ...] = ()
    line: int = 0
    text: str = ""
    requirement: int = -1
    figures: Mapping[str, Any] = field(default_factory=dict)
    """The amounts that the line asks for, by name."""

    @classmethod
    def read(cls: type[T], data: object) -> T:
        """The amounts stand beside the rest, each under its name."""
        if isinstance(data, Mapping):
            amounts = {name: data[name] for name in data if name in FIGURES and data[name] is not None}
            data = {**data, "figures": amounts}
        return super().read(data)

    def __getattr__(self, name: str) -> Any:
        """An amount by its name, `guarantee.epsilon`: None where the measure has none of that name."""
        if name in FIGURES:
            return self.figures.get(name)
        raise AttributeError(name)

    @property
    def asked(self) -> Measure | None:
        """The measure; None where the plan names one that is not known."""
        return named(self.measure)

    @property
    def by_person(self) -> bool:
        """Whether each person has amounts of their own."""
        return self.measure.startswith(BY_PERSON)


class RuleFigures(Part):
    """What a rule of voting costs and how far it is from the votes."""

    epsilon: Fraction | None = None
    worst_distortion: float | None = None
    mean_distortion: float | None = None
    expected_welfare: float | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


class Alternative(Part):
    """A design that was not chosen; without a loss, one that nothing lets meet the lines of the spec."""

    name: str
    loss: float | None = None
    admissible: bool = False
    reason: str = ""
    at_least: bool = False
    standard_error: float | None = None
    figures: RuleFigures | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


class Line(Part):
    """What a plan says of a line: its value and bound, what it allows and is reached of it, or what a change brings."""

    line: int = 0
    text: str = ""
    value: float = 0.0
    bound: float = 0.0
    tolerance: Fraction = Fraction(0)
    achieved: Fraction = Fraction(0)
    change: str = ""
    loss_change: float = 0.0
    first_order: bool = False
    loss: float | None = None
    works: bool = True


class Seen(Part):
    """What an observer sees that depends on an input, and the bound on it."""

    input: str
    observer: str
    wrt: tuple[str, ...]
    neighbours: str
    outputs: tuple[str, ...]
    not_protected: tuple[str, ...] = ()
    bound: Mapping[str, Fraction] | None = None


class Source(Part):
    """What a statement rests on: a line, a claim of the kernel, or else a note."""

    line: int | None = None
    claim: str | None = None
    note: str = "placement"


class Assumption(Part):
    """What the plan takes to be so, and by whose word."""

    text: str
    status: str = "assumed"
    because: tuple[Source, ...] = ()


class Solver(Part):
    """How the plan was found."""

    name: str = "unknown"
    iterations: int | None = None
    seconds: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


class Named(Part):
    """Something with a name, what it is, and the note that proves that."""

    name: str
    text: str = ""
    note: str = "tables"


class Property(Part):
    """Whether a rule of voting has a property; if not, the smallest case where it fails, in words."""

    name: str
    holds: bool
    note: str = "keeping"
    because: str = ""
    counterexample: str = ""


class PaperRemark(Part):
    """A quantity of which a paper says another figure than what holds."""

    quantity: str
    says: Any = None
    holds: Any = None
    text: str = ""


class Relaxed(Part):
    """What choices between whole things would cost if they could be made in part, and that they cannot."""

    value: float
    choices: tuple[float, ...]


class ComputedError(Part):
    """How far off an output is that is computed from others: simulated at some data, by entry where they are few."""

    name: str
    error: float
    errors: tuple[float, ...]
    draws: int
    at: str


class Remarks(Part):
    """What the compiler reports and nobody certified."""

    binding: tuple[Line, ...] = ()
    solver: Solver = Solver()
    recognised: Named | None = None
    considered: tuple[Alternative, ...] = ()
    properties: tuple[Property, ...] = ()
    figures: RuleFigures = RuleFigures()
    compared: str = ""
    paper: tuple[PaperRemark, ...] = ()
    relaxation: Relaxed | None = None
    computed: tuple[ComputedError, ...] = ()


class Site(Part):
    """A place where noise enters, by its variance, its scale or its shape."""

    at: str
    shape: str = ""
    covariance: str = ""
    variance: tuple[Fraction, ...] | None = None
    scale: tuple[Fraction, ...] | None = None


class PartOfPlan(Part):
    """What is promised for a part of a system."""

    guarantees: tuple[Guarantee, ...] = ()


class Pulled(Part):
    """Of each released number: the share that is kept of what is asked for, what it is pulled to, the largest bias."""

    kept: tuple[float, ...]
    towards: tuple[float, ...]
    largest_bias: tuple[float, ...]
    by_law: bool = False


class Mechanism(Part):
    """What is drawn, as far as pages read it whatever its family is."""

    family: str = "unknown"
    sites: tuple[Site, ...] = ()
    output_covariance: Any = None
    pulled: Pulled | None = None
    scalars: Mapping[str, str] = field(default_factory=dict)
    components: Mapping[str, PartOfPlan] = field(default_factory=dict)


class Outcome(Part):
    """What came of an alternative: its own loss, or why it has none."""

    loss: Loss | None = None
    reason: str = ""
    least: Fraction | None = None


class DesignPart(Part):
    """What a spec leaves open, which of its alternatives the plan is, and what came of each."""

    problem: Any
    chosen: int
    outcomes: tuple[Outcome, ...]

    @cached_property
    def design(self) -> Design:
        """The alternatives, as the kernel reads them.

        Raises: ValueError where the kernel refuses them.
        """
        from privspec.kernel.designs import Design  # most specs leave nothing open

        try:
            return read(Design, JsonNode(self.problem, "design"))
        except Refused as reason:
            raise ValueError(str(reason)) from reason


class Stated(Part):
    """A whole plan."""

    spec: Spec = Spec()
    digest: str = ""
    status: str = "unknown"
    loss: Loss | None = None
    guarantees: tuple[Guarantee, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    accuracy: tuple[Line, ...] = ()
    fairness: tuple[Line, ...] = ()
    exposures: tuple[Seen, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    mechanism: Mechanism = Mechanism()
    remarks: Remarks = Remarks()
    conflicts: tuple[Line, ...] = ()
    reason: str = ""
    relaxations: tuple[Line, ...] = ()
    claims: Mapping[str, Any] = field(default_factory=dict)
    design: DesignPart | None = None
    document: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def frame(self) -> Frame | None:
        """What the spec means, as the kernel reads it; None of a plan that does not say.

        Raises: ValueError where the kernel refuses it.
        """
        problem = self.document.get("problem")
        try:
            return None if problem is None else read_frame(JsonNode(problem, "problem"))
        except Refused as reason:
            raise ValueError(str(reason)) from reason

    @cached_property
    def executed(self) -> Any:
        """What the plan executes, as the kernel reads it.

        Raises: ValueError where the kernel refuses it.
        """
        if self.frame is None:
            raise ValueError("a plan without a problem")
        try:
            return executed(self.frame, JsonNode(self.document["mechanism"], "mechanism"))
        except Refused as reason:
            raise ValueError(str(reason)) from reason

    def seen(self, guarantee: Guarantee) -> Guarantee:
        """A guarantee of all that its line is about: more than it names, where all see all messages."""
        if self.frame is None or guarantee.requirement < 0:
            return guarantee
        return replace(guarantee, outputs=self.frame.obligations[guarantee.requirement].seen)

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Stated:
        """What a plan states.

        Raises: KeyError, TypeError, ValueError if it is not of that form.
        """
        return cls.read({**plan, "document": plan})
