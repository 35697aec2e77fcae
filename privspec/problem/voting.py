"""Specs of votes as numbers: ballots, the points they give, and what the law of the winner is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, comb
from typing import TypeAlias

from privspec.kernel.laws.voting import DUMMY_VOTES, KINDS, PLURALITY, VOTING, Ballots
from privspec.kernel.measures import APPROXIMATE, PURE, PURE_MEASURES
from privspec.kernel.trust import CURATOR, NOBODY
from privspec.kernel.voting import Choice, Cost, Limit, Rounds, Term, Total, Vote
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import every, walk
from privspec.model.domains import Domain, FiniteSet, IntegerRange, Interval, PartialRankingOf, RankingOf
from privspec.model.evaluate import evaluate, places
from privspec.model.graph import GraphNode, Model
from privspec.model.measures import Chosen, MeasureAt
from privspec.model.neighbours import ReplacingEntry, ReplacingEverything, ReplacingOneOf, ReplacingRecord
from privspec.model.priors import law_of
from privspec.model.reports import Failure
from privspec.model.requirements import AccuracyTarget, Requirement
from privspec.model.spaces import Listed, space_of
from privspec.model.targets import call_of, environment
from privspec.model.values import Symbol, show
from privspec.model.voting import Borda, Drawn, FirstChoice, Law, Lottery, Points
from privspec.model.worlds import ROW_LIMIT
from privspec.problem.refusals import reading, without_loss
from privspec.problem.table_lines import PLAIN
from privspec.problem.terms import Chosen as ChosenTerm
from privspec.problem.terms import (
    behind,
    beside_output,
    factor_of,
    multiples,
    public,
    public_number,
    terms,
)

FUNCTION = "manipulation"
"""What bounds what a lie brings: manipulation(O, vote)."""
_WHOLE = "solve chooses an epsilon where it is the whole loss"

Costs: TypeAlias = tuple[Cost, ...]
"""A sum of costs: what stands inside E[ ... ] or worst[ ... ], less its constants."""
BallotLaw: TypeAlias = tuple[tuple[Law, Fraction], ...]
"""Points that one ballot gives with their probabilities under the data model, the ballots being independent."""


def beside(form: str, other: Lottery) -> Cost:
    """The cost of a winner's law beside a lottery: its "distance", the "mismatch" of two draws, or "votes missed"."""
    return Cost(Fraction(1), form, other.rule.name, other.number)


# --- in words ---------------------------------------------------------------------------------------------


def cost_words(cost: Cost) -> str:
    """With its weight."""
    other = {
        DUMMY_VOTES.name: "the draw in proportion to points",
        PLURALITY.name: "plurality (the first declared among equals)",
    }.get(cost.family, f"the {cost.family.replace('_', '-')} lottery")
    said = {
        "distance": f"distance (total variation) of the winner's law from {other}",
        "mismatch": f"probability that the winner differs from that of {other}",
        "votes missed": "share of voters who voted for something else than the winner",
    }[cost.form]
    return f"{'' if cost.weight == 1 else f'{show(cost.weight)} times '}the {said}"


def term_words(term: Term) -> str:
    """As in "the average over votes and draws of (...)"."""
    over = "average over votes and draws" if term.operator == "E" else "largest value over all votes"
    return f"the {over} of {' plus '.join(map(cost_words, term.parts))}"


def loss_words(loss: Total | Choice) -> str:
    """A sum, or the number that solving picks with its range."""
    if isinstance(loss, Total):
        parts = [term_words(term) for term in loss.terms]
        return " plus ".join(parts + ([show(loss.offset)] if loss.offset or not parts else []))
    ends = f"between {show(loss.low)} and {show(loss.high)}" if loss.high is not None else f"from {show(loss.low)}"
    what = f"{show(loss.weight)} {'divided by' if loss.inverse else 'times'} {loss.name}"
    what = loss.name if loss.weight == 1 and not loss.inverse else what
    return f"{what}, where solving picks {loss.name} {ends}{', a whole number' if loss.whole else ''}"


