"""The page for engineers: sites, variances, solver, gap, alternatives, prices, and how to reproduce them.

Also a plan as an entry of the register of deployments (opendp/deployments-registry-data), for its curator to complete.
Fields as in the register's schema at its commit 057e5d81 (2026), which refuses any other. What no plan can know (who
publishes, where, when, what for) is marked, and the register refuses the entry until somebody fills it in; all else is
computed. Amounts are rounded up, so that the entry never states less than is spent.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from fractions import Fraction
from shlex import quote
from typing import Any

from privspec.core.rounding import LISTED, graded
from privspec.explain import document, drawing
from privspec.explain.auditor import changed_blocks, exposure_blocks, published, tradeoff_plot
from privspec.explain.claims import Claim
from privspec.explain.curves import EpsilonDeltaCurve, GaussianCurve, RenyiCurve
from privspec.explain.facts import Facts, Frontier, LossFact, Rows, same_loss
from privspec.explain.graphs import describe_graph, graph_svg
from privspec.explain.messages import phrase, phrases, plotted, say, tabled, titled
from privspec.explain.summary import accuracy_tables, bare_outputs, change_words, fairness_blocks
from privspec.kernel.measures import BY_PERSON, MEASURES
from privspec.kernel.trust import KINDS
from privspec.model.reports import listing

NOT_CONVEX = ("search", "the law itself", "closed form", "given", "comparison")
"""Words in the names of methods that solve no convex program."""


def engineer_page(facts: Facts) -> document.Document:
    """Everything one needs to judge, change and rebuild the plan."""
    graph: tuple[document.Block, ...] = ()
    if (model := facts.model) is not None:
        picture = document.Picture(lambda: graph_svg(model), phrase("engineer.page.graph"))
        graph = picture, document.Listing("", describe_graph(model))
    accuracy = {"accuracy": accuracy_tables(facts), "fairness": fairness_blocks(facts)}
    after = titled(
        "engineer.headings_after",
        **accuracy,
        guarantees=_guarantees(facts),
        alternatives=(alternatives_plot(facts),),
        binding=_binding(facts),
        frontier=(frontier_plot(facts.frontier),) if facts.frontier else (),
        execution=facts.mechanism.execution(facts),
        assumptions=(document.Points(facts.assumptions),) if facts.assumptions else (),
        graph=graph,
        reproduce=(_commands(facts),),
    )
    first = titled("engineer.headings", result=_result(facts), exposures=exposure_blocks(facts))
    return document.Document(
        title=phrase("engineer.page.title", name=facts.name),
        subtitle=facts.title,
        reader="engineer",
        shows_basis=True,
        sections=(*first, *facts.mechanism.engineer_sections(facts), *after),
        footer=facts.footer,
    )


def _result(facts: Facts) -> tuple[document.Block, ...]:
    solver, unknown = facts.solver, phrase("engineer.rows.unknown")
    verdict = "" if facts.design is None else facts.design.verdict
    rows = phrases("engineer.result_rows", facts, verdict=verdict)
    if facts.loss is not None:
        rows += _loss_rows(facts, facts.loss)
    rows += [(phrase("engineer.rows.ties", name=name), taken) for name, taken in facts.context.ties.items()]
    versions = ", ".join(f"{name} {version}" for name, version in solver.versions) or unknown
    rows += phrases("engineer.solver_rows", facts, seconds=solver.seconds or unknown, versions=versions)
    convex = not any(word in solver.name for word in NOT_CONVEX)
    rows += phrases("engineer.solver_programs", program=facts.family if convex else "")
    rows += [(phrase("engineer.rows.parameter", name=name), value) for name, value in facts.parameter_words]
    return (
        tabled("engineer.result", rows),
        *changed_blocks(facts),
        *((document.Points(facts.gaps),) if facts.gaps else ()),
    )


def _loss_rows(facts: Facts, loss: LossFact) -> Rows:
    none, by_chance = phrase("engineer.error.none"), facts.mechanism.by_chance and loss.of_errors
    at_worst = facts.off_on_average
    rows = phrases(
        "engineer.loss_rows",
        facts,
        units=f" {loss.units}" if loss.units else "",
        by_chance=by_chance and not at_worst,
        at_worst=at_worst and not facts.by_law,
        by_law=at_worst and facts.by_law,
        besides=facts.besides() if by_chance else "",
        lower_bound=loss.lower_bound or none,
        gap=loss.gap or none,
        why=facts.mechanism.why_wide(facts, loss) if loss.wide else "",
    )
    if loss.error is not None:
        rows.append((loss.error_label, phrase("engineer.error.size", facts)))
    return rows


def _guarantees(facts: Facts) -> tuple[document.Block, ...]:
    rows, found = [], []
    for number, fact in enumerate(facts.claims, start=1):
        shown, reached = fact.shown, fact.claim.achieved_parameter
        scope = f", for {fact.question.scope}" if fact.question.scope else ""
        odds = (f"{shown.odds.pair}{scope}", shown.advantage) if shown else ("unknown", "unknown")
        figure = "{} = {}".format(*reached) if reached else "as stated"
        rows.append((fact.claim.sentence, figure, *odds, fact.claim.line.number))
        plot = tradeoff_plot(facts, fact, number)
        found += [plot] if plot else []
    classic = [fact.calibration for fact in facts.claims if fact.calibration is not None]
    return (
        tabled("engineer.guarantees", rows),
        *found,
        *(block for fact in facts.claims for block in fact.question.details()),
        *((tabled("engineer.calibrations", classic),) if classic else ()),
    )


def frontier_plot(frontier: Frontier) -> document.Plot:
    """Privacy against loss by the exact scaling of the plan, with the chosen point."""
    points = frontier.points
    line = drawing.Line("loss", [(p.parameter.value, p.loss.value) for p in points], dots=True)
    marks = [(p.parameter.value, p.loss.value, phrase("plots.frontier.mark", p)) for p in points if p.chosen]
    chosen = phrase("plots.any.chosen")
    return plotted(
        "plots.frontier",
        lambda: drawing.line_chart([line], marks, frontier.axis, phrase("plots.frontier.up")),
        ((p.parameter, p.loss, chosen * p.chosen) for p in points),
        axis=frontier.axis,
        law=frontier.law,
        first=points[0],
        last=points[-1],
    )


def alternatives_plot(facts: Facts) -> document.Plot | None:
    """The loss of this plan and of the designs that were not chosen."""
    loss, own = facts.loss, phrase("plots.any.chosen")
    if loss is None or not facts.alternatives or loss.value.value <= 0:
        return None
    others = sorted(facts.alternatives, key=lambda a: graded(a.loss.value, LISTED))
    items = [drawing.Row(own, loss.value.value, loss.value.text, chosen=True)]
    items += [
        drawing.Row(a.name, a.loss.value, a.loss.text, hollow=not a.admissible) for a in others if a.loss.value > 0
    ]
    rows: list[tuple[object, ...]] = [(own, loss.value, "1", loss.error, True, "chosen")]
    for a in others:
        times = phrase("plots.alternatives.same") if same_loss(a, facts) else a.times
        rows.append((a.name, a.loss, times, a.error, a.admissible, a.reason))
    bound, along = loss.lower_bound, phrase("plots.alternatives.loss")
    if bound is not None:
        lower = phrase("plots.alternatives.bound", certified=facts.bound_certified)
        rows.append((lower, bound, "", "", "", loss.among))
        along = phrase("plots.alternatives.along", lower=lower)
    least = bound.value if bound is not None and bound.value > 0 else None
    return plotted(
        "plots.alternatives",
        lambda: drawing.row_chart(items, along, least),
        rows,
        many=len(items),
        first=others[0].loss,
        last=others[-1].loss,
        value=loss.value,
        hollow=any(item.hollow for item in items),
    )


def _binding(facts: Facts) -> tuple[document.Block, ...]:
    found = []
    for item in facts.binding:
        error = "" if item.error_change is None else phrase("engineer.binding_error.error", item)
        found.append(say("engineer.binding.line", {"changed": change_words(item.change), "error": error}, item))
    return (document.Points(tuple(found)),) if found else ()


def _commands(facts: Facts) -> document.Listing:
    written = {name for name, words in facts.parameter_words if " = " in words}
    given = ((k, v) for k, v in facts.parameters if " " not in v and "[" not in v and k not in written)
    sets = "".join(f" --set {k}={quote(v)}" for k, v in given)
    spec, plan = quote(facts.spec_file), quote(facts.plan_file)
    run = "\n".join(facts.mechanism.run_commands(facts, plan))
    solve = f"privspec solve {spec}{sets} -o {plan}"
    return document.Listing("", f"privspec check {spec}\n{solve}\nprivspec verify {plan}\n{run}")


# --- the register of deployments ------------------------------------------------------------------


TO_FILL = "to be filled in by the curator"
AT_DELTA = Fraction(1, 10**6)
"""The delta at which an epsilon is stated for guarantees that have neither."""


def register_text(facts: Facts) -> str:
    """The entry as JSON, which is YAML as well; ends with a newline."""
    return json.dumps(register_entry(facts), ensure_ascii=False, indent=2) + "\n"


def register_entry(facts: Facts) -> dict[str, Any]:
    """The entry; its status is that of a draft."""
    where, mechanism = facts.context, facts.mechanism
    claims = [fact.claim for fact in facts.claims]
    words = dict(
        phrases(
            "engineer.register",
            facts,
            exactly=listing(mechanism.exactly(facts)),
            bare=listing(dict.fromkeys(name for item in facts.exposures for name in bare_outputs(item))),
            observers=listing(dict.fromkeys(claim.observer for claim in claims)) or "anyone",
            data=_joined(mechanism.data(facts)),
            label=mechanism.label("drawn"),
            drawn=mechanism.drawn(facts),
            points=_joined(mechanism.auditor_points(facts)),
            together=any(fact.covers_everything for fact in facts.claims),
            computed="; ".join(f"{name} = {text}" for name, text in facts.computed),
            derived=listing(sorted(facts.judgement.derived)),
            published=published(facts),
        )
    )
    error = ": ".join(part for part in facts.error if part)
    deployment = {
        "basic": {
            "name": facts.title,
            "data_curators": [{"data_curator_name": TO_FILL, "data_curator_type": TO_FILL}],
            "description": words["description"],
            "intended_use": TO_FILL,
            "data_product_type": "Summary statistics",
            "data_product_region": TO_FILL,
            "publication_date": TO_FILL,
        },
        "dp_variant": {
            "variant_name": _variant(claims),
            "data_domain": _joined(mechanism.data(facts)),
            "unprotected_quantities": words["unprotected"],
        },
        "privacy_loss": {
            "privacy_unit": "; ".join(dict.fromkeys(claim.unit for claim in claims)) or "none",
            "privacy_unit_details": "; ".join(dict.fromkeys(claim.neighbours for claim in claims)) or "none",
            "privacy_parameters": _parameters(facts),
            "privacy_parameters_details": _details(facts),
        },
        "deployment_model": {
            "model_name": KINDS[where.trust].register if where.trust in KINDS else "Varies",
            "model_name_details": where.trust_words("auditor"),
            "actors": words["actors"],
            "release_type": "One release" if mechanism.rounds is None else "Many releases",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": words["preprocessing"],
            "mechanisms": words["mechanisms"],
            "composition": words["composition"],
            "post_processing": words["computed"],
            "justification": words["justification"],
            "utility": f"{error}." if error else "",
            "additional_information": words["additional"],
        },
        "administrative": {"status": "Draft", "registry_authors": [TO_FILL], "tier": 3},
    }
    return {"url_slug": re.sub(r"[^a-z0-9]+", "_", facts.name.lower()).strip("_"), "deployment": deployment}


def _joined(sentences: Iterable[document.Sentence]) -> str:
    return " ".join(sentence.text for sentence in sentences)


def _variant(claims: list[Claim]) -> str:
    """The name that all guarantees share; others are custom."""
    variants = {measure.title: measure.variant for measure in MEASURES}
    found = {variants.get(claim.variant.removeprefix(BY_PERSON), "Custom") for claim in claims}
    return found.pop() if len(found) == 1 else "Custom"


def up(value: Fraction | float) -> float:
    """The least double that is not below it."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= Fraction(value) else math.nextafter(nearest, math.inf)


