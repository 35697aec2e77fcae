"""The lower bound, the gap, and what a plan says about mechanisms and requirements it did not choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privspec.certify.bound import Images, Moment, full_bound, moment_bound, sites_bound
from privspec.certify.loss import Errors
from privspec.certify.measures import Finding, gaussian_mu_up, unbiased_mu_up
from privspec.certify.motion import ENTRY_LIMIT, Array, NotUnderstood
from privspec.certify.opened import Opened
from privspec.certify.promises import claim, with_figures
from privspec.certify.reading import At, DualView, Malformed, Proof
from privspec.certify.relations import neighbourhoods
from privspec.certify.report import Claim
from privspec.certify.subject import Subject
from privspec.certify.targets import instances
from privspec.core import OPTIMAL_GAP
from privspec.model.requirements import Nobody, Requirement

SAME = 1e-9
"""Relative difference of figures that were computed in doubles from one another."""
STATUSES = ("proved", "tested", "assumed", "asserted by the user")
MANY = 4
"""Times the number of inputs: with more differences than that, only their second moment is formed."""
MOST = 2**21
"""Most differences of which a second moment is formed: its entries stay below 2^62."""
NEGLIGIBLE = 1e-30
"""Shares of the heaviest weight that are left out, so that nothing underflows."""
PRICE = 1e-6
"""Relative error of a price that is given in doubles."""


def optimality(subject: Subject) -> Iterator[Claim]:
    """The lower bound from the listed differences, and the gap."""
    stated, status = subject.plan["loss"], subject.plan["status"].text()
    value, said, gap = stated["value"].double(), stated.get("lower_bound"), stated.get("relative_gap")
    if said is None or gap is None or subject.proof is None:
        if status == "optimal" or said is not None or gap is not None:
            yield Claim("optimality", "failed", "a bound is claimed without its proof")
        else:
            yield Claim("optimality", "not checked", "whether a better mechanism exists: no lower bound is claimed")
        return
    bound, share = said.double(), gap.double()
    if subject.proof.lower_bound != bound:
        yield Claim("optimality", "failed", "the certificate proves another bound than the plan states")
    real = max((value - bound) / value, 0.0) if value > 0 else 0.0
    if not 0 <= bound <= value * (1 + SAME) or abs(share - real) > 4e-16 + SAME * real:
        yield Claim("optimality", "failed", "loss, lower bound and gap do not fit together")
    if status == "optimal" and max(share, real) > OPTIMAL_GAP:
        yield Claim("optimality", "failed", f"with a gap of {max(share, real):.1e} a plan is not optimal")
    derived, among, words = _derived(subject, subject.proof)
    if stated["among"].text() not in words:
        yield Claim("optimality", "failed", f"the bound is about {among}, not about what the plan says")
    sign = "below" if bound <= derived else "below the claimed bound proved: only"
    text = f"no {among} has a loss {sign} {min(bound, derived):.8g} (this one: {value:.8g})"
    yield claim("optimality", Finding(bound <= derived, text, (derived - bound) / bound if bound > 0 else None))


def _derived(subject: Subject, proof: Proof) -> tuple[float, str, tuple[str, ...]]:
    """The bound; the mechanisms it holds for; the words by which a plan may name them."""
    pure = not subject.gaussian
    if proof.hammersley is not pure:
        raise Malformed(f"{proof.place}.hcr does not fit the noise")
    model = subject.model
    zero = np.zeros((subject.executed.size, model.size))
    terms = subject.errors(zero, subject.system.input_seeds())
    weights = _loss_weights(proof, terms)
    rows = _Rows(subject, weights, _prices(subject, proof))
    if proof.scope == "full" and len(proof.views) == 1 and len(proof.views[0].differences) > MANY * model.size:
        moment = _moment(subject, proof.views[0], pure)
        if moment is not None:
            effects = rows.of(zero, subject.system.input_seeds())
            return moment_bound(effects, moment) - rows.paid, *_full_words(pure)
    heaviest = max((float(view.weights.max(initial=0.0)) for view in proof.views), default=0.0)
    views = [_images(subject, view, heaviest, pure, rows) for view in proof.views]
    if proof.scope == "full":
        guide = subject.noise_map if proof.guide is None else proof.guide
        if len(guide) != subject.executed.size:
            raise Malformed(f"{proof.place}.guide does not fit the outputs")
        effects, noise = rows.of(zero, subject.system.input_seeds()), rows.of(guide)
        return full_bound(effects, noise, views) - rows.paid, *_full_words(pure)
    if rows.prices is not None:
        raise Malformed(f"{proof.place}.limit_weights: accuracy lines are priced for full covariances only")
    if proof.scope == "messages" and isinstance(model.trust, Nobody):
        names = tuple(block.name for block in model.blocks)
        reconstruction = subject.executed.reconstruction.to_float() if subject.executed.of_inputs else None
        if reconstruction is None:
            raise Malformed("messages are not the noisy inputs")
        everything = np.arange(model.size)
        views = [Images(v.moves, v.roots, v.terms, everything) for v in views]
        costs = _costs(terms.weighted(weights))
        identity = np.eye(model.size)
        bound = sites_bound(identity, reconstruction, identity, costs, views)
        among = "independent Gaussian noise on each party's own values, unbiased"
        return bound, "independent Gaussian noise on " + ", ".join(names), (among,)
    if proof.scope != "sites" or model.noise_at is None:
        raise Malformed(f"{proof.place}.scope: the spec does not confine the noise like that")
    maps = np.hstack([subject.site_map(name) for name in model.noise_at])
    costs = _costs(subject.errors(maps).weighted(weights))
    bound = sites_bound(subject.target, subject.noise_map, maps, costs, views)
    *others, last = model.noise_at
    among = f"independent Gaussian noise at {', '.join(others)}{' and ' if others else ''}{last}"
    return bound, among, (f"{among}, unbiased",)


def _full_words(pure: bool) -> tuple[str, tuple[str, ...]]:
    if pure:
        return "unbiased mechanism of this pure epsilon", ("all unbiased mechanisms of the same pure epsilon",)
    among = "Gaussian noise of any covariance"
    return "Gaussian mechanism", (f"{among}, unbiased", f"{among} that meets the accuracy lines, unbiased")


def _admitted(subject: Subject, view: DualView, pure: bool) -> tuple[Requirement, float]:
    """The requirement of a view whose differences are all admissible, and the largest mu it allows.

    Raises: Malformed, NotUnderstood.
    """
    if not 0 <= view.requirement < len(subject.requirements):
        raise Malformed(f"{view.place}: there is no requirement {view.requirement}")
    requirement = subject.requirements[view.requirement]
    mu = (unbiased_mu_up if pure else gaussian_mu_up)(requirement.measure)
    if mu is None:
        raise NotUnderstood(f"no lower bound is known here for {requirement.measure.describe()}")
    sets = neighbourhoods(subject.model, requirement)
    for column, difference in enumerate(view.differences):
        if not any(s.admits(difference) for s in sets):
            raise Malformed(f"{view.place}: difference {column} is not one of two neighbours")
    return requirement, mu


def _moment(subject: Subject, view: DualView, pure: bool) -> Moment | None:
    """The second moment of very many differences; None if they are of different sizes or do not see everything."""
    if len(view.differences) > MOST:
        raise NotUnderstood("the dual point has too many differences")
    requirement, mu = _admitted(subject, view, pure)
    sizes = {abs(amount) for difference in view.differences for amount in difference.values()}
    if len(sizes) != 1 or set(requirement.outputs) != set(subject.names):
        return None
    # any weights prove a bound: whole numbers of 40 bits keep every sum exact
    weights = np.floor(np.ldexp(view.weights / float(view.weights.max()), 40)).astype(np.int64).tolist()
    matrix = np.zeros((subject.model.size, subject.model.size), dtype=np.int64)
    for difference, weight in zip(view.differences, weights, strict=True):
        for i, a in difference.items():
            for j, b in difference.items():
                matrix[i, j] += weight if (a > 0) == (b > 0) else -weight
    factor = float(sizes.pop() / Fraction(mu)) ** 2 * (1 - 2.0**-50)
    return Moment(matrix, sum(weights), factor)


def _costs(rows: Array) -> Array:
    """The loss (K,) of unit noise in each column, rounded down."""
    result: Array = np.einsum("rk,rk->k", rows, rows) * (1 - 4 * (len(rows) + 8) * 2.0**-53)
    return result


def _loss_weights(proof: Proof, errors: Errors) -> Array:
    groups = int(errors.group.max()) + 1
    given = proof.loss_weights
    if not errors.worst:
        if given is not None:
            raise Malformed(f"{proof.place}.loss_weights: the loss is no worst case")
        return np.ones(groups)
    if given is None or len(given) != groups or np.any(given < 0) or float(given.sum()) <= 0:
        raise Malformed(f"{proof.place}.loss_weights do not fit the loss")
    # divided by a sum that is rounded up, they stay below a convex combination
    scaled: Array = given / (float(given.sum()) * (1 + 4 * groups * 2.0**-53))
    return scaled


@dataclass(frozen=True, eq=False, slots=True)
class _Rows:
    """The error terms of a weighted loss; accuracy lines join it at their prices, which are paid back at the end.

    For a mechanism that meets the lines, loss >= loss + sum price (error - bound): weak duality.
    """

    subject: Subject
    weights: Array
    prices: Array | None

    def of(self, moves: Array, seeds: Mapping[str, Array] | None = None) -> Array:
        """The rows (q, k) when the released numbers move by `moves` (m, k), and nodes as seeded."""
        loss = self.subject.errors(moves, seeds).weighted(self.weights)
        if self.prices is None:
            return loss
        limits = instances(self.subject, moves, seeds)
        priced = [np.sqrt(nu) * i.rows for nu, i in zip(self.prices, limits, strict=True)]
        return np.vstack([loss, *priced])

    @property
    def paid(self) -> float:
        """What the bounds of the lines cost at their prices, rounded up."""
        if self.prices is None:
            return 0.0
        limits = instances(self.subject, np.zeros((self.subject.executed.size, 1)))
        bounds = np.array([i.bound for i in limits])
        return float(self.prices @ bounds) * (1 + 4 * (len(bounds) + 4) * 2.0**-53)


def _prices(subject: Subject, proof: Proof) -> Array | None:
    """Prices of the accuracy lines, one for each instance; None where none is priced."""
    if proof.limit_weights is None:
        return None
    count = len(instances(subject, np.zeros((subject.executed.size, 1))))
    if len(proof.limit_weights) != count or np.any(proof.limit_weights < 0):
        raise Malformed(f"{proof.place}.limit_weights do not fit the accuracy lines")
    return proof.limit_weights


def _images(subject: Subject, view: DualView, heaviest: float, pure: bool, rows: _Rows) -> Images:
    """The differences of one requirement, with weights as shares of the heaviest (any weights prove a bound)."""
    requirement, mu = _admitted(subject, view, pure)
    if subject.model.size * len(view.differences) > ENTRY_LIMIT:
        raise NotUnderstood("the dual point has too many differences")
    moves = np.zeros((subject.model.size, len(view.differences)))
    for column, difference in enumerate(view.differences):
        for coordinate, amount in difference.items():
            moves[coordinate, column] = float(amount) / mu
    seen = subject.executed.rows_of(requirement.outputs)
    outside = np.setdiff1d(np.arange(subject.executed.size), seen)
    probe = np.zeros((subject.executed.size, 2))
    probe[outside] = np.random.default_rng(2).standard_normal((len(outside), 2))
    touched = np.any(rows.of(probe) != 0, axis=1)
    shares = view.weights / heaviest if heaviest > 0 else view.weights
    return Images(moves, np.sqrt(np.where(shares > NEGLIGIBLE, shares, 0.0)), ~touched, seen)


# --- the rest ----------------------------------------------------------------------------------------


def alternatives(subject: Opened) -> Iterator[Claim]:
    """None may contradict the bound; their losses are not re-derived."""
    bound = subject.plan["loss"].get("lower_bound")
    names: list[str] = []
    for item in subject.plan["alternatives"].items():
        names.append(item["name"].text())
        item["reason"].text()
        value = item["loss"].double()
        if item["admissible"].flag() and bound is not None and value < bound.double():
            yield Claim("alternatives", "failed", f"{names[-1]} is said to be better than possible")
    if names:
        yield Claim("alternatives", "ok", f"{len(names)} alternatives, no admissible one below the lower bound")
        yield Claim("alternatives", "not checked", "the losses of the alternatives")


def binding(subject: Subject) -> Iterator[Claim]:
    """The price of a requirement that stands alone, and slopes; what solving again would bring is not looked at."""
    alone = len(subject.requirements) == 1 and not subject.model.accuracy
    resolved = False
    for item in subject.plan["remarks"]["binding"].items():
        change, line = item["loss_change"].double(), item["line"].integer()
        found = [r for r in subject.requirements if r.line == line]
        if not found or found[0].text != item["text"].text():
            raise Malformed(f"{item.place} is no requirement of the spec")
        slope = item.get("first_order")
        if alone or (slope is not None and slope.flag()):
            yield _price(subject, item, found[0], change)
        else:
            resolved = True
            _changed_amount(item, found[0])
    if resolved:
        yield Claim("binding", "not checked", "what a change of a line would do to the loss")


def _changed_amount(item: At, requirement: Requirement) -> tuple[str, Fraction]:
    """Which amount of a line changes, and to what."""
    words = item["change"].text().split()
    amounts = requirement.measure.amounts
    if len(words) != 4 or words[2] != "->" or words[0] not in amounts:
        raise Malformed(f"{item.place}.change is not understood")
    if At(words[1], item.place).exact() != amounts[words[0]]:
        raise Malformed(f"{item.place}.change does not start from the requirement")
    return words[0], At(words[3], item.place).exact()


def _price(subject: Subject, item: At, requirement: Requirement, change: float) -> Claim:
    written, amounts = item["change"].text(), requirement.measure.amounts
    key, more = _changed_amount(item, requirement)
    after = with_figures(requirement.measure, {key: more})
    share = _share_of(subject, requirement)
    if subject.gaussian:
        old, new = gaussian_mu_up(requirement.measure), gaussian_mu_up(after)
    else:
        # Laplace scales are inversely proportional to a pure epsilon
        old, new = float(amounts[key]), float(after.amounts[key])
    if old is None or new is None:
        raise Malformed(f"{item.place}.change is no amount that matters")
    expected = (old / new) ** (2 * share) - 1
    fits = abs(change - expected) <= PRICE * abs(expected)
    return claim("binding", Finding(fits, f"line {requirement.line}, {written}: loss {100 * expected:+.3g} %"))


def _share_of(subject: Subject, requirement: Requirement) -> float:
    """The share of a requirement in the weights of the dual point: d log loss / d log mu^2, up to its sign."""
    if subject.proof is None:
        raise Malformed("prices need a dual point")
    masses = [float(view.weights.sum()) for view in subject.proof.views]
    mine = [
        m
        for m, v in zip(masses, subject.proof.views, strict=True)
        if subject.requirements[v.requirement] is requirement
    ]
    return sum(mine) / sum(masses)


def assumptions(subject: Opened) -> Iterator[Claim]:
    """Who is trusted is among them; each has a status and points to something; what is true is for people to judge."""
    listed = subject.plan["assumptions"].items()
    lines = subject.model.source.text.count("\n") + 1
    trust = f"Trust: {subject.model.trust.describe()}."
    told = [(item["text"].text(), item["status"].text()) for item in listed]
    if (trust, "assumed") not in told or any(t.startswith("Trust") for t, _ in told if t != trust):
        yield Claim("assumptions", "failed", "the plan does not say as the spec does who sees the raw data")
    for item in listed:
        item["text"].text()
        if item["status"].text() not in STATUSES:
            raise Malformed(f"{item.place}.status is unknown")
        because = item["because"]
        line = because.get("line") if isinstance(because.value, Mapping) else None
        if line is not None and not 1 <= line.integer() <= lines:
            raise Malformed(f"{item.place} points to a line that is not there")
    yield Claim("assumptions", "ok", f"{len(listed)} assumptions, each with its status")
    yield Claim("assumptions", "not checked", "whether the assumptions hold in the world")


__all__ = ["Fraction", "alternatives", "assumptions", "binding", "optimality"]