# --- the block --------------------------------------------------------------------------------------------


def points_of(ballots: Ballots) -> Points:
    """What one ballot gives to each alternative."""
    return (Borda if ballots.borda else FirstChoice)(ballots.alternatives)


def compared(vote: Vote) -> Lottery:
    """The lottery without noise that distortion is measured from: of the first comparison, else plurality."""
    sums = [line for line in (vote.loss, *(limit.measured for limit in vote.limits)) if isinstance(line, Total)]
    for cost in (part for line in sums for term in line.terms for part in term.parts):
        if cost.form != "votes missed":
            return Lottery(PLURALITY if cost.family == PLURALITY.name else DUMMY_VOTES)
    return Lottery(PLURALITY)


def compared_name(vote: Vote) -> str:
    """In the language."""
    if compared(vote).certain:
        return PLURALITY.name
    return "borda_lottery" if vote.ballots.borda else "random_dictator"


def words(vote: Vote) -> Iterator[str]:
    """Ballots, the draw, the loss, and what else is asked for."""
    ballots, who = vote.ballots, vote.party
    form = {"first choice": "names one", "ranking": "ranks all"}.get(ballots.kind, f"ranks up to {ballots.places}")
    number = (
        f"The number of {who}s is a secret; {vote.voters:,} serve the loss only."
        if vote.secret
        else f"There are {vote.voters:,} of them, which everybody knows."
    )
    each = f"{ballots.size - 1}, ..., 0 (Borda)" if ballots.borda else "one for the first choice"
    yield f"Each {who} casts one ballot {vote.source}: it {form} of {', '.join(ballots.alternatives)}. {number}"
    if ballots.supporters:
        yield f"In all electorates that exist every alternative has at least {ballots.supporters:,} of the votes."
    yield (
        f"One alternative is drawn as {vote.output}, by a law that depends on the ballots through their sums of "
        f"points: {each}."
    )
    yield f"The loss is {loss_words(vote.loss)}."
    if vote.law is not None:
        alike = len({weight for _, weight in vote.law}) == 1
        likely = "all of them equally likely" if alike else "with the weights listed"
        yield (
            f"For averages ballots are independent, each of {len(vote.law)} kinds of points, {likely}; no guarantee "
            "rests on that."
        )
    for limit in vote.limits:
        what = "what a lie brings a voter" if limit.measured is None else loss_words(limit.measured)
        yield f"Line {limit.line}: {what} is at most {show(limit.bound)}."
    if vote.rounds is not None:
        count = f"{vote.rounds.count}" if vote.rounds.count else f"{vote.rounds.name} (solving picks how many)"
        yield f"{count} votes share an epsilon of {show(vote.rounds.budget)}, each with the same part of it."
    if vote.families:
        yield f"Only rules of the families {', '.join(vote.families)} are allowed."


# --- which specs are votes, and which of them are beyond tables -----------------------------------


def reads(model: Model) -> bool:
    """Whether it is a vote whose lines or size are beyond tables."""
    source = voting(model)
    return source is not None and beyond_tables(model, source)


def voting(model: Model) -> GraphNode | None:
    """The ballots of a vote: the one input, one ballot for each party, with a winner that stands free; else None."""
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        return None
    (source,), (output,) = model.inputs, model.outputs
    ballots = isinstance(source.domain, FiniteSet | RankingOf | PartialRankingOf)
    free = output.definition is None and isinstance(output.domain, FiniteSet)
    if not ballots or not free or source.index is None:
        return None
    return source if _compared(model, source, output.name) else None


def _compared(model: Model, source: GraphNode, output: str) -> bool:
    """Whether the winner is compared with a lottery of the votes, or with the votes one by one."""
    loss = () if model.loss is None else (model.loss,)
    exprs = (*loss, *(target.target for target in model.accuracy))
    return any(_is_ballots(model, other, source) for expr in exprs for other in _others(expr, output))


