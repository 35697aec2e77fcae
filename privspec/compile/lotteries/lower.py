"""From the graph of a vote to exact numbers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from privspec.compile.lotteries.ballots import drawn_of, kind_of, voting
from privspec.compile.lotteries.costs import Body, Cost, Distance, Miss, VotesMissed
from privspec.compile.lotteries.electorate import ballot_law
from privspec.compile.lotteries.lies import about_lies, check_lies
from privspec.compile.lotteries.rounds import rounds_of
from privspec.compile.lotteries.system import ChosenEpsilon, Limit, LotterySystem, Measured, Promise, Term
from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.language import syntax
from privspec.mechanisms.lotteries.rule import VotingTask
from privspec.model.domains import FiniteSet, IntegerRange, Interval, PartialRankingOf
from privspec.model.graph import GraphNode, Model
from privspec.model.lotteries import Drawn, FirstChoice, Largest, Lottery, Proportional
from privspec.model.measures import LDP, Chosen, EpsilonDelta, PureDP
from privspec.model.neighbours import ReplacingEntry, ReplacingEverything, ReplacingOneOf, ReplacingRecord
from privspec.model.reports import Failure
from privspec.model.requirements import AccuracyTarget, Requirement
from privspec.model.trust import Curator, Nobody
from privspec.problem.terms import Chosen as ChosenTerm
from privspec.problem.terms import public, public_number, terms


def lower(model: Model) -> LotterySystem:
    """The system of a vote.

    Raises: SpecError PS05xx with the first construct that cannot be computed.
    """
    try:
        return _Reader(model).system()
    except Failure as failure:
        label = Label(failure.span, failure.label)
        raise SpecError(
            Diagnostic(failure.code, failure.message, (label,), help=failure.help, source=model.source)
        ) from failure


_WHOLE = "solve chooses an epsilon where it is the whole loss"


class _Reader:
    """Reads one model; `points` is what the first lottery that the loss names counts."""

    def __init__(self, model: Model) -> None:
        source = voting(model)
        assert source is not None and source.index is not None
        self.model, self.source, self.output = model, source, model.outputs[0]
        self.voters = model.parties[source.index].size
        self.rounds = rounds_of(model)
        self.drawn = tuple(self._lotteries())
        self.points = self.drawn[0].points if self.drawn else FirstChoice(self._choices())

    def system(self) -> LotterySystem:
        """Everything."""
        model, source = self.model, self.source
        assert source.index is not None
        self._check_winner()
        self._check_options()
        if model.loss is None:
            raise Failure("PS0504", model.spec.span, "there is no loss to minimise", help="add a loss: section")
        counting = self.rounds is not None and self.rounds.count is None
        chosen = None if counting else self._chosen(model.loss)
        loss = Measured(()) if counting or chosen is not None else self._measured(model.loss)
        limits = tuple(self._limit(target) for target in model.accuracy)
        kind, longest = kind_of(source.domain)
        compared, name = self._reference()
        law = ballot_law(model, source, self.points)
        if law is None:
            _refuse_averages((loss, *(limit.measured for limit in limits)), source.name)
        return LotterySystem(
            model,
            source.name,
            source.index,
            self.voters,
            self.points,
            kind,
            longest,
            self.output.name,
            tuple(self._promise(r, i, chosen) for i, r in enumerate(model.requirements)),
            loss,
            limits,
            compared,
            name,
            chosen,
            law,
            isinstance(model.trust, Nobody),
            self.rounds,
        )

    # -- ballots and winner

    def _choices(self) -> tuple[str | Fraction, ...]:
        domain = self.source.domain
        return domain.items if isinstance(domain, FiniteSet) else getattr(domain, "alternatives", ())

    def _lotteries(self) -> Iterator[Drawn]:
        """Lotteries that the winner is compared with."""
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
            raise Failure(
                "PS0519",
                self.output.span,
                f"{self.output.name} and {self.source.name} do not have the same alternatives",
                help=f"leave out the domain of {self.output.name}: it is taken from what the loss compares it with",
            )
        wrong = next((d for d in self.drawn if d.points != self.points), None)
        if wrong is not None:
            span = self.model.loss.span if self.model.loss is not None else self.model.spec.span
            raise Failure("PS0520", span, "solve compares a winner with lotteries of one kind of points, not of two")

    def _reference(self) -> tuple[Lottery, str]:
        """The lottery without noise that distortion is measured from."""
        lottery = self.drawn[0].lottery if self.drawn else Largest()
        if isinstance(lottery, Proportional):
            return lottery, "random_dictator" if isinstance(self.points, FirstChoice) else "borda_lottery"
        return (lottery, "plurality") if isinstance(lottery, Largest) else (Proportional(), "random_dictator")

    def _check_options(self) -> None:
        model = self.model
        for constraint in model.constraints:
            raise Failure("PS0501", constraint.relation.span, "solve cannot compute conditions on a winner's law yet")
        for line in model.fairness:
            raise Failure("PS0501", line.span, "solve cannot compute fairness lines for votes yet")
        if model.noise_at is not None:
            raise Failure(
                "PS0501",
                model.noise_at_spans[0],
                "solve cannot compute places for noise in a vote",
                help="the rule says how the winner is drawn: leave the line out",
            )
        if not isinstance(model.trust, Curator | Nobody):
            span = getattr(model.trust, "span", None) or model.spec.span
            raise Failure("PS0501", span, f"solve cannot compute `trust {model.trust.name}` for votes")

    # -- requirements

    def _promise(self, requirement: Requirement, index: int, chosen: ChosenEpsilon | None) -> Promise:
        span, relation, measure = requirement.span, requirement.neighbours, requirement.measure
        if isinstance(relation, ReplacingEntry | ReplacingRecord | ReplacingOneOf):
            raise Failure(
                "PS0521",
                span,
                f"solve protects whole voters here, and this line is about {relation.describe()}",
                help=f"replacing one {self.source.index}, or adding or removing one {self.source.index}",
            )
        group = self.voters if isinstance(relation, ReplacingEverything) else relation.group
        task = VotingTask(
            self.points,
            None if relation.adding else self.voters,
            relation.adding,
            group,
            not isinstance(self.source.domain, PartialRankingOf) or isinstance(self.points, FirstChoice),
        )
        match measure:
            case PureDP() | EpsilonDelta() | LDP():
                return Promise(index, requirement, task, measure.amounts["epsilon"])
            case Chosen(kind="epsilon-DP" | "epsilon-LDP", amounts_as_written=(syntax.Name(id=name),)) if (
                chosen is not None and name == chosen.name
            ):
                return Promise(index, requirement, task, None)
            case Chosen(kind="epsilon-DP" | "epsilon-LDP") if self.rounds is not None and self.rounds.count is None:
                return Promise(index, requirement, task, None)
            case Chosen():
                raise Failure(
                    "PS0524",
                    span,
                    "solve chooses epsilon where it is the whole loss and stands alone in the requirement",
                    help="loss: epsilon, and a requirement such as O is epsilon-DP wrt vote",
                )
        raise Failure(
            "PS0521",
            span,
            f"solve cannot compute rules for {measure.describe()}",
            help="rules of private voting meet epsilon-DP, and (epsilon, delta)-DP by way of it",
        )

    def _chosen(self, loss: syntax.Expr) -> ChosenEpsilon | None:
        """The number that is the loss."""
        match loss:
            case syntax.Name(id=name) if name in {node.name for node in self.model.choices}:
                node = self.model.nodes[name]
                low, high = _ends(node)
                return ChosenEpsilon(name, low, high, node.span)
        if self.model.choices:
            raise Failure("PS0524", loss.span, _WHOLE, help="loss: epsilon")
        return None

    # -- loss

    def _measured(self, expr: syntax.Expr) -> Measured:
        found: list[Term] = []
        offset = Fraction(0)
        for term in terms(expr, self.model):
            if isinstance(term, ChosenTerm):
                raise Failure("PS0524", expr.span, _WHOLE)
            if isinstance(term, Fraction):
                offset += term
                continue
            found.append(Term(term.weight, term.operator, self._body(term.body), term.span))
        return Measured(tuple(found), offset)

    def _limit(self, target: AccuracyTarget) -> Limit:
        written = target.target
        if written.variable is not None or written.probability is not None:
            raise Failure("PS0501", written.span, "solve cannot compute this form of accuracy line for votes")
        bound = public_number(written.right, self.model)
        if about_lies(written.left):
            check_lies(written.left, self.output.name, self.source.name)
            return Limit(target, Measured(()), bound, lies=True)
        return Limit(target, self._measured(written.left), bound)

    def _body(self, expr: syntax.Expr) -> Body:
        parts: list[tuple[Fraction, Cost]] = []
        offset = Fraction(0)
        for weight, cost in self._parts(expr, Fraction(1)):
            if cost is None:
                offset += weight
            else:
                parts.append((weight, cost))
        return Body(tuple(parts), offset)

    def _parts(self, expr: syntax.Expr, weight: Fraction) -> Iterator[tuple[Fraction, Cost | None]]:
        model = self.model
        match expr:
            case syntax.Binary(op="+" | "-"):
                yield from self._parts(expr.left, weight)
                yield from self._parts(expr.right, weight if expr.op == "+" else -weight)
            case syntax.Negate():
                yield from self._parts(expr.operand, -weight)
            case syntax.Binary(op="*") if public(expr.left, model):
                yield from self._parts(expr.right, weight * public_number(expr.left, model))
            case syntax.Binary(op="*") if public(expr.right, model):
                yield from self._parts(expr.left, weight * public_number(expr.right, model))
            case syntax.Binary(op="/") if public(expr.right, model) and public_number(expr.right, model):
                yield from self._parts(expr.left, weight / public_number(expr.right, model))
            case _ if public(expr, model):
                yield weight * public_number(expr, model), None
            case _:
                yield weight, self._cost(expr)

    def _cost(self, expr: syntax.Expr) -> Cost:
        match expr:
            case syntax.Call(
                function="mean",
                arguments=(
                    syntax.Comprehension(body=syntax.Call(function="mismatch") as inner, variable=by, domain=None),
                ),
            ) if by == self.source.index and self._is_ballot(inner):
                return VotesMissed()
            case syntax.Call(function="total_variation" | "mismatch" as function):
                for other in _others(expr, self.output.name):
                    found = drawn_of(self.model, other, self.source)
                    if found is not None:
                        return Distance(found.lottery) if function == "total_variation" else Miss(found.lottery)
        raise Failure(
            "PS0520",
            expr.span,
            f"solve compares {self.output.name} with a lottery of the votes, or with all votes on average",
            help=f"total_variation({self.output.name}, random_dictator({self.source.name})), or "
            f"mean(mismatch({self.output.name}, {self.source.name}[{self.source.index}]) for {self.source.index})",
        )

    def _is_ballot(self, call: syntax.Call) -> bool:
        """`mismatch(O, vote[voter])`."""
        match list(_others(call, self.output.name)):
            case [syntax.Index(base=syntax.Name(id=name), indices=(syntax.Name(id=index),))]:
                first = isinstance(self.source.domain, FiniteSet)
                return first and name == self.source.name and index == self.source.index
        return False


def _refuse_averages(lines: tuple[Measured, ...], votes: str) -> None:
    """Raises: Failure PS0522 for an average over votes that have no model of their own."""
    for term in (term for line in lines for term in line.terms if term.operator == "E"):
        raise Failure(
            "PS0522",
            term.span,
            f"this average is over {votes}, which has no data model",
            help=f"add a model such as {votes} ~ uniform, or write worst[ ... ]",
        )


def _others(expr: syntax.Node, output: str) -> Iterator[syntax.Node]:
    """What the winner stands beside in `total_variation(O, w)` and `mismatch(O, w)`."""
    from privspec.model.walk import walk

    for node in walk(expr):
        match node:
            case syntax.Call(function="total_variation" | "mismatch", arguments=(a, b)):
                for mine, other in ((a, b), (b, a)):
                    if isinstance(mine, syntax.Name) and mine.id == output:
                        yield other


def _ends(node: GraphNode) -> tuple[Fraction, Fraction | None]:
    """The ends of the range of a `choose` number, which is above 0."""
    match node.domain:
        case Interval(low=low, high=high):
            return (low or Fraction(0), high)
        case IntegerRange(low=least, high=most):
            return Fraction(least), Fraction(most)
    raise Failure("PS0524", node.span, f"{node.name} is chosen from a range", help="choose epsilon in [0.1, 2]")
