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

from privspec.explain import document, plots
from privspec.explain.auditor import changed_blocks, exposure_blocks, published
from privspec.explain.claims import Claim
from privspec.explain.curves import EpsilonDeltaCurve, GaussianCurve, RenyiCurve
from privspec.explain.facts import Facts, Rows
from privspec.explain.graphs import describe_graph, graph_svg
from privspec.explain.summary import accuracy_tables, bare_outputs, change_words, fairness_blocks
from privspec.kernel.measures import BY_PERSON, MEASURES
from privspec.kernel.trust import KINDS
from privspec.model.reports import listing


def engineer_page(facts: Facts) -> document.Document:
    """Everything one needs to judge, change and rebuild the plan."""
    graph: tuple[document.Block, ...] = ()
    if (model := facts.model) is not None:
        picture = document.Picture(lambda: graph_svg(model), "The graph of the spec; the same in words below")
        graph = picture, document.Listing("", describe_graph(model))
    return document.Document(
        title=f"Engineering report: {facts.name}",
        subtitle=facts.title,
        reader="engineer",
        shows_basis=True,
        sections=(
            *document.sections(("Result", _result(facts)), ("What no guarantee covers", exposure_blocks(facts))),
            *facts.mechanism.engineer_sections(facts),
            *document.sections(
                ("Accuracy", accuracy_tables(facts)),
                ("Fairness", fairness_blocks(facts)),
                ("Guarantees", _guarantees(facts)),
                ("Alternatives", (plots.alternatives_plot(facts),)),
                ("What binds", _binding(facts)),
                ("Privacy against loss", (plots.frontier_plot(facts.frontier),) if facts.frontier else ()),
                ("Execution", facts.mechanism.execution(facts)),
                ("Assumptions", (document.Points(facts.assumptions),) if facts.assumptions else ()),
                ("Graph", graph),
                ("Reproduce", (_commands(facts),)),
            ),
        ),
        footer=facts.footer,
    )


def _result(facts: Facts) -> tuple[document.Block, ...]:
    loss, solver, unknown = facts.loss, facts.solver, "not stated"
    among_all = "" if facts.design is None else f" by itself; of all that could be chosen: {facts.design.verdict}"
    by_chance = facts.mechanism.by_chance and loss is not None and loss.of_errors
    rows: Rows = [("Status", f"{facts.status}{among_all}"), ("Family", facts.family)]
    if loss is not None:
        # what the bound is about, where there is one; else what the mechanism was chosen from
        among = "The bound is about" if loss.lower_bound is not None else "Chosen among"
        rows += [
            (
                "Loss",
                f"{loss.value} {loss.units}".strip() + (f" by chance alone{facts.besides()}" if by_chance else ""),
            ),
            ("Loss expression", loss.expression),
            (
                "Certified lower bound" if facts.bound_certified else "Lower bound, not certified",
                str(loss.lower_bound or "none"),
            ),
            ("Relative gap", str(loss.gap or "none")),
            *([("Optimal among" if facts.status == "optimal" else among, loss.among)] if loss.among else []),
        ]
        if loss.standard_error is not None:
            rows.append(("Standard error of the simulated loss", str(loss.standard_error)))
        if loss.error is not None:
            error = f"± {loss.error} (root mean square; variance {loss.variance})"
            rows.append((loss.error_label, error))
    rows += [
        *((f"Ties in {name}", taken) for name, taken in facts.context.ties.items()),
        ("Solver", solver.name),
        ("Seconds", str(solver.seconds or unknown)),
        ("Versions", ", ".join(f"{k} {v}" for k, v in solver.versions) or unknown),
        *((f"Parameter {name}", value) for name, value in facts.parameter_words),
    ]
    plan = document.table("The plan at a glance", "Item | Value", rows)
    return (plan, *changed_blocks(facts), *((document.Points(facts.gaps),) if facts.gaps else ()))