def _is_ballots(model: Model, expr: syntax.Node, source: GraphNode) -> bool:
    match expr:
        case syntax.Index(base=syntax.Name(id=name)):
            return name == source.name
        case syntax.Name() | syntax.Call():
            return drawn_of(model, expr, source) is not None
    return False


def drawn_of(model: Model, expr: syntax.Node, source: GraphNode) -> Drawn | None:
    """The lottery that draws a value from the votes, by name or written out; None for anything else.

    Raises: Failure where a setting of the lottery is wrong.
    """
    match behind(model, expr):
        case syntax.Call(arguments=(syntax.Name(id=name), *others)) as call if name == source.name:
            special = any(isinstance(other, syntax.NO_EXPRESSION) for other in others)
            return None if special else call_of(model, call).drawn
    return None


def beyond_tables(model: Model, source: GraphNode) -> bool:
    """Whether a table is not for this vote: by its requirements and options, or because it would have too many rows."""
    if any(r.neighbours.adding or isinstance(r.measure, Chosen) for r in model.requirements):
        return True
    if model.trust.alone:
        return True
    if set(model.families) & {one.name for one in VOTING} and "table" not in model.families:
        return True
    return not _listed(model, source)


def _listed(model: Model, source: GraphNode) -> bool:
    """Whether a table has few rows, found without counting them where there are very many."""
    assert source.domain is not None and source.index is not None
    kinds, voters = source.domain.size or 0, model.parties[source.index].size
    if kinds > 1 and (kinds - 1) * voters >= ROW_LIMIT:  # there are more classes of counts than that
        return False
    if comb(voters + kinds - 1, voters) > ROW_LIMIT:
        return False
    space = space_of(model, source)
    return not isinstance(space, Listed) or 0 < space.size <= ROW_LIMIT


def kind_of(domain: Domain | None) -> tuple[str, int]:
    """How plans call ballots, and how many alternatives one of them names at most."""
    match domain:
        case RankingOf(alternatives=alternatives):
            return "ranking", len(alternatives)
        case PartialRankingOf(places=places):
            return "partial ranking", places
    return "first choice", 1


# --- rounds that share a budget -------------------------------------------------------------------


def shared_rounds(model: Model) -> Rounds | None:
    """The rounds of a vote that share a budget, whatever draws its winner."""
    return rounds_of(model) if voting(model) is not None else None


def rounds_of(model: Model) -> Rounds | None:
    """The rounds that share a budget: a chosen number, or a parameter that only requirements use; else None.

    Raises: Failure PS0525 where the number is chosen, and solve cannot.
    """
    lines = model.spec.privacy
    shares = [share for line in lines if (share := _share(line, model)) is not None]
    if not shares:
        return None
    divisor, chosen = shares[0][1], {node.name for node in model.choices}
    name, wholes = divisor.id, {public_number(whole, model) for whole, _ in shares}
    same = len(shares) == len(lines) and len(wholes) == 1 and all(by.id == name for _, by in shares)
    if name in chosen:
        if not same:
            text = f"rounds that are chosen divide one budget in every requirement: (budget / {name})-{PURE.word}"
            raise Failure("PS0525", lines[0].span, text, help=f"O is (budget / rounds)-{PURE.word} wrt vote")
        budget = next(iter(wholes))
        if budget <= 0:
            text = "a budget that is shared by rounds is above 0"
            raise Failure("PS0525", lines[0].span, text, help=f"O is (budget / rounds)-{PURE.word} wrt vote")
        _chosen_rounds(model, name)
        return Rounds(name, budget, None)
    count = model.values.get(name)
    uses = sum(node.id == name for node in every(model.spec, syntax.Name))
    if not same or uses > len(shares) or not isinstance(count, Fraction) or count.denominator != 1 or count < 1:
        return None
    return Rounds(name, next(iter(wholes)), int(count))


