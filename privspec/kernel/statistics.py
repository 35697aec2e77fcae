"""Plans of noise at a statistic of bounded records (laws/statistics): what is executed, and who sees it.

What follows the noise uses public numbers only (lemma post-processing): pooling, weights and solving cost nothing.
"""

from __future__ import annotations

from fractions import Fraction

from privspec.kernel.changes import OfParty
from privspec.kernel.core.problem import Guarantee, PlanUnderCheck, Rules, read_guarantees
from privspec.kernel.core.reading import JsonNode, Refused, frozen
from privspec.kernel.laws.statistics import (
    LARGEST_RADIUS,
    SHAPES,
    STEP,
    HeldRecords,
    Noise,
    NoisyStatistic,
    Statistic,
    statistics_of,
)
from privspec.kernel.promises import Line, Question, verdict
from privspec.kernel.terms import Pick

BLOCK = (
    *("form", "function", "version", "source", "party", "parties", "count", "dimension", "radius", "within", "grid"),
    *("each", "pool", "mean", "output", "routes", "sites", "families", "loss"),
)
SIMULATED = ("model", "seed", "crowds", "expression", "definitions")
AMONG = "the ways that this plan lists, by simulation under the data model"
# --- plans -------------------------------------------------------------------------------------------------------


@frozen
class Executed:
    """Records to the statistic `route` to noise to output; one law for all, or one for each party in order.

    `finish_first`: each party's noisy statistic is finished and the results are pooled, else once for all.
    """

    function: str
    source: str
    party: str | None
    parties: int
    records: HeldRecords
    mean: bool
    output: str
    route: str
    statistic: Statistic
    each_party: bool
    finish_first: bool
    weights: tuple[Fraction, ...] | None
    noises: tuple[Noise, ...]

    @property
    def figure(self) -> str:
        """What a plan states of its noise."""
        return "mu" if self.noises[0].law.normal else "epsilon"

    @property
    def term(self) -> Pick:
        """What is executed; all see the messages of parties where nobody is trusted."""
        return Pick(self.output, NoisyStatistic(self.statistic, self.noises))


def read_executed(block: JsonNode, mechanism: JsonNode) -> Executed:
    """What a plan executes for a block; refused where it is not one of the ways that the block allows."""
    given = dict(zip(BLOCK, block.fields(*BLOCK), strict=True))
    for key, said in (("function", "probit_mle"), ("version", 1), ("grid", str(STEP))):
        given[key].same(said)
    (norm, inside), radius = given["within"].fields("norm", "radius"), given["radius"]
    reach = None if radius.absent else radius.exact(0)
    records = HeldRecords(given["count"].integer(1), given["dimension"].integer(1), reach, norm.text(), inside.exact(0))
    if records.norm not in ("l1", "l2") or not records.within or (reach and reach > LARGEST_RADIUS) or reach == 0:
        raise block.wrong("has a ball that is empty, too large or not known")
    known = statistics_of(records)
    for item, (at, one) in zip(given["routes"].items(len(known)), known.items(), strict=True):
        wide = None if one.estimated is None else {"norm": records.norm, "radius": str(one.estimated)}
        item.stating({"at": at, "size": one.size, "estimated_within": wide}, "name")[0].text()
    keys = "route", "where", "finish_first", "weights", "sites"
    route, where, first, weights, places = mechanism.stating({"family": "statistic"}, *keys)
    if route.text() not in known or where.text() not in ("each party", "pool"):
        raise route.wrong("is no statistic of such records, or noise enters neither at each party nor at the pool")
    statistic, each, parties = known[route.text()], where.text() == "each party", given["parties"].integer(1)
    node = (given["each"] if each else given["pool"]).text()
    at = node if route.text() == "result" else f"{route.text()}({node})"
    if not given["sites"].absent and at not in given["sites"].texts():
        raise where.wrong(f"is not where the spec allows noise: {', '.join(given['sites'].texts())}")
    families = None if given["families"].absent else given["families"].texts()
    noises = tuple(_noise(site, at, families) for site in places.items())
    if len(noises) not in {1, parties if each else 1}:
        raise places.wrong("does not list the noise of all, or that of each party")
    shares = None if weights.absent else tuple(weight.exact(0) for weight in weights.items(parties))
    if not each and (first.flag() or shares is not None or noises[0].bound is not None):
        raise where.wrong("is the pool: weights, reports and solving one by one are for noise at each party")
    function, source, output = (given[key].text() for key in ("function", "source", "output"))
    party, mean = None if given["party"].absent else given["party"].text(), given["mean"].flag()
    return Executed(function, source, party, parties, records, mean, output, route.text(), statistic, each,
                    first.flag(), shares, noises)  # fmt: skip


