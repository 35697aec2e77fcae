"""Valid plans that draw a winner from votes, made without the compiler: parameters and losses from formulas here.

Parameters are rounded to multiples of 2^-62 so that the ratio of a plan lies just inside e^epsilon: any change of that
size in the wrong direction breaks the guarantee.
"""

from __future__ import annotations

import copy
import hashlib
import json
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from math import ceil, floor, inf, log, nextafter
from typing import Any

from tests.certify.plans import trust

Plan = dict[str, Any]
Path = tuple[Any, ...]
FINE = 2**62
WORDS = ("north", "east", "south", "west")


def e_to(epsilon: Fraction) -> Fraction:
    """Within 1e-48 of e^epsilon, relatively."""
    context = Context(prec=50)
    return Fraction(context.exp(context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))))


def dummies(epsilon: Fraction, reach: int = 1) -> Fraction:
    """The least number of dummy votes, up to a multiple of 2^-62."""
    return Fraction(ceil(reach / (e_to(epsilon) - 1) * FINE), FINE)


def base(epsilon: Fraction) -> Fraction:
    """The largest base, down to a multiple of 2^-62."""
    return Fraction(floor(e_to(epsilon) * FINE), FINE)


def up(value: Fraction) -> float:
    near = float(value)
    return near if Fraction(near) >= value else nextafter(near, inf)