def _share(line: syntax.Requirement, model: Model) -> tuple[syntax.Expr, syntax.Name] | None:
    """A public amount divided by a name that is chosen, or a parameter."""
    match line.amount.items:
        case (syntax.Binary(op="/", left=whole, right=syntax.Name() as divisor),) if public(whole, model):
            return whole, divisor
    return None


def _chosen_rounds(model: Model, name: str) -> Choice:
    """Their range, and how the loss falls with them.

    Raises: Failure PS0525.
    """
    node, loss = model.nodes[name], model.loss
    match node.domain:
        case IntegerRange(low=low, high=high) if low >= 1:
            found = factor_of(loss, name, model) if loss is not None and len(model.choices) == 1 else None
            if found is not None and (found[0] > 0) == found[1] and found[0]:
                return Choice(name, Fraction(low), Fraction(high), True, *found)
            message = f"solve chooses {name} where as many as fit is all that is asked for"
            hint = f"loss: -{name}, or loss: 1 / {name}"
            raise Failure("PS0525", model.spec.span if loss is None else loss.span, message, help=hint)
    text = f"a number of rounds is chosen from whole numbers from 1: choose {name} in 1..10000"
    raise Failure("PS0525", node.span, text)


# --- the block ------------------------------------------------------------------------------------


@reading()
def block_of(model: Model) -> Vote:
    """A vote in numbers, also one that a table is for.

    Raises: SpecError PS05xx with the first construct that cannot be computed.
    """
    return _Reader(model).votes()


