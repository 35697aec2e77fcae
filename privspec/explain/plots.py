"""The plots of the pages, each with words for those who do not see it and a table of the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from privspec.core.records import dataclass
from privspec.core.rounding import LISTED, graded
from privspec.explain import drawing
from privspec.explain.curves import Curve, least_misses
from privspec.explain.document import Plot, table
from privspec.explain.facts import ClaimFact, Facts, Frontier, same_loss
from privspec.explain.quantities import DOWN, Quantity, percent, rounded
from privspec.model.reports import listing

MOST_BARS = 64
MOST_PANELS = 6
TRADEOFF_MARKS = tuple(Fraction(n, 100) for n in (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90))


@dataclass(frozen=True, slots=True)
class SiteFact:
    """One noise site in words and numbers."""

    at: str
    law: str
    correlated: bool
    coordinates: Quantity
    typical: Quantity
    least: Quantity
    largest: Quantity
    deviations: tuple[float, ...]


def noise_plot(known: Sequence[SiteFact]) -> Plot | None:
    """The standard deviation of the noise at every site by position (in groups where there are many).

    Nothing where there is one number alone: the table says it.
    """
    sites = [s for s in known if s.deviations][:MOST_PANELS]
    if sum(len(s.deviations) for s in sites) < 2:
        return None
    panels, rows = [], []
    for site in sites:
        labels, values = grouped(site.deviations)
        # a range is too wide for an axis, where the first of it says enough
        title = f"{site.at}: {site.law}{', correlated' if site.correlated else ''}"
        panels.append(drawing.Bars(title, values, [label.partition("–")[0] for label in labels]))
        rows += [(site.at, label, rounded(value)) for label, value in zip(labels, values, strict=True)]
    xlabel = "position (of the first in a bar)" if any(bar_size(len(s.deviations)) > 1 for s in sites) else "position"
    widest = max(sites, key=lambda s: s.largest.value)
    caption = "Standard deviation of the noise, the numbers of the plot"
    return Plot(
        name="noise",
        draw=lambda: drawing.bar_chart(panels, "deviation", xlabel),
        alt=f"Bars of the noise deviation at {listing([s.at for s in sites])}; "
        f"the largest is {widest.largest}, at {widest.at}.",
        caption=_noise_caption(sites),
        twin=table(caption, "Site | Position | Deviation", rows, 2),
    )


def _noise_caption(sites: Sequence[SiteFact]) -> str:
    """What a bar stands for at each site."""
    words = "Standard deviation of the noise in each number, in the order in which the numbers are laid out."
    for site in sites:
        size = bar_size(len(site.deviations))
        if size > 1:
            rest = len(site.deviations) % size
            tail = f", the last bar that of {rest}" if rest else ""
            words += f" At {site.at} each bar is the root mean square of {size} numbers in a row{tail}."
    return words


def bar_size(count: int, most: int = MOST_BARS) -> int:
    """How many values share a bar."""
    return -(-count // most)


def grouped(values: Sequence[float], most: int = MOST_BARS) -> tuple[list[str], list[float]]:
    """At most `most` bars with labels: single values, or root mean squares of runs of neighbours."""
    size = bar_size(len(values), most)
    labels, heights = [], []
    for start in range(0, len(values), size):
        part = values[start : start + size]
        last = start + len(part)
        labels.append(f"{start + 1:,}" if len(part) == 1 else f"{start + 1:,}–{last:,}")
        heights.append((sum(v * v for v in part) / len(part)) ** 0.5)
    return labels, heights


def tradeoff_plot(facts: Facts, fact: ClaimFact, number: int) -> Plot | None:
    """False alarms against misses: what is executed allows, and what the statement alone would.

    Where there are several guarantees, the plot says which one it shows, by its number.
    """
    claim, total = fact.claim, len(facts.claims)
    if fact.shown is None:
        return None
    curves: dict[str, Curve] = {}
    if claim.achieved is not None and claim.achieved_parameter is not None:
        exact = claim.achieved.exact
        curves[facts.mechanism.label("curve") if exact else f"what {claim.reached} allows"] = claim.achieved
    if claim.promised is not None and not _same(claim.promised, claim.achieved):
        curves[f"what {claim.statement} alone allows"] = claim.promised
    grid = [i / 160 for i in range(161)]
    rows = (
        (percent(a), *(percent(max(0.0, c.misses(float(a)) - 1e-12), 3, DOWN) for c in curves.values()))
        for a in TRADEOFF_MARKS
    )
    error, name = fact.shown.odds.error, f"tradeoff{number}"
    share = float(error.text) / 100
    sees = "sees" if claim.observer == "anyone" else "see"
    title = f"Guarantee {number} of {total}: {claim.observer}, who {sees} {listing(claim.outputs)}" if total > 1 else ""
    head = f"{title}. " if title else ""
    scope = f"For {fact.question.scope}. " if fact.question.scope else ""
    marks = [(share, share, f"equal mistakes: {error} %")]
    return Plot(
        name=name,
        draw=lambda: drawing.tradeoff_chart(
            [
                drawing.Line(label, grid, least_misses(c, grid), dashed=not c.exact, second=position > 0)
                for position, (label, c) in enumerate(curves.items())
            ],
            marks,
            *fact.question.axes,
            title,
        ),
        alt=f"Trade-off curve of {claim.sentence}. At equal mistakes the best observer errs in {error} % of cases.",
        caption=f"{head}{scope}The nearer to the dotted diagonal, the better the protection.",
        twin=table(
            f"{head}Least misses at given false alarms, numbers of the plot",
            ("False alarms", *(f"Misses at least: {label}" for label in curves)),
            rows,
            *range(1 + len(curves)),
        ),
    )


def _same(one: Curve, other: Curve | None) -> bool:
    """Whether two curves could not be told apart in a drawing."""
    return type(one) is type(other) and other is not None and abs(one.equal_error() - other.equal_error()) < 1e-6


def frontier_plot(frontier: Frontier) -> Plot:
    """Privacy against loss by the exact scaling of the plan, with the chosen point."""
    points = frontier.points
    chosen = next(((p.parameter.value, p.loss.value, f"this plan: {p.loss}") for p in points if p.chosen), None)
    line = drawing.Line("loss", [p.parameter.value for p in points], [p.loss.value for p in points])
    return Plot(
        name="frontier",
        draw=lambda: drawing.frontier_chart(line, chosen, frontier.axis, "loss"),
        alt=f"Loss against {frontier.axis}: from {points[0].loss} at {points[0].parameter} "
        f"down to {points[-1].loss} at {points[-1].parameter}.",
        caption="The diamond marks this plan.",
        twin=table(
            f"Loss of this plan by chance alone, rescaled to other guarantees ({frontier.law}), numbers of the plot",
            (frontier.axis, "Loss", "Remark"),
            ((p.parameter, p.loss, "this plan" * p.chosen) for p in points),
            *range(2),
        ),
    )


def alternatives_plot(facts: Facts) -> Plot | None:
    """The loss of this plan and of the designs that were not chosen."""
    loss = facts.loss
    if loss is None or not facts.alternatives or loss.value.value <= 0:
        return None
    others = sorted(facts.alternatives, key=lambda a: graded(a.loss.value, LISTED))
    items = [drawing.Dot("this plan", loss.value.value, loss.value.text, strong=True)]
    items += [
        drawing.Dot(a.name, a.loss.value, a.loss.text, hollow=not a.admissible) for a in others if a.loss.value > 0
    ]
    rows: list[tuple[object, ...]] = [("this plan", loss.value, "1", loss.error, True, "chosen")]
    for a in others:
        times = "the same loss" if same_loss(a, facts) else a.times
        rows.append((a.name, a.loss, times, a.error, a.admissible, a.reason))
    bound, label = loss.lower_bound, "loss"
    if bound is not None:
        lower = "certified lower bound" if facts.bound_certified else "lower bound, not certified"
        rows.append((lower, bound, "", "", "", loss.among))
        label = f"loss (dashed: {lower})"
    least = (bound.value, bound.text) if bound is not None and bound.value > 0 else None
    hollow = any(item.hollow for item in items)
    return Plot(
        name="alternatives",
        draw=lambda: drawing.dot_chart(items, label, least),
        alt=f"Losses of {len(items)} designs side by side, from {others[0].loss} to {others[-1].loss}; this plan's is "
        f"{loss.value}.",
        caption="Hollow marks: not admissible under the options of the spec."
        if hollow
        else "All of these are admissible.",
        twin=table(
            "Designs considered at the same guarantee, by chance alone: numbers of the plot (reported by the compiler, "
            "not certified)",
            "Design | Loss | Times this plan | Error ± | Admissible | Reason",
            rows,
            *range(1, 4),
        ),
    )


def sweep_plot(rows: Sequence[Mapping[str, Any]], parameter: str | None = None) -> str:
    """Loss against the swept parameter with its certified lower bound, as a complete SVG file.

    A loss that is negative everywhere (how many rounds of votes fit, say) is drawn as the amount that is gained.

    Args: rows with the parameter, "loss" and, where known, "lower_bound"; without `parameter` the
        first key is it. Rows without a loss (infeasible settings) are left out.
    Raises: ValueError if no row has a positive parameter and a loss that can be drawn.
    """
    name = parameter or next(iter(rows[0])) if rows else "epsilon"
    solved = [r for r in rows if r.get("loss") is not None]
    gained = bool(solved) and all(float(r["loss"]) < 0 for r in solved)
    sign, label, limit = (-1, "minus the loss", "upper") if gained else (1, "loss", "lower")
    points = sorted(
        (float(r[name]), sign * float(r["loss"]), r.get("lower_bound"))
        for r in solved
        if sign * float(r["loss"]) > 0 and float(r[name]) > 0
    )
    if not points:
        raise ValueError("nothing to draw: no setting has a loss")
    bounds = [(x, sign * float(low)) for x, _, low in points if low is not None and sign * float(low) > 0]
    xs, ys = [b[0] for b in bounds], [b[1] for b in bounds]
    return drawing.frontier_chart(
        drawing.Line(label, [p[0] for p in points], [p[1] for p in points]),
        None,
        name,
        label,
        bound=drawing.Line(f"certified {limit} bound", xs, ys) if bounds else None,
        alone=True,
    )