def digest(plan: Plan) -> str:
    body = {k: v for k, v in plan.items() if k != "digest"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def signed(plan: Plan) -> Plan:
    plan = json.loads(json.dumps(plan))
    plan["digest"] = digest(plan)
    return plan


def leaves(value: Any, path: Path = ()) -> Any:
    """Every value with its path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key), inner
        yield from leaves(inner, (*path, key))


def put(plan: Plan, path: Path, value: Any) -> Plan:
    """A signed copy with one value in place of another."""
    copied = copy.deepcopy(plan)
    place = copied
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return signed(copied)


def without(plan: Plan, path: Path) -> Plan:
    """A signed copy without one entry."""
    copied = copy.deepcopy(plan)
    place = copied
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return signed(copied)


# --- specs -----------------------------------------------------------------------------------------------

REPLACING = "O is epsilon-DP wrt vote, replacing one voter"
ADDING = "O is epsilon-DP wrt vote, adding or removing one voter"
WORST = "worst[ total_variation(O, random_dictator(vote)) ]"
BORDA = "worst[ total_variation(O, borda_lottery(vote)) ]"
MISSED = "worst[ mismatch(O, plurality(vote)) ]"
PLURALITY = "E[ mean(mismatch(O, vote[voter]) for voter) ]"


def spec(
    voters: int,
    *,
    epsilon: str = "1/2",
    size: int = 3,
    ballots: str = "A",
    loss: str = WORST,
    privacy: str = REPLACING,
    uniform: bool = False,
    options: str = "",
    choose: bool = False,
    accuracy: str = "",
) -> str:
    """A vote; options are lines."""
    words = ", ".join(WORDS[:size])
    lines = ["spec vote", "parameters:", f"    T = {voters}", f"    A = {{{words}}}"]
    lines += [] if choose else [f"    epsilon = {epsilon}"]
    lines += ["parties: voter in 1..T", "variables:", f"    input vote[voter] in {ballots}", "    output O in A"]
    lines += ["    choose epsilon in [0.01, 10]"] if choose else []
    lines += ["background: vote ~ uniform"] if uniform else []
    lines += [f"loss: {loss}"]
    lines += [f"accuracy: {accuracy}"] if accuracy else []
    lines += ["privacy:", f"    {privacy}"]
    lines += ["options:", f"    {options}"] if options else []
    return "\n".join(lines) + "\n"


def plan(source: str, mechanism: Plan, loss: Plan, properties: tuple[bool, bool, bool], **about: Any) -> Plan:
    """A document; `about` replaces entries, and `achieved`, `guarantee` entries of the guarantee."""
    text = next(line.strip() for line in source.split("\n") if " is epsilon-" in line)
    line = next(i for i, each in enumerate(source.split("\n"), 1) if text in each)
    relation = text.split(", ")[1]
    names = ("treats_voters_alike", "ex_post_efficient", "strategy_proof")
    size = mechanism.pop("size", 3)
    guarantee = {
        "outputs": ["O"],
        "wrt": "vote",
        "neighbours": relation,
        "observer": "anyone",
        "measure": "epsilon-DP",
        "epsilon": "1/2",
        "requirement": 0,
        "line": line,
        "text": text,
        "achieved": {"epsilon": about.pop("achieved", "1/2")},
        "because": ["dummy-votes"],
    } | about.pop("guarantee", {})
    document = {
        "format": "privspec-plan/2.0",
        "spec": {
            "name": "vote",
            "path": "vote.priv",
            "sha256": hashlib.sha256(source.encode()).hexdigest(),
            "source": source,
            "parameters": {},
            "constants": {},
        },
        "status": "feasible",
        "loss": {
            "lower_bound": None,
            "relative_gap": None,
            "expression": next(x for x in source.split("\n") if x.startswith("loss: ")).removeprefix("loss: "),
            "units": "units of the loss expression",
            "among": "the rules of private voting that this plan lists",
            "kind": "worst",
        }
        | loss,
        "alternatives": [],
        "mechanism": {
            "input": "vote",
            "party": "voter",
            "voters": None if "adding" in relation else about.pop("voters"),
            "ballots": "first choice",
            "alternatives": list(WORDS[:size]),
            "output": "O",
            "points": "first choice",
            "rounds": None,
            "scalars": {},
            "properties": [
                {"name": name, "holds": holds, "note": "keeping", "because": "because", "counterexample": None}
                for name, holds in zip(names, properties, strict=True)
            ],
            "figures": {"worst_distortion": None, "mean_distortion": None, "expected_welfare": None},
            "paper": [],
        }
        | mechanism,
        "guarantees": [guarantee],
        "accuracy": [],
        "assumptions": [{"text": trust(source), "status": "assumed", "because": {"note": "trust-by-default"}}],
        "claims": {"kind": "lottery", "lower_bound": None, "votes": None, "scope": SCOPE},
        "remarks": {"binding": [], "solver": {"name": "by hand", "iterations": 0, "seconds": 0.0}},
    }
    document |= about
    if document["claims"]["lower_bound"] is not None:
        document["loss"]["among"] = document["claims"]["scope"]
    return signed(document)


SCOPE = "every rule that meets the requirement"
HALF = Fraction(1, 2)
LINEAR = (True, False, True)
POWERS = (True, False, False)


def bounded(value: Fraction, votes: int, voters: int, step: Fraction) -> Plan:
    """Loss and certificate with the bound of so many votes, for three alternatives."""
    bound = Fraction(votes, voters) / (1 + e_to(votes * step) / 2)
    lower = nextafter(float(bound), 0.0)
    gap = (up(value) - lower) / up(value)
    return {
        "loss": {"value": up(value), "lower_bound": lower, "relative_gap": gap},
        "claims": {"kind": "lottery", "lower_bound": lower, "votes": votes, "scope": SCOPE},
    }


def dictator(voters: int = 100, privacy: str = REPLACING, group: int = 1) -> Plan:
    """Dummy votes with a bound, and the paper's figures where voters come and go."""
    k = dummies(HALF, group)
    worst = 2 * k / (voters + 3 * k)
    adding = "adding" in privacy
    proved = bounded(worst, 2, voters, HALF * (2 if adding else 1))
    t = voters + 3 * k
    lemma = {
        "quantity": f"epsilon of Lemma 1 at T = {voters}",
        "says": log((1 + 1 / k) * t / (t + 1)),
        "holds": log(1 + 1 / k),
        "text": "For one number of voters.",
    }
    mechanism = {
        "family": "dictator",
        "dummy_votes": str(k),
        "compared": "random_dictator",
        "figures": {"worst_distortion": up(worst), "mean_distortion": None, "expected_welfare": None},
        "paper": [lemma] if adding else [],
    }
    source = spec(voters, privacy=privacy)
    others = [other("no dummy votes", {"family": "none", "dummy_votes": "0"}, 0.0, False, None, (True, True, True))]
    about = {} if adding else {"voters": voters}
    return plan(source, mechanism, proved["loss"], LINEAR, alternatives=others, claims=proved["claims"], **about)


def other(
    name: str, rule: Plan, loss: float, admissible: bool, epsilon: str | None, kept: tuple[bool, bool, bool]
) -> Plan:
    """An alternative with its rule."""
    names = ("treats_voters_alike", "ex_post_efficient", "strategy_proof")
    figures = {"worst_distortion": loss, "mean_distortion": None, "expected_welfare": None}
    return {
        "name": name,
        "loss": loss,
        "admissible": admissible,
        "reason": "because",
        "rule": rule,
        "figures": {"epsilon": epsilon, **figures, "properties": dict(zip(names, kept, strict=True))},
    }


def counts(voters: int, size: int) -> Any:
    """All numbers of votes."""
    return (c for c in product(range(voters + 1), repeat=size) if sum(c) == voters)


def permute_and_flip(voters: int = 5) -> Plan:
    """Permute-and-flip for uniform votes: the average over all lists of votes, one by one."""
    b = base(HALF)
    loss = welfare = apart = worst = Fraction(0)
    laws: dict[Any, tuple[Fraction, ...]] = {}
    lists = list(product(range(3), repeat=voters))
    for votes in lists:
        n = tuple(votes.count(a) for a in range(3))
        law = laws.setdefault(n, flipped(b, n))
        share = sum((p * c for p, c in zip(law, n, strict=True)), Fraction(0)) / voters
        gone = 1 - law[n.index(max(n))]
        loss, welfare, apart, worst = loss + 1 - share, welfare + share, apart + gone, max(worst, gone)
    mechanism = {
        "family": "permute_and_flip",
        "base": str(b),
        "compared": "plurality",
        "figures": {
            "worst_distortion": up(worst),
            "mean_distortion": float(apart / len(lists)),
            "expected_welfare": float(welfare / len(lists)),
        },
    }
    source = spec(voters, loss=PLURALITY, privacy=ADDING, uniform=True)
    return plan(source, mechanism, {"value": up(loss / len(lists)), "kind": "expected"}, POWERS)


def flipped(b: Fraction, n: tuple[int, ...]) -> tuple[Fraction, ...]:
    """Permute-and-flip by going through the orders one by one."""
    from itertools import permutations

    chance = [b ** (c - max(n)) for c in n]
    law = [Fraction(0)] * len(n)
    orders = list(permutations(range(len(n))))
    for order in orders:
        left = Fraction(1, len(orders))
        for a in order:
            law[a] += left * chance[a]
            left *= 1 - chance[a]
    return tuple(law)


def exponential(voters: int = 4) -> Plan:
    """The exponential mechanism against plurality, at its exact ratio for this number of voters."""
    b = base(HALF / 2)
    ratio = b * (b**voters + 2) / (b ** (voters - 1) + b + 1)
    worst = Fraction(0)
    for n in counts(voters, 3):
        worst = max(worst, 1 - b ** max(n) / sum(b**c for c in n))
    mechanism = {
        "family": "exponential",
        "base": str(b),
        "compared": "plurality",
        "figures": {"worst_distortion": up(worst), "mean_distortion": None, "expected_welfare": None},
    }
    source = spec(voters, loss="worst[ total_variation(O, plurality(vote)) ]", options="noise family exponential")
    figure = repr(nextafter(log(ratio), 1.0))
    return plan(source, mechanism, {"value": up(worst)}, POWERS, achieved=figure, voters=voters)


def reports(voters: int = 100) -> Plan:
    """Randomised response, nobody being trusted."""
    r = base(HALF)
    worst = 2 / (r + 2)
    proved = bounded(worst, 2, voters, HALF)
    mechanism = {
        "family": "local_dictator",
        "ratio": str(r),
        "compared": "random_dictator",
        "figures": {"worst_distortion": up(worst), "mean_distortion": None, "expected_welfare": None},
    }
    source = spec(voters, options="trust nobody")
    return plan(source, mechanism, proved["loss"], LINEAR, claims=proved["claims"], voters=voters)


def winner(voters: int = 50, privacy: str = REPLACING) -> Plan:
    """Randomised response of the winner, which no rule can better where one vote is replaced."""
    r = base(HALF)
    worst = 2 / (r + 2)
    bound = 2 / (e_to(HALF) + 2)
    if "adding" in privacy:
        bound = max(2 / (e_to(2 * HALF) + 2), 1 - e_to(HALF) / 3)
    lower = nextafter(float(bound), 0.0)
    gap = (up(worst) - lower) / up(worst)
    each, more = divmod(voters, 3)
    mechanism = {
        "family": "randomised_winner",
        "ratio": str(r),
        "compared": "plurality",
        "figures": {"worst_distortion": up(worst), "mean_distortion": None, "expected_welfare": None},
    }
    loss = {"value": up(worst), "lower_bound": lower, "relative_gap": gap}
    profile = [each + (a >= 3 - more) for a in range(3)]
    proof = {"kind": "lottery", "lower_bound": lower, "votes": 1, "profile": profile, "scope": SCOPE}
    about = {} if "adding" in privacy else {"voters": voters}
    status = "optimal" if gap < 1e-6 else "feasible"
    source = spec(voters, loss=MISSED, privacy=privacy)
    return plan(source, mechanism, loss, POWERS, claims=proof, status=status, **about)


def borda(voters: int = 30, kind: str = "ranking", privacy: str = REPLACING) -> Plan:
    """Borda's lottery with dummy points."""
    k = dummies(HALF, 2)
    share = 3 * k / (3 * voters + 3 * k)
    worst = share * (Fraction(2, 3) - Fraction(1, 3))
    mechanism = {
        "family": "dictator",
        "dummy_votes": str(k),
        "ballots": kind,
        "points": "borda",
        "compared": "borda_lottery",
        "figures": {"worst_distortion": up(worst), "mean_distortion": None, "expected_welfare": None},
    }
    domain = "ranking of A" if kind == "ranking" else "partial_ranking(A)"
    source = spec(voters, ballots=domain, loss=BORDA, privacy=privacy)
    about = {} if "adding" in privacy else {"voters": voters}
    return plan(source, mechanism, {"value": up(worst)}, LINEAR, **about)


def chosen(voters: int = 100) -> Plan:
    """The least epsilon at which dummy votes are near enough to random dictatorship."""
    # 2 k / (T + 3 k) = 1/50
    k = Fraction(voters) / (100 - 3)
    epsilon = Fraction(ceil(log(1 + 1 / k) * 10**12), 10**12)
    value = 2 * k / (voters + 3 * k)
    source = spec(voters, loss="epsilon", choose=True, accuracy=f"{WORST} <= 1/50")
    line = next(i for i, each in enumerate(source.split("\n"), 1) if each.startswith("accuracy"))
    mechanism = {
        "family": "dictator",
        "dummy_votes": str(k),
        "compared": "random_dictator",
        "scalars": {"epsilon": str(epsilon)},
        "figures": {"worst_distortion": up(value), "mean_distortion": None, "expected_welfare": None},
    }
    stated = {"line": line, "text": f"{WORST} <= 1/50", "value": float(value), "bound": 0.02}
    # k = 9 votes of 100 at a distance of 1/50: log(2 (9 / 2 - 1)) / 9
    lower = nextafter(log(7) / 9, 0.0)
    loss = {"value": up(epsilon), "lower_bound": lower, "relative_gap": (up(epsilon) - lower) / up(epsilon)}
    proof = {"kind": "lottery", "lower_bound": lower, "votes": 9, "scope": SCOPE}
    return plan(
        source,
        mechanism,
        loss,
        LINEAR,
        achieved=str(epsilon),
        voters=voters,
        accuracy=[stated],
        claims=proof,
        guarantee={"epsilon": str(epsilon)},
    )