class _Reader:
    """Reads one model; `points` is what the first lottery that the loss names counts."""

    def __init__(self, model: Model) -> None:
        source = voting(model)
        assert source is not None and source.index is not None
        self.model, self.source, self.output = model, source, model.outputs[0]
        self.index = source.index
        self.rounds = rounds_of(model)
        self.drawn = tuple(self._lotteries())
        self.points: Points = self.drawn[0].points if self.drawn else FirstChoice(self._choices())

    def votes(self) -> Vote:
        """Everything."""
        model, source = self.model, self.source
        self._check_winner()
        self._check_options()
        if model.loss is None:
            raise without_loss(model)
        loss = self._loss(model.loss)
        limits = tuple(self._limit(target) for target in model.accuracy)
        kind, longest = kind_of(source.domain)
        law, sure = self._ballot_law(), self._supporters()
        if law is None:
            self._refuse_averages()
        for requirement in model.requirements:
            self._check_requirement(requirement, loss)
        return Vote(
            source=source.name,
            party=self.index,
            output=self.output.name,
            voters=model.parties[self.index].size,
            secret=any(requirement.neighbours.adding for requirement in model.requirements),
            ballots=Ballots(kind, tuple(show(a) for a in self.points.alternatives), longest, self.points.name, sure),
            law=law,
            loss=loss,
            expression=spell(model.loss),
            limits=limits,
            rounds=self.rounds,
            families=tuple(model.families),
        )

    # -- ballots and winner

    def _choices(self) -> tuple[Symbol, ...]:
        domain = self.source.domain
        return domain.items if isinstance(domain, FiniteSet) else getattr(domain, "alternatives", ())

    def _lotteries(self) -> Iterator[Drawn]:
        """Voting that the winner is compared with."""
        lines = [self.model.loss, *(target.target.left for target in self.model.accuracy)]
        for line in lines:
            for expr in () if line is None else _others(line, self.output.name):
                found = drawn_of(self.model, expr, self.source)
                if found is not None:
                    yield found

    def _check_winner(self) -> None:
        domain = self.output.domain
        items = domain.items if isinstance(domain, FiniteSet) else ()
        if set(items) != set(self.points.alternatives):
            text = f"{self.output.name} and {self.source.name} do not have the same alternatives"
            hint = f"leave out the domain of {self.output.name}: it is taken from what the loss compares it with"
            raise Failure("PS0519", self.output.span, text, help=hint)
        if any(d.points != self.points for d in self.drawn):
            raise Failure(
                "PS0520",
                self.model.loss_span,
                "solve compares a winner with lotteries of one kind of points, not of two",
            )

    def _check_options(self) -> None:
        model = self.model
        for constraint in model.constraints:
            said = "solve cannot compute conditions on the law of a winner"
            hint = "an accuracy line limits how far it may be from a lottery: worst[ total_variation(O, ...) ] <= 0.01"
            raise Failure("PS0501", constraint.relation.span, said, help=hint)
        for line in model.fairness:
            hint = "leave the line out: the page for auditors says which voters and candidates the rule treats alike"
            raise Failure("PS0501", line.span, "solve cannot compute fairness lines for votes", help=hint)
        if model.noise_at is not None:
            text = "solve cannot compute places for noise in a vote"
            help_ = "the rule says how the winner is drawn: leave the line out"
            raise Failure("PS0501", model.noise_at_spans[0], text, help=help_)
        if not model.trust.drawn_whole:
            hint = f"a winner is no sum of shares, but counts are: release histogram({model.inputs[0].name}); or write "
            hint += f"`{NOBODY.written}`, where each voter reports, or `{CURATOR.written}`"
            raise Failure(
                "PS0501", model.trust_span, f"solve cannot compute `trust {model.trust.name}` for votes", help=hint
            )

    def _ballot_law(self) -> BallotLaw | None:
        """The law of the points of one ballot, None without a data model.

        Raises: Failure PS0522 where there are too many kinds of ballots, PS0514 and others for models without exact
            laws.
        """
        data = next((m for m in self.model.models if m.subject == self.source.name), None)
        domain, points = self.source.domain, self.points
        if data is None or domain is None:
            return None
        plain = data.distribution == "uniform" and not data.arguments
        if plain and isinstance(points, FirstChoice) and isinstance(domain, FiniteSet | RankingOf):
            m = len(points.alternatives)
            return tuple((points.of(a), Fraction(1, m)) for a in points.alternatives)
        size = domain.size or 0
        if size > KINDS:
            text = f"there are {size:,} kinds of ballots; a data model is read for up to {KINDS:,}"
            hint = "use fewer alternatives, or shorter ballots: partial_ranking(A, 3)"
            raise Failure("PS0522", data.span, text, help=hint)
        ballots = tuple(domain.elements())
        found: dict[Law, Fraction] = {}
        for ballot, weight in zip(ballots, law_of(data, ballots, environment(self.model)), strict=True):
            given = points.of(ballot)
            found[given] = found.get(given, Fraction(0)) + weight
        return tuple((given, weight) for given, weight in found.items() if weight)

    def _supporters(self) -> int:
        """How many votes every alternative has in all electorates that the facts let exist.

        Raises: Failure PS0501 for other facts, PS0345 where there are too few voters for that, PS0522 with a law.
        """
        model, alternatives = self.model, self.points.alternatives
        if not model.facts:
            return 0
        found = [0] * len(alternatives)
        for one in model.facts:
            least = list(_least_votes(one.relation, model, self.source.name))
            if not least:
                text = "of votes that no table is for, solve takes one fact: how many each alternative has at least"
                hint = f"histogram({self.source.name})[j] >= 1 for j in 1..{len(alternatives)}"
                raise Failure("PS0501", one.relation.span, text, help=hint)
            for place, number in least:
                found[place] = max(found[place], number)
        span = model.facts[-1].relation.span
        if len(set(found)) > 1 or not found[0]:
            text = "solve takes facts about votes that give every alternative the same least number of votes, from 1"
            hint = f"histogram({self.source.name})[j] >= {max(1, min(found))} for j in 1..{len(alternatives)}"
            raise Failure("PS0501", span, text, help=hint)
        if sum(found) > model.parties[self.index].size:
            raise Failure("PS0345", span, "no data are such that all facts of this spec are true")
        if sum(found) >= model.parties[self.index].size + all(one.neighbours.adding for one in model.requirements):
            text = "so many votes are certain that no two electorates differ in a vote"
            raise Failure("PS0346", span, text)
        if any(data.subject == self.source.name for data in model.models):
            text = "solve takes no average over votes of which facts are known"
            raise Failure("PS0522", span, text, help="leave out the data model, or the facts")
        return found[0]

    def _refuse_averages(self) -> None:
        """Raises: Failure PS0522 for an average over votes that have no model of their own."""
        lines = (self.model.loss, *(target.target.left for target in self.model.accuracy))
        for node in (node for line in lines if line is not None for node in walk(line)):
            if isinstance(node, syntax.Over) and node.operator == "E":
                text = f"this average is over {self.source.name}, which has no data model"
                hint = f"add a model such as {self.source.name} ~ uniform, or write worst[ ... ]"
                raise Failure("PS0522", node.span, text, help=hint)

    # -- requirements

    def _check_requirement(self, requirement: Requirement, loss: Total | Choice) -> None:
        """Raises: Failure PS0521 for units and measures that no rule is known for, PS0524 for other chosen amounts."""
        span, relation, measure = requirement.span, requirement.neighbours, requirement.measure
        if isinstance(relation, ReplacingEntry | ReplacingRecord | ReplacingOneOf):
            raise Failure(
                "PS0521",
                span,
                f"solve protects whole voters here, and this line is about {relation.describe()}",
                help=f"replacing one {self.index}, or adding or removing one {self.index}",
            )
        comes = any(other.neighbours.adding for other in self.model.requirements)
        if isinstance(relation, ReplacingEverything) and comes:
            said = f"where {self.index}s come and go their number is a secret, and so is how many would be replaced"
            raise Failure("PS0521", span, said, help=f"replacing up to k {self.index}s")
        match measure:
            case MeasureAt(of=known) if known.of_laws and known.follows_from_pure:
                return
            case Chosen(of=known, amounts_as_written=(amount,)) if known in PURE_MEASURES and isinstance(loss, Choice):
                if loss.whole or (isinstance(amount, syntax.Name) and amount.id == loss.name):
                    return
        if isinstance(measure, Chosen):
            message = "solve chooses epsilon where it is the whole loss and stands alone in the requirement"
            help_ = f"loss: epsilon, and a requirement such as O is {PURE.name} wrt vote"
            raise Failure("PS0524", span, message, help=help_)
        text = f"solve cannot compute rules for {measure.describe()}"
        hint = f"rules of private voting meet {PURE.name}, and {APPROXIMATE.name} by way of it"
        raise Failure("PS0521", span, text, help=hint)

    # -- loss

    def _loss(self, loss: syntax.Expr) -> Total | Choice:
        """A sum of costs, or the one number that solving picks."""
        if self.rounds is not None and self.rounds.count is None:
            return _chosen_rounds(self.model, self.rounds.name)
        if not self.model.choices:
            return self._measured(loss)
        match loss:
            case syntax.Name(id=name) if name in {node.name for node in self.model.choices}:
                low, high = _ends(self.model.nodes[name])
                return Choice(name, low, high, False, Fraction(1), False)
        raise Failure("PS0524", loss.span, _WHOLE, help="loss: epsilon")

    def _measured(self, expr: syntax.Expr) -> Total:
        found: list[Term] = []
        offset = Fraction(0)
        for term in terms(expr, self.model):
            if isinstance(term, ChosenTerm):
                raise Failure("PS0524", expr.span, _WHOLE)
            if isinstance(term, Fraction):
                offset += term
                continue
            parts: list[Cost] = []
            for weight, part in multiples(term.body, self.model, term.weight):
                if public(part, self.model):
                    offset += weight * public_number(part, self.model)
                else:
                    parts.append(replace(self._cost(part), weight=weight))
            if parts:
                found.append(Term(term.operator, tuple(parts)))
        return Total(tuple(found), offset)

    def _limit(self, target: AccuracyTarget) -> Limit:
        written = target.target
        if written.variable is not None or written.probability is not None:
            raise Failure("PS0501", written.span, "solve cannot compute this accuracy line for votes", help=PLAIN)
        bound = public_number(written.right, self.model)
        if not any(call.function == FUNCTION for call in every(written.left, syntax.Call)):
            return Limit(target.line, target.text, self._measured(written.left), bound)
        match written.left:
            case syntax.Call(function="manipulation", arguments=(syntax.Name(id=first), syntax.Name(id=second))) if (
                first,
                second,
            ) == (self.output.name, self.source.name):
                return Limit(target.line, target.text, None, bound)
        text = "solve bounds what a lie brings where it stands by itself, and is about the winner and all ballots"
        way_out = f"{FUNCTION}({self.output.name}, {self.source.name}) <= 0.1"
        raise Failure("PS0501", written.left.span, text, help=way_out)

    def _cost(self, expr: syntax.Expr) -> Cost:
        match expr:
            case syntax.Call(
                function="mean",
                arguments=(
                    syntax.Comprehension(body=syntax.Call(function="mismatch") as inner, variable=by, domain=None),
                ),
            ) if by == self.index and self._is_ballot(inner):
                return beside("votes missed", Lottery(DUMMY_VOTES))
            case syntax.Call(function="total_variation" | "mismatch" as function):
                for other in _others(expr, self.output.name):
                    found = drawn_of(self.model, other, self.source)
                    if found is not None:
                        form = "distance" if function == "total_variation" else "mismatch"
                        return beside(form, found.lottery)
        text = f"solve compares {self.output.name} with a lottery of the votes, or with all votes on average"
        hint = (
            f"total_variation({self.output.name}, random_dictator({self.source.name})), or "
            f"mean(mismatch({self.output.name}, {self.source.name}[{self.index}]) for {self.index})"
        )
        raise Failure("PS0520", expr.span, text, help=hint)

    def _is_ballot(self, call: syntax.Call) -> bool:
        """`mismatch(O, vote[voter])`."""
        match list(_others(call, self.output.name)):
            case [syntax.Index(base=syntax.Name(id=name), indices=(syntax.Name(id=index),))]:
                first = isinstance(self.source.domain, FiniteSet)
                return first and name == self.source.name and index == self.index
        return False