def _noise(site: JsonNode, at: str, families: tuple[str, ...] | None) -> Noise:
    shape, parameters = site.stating({"at": at, "grid": str(STEP)}, "shape", "parameters")
    known = SHAPES[shape.one_of(*SHAPES)]
    if families is not None and known.family not in families:
        raise shape.wrong(f"is of a family that the spec does not allow: {', '.join(families)}")
    bounds = ("bound",) if known.norm is None else ()
    size, *bound = (item.exact(0) for item in parameters.fields(known.size, *bounds))
    return Noise(shape.text(), size, bound[0] if bound else None)


class Statistics(Rules):
    """Privacy by the lemmas; the loss is simulated, and nothing is proved of it."""

    def judge(self, case: PlanUnderCheck) -> Executed:
        """What is promised, and the loss, which is for the record."""
        run = self.privacy(case)
        self._loss(case, run.parties)
        return run

    def privacy(self, case: PlanUnderCheck) -> Executed:
        """Who sees what, then every line by its theorems."""
        run, trust = read_executed(case.block, case.mechanism), case.frame.trust
        held = {data.name: data.party for data in case.frame.data}
        if held.get(run.source, "") != run.party or trust.means.shared:
            raise case.block.wrong("reads records that nobody holds so, or trusts whom no lemma is about")
        text = "each party's message is its own noisy statistic" if run.each_party else "only the sum is made noisy"
        case.says("view", run.each_party or not trust.means.public, f"{text}, under {trust.means.written}")
        case.says("rounding", True, f"{run.statistic.size} numbers ({run.route}), like the noise on the grid 2^-20")
        lines = list[Line]()
        for one in read_guarantees(case.guarantees, case.frame):
            lines.append(_promised(run, one))
            found, figure = verdict(run.term, lines[-1]), run.figure
            most, said = found.largest((figure,))[figure], one.achieved.get(figure, Fraction(0))
            tail = "" if found.holds else f"; the plan states {figure} {float(said):.8g}, or other lemmas"
            text = f"{run.output}, {one.obligation.neighbours}: {figure} {float(most):.8g} by the lemmas "
            lemmas = ", ".join(run.term.law.notes[1:-1])
            case.says("privacy", found.holds, f"{text}{lemmas}{tail}", one.number)
        case.promised = run.term, lines
        return run

    def _loss(self, case: PlanUnderCheck, parties: int) -> None:
        """What is stated comes from a simulation that is not done again; no bound is claimed."""
        model, seed, most, expression, terms = case.block.fields(*BLOCK)[-1].fields(*SIMULATED)
        known: dict[str, object] = {"lower_bound": None, "relative_gap": None, "expression": expression.text()}
        known |= {"among": AMONG, "units": "units of the loss expression", "kind": "expected"}
        told = case.loss.stating(known, "value", "without_noise", "standard_error", "crowds", "parties")
        _ = model.text(), seed.integer(), terms.texts(), told[0].double(), told[1].double(), told[4].integer(1, parties)
        if told[2].double() < 0 or not told[3].integer(1, most.integer(1)) or case.status != "feasible":
            raise case.loss.wrong("claims more than a simulation shows")
        for item, nothing in ((case.accuracy, []), (case.fairness, None), (case.claims, {})):
            item.same(nothing)
        case.says(
            "loss", True, "by simulation only: see the problem's words for data model, seed and count", derived=False
        )


def _promised(run: Executed, guarantee: Guarantee) -> Line:
    """What one unit changes: records of one party, of which the sum over parties moves by as much.

    Of a local guarantee any two values of all that a party holds are compared, in its own report. Where each party has
    amounts of its own, every different pair of a noise and amounts is asked.
    """
    asked, each, parties = guarantee.obligation, guarantee.obligation.measure.each, run.parties
    (unit, *more), local = asked.units, asked.measure.of.local
    about = (asked.outputs, asked.seen, asked.wrt) == ((run.output,), (run.output,), (run.source,))
    fits = not more and (unit.count, unit.adding, unit.apart) == (1, False, None) and (run.each_party or not local)
    whole = (unit.kind, unit.party) == ("party", run.party) or (unit.kind, parties) == ("everything", 1)
    if not about or not fits or not (unit.kind == "record" or whole):
        raise Refused(f"line {asked.line} is about outputs, inputs or units that no lemma covers")
    if each and len(each) != parties:
        raise Refused(f"line {asked.line} has another number of parties")
    many = 1 if unit.kind == "record" and not local else run.records.count
    questions = [Question(OfParty(many), guarantee.asked, guarantee.achieved)]
    if each:
        alike = len(run.noises) == 1
        pairs = {(run.noises[0 if alike else k], one): k for k, one in enumerate(each)}
        questions = [
            Question(OfParty(many, 0 if alike else k), one.figures({}), guarantee.achieved)
            for (_, one), k in pairs.items()
        ]
    fits = guarantee.because == run.term.law.notes and set(guarantee.achieved) == {run.figure}
    return Line(asked.line, frozenset(asked.seen), asked.measure.of, tuple(questions), fits)
