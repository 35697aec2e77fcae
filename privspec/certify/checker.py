"""`verify`: every claim of a plan re-derived from the spec inside it, with code of its own.

Nothing here knows the compiler or the solvers, and nothing a plan lists is believed: a figure is compared with one that was
computed from the spec's text and from the exact numbers that `run` executes. Privacy is a statement about the strategy: outputs are
functions of `z = B u + noise`, so a guarantee holds if the noise hides `B d` for every difference d of neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from privspec.certify.bound import Images, full_bound, sites_bound
from privspec.certify.exact import Array, Integers, sqrt_up
from privspec.certify.loss import Errors, read_loss
from privspec.certify.measures import Finding, gaussian_mu_up, gaussian_proves, pure_proves, unbiased_mu_up
from privspec.certify.motion import ENTRY_LIMIT, NotUnderstood, Scene, System
from privspec.certify.neighbourhoods import LaplaceCost, Neighbourhood, Quadratic, StrategyForm
from privspec.certify.projection import projected_form
from privspec.certify.reading import (
    FORMAT,
    MAJOR,
    At,
    Executed,
    Gaussian,
    Guarantee,
    KNorm,
    Laplace,
    Malformed,
    Proof,
    canonical_digest,
    read_executed,
    read_guarantee,
    read_proof,
)
from privspec.certify.relations import Unbounded, neighbourhoods
from privspec.certify.report import Claim, Report
from privspec.core.diagnostics import PrivspecError
from privspec.core.spans import Source
from privspec.model.graph import Model
from privspec.model.measures import Measure
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.trust import Curator

Progress: TypeAlias = Callable[[str], None]

DEFECTS = (
    Malformed, Unbounded, Failure, PrivspecError, ValueError, TypeError, KeyError, IndexError, AttributeError,
    ArithmeticError, RecursionError, MemoryError, np.linalg.LinAlgError,
)  # fmt: skip
"""What reading or evaluating a broken plan may raise: always a failed claim, never a traceback."""

SAME = 1e-9
"""Relative difference of two figures that are meant to be equal (both were computed in doubles)."""
BIAS = 1e-6
"""Share of an output's standard deviation by which its average may be off."""
GRID = 1e-3
"""Share of an output's standard deviation by which rounding to grids may move it."""
COUNT = 1e3
"""For inputs without bounds (counts): the size at which the bias is compared."""
OPTIMAL_GAP = 1e-5
"""Largest relative gap of a plan that calls itself optimal."""
COVARIANCE_LIMIT = 512
"""Up to so many outputs a plan states their covariance."""
STATUSES = ("proved", "tested", "assumed", "asserted by the user")


def verify(plan: Mapping[str, Any], base: Path | None = None, progress: Progress | None = None) -> Report:
    """Re-derive every claim of a plan.

    Args: plan, as read from JSON; base, the folder of the spec, for specs that are not inside the plan; progress, told
    the name of each claim before it is checked.
    Returns: a report; it is `ok` only if nothing failed and all of privacy was re-derived. Never raises for a bad plan.
    """
    claims: list[Claim] = []

    def collect(name: str, check: Callable[[], Iterator[Claim]]) -> bool:
        if progress is not None:
            progress(name)
        try:
            claims.extend(check())
        except NotUnderstood as reason:
            claims.append(Claim(name, "not checked", f"{name}: {reason}"))
        except DEFECTS as error:
            claims.append(Claim(name, "failed", _sentence(error)))
        return claims[-1].status != "failed"

    subject: list[Subject] = []

    def opening() -> Iterator[Claim]:
        found, text = open_plan(plan, base)
        subject.append(found)
        yield Claim("integrity", "ok", text)

    if not collect("integrity", opening):
        return Report(tuple(claims))
    opened = subject[0]
    for name, check in (
        ("coverage", opened.coverage),
        ("privacy", opened.privacy),
        ("unbiased", opened.unbiased),
        ("loss", opened.loss),
        ("noise", opened.noise),
        ("optimality", opened.optimality),
        ("alternatives", opened.alternatives),
        ("binding", opened.binding),
        ("assumptions", opened.assumptions),
    ):
        collect(name, check)
    return Report(tuple(claims))


def _sentence(error: BaseException) -> str:
    if isinstance(error, Malformed | Unbounded):
        return str(error)
    if isinstance(error, PrivspecError):
        return "; ".join(d.message for d in error.diagnostics)
    if isinstance(error, Failure):
        return error.message
    return f"the plan cannot be evaluated ({type(error).__name__}: {str(error)[:120]})"


def _claim(name: str, finding: Finding) -> Claim:
    return Claim(
        name, "ok" if finding.holds else "failed", finding.text, finding.margin if finding.holds else None
    )