def _others(expr: syntax.Node, output: str) -> Iterator[syntax.Node]:
    """What the winner stands beside in `total_variation(O, w)` and `mismatch(O, w)`."""
    for node in walk(expr):
        if isinstance(node, syntax.Call) and node.function in ("total_variation", "mismatch"):
            yield from beside_output(node, output)


def _least_votes(relation: syntax.Relation, model: Model, votes: str) -> Iterator[tuple[int, int]]:
    """Which alternatives have at least how many of the `votes`; nothing where a fact says anything else."""
    sides = {">=": (relation.left, relation.right), "<=": (relation.right, relation.left)}.get(relation.op)
    if sides is None:
        return
    loops = [side.terms for side in sides if isinstance(side, syntax.Each)]
    counts, least = (side.terms.body if isinstance(side, syntax.Each) else side for side in sides)
    match counts:
        case syntax.Index(
            base=syntax.Call(function="histogram", arguments=(syntax.Name(id=name),)), indices=(place,)
        ) if name == votes and all(one.id != votes for one in every(least, syntax.Name)):
            known = environment(model)
            for value in places(loops[0], known) if loops else (None,):
                there = environment(model, {loops[0].variable: value}) if value is not None else known
                index, number = evaluate(place, there), evaluate(least, there)
                assert isinstance(index, Fraction) and isinstance(number, Fraction)
                yield int(index) - 1, max(0, ceil(number))


def _ends(node: GraphNode) -> tuple[Fraction, Fraction | None]:
    """The ends of the range of a `choose` number, which is above 0."""
    match node.domain:
        case Interval(low=low, high=high):
            return (low or Fraction(0), high)
        case IntegerRange(low=least, high=most):
            return Fraction(least), Fraction(most)
    raise Failure("PS0524", node.span, f"{node.name} is chosen from a range", help="choose epsilon in [0.1, 2]")