def _guarantees(facts: Facts) -> tuple[document.Block, ...]:
    rows, found = [], []
    for number, fact in enumerate(facts.claims, start=1):
        shown, reached = fact.shown, fact.claim.achieved_parameter
        scope = f", for {fact.question.scope}" if fact.question.scope else ""
        odds = (f"{shown.odds.pair}{scope}", shown.advantage) if shown else ("unknown", "unknown")
        figure = "{} = {}".format(*reached) if reached else "as stated"
        rows.append((fact.claim.sentence, figure, *odds, fact.claim.line.number))
        plot = plots.tradeoff_plot(facts, fact, number)
        found += [plot] if plot else []
    classic = (
        (c.epsilon, c.delta, c.classic, c.needed, c.ratio, c.true_delta, c.enough)
        for fact in facts.claims
        if (c := fact.calibration) is not None
    )
    beside = document.table(
        "The classic calibration sqrt(2 ln(1.25/δ))/ε beside the exact one (deviations per unit of sensitivity)",
        "ε | δ | Classic | Exact | Variance ratio | δ of the classic noise | Enough",
        classic,
        *range(6),
    )
    header = "Guarantee | Reached | Odds | Advantage at most | Spec line"
    return (
        document.table("Guarantees as executed", header, rows, 3, 4),
        *found,
        *(block for fact in facts.claims for block in fact.question.details()),
        *((beside,) if beside.rows else ()),
    )


def _binding(facts: Facts) -> tuple[document.Block, ...]:
    found = []
    for item in facts.binding:
        error = f" (the error by {item.error_change})" if item.error_change else ""
        verb = "lowers" if item.lowers else "raises"
        about, tail = ("about ", ", to first order") if item.about else ("", "")
        text = f"Line {item.line.number} limits the loss: {change_words(item.change)} {verb} the loss by"
        found.append(document.reported(f"{text} {about}{item.loss_change}{error}{tail}.", item.line))
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
    bare = dict.fromkeys(name for item in facts.exposures for name in bare_outputs(item))
    exactly = listing(mechanism.exactly(facts))
    data = _joined(mechanism.data(facts))
    observers = listing(dict.fromkeys(claim.observer for claim in claims)) or "anyone"
    unprotected = f" Not protected by any requirement: {listing(list(bare))}." if bare else ""
    computed = "; ".join(f"{name} = {text}" for name, text in facts.computed)
    together = "All outputs of this plan are covered together." if _covers_all(facts) else ""
    after = f"Computed from what is released: {computed}." if computed else "Nothing is computed from what was drawn."
    drawn = f"{mechanism.label('drawn')}: {mechanism.drawn(facts)}. {_joined(mechanism.auditor_points(facts))}"
    derived = listing(sorted(facts.judgement.derived)) or "nothing"
    deployment = {
        "basic": {
            "name": facts.title,
            "data_curators": [{"data_curator_name": TO_FILL, "data_curator_type": TO_FILL}],
            "description": f"{facts.title}. Published: {published(facts)}.",
            "intended_use": TO_FILL,
            "data_product_type": "Summary statistics",
            "data_product_region": TO_FILL,
            "publication_date": TO_FILL,
        },
        "dp_variant": {
            "variant_name": _variant(claims),
            "data_domain": data,
            "unprotected_quantities": f"Released exactly: {exactly}.{unprotected}",
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
            "actors": f"What is published is seen by {observers}.",
            "release_type": "One release" if mechanism.rounds is None else "Many releases",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": f"{data} The mechanism was chosen from the spec alone: no data "
            "were looked at, so that nothing was spent on tuning.",
            "mechanisms": drawn,
            "composition": f"{together} A ledger limits what all releases of the same data spend together.".strip(),
            "post_processing": after,
            "justification": f"Chosen for the least expected loss ({facts.status}). Derived again by an independent "
            f"kernel ({facts.judgement.kernel or 'not in this run'}): {derived}.",
            "utility": f"{error}." if (error := ": ".join(part for part in facts.error if part)) else "",
            "additional_information": f"Written by privspec from the plan (SHA-256 {facts.digest}) of a spec (SHA-256 "
            f"{facts.spec_sha256}).",
        },
        "administrative": {"status": "Draft", "registry_authors": [TO_FILL], "tier": 3},
    }
    return {"url_slug": re.sub(r"[^a-z0-9]+", "_", facts.name.lower()).strip("_"), "deployment": deployment}


def _joined(sentences: Iterable[document.Sentence]) -> str:
    return " ".join(sentence.text for sentence in sentences)


def _covers_all(facts: Facts) -> bool:
    return any(fact.covers_everything for fact in facts.claims)


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
    return "; ".join(said) or "no requirement was stated"