def _parameters(facts: Facts) -> dict[str, float]:
    """Those of the weakest guarantee; empty where it has none that the register knows."""
    known = [fact.claim for fact in facts.claims]
    weakest = facts.weakest.claim if facts.weakest is not None and facts.weakest.claim in known else None
    claim = weakest or (known[0] if known else None)
    if claim is None:
        return {}
    if claim.epsilon is not None and claim.delta is not None:
        return {"epsilon": up(claim.epsilon), "delta": up(claim.delta)}
    match claim.promised or claim.achieved:
        case RenyiCurve(amount=amount, order=None):
            return {"rho": math.nextafter(amount, math.inf)}
        case GaussianCurve(mu=mu):
            from privspec.kernel.gaussian import epsilon_up

            return {"epsilon": up(epsilon_up(Fraction(math.nextafter(mu, math.inf)), AT_DELTA)), "delta": up(AT_DELTA)}
        case EpsilonDeltaCurve(epsilon=epsilon, delta=delta):
            return {"epsilon": up(epsilon), "delta": up(delta)}
    return {}


def _details(facts: Facts) -> str:
    """Every guarantee as the spec states it, and what the mechanism reaches of it."""
    reached = (fact.claim for fact in facts.claims)
    said = [f"{claim.sentence}{f' (reached: {claim.reached})' if claim.reached else ''}" for claim in reached]
    return "; ".join(said) or phrase("engineer.register.none")