def _failed(name: str, text: str) -> Claim:
    return Claim(name, "failed", text)


# --- integrity ---------------------------------------------------------------------------------------


def open_plan(plan: Mapping[str, Any], base: Path | None) -> tuple[Subject, str]:
    """Check format, digest and source, and build the model of the spec.

    Raises: Malformed, or what reading the spec raises.
    """
    from privspec.model import load_model

    at = At(plan)
    name, _, version = at["format"].text().partition("/")
    if name != FORMAT or version.partition(".")[0] != str(MAJOR):
        raise Malformed(f"format {at['format'].text()!r} is not {FORMAT}/{MAJOR}")
    if at["digest"].text() != canonical_digest(plan):
        raise Malformed("the digest does not fit: the plan was changed after it was written")
    spec = at["spec"]
    text = _source_text(spec, base)
    if hashlib.sha256(text.encode("utf-8")).hexdigest() != spec["sha256"].text():
        raise Malformed("the source of the spec is not the one that was solved (sha256 differs)")
    constants = spec.get("constants")
    parameters = spec.get("parameters")
    model = load_model(
        Source(spec["name"].text(), text),
        parameters={} if parameters is None else _parameters(parameters),
        constants={} if constants is None else _constants(constants),
        base=base,
    )
    if model.name != spec["name"].text():
        raise Malformed(f"the spec is called {model.name}, not {spec['name'].text()}")
    if at["status"].text() not in ("optimal", "feasible"):
        raise Malformed("a plan without a mechanism has nothing to verify")
    if not model.requirements:
        raise Malformed("the spec requires no privacy")
    executed = read_executed(at["mechanism"]["executed"])
    guarantees = tuple(read_guarantee(item) for item in at["guarantees"].items())
    proof = at.get("certificate")
    subject = Subject(at, model, executed, guarantees, None if proof is None else read_proof(proof))
    return subject, "format, digest and source fit; the spec inside builds"


def _source_text(spec: At, base: Path | None) -> str:
    inside = spec.get("source")
    if inside is not None:
        return inside.text()
    path = (base or Path()) / spec["path"].text()
    if not path.is_file():
        raise Malformed(f"the spec {spec['path'].text()} is not there")
    return path.read_text(encoding="utf-8")


def _parameters(data: At) -> dict[str, Any]:
    def value(item: At) -> Any:
        if isinstance(item.value, list):
            nested = [value(entry) for entry in item.items()]
            return np.array(nested, dtype=object) if all(not isinstance(v, str) for v in nested) else nested
        return item.value if isinstance(item.value, str) else item.exact()

    return {str(key): value(data[key]) for key in data.value}


def _constants(data: At) -> dict[str, Any]:
    if not isinstance(data.value, Mapping):
        raise Malformed(f"{data.place} is not an object")
    return {str(key): _constant(data[key]) for key in data.value}


def _constant(data: At) -> Array:
    import base64
    import zlib

    shape = tuple(item.integer() for item in data["shape"].items())
    size = int(prod(shape))
    if any(extent < 0 for extent in shape) or size > ENTRY_LIMIT:
        raise Malformed(f"{data.place}.shape is out of range")
    packed = data.get("packed")
    if packed is None:
        array = np.array(data["values"].value, dtype=np.float64)
    else:
        try:
            raw = zlib.decompressobj().decompress(
                base64.b64decode(packed.text(), validate=True), 8 * size + 1
            )
        except zlib.error as error:
            raise Malformed(f"{packed.place} is broken") from error
        array = np.frombuffer(raw, dtype="<f8").astype(np.float64)
    array = array.reshape(shape)
    if not np.all(np.isfinite(array)):
        raise Malformed(f"{data.place} is not finite")
    if hashlib.sha256(array.astype("<f8").tobytes()).hexdigest() != data["sha256"].text():
        raise Malformed(f"{data.place} is not the constant that was used (sha256 differs)")
    return array


