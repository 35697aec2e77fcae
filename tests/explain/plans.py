"""Plans for the tests of pages: small specs of every family, solved once, as if the kernel had derived all of them."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

from privspec.core.diagnostics import PrivspecError
from privspec.core.spans import Source
from privspec.explain import reading, reports
from privspec.explain import summary as short
from privspec.explain.facts import Facts, Judgement
from privspec.model.build import load_model
from privspec.model.graph import Model
from tests.plans import solved_text

Plan = dict[str, Any]
CLAIMS = ("bound", "choices", "exposure", "fairness", "law", "loss", "privacy", "problem", "sites", "unbiased")
JUDGED = Judgement(
    tuple((name, "as derived") for name in CLAIMS), kernel="0.1.0, source 0123456789abcdef", on="2026-11-30"
)
PREFIX_SUMS = '''spec prefix_sums
"""64 running totals of a secret series in [0, 1]^64"""
parameters:
  epsilon = 1.0
  delta = 1e-6
variables:
  input x in [0, 1]^64
  intermediate y
  output O
background:
  y = prefix_sums(x)
loss:
  E[ ||O - y||^2 ]
privacy:
  O is (epsilon, delta)-DP wrt x, replacing one entry
options:
  trust curator
  noise family gaussian
'''
HISTOGRAM = '''spec histogram
"""How many people fall into each of ten age groups"""
parameters:
  epsilon = 1
variables:
  input people in table(age in 0..9)
  intermediate counts = histogram(people)
  output O
loss: E[ ||O - counts||^2 ]
privacy: O is epsilon-DP wrt people, adding or removing one record
'''
TWO_OBSERVERS = '''spec two_observers
"""Quarterly totals for the press, monthly totals for the auditors"""
variables:
  input x in [0, 10]^6
  intermediate quarters = [sum(x[i] for i in 1..3), sum(x[i] for i in 4..6)]
  output press_release
  output audit_file
loss:
  E[ ||press_release - quarters||^2 ] + E[ ||audit_file - x||^2 ]
privacy:
  press_release is (0.5, 1e-7)-DP wrt x, replacing one entry, seen by press
  (press_release, audit_file) is (2, 1e-6)-DP wrt x, replacing one entry, seen by auditors
options:
  trust curator
  noise family gaussian
'''
COMMUTING = '''spec commuting
"""How people travel to work; each sends one randomised report"""
parameters:
  epsilon = 1.0
variables:
  input answer in {car, train, bicycle, foot}
  output report in {car, train, bicycle, foot}
background:
  answer ~ uniform
loss:
  E[ mismatch(report, answer) ]
privacy:
  report is epsilon-LDP wrt answer
options:
  trust nobody
'''
COUNTING = '''spec counting
"""How many of ten people said yes"""
variables:
  input answers in {0, 1}^10
  intermediate total
  output O in 0..10
background:
  total = sum(answers)
  total ~ uniform
loss:
  E[ |O - total| ]
privacy:
  O is 1-DP wrt answers, replacing one record
options:
  trust curator
'''
KILOMETRES = '''spec kilometres
"""How far people live from work, in kilometres"""
variables:
  input x in 0..20
  output z in 0..20
background:
  x ~ uniform
loss:
  E[ |z - x| ]
privacy:
  z is 0.5-metric-DP wrt x, distance manhattan
options:
  trust nobody
'''
PLACES = '''spec places
"""Where people are, on a map of 4 by 4 points"""
variables:
  input place in (1..4)^2
  output report in (1..4)^2
loss:
  worst[ ||report - place|| ]
privacy:
  report is 0.8-metric-DP wrt place, distance euclidean
options:
  trust nobody
'''
TWO_COUNTS = '''spec two_counts
"""A coarse count for the press, a finer one for the auditors"""
variables:
  input answers in {0, 1}^4
  intermediate total
  output rough in 0..4
  output fine in 0..4
background:
  total = sum(answers)
  total ~ uniform
loss:
  E[ |rough - total| ] + E[ |fine - total| ]
privacy:
  rough is 0.5-DP wrt answers, replacing one record, seen by press
  (rough, fine) is 1-DP wrt answers, replacing one record, seen by auditors
options:
  trust curator
'''
SINGLE_OUTPUTS = '''spec single_outputs
"""A number under a condition on each single output"""
variables:
  input x in {5, 15}
  choose alpha in (0, 1]
  choose B in law(1..3)
  output z in 1..20
background:
  x ~ uniform
  E[z | x] = alpha * x + (1 - alpha) * E[B]
loss:
  E[ (z - x)^2 ]
privacy:
  z is (1, 0.1)-per-atom-LDP wrt x
options:
  trust nobody
'''
FAIR_REPORT = '''spec fair_report
"""Whether one fell ill, with like odds in two groups"""
variables:
  input group in {F, M}
  input outcome in {well, ill}
  output report in {well, ill}
background:
  group ~ uniform
  outcome ~ uniform
loss:
  E[ mismatch(report, outcome) ]
privacy:
  report is 1-LDP wrt outcome
fairness:
  report is independent of group given outcome, up to 0.05
options:
  trust nobody
'''
COUNCIL_SEAT = '''spec council_seat
"""Who gets the last seat of a council; everybody votes"""
parties: voter in 1..1000
variables:
  input vote[voter] in {north, east, south}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is (log(2))-DP wrt vote, replacing one voter
options:
  trust curator
'''
LANDMARK = '''spec landmark
"""Which landmark a cohort of drones heads for; whoever is near votes"""
parties: drone in 1..50
variables:
  input vote[drone] in {tower, bridge}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is (log(2))-DP wrt vote, adding or removing one drone
options: trust curator
'''
NINE_ROUNDS = '''spec nine_rounds
"""Which landmarks a cohort of drones heads for; whoever is near votes"""
parameters: budget = 0.7
parties: drone in 1..50
variables:
  input vote[drone] in {tower, bridge}
  choose rounds in 1..9
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: -rounds
accuracy: worst[ total_variation(O, winner) ] <= 0.4
privacy: O is (budget / rounds)-DP wrt vote, adding or removing one drone
options: trust curator
'''
SUSHI = '''spec sushi
"""Which of four kinds of sushi is served"""
parties: voter in 1..40
variables:
  input vote[voter] in ranking of {tuna, shrimp, egg, squid}
  intermediate winner
  output O
background: winner = borda_lottery(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is 1-DP wrt vote, replacing one voter
options: trust curator
'''
LUNCH = '''spec lunch
"""Where two hundred people have lunch"""
parties: voter in 1..200
variables:
  input vote[voter] in {north, east, south}
  output O in {north, east, south}
background: vote ~ uniform
loss: E[ mean(mismatch(O, vote[voter]) for voter) ]
privacy: O is 0.5-DP wrt vote, replacing one voter
options: trust curator
'''
CHAIR = '''spec chair
"""Who takes the chair of a board of sixty: the one with most votes, or almost"""
parties: voter in 1..60
variables:
  input vote[voter] in {north, east, south}
  output O
loss: worst[ mismatch(O, plurality(vote)) ]
privacy: O is 1-DP wrt vote, replacing one voter
options: trust curator
'''
QUICK_POLL = '''spec quick_poll
"""A poll in which nobody is trusted"""
parties: voter in 1..1000
variables:
  input vote[voter] in {north, east, south}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is 1-LDP wrt vote
options: trust nobody
'''


HOURS = '''spec hours
"""How many of six hours one person was active"""
parameters:
  start = [0.5, 0.5]
  calm = [[0.8, 0.2], [0.3, 0.7]]
  busy = [[0.7, 0.3], [0.2, 0.8]]
variables:
  input hour in {rest, walk}^6
  output O
background:
  hour[1] ~ categorical(start)
  hour[i] ~ categorical({calm, busy}[hour[i-1]])
loss: E[ (O - [0, 1] @ histogram(hour))^2 ]
privacy: O is 1-DP wrt hour, replacing one entry, given the model
'''


CLINICS = '''spec clinics
"""How patients of six clinics fared; each keeps its records, and any two may pool what they know"""
parties: clinic in 1..6
variables:
  input visits[clinic] in table(age in {young, old}, outcome in {better, same, worse})
  intermediate outcomes
  output O
background: outcomes = histogram(visits)
loss: E[ ||O - outcomes||^2 ]
privacy: O is (1, 1e-6)-DP wrt visits, adding or removing one record
options: trust secure_sum(colluding = 2)
'''


SPECS = {
    "clinics": CLINICS,
    "prefix_sums": PREFIX_SUMS,
    "histogram": HISTOGRAM,
    "two_observers": TWO_OBSERVERS,
    "commuting": COMMUTING,
    "counting": COUNTING,
    "kilometres": KILOMETRES,
    "places": PLACES,
    "two_counts": TWO_COUNTS,
    "single_outputs": SINGLE_OUTPUTS,
    "fair_report": FAIR_REPORT,
    "council_seat": COUNCIL_SEAT,
    "landmark": LANDMARK,
    "nine_rounds": NINE_ROUNDS,
    "sushi": SUSHI,
    "lunch": LUNCH,
    "chair": CHAIR,
    "quick_poll": QUICK_POLL,
    "hours": HOURS,
}
LINEAR = ("prefix_sums", "histogram", "two_observers")
TABLES = ("commuting", "counting", "kilometres", "places", "two_counts", "single_outputs", "fair_report")
VOTES = ("council_seat", "landmark", "nine_rounds", "sushi", "lunch", "chair", "quick_poll")


def plan(name: str, old: str = "", new: str = "") -> Plan:
    """A plan of its own, with what depends on the machine settled; of a spec that says something else, if asked for."""
    text = SPECS[name]
    assert old in text
    found = solved_text(text.replace(old, new) if old else text)
    found["spec"]["path"] = f"{name}.priv"
    found["digest"] = "0" * 64
    found["remarks"]["solver"] |= {"seconds": 0.3, "iterations": 7, "versions": {"privspec": "0.1.0"}}
    for other in found["alternatives"]:  # of designs whose losses differ in the last bits the first is any
        other["loss"] = None if other["loss"] is None else float(f"{other['loss']:.9g}")
    found["alternatives"].sort(key=lambda other: other["name"])
    if (found["loss"]["relative_gap"] or 1) < 1e-6:
        found["loss"]["relative_gap"] = 1e-9
    return found


def model_of(document: Plan) -> Model | None:
    """The model of the spec inside, None where a test broke it."""
    spec = document.get("spec") or {}
    return _model(str(spec.get("source")), tuple(sorted(map(str, (spec.get("parameters") or {}).items()))))


@lru_cache
def _model(source: str, _parameters: object) -> Model | None:
    try:
        return load_model(Source("spec.priv", source))
    except PrivspecError:
        return None


def facts(document: Plan) -> Facts:
    return reading.facts(document, model_of(document), JUDGED)


def explain(document: Plan, reader: str = "public", form: str = "md") -> str:
    return reports._explain(document, reader, form, model_of(document), JUDGED)


def plan_html(document: Plan) -> str:
    return reports._plan_html(document, model_of(document), JUDGED)


def summary(document: Plan, **how: Any) -> str:
    return short._summary(document, judgement=JUDGED, model=model_of(document), **how)


def words(document: Plan) -> str:
    """The summary on one line."""
    return " ".join(summary(document, width=200).split())


@cache
def page(name: str, reader: str, form: str = "md") -> str:
    """A page of one of the plans as it is, made once for all tests."""
    return explain(plan(name), reader, form)


def drum(dummies: str, voters: int = 1000) -> Plan:
    """The council's seat, with other dummy votes for each candidate and other voters."""
    found, k = plan("council_seat"), Fraction(dummies)
    found["mechanism"]["dummy_votes"] = dummies
    found["problem"]["blocks"][0] |= {"voters": voters, "secret": False}
    found["guarantees"][0]["achieved"]["epsilon"] = f"{math.log(1 + 1 / k) + 1e-9:.9f}"
    return found


def table_of(name: str, rows: list[list[Any]], inputs: list[Any] | None = None) -> Plan:
    """A plan with another table, any two rows of which are compared where it has more or fewer of them."""
    found = plan(name)
    found["mechanism"]["probabilities"] = [[str(p) for p in row] for row in rows]
    if inputs is not None:
        found["mechanism"]["inputs"] = inputs
        even = {"shape": [len(rows)], "unit": str(Fraction(1, len(rows))), "rows": [1] * len(rows)}
        found["problem"]["blocks"][0] |= {"rows": inputs, "prior": even}
        clique = {"cliques": [list(range(len(rows)))], "pairs": {"shape": [0, 3], "unit": "1", "rows": []}}
        found["problem"]["blocks"][0]["compared"] = [clique | {"squares": ["1"], "inputs": len(rows)}]
    return found


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The exact delta(epsilon) of a Gaussian release (Balle & Wang 2018), for moderate epsilon."""

    def phi(t: float) -> float:
        return 0.5 * math.erfc(-t / math.sqrt(2))

    return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu that is (epsilon, delta)-DP, by bisection."""
    low, high = 1e-9, 50.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
    return low