# --- the plan against its spec ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Subject:
    """A plan that could be read, and the model of its spec."""

    plan: At
    model: Model
    executed: Executed
    guarantees: tuple[Guarantee, ...]
    proof: Proof | None

    # --- derived once --------------------------------------------------------------------------------

    @cached_property
    def system(self) -> System:
        """The spec as a linear system."""
        return System(self.model)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Outputs in the order of the released numbers."""
        return tuple(output.name for output in self.executed.outputs)

    @cached_property
    def moved(self) -> Scene:
        """How everything moves with the base vector."""
        size = max(self.executed.size, *(prod(self.system.node_shape(n)) for n in self.model.nodes))
        if size * self.model.size > ENTRY_LIMIT:
            raise NotUnderstood("the target map is too large to lay out")
        aims = self.system.response(self.system.input_seeds())
        return aims

    @cached_property
    def target(self) -> Array:
        """The map (m, n) from the base vector to what the outputs estimate."""
        return self.system.target(self.names, self.moved)

    @cached_property
    def noise_map(self) -> Array:
        """Independent unit noise to the outputs (m, k)."""
        reconstruction = self.executed.reconstruction.to_float()
        left = self.target @ reconstruction if self.executed.of_inputs else reconstruction
        result: Array = left * self.executed.noise.deviations(reconstruction.shape[1])
        return result

    @cached_property
    def released(self) -> Array:
        """The map (m, n) from the base vector to the average of the released numbers."""
        reconstruction = self.executed.reconstruction.to_float()
        mean = reconstruction @ self.executed.strategy.to_float()
        result: Array = self.target @ mean if self.executed.of_inputs else mean
        return result

    @cached_property
    def deviation(self) -> Array:
        """Standard deviation (m,) of the released numbers."""
        result: Array = np.sqrt(np.einsum("mk,mk->m", self.noise_map, self.noise_map))
        return result

    def errors(self, moves: Array, inputs: bool = False) -> Errors:
        """The error terms of the loss when the outputs move by the columns of `moves` (m, k), with or without the inputs."""
        if self.model.loss is None:
            raise NotUnderstood("the spec has no loss")
        by_output = {
            o.name: moves[o.start : o.stop].reshape(*self.system.node_shape(o.name), moves.shape[1])
            for o in self.executed.outputs
        }
        seeds = self.system.input_seeds() if inputs else {}
        return read_loss(self.model.loss, self.system.response({**seeds, **by_output}, by_output))

    @cached_property
    def noise_errors(self) -> Errors:
        """The error terms under the noise of the plan."""
        return self.errors(self.noise_map)

    def rows_for(self, requirement: Requirement) -> int | None:
        """How many leading strategy rows the outputs of a requirement use according to the plan's views."""
        if self.executed.of_inputs:
            return self.executed.strategy.shape[0]
        for view in self.executed.views:
            if set(view.outputs) == set(requirement.outputs):
                return view.rows
        return None

    # --- coverage ------------------------------------------------------------------------------------

    def coverage(self) -> Iterator[Claim]:
        """Inputs, outputs and guarantees of the plan are those of the spec, one for one."""
        yield from self._layout()
        listed = [g.requirement for g in self.guarantees]
        if sorted(listed) != list(range(len(self.model.requirements))):
            yield _failed(
                "coverage", "the guarantees of the plan are not the requirements of the spec, one for one"
            )
            return
        for guarantee in self.guarantees:
            wrong = self._mismatch(guarantee, self.model.requirements[guarantee.requirement])
            if wrong is not None:
                yield _failed("coverage", f"{guarantee.place}: {wrong}")
                return
        count = len(listed)
        yield Claim(
            "coverage",
            "ok",
            f"{count} requirement{'s' if count != 1 else ''} of the spec, each with its guarantee",
        )

    def _layout(self) -> Iterator[Claim]:
        model, executed = self.model, self.executed
        if self.names != tuple(node.name for node in model.outputs):
            yield _failed("coverage", "the plan releases other outputs than the spec names")
        for output in executed.outputs:
            if output.name in model.nodes and prod(output.shape) != prod(self.system.node_shape(output.name)):
                yield _failed("coverage", f"{output.name} has another shape in the spec")
        if len(executed.inputs) != len(model.blocks):
            yield _failed("coverage", "the plan reads other inputs than the spec names")
        for data, block in zip(executed.inputs, model.blocks, strict=False):
            low, high = block.domain.bounds
            bounds = (set(data.lower) <= {low}, set(data.upper) <= {high})
            same = (data.name, data.start, data.stop, data.layout) == (
                block.name,
                block.start,
                block.stop,
                block.layout,
            )
            if not same or not all(bounds):
                yield _failed("coverage", f"{data.name} is read otherwise than the spec declares it")
            if block.ball is not None and (data.ball is None or data.ball[0] != block.ball):
                yield _failed("coverage", f"{data.name} is not kept inside its ball")
        if not isinstance(model.trust, Curator) and any(block.index for block in model.blocks):
            yield _failed("coverage", f"trust {model.trust.name}: this checker covers one keeper only")

    def _mismatch(self, guarantee: Guarantee, requirement: Requirement) -> str | None:
        amounts = requirement.measure.amounts
        figures = guarantee.figures
        pairs = (
            (set(guarantee.outputs), set(requirement.outputs), "outputs"),
            (set(guarantee.wrt), set(requirement.wrt), "inputs"),
            (guarantee.neighbours, requirement.neighbours.describe(), "neighbours"),
            (guarantee.observer, " and ".join(requirement.observers), "observer"),
            (guarantee.measure, requirement.measure.name, "measure"),
            (guarantee.line, requirement.line, "line"),
            (guarantee.text, requirement.text, "text"),
            (set(figures), set(amounts), "figures"),
        )
        for said, required, what in pairs:
            if said != required and not (what in ("line", "text") and said is None):
                return f"{what} are not those of line {requirement.line}"
        for key, amount in amounts.items():
            same = figures[key] == amount or (
                key != "order" and 0 <= figures[key] <= amount and _close(figures[key], amount)
            )
            if not same:
                return f"{key} is not that of line {requirement.line}"
        return None

    # --- privacy -------------------------------------------------------------------------------------

    def privacy(self) -> Iterator[Claim]:
        """Each guarantee from the exact strategy and the law of the noise."""
        family = self.plan["mechanism"]["family"].text()
        expected = {Gaussian: "gaussian", Laplace: "laplace", KNorm: "mixed"}[type(self.executed.noise)]
        if family != expected:
            yield _failed("privacy", f"the mechanism is called {family}, but executes {expected} noise")
        if len(self.executed.views) != len(self.model.requirements):
            yield _failed("privacy", "the plan does not list one view for each requirement")
        for guarantee in self.guarantees:
            requirement = self.model.requirements[guarantee.requirement]
            yield from self._guarantee(guarantee, requirement)

    def _guarantee(self, guarantee: Guarantee, requirement: Requirement) -> Iterator[Claim]:
        sets = neighbourhoods(self.model, requirement)
        rows = self.rows_for(requirement)
        if rows is None or not 0 <= rows <= self.executed.strategy.shape[0]:
            yield _failed("privacy", f"no view for {', '.join(requirement.outputs)}")
            return
        seen = self.executed.rows_of(requirement.outputs)
        mixed = not self.executed.of_inputs and bool(
            np.any(self.executed.reconstruction.integers[seen, rows:])
        )
        if mixed and not self.executed.round_outputs:
            yield _failed(
                "privacy", f"{', '.join(requirement.outputs)} use more strategy rows than the plan says"
            )
            return
        measure = with_figures(requirement.measure, guarantee.figures)
        text = f"{', '.join(requirement.outputs)}, {requirement.neighbours.describe()}: "
        bound = "" if all(s.exact for s in sets) else " (a bound)"
        noise = self.executed.noise
        if isinstance(noise, Gaussian):
            strategy = self.executed.strategy
            if mixed:
                form: Quadratic = projected_form(
                    strategy, self.executed.reconstruction, seen, noise.standard_deviation
                )
            else:
                form = StrategyForm(strategy.integers[:rows], (strategy.unit / noise.standard_deviation) ** 2)
            square = max(s.reach(form) for s in sets)
            yield from self._gaussian_claims(guarantee, measure, square, text, bound)
        else:
            epsilon = max(self._pure(noise, rows, s, guarantee) for s in sets)
            yield from self._pure_claims(guarantee, measure, epsilon, text, bound)

    def _gaussian_claims(
        self, guarantee: Guarantee, measure: Measure, square: Fraction, text: str, bound: str
    ) -> Iterator[Claim]:
        mu = guarantee.achieved.get("mu")
        if mu is None or mu < 0 or not set(guarantee.achieved) <= {"mu", "rho", "epsilon", "delta"}:
            raise Malformed(f"{guarantee.place}.achieved does not give mu")
        sign = "≤" if square <= mu * mu else ">"
        holds = square <= mu * mu
        margin = float(1 - square / (mu * mu)) if mu and holds else None
        sentence = f"{text}max of (B d)'(B d) = {float(square):.8g}{bound} {sign} μ² = {float(mu * mu):.8g}"
        yield Claim("privacy", "ok" if holds else "failed", sentence, margin)
        yield _claim("epsilon" if "epsilon" in measure.amounts else "measure", gaussian_proves(measure, mu))
        rho = guarantee.achieved.get("rho")
        if rho is not None and rho < mu * mu / 2:
            yield _failed("privacy", f"{guarantee.place}.achieved.rho is below μ²/2")
        if "epsilon" in guarantee.achieved or "delta" in guarantee.achieved:
            figures = {
                key: guarantee.achieved.get(key, measure.amounts.get(key)) for key in ("epsilon", "delta")
            }
            yield _claim("epsilon", gaussian_proves(with_figures(measure, figures), mu))

    def _pure(self, noise: Any, rows: int, differences: Neighbourhood, guarantee: Guarantee) -> Fraction:
        """The pure epsilon of the executed release under one set of differences, not below the truth."""
        strategy = self.executed.strategy
        integers = strategy.integers[:rows]
        rounded = self._off_lattice(integers)
        if isinstance(noise, Laplace):
            cost = LaplaceCost(integers, strategy.unit, noise.scales[:rows], self.executed.grid, rounded)
            return differences.cost(cost)
        square = differences.reach(StrategyForm(strategy.integers, strategy.unit**2))
        step = self.executed.grid * sqrt_up(Fraction(int(rounded.sum()))) if np.any(rounded) else Fraction(0)
        room = guarantee.achieved.get("epsilon", Fraction(0)) * noise.scale - step
        if room >= 0 and room * room >= square:
            return guarantee.achieved["epsilon"]
        return (sqrt_up(square) + step) / noise.scale

    def _off_lattice(self, integers: Integers) -> Integers:
        """Rows (k,) whose exact answers may lie between the points of the lattice (1) or never do (0)."""
        off = np.zeros(len(integers), dtype=np.int64)
        for data in self.executed.inputs:
            steps = {self.executed.strategy.unit}
            if data.layout == "entries":
                low, high = data.lower[0], data.upper[0]
                width = Fraction(1) if low is None or high is None else high - low
                steps = {
                    self.executed.strategy.unit * data.grid * width,
                    self.executed.strategy.unit * (low or 0),
                }
            for step in steps:
                whole = (step / self.executed.grid).denominator
                off |= np.any(integers[:, data.start : data.stop] % min(whole, 2**62) != 0, axis=1)
        return off

    def _pure_claims(
        self, guarantee: Guarantee, measure: Measure, epsilon: Fraction, text: str, bound: str
    ) -> Iterator[Claim]:
        said = guarantee.achieved.get("epsilon")
        if said is None or set(guarantee.achieved) != {"epsilon"}:
            raise Malformed(f"{guarantee.place}.achieved does not give epsilon")
        holds = epsilon <= said
        sign = "≤" if holds else ">"
        sentence = f"{text}largest log-ratio {float(epsilon):.8g}{bound} {sign} ε = {float(said):.8g}"
        margin = float(1 - epsilon / said) if said and holds else None
        yield Claim("privacy", "ok" if holds else "failed", sentence, margin)
        yield _claim("epsilon", pure_proves(measure, said))

    # --- accuracy ------------------------------------------------------------------------------------

    def unbiased(self) -> Iterator[Claim]:
        """The average of what is released is what the spec says it estimates."""
        target, deviation = self.target, self.deviation
        self._check_linear()
        offsets, _ = self.system.values(np.zeros(self.model.size), self.names)
        said = (
            offsets if self.executed.of_inputs else np.concatenate([o.offset for o in self.executed.outputs])
        )
        middle, half = self._box()
        error = self.released - target
        off = np.abs(error @ middle + said - offsets) + np.abs(error) @ half
        scale = np.where(deviation > 0, deviation, np.finfo(float).tiny)
        worst = float(np.max(off / scale))
        text = f"reconstruction times strategy is the target map, within {worst:.1e} standard deviations"
        yield _claim("unbiased", Finding(worst <= BIAS, text))
        terms = self.errors(self.released, inputs=True).rows
        limit = float(np.sqrt(np.max((self.noise_errors.rows**2).sum(axis=1))))
        drift = float(np.max(np.abs(terms @ middle) * 0 + np.abs(terms) @ half, initial=0.0))
        text = (
            f"every error term of the loss averages to zero, within {drift / limit:.1e} standard deviations"
        )
        yield _claim("unbiased", Finding(drift <= BIAS * limit, text))
        grids = self._rounding() / scale
        text = f"rounding to grids moves an output by at most {float(np.max(grids)):.1e} standard deviations"
        yield _claim("grids", Finding(bool(np.all(grids <= GRID)), text))

    def _check_linear(self) -> None:
        """The map read here against the evaluator of the model, at two points."""
        generator = np.random.default_rng(1)
        zero, _ = self.system.values(np.zeros(self.model.size), self.names)
        for _ in range(2):
            base = generator.uniform(0.25, 1.0, self.model.size)
            value, _ = self.system.values(base, self.names)
            size = np.abs(self.target) @ np.abs(base) + np.abs(zero)
            if np.any(np.abs(value - zero - self.target @ base) > 1e-9 * (size + 1e-300)):
                raise NotUnderstood("the outputs do not estimate linear functions of the inputs")

    def _box(self) -> tuple[Array, Array]:
        """Centre and half width (n,) of the inputs; counts and what has no bounds up to COUNT."""
        middle, half = np.zeros(self.model.size), np.full(self.model.size, COUNT)
        for data in self.executed.inputs:
            for i, (low, high) in enumerate(zip(data.lower, data.upper, strict=True)):
                if low is not None and high is not None:
                    middle[data.start + i], half[data.start + i] = (
                        float(low + high) / 2,
                        float(high - low) / 2,
                    )
        return middle, half

    def _rounding(self) -> Array:
        """How far (m,) the grids of inputs, strategy answers and outputs can move a released number."""
        step = np.zeros(self.model.size)
        for data in self.executed.inputs:
            low, high = data.lower[0], data.upper[0]
            width = Fraction(1) if low is None or high is None else high - low
            step[data.start : data.stop] = 0.0 if data.layout == "cells" else float(data.grid * width) / 2
        moved = np.abs(self.target) @ step + float(self.executed.output_grid) / 2
        if self.executed.round_outputs:
            return moved
        spread = self.noise_map / self.executed.noise.deviations(self.noise_map.shape[1])
        result: Array = moved + np.abs(spread).sum(axis=1) * float(self.executed.grid) / 2
        return result

    # --- loss ----------------------------------------------------------------------------------------

    def loss(self) -> Iterator[Claim]:
        """The expected loss, from the loss of the spec and the noise that is executed."""
        said = self.plan["loss"]["value"].double()
        errors = self.noise_errors
        value = errors.value()
        kind = self.plan["loss"].get("kind")
        if kind is not None and kind.text() != ("worst" if errors.worst else "expected"):
            yield _failed("loss", f"the loss is not of the kind {kind.text()!r}")
        text = f"re-derived {value:.10g}, the plan says {said:.10g}"
        yield _claim("loss", Finding(abs(value - said) <= SAME * value, text))
        expression = self.plan["loss"].get("expression")
        if expression is not None and self.model.loss is not None:
            written = self.model.source.slice(self.model.loss.span)
            if "".join(written.split()) != "".join(expression.text().split()):
                yield _failed("loss", "the loss of the plan is not the loss of the spec")

    def noise(self) -> Iterator[Claim]:
        """Covariance of the outputs and the noise at each site, against what is executed."""
        factor, deviation = self.noise_map, self.deviation
        m = len(factor)
        mechanism = self.plan["mechanism"]
        said = mechanism.get("output_covariance")
        if said is not None:
            rows = np.array([row.doubles(m) for row in said.items()]).reshape(-1, m)
            if rows.shape != (m, m):
                raise Malformed(f"{said.place} has another size")
            worst = _largest_share(rows - factor @ factor.T, deviation)
            yield _claim("covariance", Finding(worst <= SAME, f"output covariance fits, within {worst:.1e}"))
        elif m <= COVARIANCE_LIMIT:
            yield _failed("covariance", "the plan does not state the covariance of its outputs")
        sites = mechanism["sites"].items()
        allowed = self.model.noise_at
        for site in sites:
            if site["at"].text() not in self.model.nodes or (allowed and site["at"].text() not in allowed):
                yield _failed("sites", f"the spec does not allow noise at {site['at'].text()}")
        if not sites:
            yield _failed("sites", "the plan names no site")
        elif any(site.get("covariance") is not None for site in sites):
            full = {site["at"].text() for site in sites} <= set(self.names) and all(
                site["covariance"].text() == "full" for site in sites
            )
            yield _claim("sites", Finding(full and not allowed, "noise enters at the outputs, correlated"))
        else:
            yield from self._sites(sites)

    def _sites(self, sites: list[At]) -> Iterator[Claim]:
        total = np.zeros((len(self.noise_map), 0))
        for site in sites:
            name = site["at"].text()
            size = prod(self.system.node_shape(name))
            if site.get("variance") is not None:
                variance = site["variance"].doubles(size)
            elif site.get("scale") is not None:
                variance = 2 * np.array([float(b.exact()) for b in site["scale"].items()]) ** 2
            else:
                yield Claim(
                    "sites", "not checked", f"sites: the noise at {name} is not described by variances"
                )
                return
            if np.any(variance < 0) or len(variance) != size:
                raise Malformed(f"{site.place} has a negative variance or another size")
            total = np.hstack([total, self._site_map(name) * np.sqrt(variance)])
        if len(total) <= 4 * COVARIANCE_LIMIT:
            difference = total @ total.T - self.noise_map @ self.noise_map.T
            worst = _largest_share(difference, self.deviation)
        else:
            variances = np.einsum("mk,mk->m", total, total)
            worst = float(np.max(np.abs(variances - self.deviation**2) / self.deviation**2))
        yield _claim(
            "sites",
            Finding(worst <= SAME, f"variances at the sites give the executed noise, within {worst:.1e}"),
        )

    def _site_map(self, name: str) -> Array:
        """From the coordinates of a site to the outputs (m, K)."""
        if name in self.names:
            output = next(o for o in self.executed.outputs if o.name == name)
            columns = np.zeros((self.executed.size, output.stop - output.start))
            columns[output.start : output.stop] = np.eye(output.stop - output.start)
            return columns
        shape = self.system.node_shape(name)
        return self.system.target(
            self.names, self.system.response({name: np.eye(prod(shape)).reshape(*shape, -1)})
        )

    # --- optimality ----------------------------------------------------------------------------------

    def optimality(self) -> Iterator[Claim]:
        """The lower bound, from the listed differences; then the gap."""
        loss = self.plan["loss"]
        value = loss["value"].double()
        optimal = self.plan["status"].text() == "optimal"
        said = loss.get("lower_bound")
        if said is None or self.proof is None:
            yield Claim(
                "optimality",
                "failed" if optimal else "not checked",
                "optimality: the plan claims no lower bound",
            )
            return
        bound, gap = said.double(), loss["relative_gap"].double()
        if self.proof.lower_bound != bound:
            yield _failed("optimality", "the certificate proves another bound than the plan states")
        if not 0 <= bound <= value * (1 + SAME) or abs(gap - (value - bound) / value) > 1e-12 + 1e-6 * abs(
            gap
        ):
            yield _failed("optimality", "loss, lower bound and gap do not fit together")
        if optimal and gap > OPTIMAL_GAP:
            yield _failed("optimality", f"a gap of {gap:.1e} is not optimal")
        derived, among = self._derived_bound(self.proof)
        text = f"no {among} has a loss below {bound:.8g} (this one: {value:.8g}; re-derived {derived:.10g})"
        yield _claim("optimality", Finding(bound <= derived, text, gap if bound <= derived else None))

    def _derived_bound(self, proof: Proof) -> tuple[float, str]:
        if sorted(view.requirement for view in proof.views) != list(range(len(self.model.requirements))):
            raise Malformed(f"{proof.place}.dual does not list every requirement once")
        errors = self.errors(self.target)
        noise = self.noise_errors
        weights = self._loss_weights(proof, noise)
        target_rows, noise_rows = errors.weighted(weights), noise.weighted(weights)
        pure = not isinstance(self.executed.noise, Gaussian)
        if proof.hammersley is not pure:
            raise Malformed(f"{proof.place}.hcr does not fit the noise")
        views = [self._images(view.requirement, view, errors, pure) for view in proof.views]
        if proof.scope == "full":
            among = "unbiased mechanism with additive noise" if pure else "Gaussian mechanism"
            return full_bound(target_rows, noise_rows, views), among
        if proof.scope != "sites" or self.model.noise_at is None:
            raise Malformed(f"{proof.place}.scope: the spec does not restrict the noise to sites")
        maps = np.hstack([self._site_map(name) for name in self.model.noise_at])
        cost_rows = self.errors(maps).weighted(weights)
        costs = np.einsum("rk,rk->k", cost_rows, cost_rows) * (1 - 4 * (len(cost_rows) + 8) * 2.0**-53)
        among = "mechanism with independent Gaussian noise at " + ", ".join(self.model.noise_at)
        return sites_bound(self.target, self.noise_map, maps, costs, views), among

    def _loss_weights(self, proof: Proof, errors: Errors) -> Array:
        groups = int(errors.group.max()) + 1
        if not errors.worst:
            if proof.loss_weights is not None:
                raise Malformed(f"{proof.place}.loss_weights: the loss is no worst case")
            return np.ones(groups)
        given = proof.loss_weights
        if given is None or len(given) != groups or np.any(given < 0) or float(given.sum()) <= 0:
            raise Malformed(f"{proof.place}.loss_weights do not fit the loss")
        # dividing by a sum that is rounded up keeps the weights below a convex combination
        return given / (float(given.sum()) * (1 + 4 * groups * 2.0**-53))

    def _images(self, index: int, view: Any, errors: Errors, pure: bool) -> Images:
        requirement = self.model.requirements[index]
        mu = (unbiased_mu_up if pure else gaussian_mu_up)(requirement.measure)
        if mu is None:
            raise NotUnderstood(f"no lower bound is known here for {requirement.measure.describe()}")
        sets = neighbourhoods(self.model, requirement)
        moves = np.zeros((self.model.size, len(view.differences)))
        for column, difference in enumerate(view.differences):
            if not any(s.admits(difference) for s in sets):
                raise Malformed(f"a difference under requirement {index} is not one of two neighbours")
            for coordinate, amount in difference.items():
                moves[coordinate, column] = float(amount) / mu
        seen = self.executed.rows_of(requirement.outputs)
        outside = np.setdiff1d(np.arange(self.executed.size), seen)
        probe = np.zeros((self.executed.size, 2))
        probe[outside] = np.random.default_rng(2).standard_normal((len(outside), 2))
        touched = np.any(self.errors(probe).rows != 0, axis=1)
        return Images(moves, np.sqrt(view.weights), ~touched, seen)

    # --- the rest ------------------------------------------------------------------------------------

    def alternatives(self) -> Iterator[Claim]:
        """Their losses are not re-derived, but none may contradict the bound."""
        listed = self.plan.get("alternatives")
        bound = self.plan["loss"].get("lower_bound")
        names: list[str] = []
        for item in listed.items() if listed is not None else []:
            names.append(item["name"].text())
            loss = item["loss"].double()
            item["reason"].text()
            if loss < 0 or (item["admissible"].flag() and bound is not None and loss < bound.double()):
                yield _failed("alternatives", f"{names[-1]} is said to be better than possible")
        if names:
            yield Claim("alternatives", "ok", f"{len(names)} alternatives, none below the lower bound")
            yield Claim("alternatives", "not checked", "the losses of the alternatives: " + ", ".join(names))

    def binding(self) -> Iterator[Claim]:
        """What a change would bring: only the sign and the place are checked, and the figure where it follows from mu."""
        lines = {r.line: r.text for r in self.model.requirements}
        listed = self.plan.get("binding")
        for item in listed.items() if listed is not None else []:
            change = item["loss_change"].double()
            if lines.get(item["line"].integer()) != item["text"].text():
                yield _failed("binding", f"{item.place} is not a requirement of the spec")
            if not -1 <= change <= 0:
                yield _failed("binding", f"{item.place}: a weaker requirement cannot raise the loss")
            yield from self._price(item, change)

    def _price(self, item: At, change: float) -> Iterator[Claim]:
        requirement = next(r for r in self.model.requirements if r.line == item["line"].integer())
        words = item["change"].text().replace("→", "->").split()
        key = words[0] if words else ""
        amounts = requirement.measure.amounts
        if len(words) != 4 or words[2] != "->" or key not in amounts:
            yield Claim(
                "binding", "not checked", f"the price of line {requirement.line}: {item['change'].text()}"
            )
            return
        before, after = At(words[1], item.place).exact(), At(words[3], item.place).exact()
        allowance = gaussian_mu_up if isinstance(self.executed.noise, Gaussian) else unbiased_mu_up
        old = allowance(requirement.measure)
        new = allowance(with_figures(requirement.measure, {key: after}))
        if not _close(before, amounts[key]) or old is None or new is None:
            yield _failed("binding", f"{item.place}.change does not start from the requirement")
            return
        least = (old / new) ** 2 - 1
        if len(self.model.requirements) == 1 and isinstance(self.executed.noise, Gaussian):
            fits = abs(change - least) <= 1e-4 * abs(least)
            yield _claim(
                "binding", Finding(fits, f"{item['change'].text()} changes the loss by {100 * least:.3g} %")
            )
        elif isinstance(self.executed.noise, Gaussian):
            yield _claim(
                "binding",
                Finding(change >= least * (1 + 1e-4), f"{item['change'].text()}: within its limits"),
            )
            yield Claim("binding", "not checked", f"the price of line {requirement.line} itself")
        else:
            yield Claim("binding", "not checked", f"the price of line {requirement.line}")

    def assumptions(self) -> Iterator[Claim]:
        """Each has a status and points to something; whether it is true in the world is for people to judge."""
        listed = self.plan["assumptions"].items()
        lines = self.model.source.text.count("\n") + 1
        for item in listed:
            item["text"].text()
            if item["status"].text() not in STATUSES:
                raise Malformed(f"{item.place}.status is unknown")
            line = item["because"].get("line") if isinstance(item["because"].value, Mapping) else None
            if line is not None and not 1 <= line.integer() <= lines:
                raise Malformed(f"{item.place} points to a line that is not there")
        yield Claim("assumptions", "ok", f"{len(listed)} assumptions, each with its status")
        yield Claim("assumptions", "not checked", "whether the assumptions hold in the world")


def with_figures(measure: Measure, figures: Mapping[str, Fraction | None]) -> Measure:
    """The same measure with other amounts."""
    if not is_dataclass(measure):
        return measure
    known = {field.name for field in fields(measure)}
    given = {key: value for key, value in figures.items() if key in known and value is not None}
    return replace(measure, **given)  # type: ignore[type-var]


def _close(left: Fraction, right: Fraction) -> bool:
    return abs(left - right) <= abs(right) * Fraction(1, 10**15)


def _largest_share(difference: Array, deviation: Array) -> float:
    scale = np.where(deviation > 0, deviation, 1e-300)
    return float(np.max(np.abs(difference) / scale[:, None] / scale[None, :], initial=0.0))
