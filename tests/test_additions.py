"""What one addition touches: a measure, a voting rule, a law of noise, whom to trust are added to a copy of the tree.

No module but the home of measures names one, none but that of voting rules one of these, and none but that of trusts
one of these, so that nothing else has to be touched.
"""

from __future__ import annotations

import ast
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from privspec.kernel.laws.law import FAMILIES, by_shape, laws
from privspec.kernel.laws.voting import VOTING
from privspec.kernel.measures import BY_WORD
from privspec.kernel.trust import KINDS

TOP = Path(__file__).parents[1]
HOME = TOP / "privspec" / "kernel" / "measures.py"
NAMED = re.compile(r"(?<![\w-])(?:" + "|".join(re.escape(word) for word in BY_WORD if word != "DP") + r")(?!\w)|-DP\b")
"""A measure by its name or by its word; of epsilon and delta, the two letters alone are the field's as well."""


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """A module's syntax without its documentation."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    notes = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [node for node in nodes if id(node) not in notes or not isinstance(node, ast.Constant)]


def modules() -> list[Path]:
    return [*(TOP / "privspec").rglob("*.py"), *(TOP / "solvers").rglob("*.py")]


def texts_in(path: Path, words: Collection[str]) -> set[str]:
    """The texts of a module that are not documentation; none of one that nowhere holds any of these words."""
    if not any(word in path.read_text("utf-8") for word in words):
        return set()
    constants = {node.value for node in nodes_of(path) if isinstance(node, ast.Constant)}
    return {text for text in constants if isinstance(text, str)}


def names_in(path: Path) -> list[tuple[int, str]]:
    """The lines of a module that name a measure, in a text that is not documentation or in a name of its own."""
    found = []
    for node in nodes_of(path) if any(word in path.read_text("utf-8") for word in BY_WORD) else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [(node.lineno, node.value)] if NAMED.search(node.value) else []
        elif isinstance(node, ast.Name | ast.Attribute):
            own = node.id if isinstance(node, ast.Name) else node.attr
            found += [(node.lineno, own)] if own in BY_WORD else []
    return found


def test_no_module_but_its_home_names_a_measure() -> None:
    found = {str(path.relative_to(TOP)): names for path in modules() if path != HOME and (names := names_in(path))}
    assert found == {}
    assert names_in(HOME)


# --- a measure that there is not: a guesser is right at most so much more often than wrong -----------------

ENTRY = '''
ADVANTAGE = Measure(
    "advantage-DP",
    (Amount("alpha", probability=True),),
    "bounded advantage of a guesser",
    lambda asked: hockey_stick(Fraction(0), asked["alpha"]),
    lambda asked: mu_down(Fraction(0), asked["alpha"]),
)
"""Probabilities differ by at most alpha, whatever the set of outputs."""

MEASURES = (
    ADVANTAGE,
'''
WORD = """
## advantage-DP

`alpha-advantage-DP`: no set of results is by more than alpha likelier with one unit of the data than with another.

```priv
variables:
  input x in [0, 1]^4
  output O
loss: E[ ||O - x||^2 ]
privacy: O is 0.2-advantage-DP wrt x, replacing one entry
```
"""
PATCHES = {
    "privspec/kernel/measures.py": (("\nMEASURES = (\n", ENTRY),),
    "privspec/language/words.md": (("\n## LDP\n", WORD + "\n## LDP\n"),),
}
SPECS = {
    "noise": "  input x in [0, 1]^4\n  output O\nloss: E[ ||O - x||^2 ]",
    "table": "  input x in 0..3\n  output O in 0..3\nloss: worst[ |O - x| ]",
}
REFUSED = """
import json
from privspec.kernel import judge
from privspec.kernel.judging import digest

def refused(text):
    "The claims of a plan that do not hold once its digest fits."
    stated = {key: value for key, value in json.loads(text).items() if key != "digest"}
    return [one.name for one in judge(json.dumps(stated | {"digest": digest(stated)})).failed]
"""
USED = """
import json, sys
from fractions import Fraction
from pathlib import Path
from privspec import Plan, load
from privspec.audit import audit
from privspec.diff import implied
from privspec.kernel import judge
from privspec.kernel.measures import ADVANTAGE, GAUSSIAN
from privspec.manual import help_text

folder, found = Path(sys.argv[1]), {}
for name in ("noise", "table"):
    plan = load(str(folder / f"{name}.priv")).solve()
    plan.write(str(folder / f"{name}.json"))
    text = plan.to_json()
    achieved = {key: float(Fraction(value)) for key, value in plan.document["guarantees"][0]["achieved"].items()}
    looser = text.replace('"alpha": "0.2"', '"alpha": "0.1"')
    found[name] = {
        "achieved": achieved,
        "loss": plan.loss.value,
        "bound": plan.loss.lower_bound,
        "holds": judge(text).ok,
        "forged": refused(looser),
        "pages": {reader: plan.explain(reader) for reader in ("public", "auditor", "engineer", "register")},
        "audit": [(one.promised, one.shown) for one in audit(plan, draws=2000, seed=1).findings],
    }
found["help"] = help_text("advantage-DP")
given = {"mu": Fraction(1, 10)}
found["implied"] = implied(ADVANTAGE, {"alpha": Fraction(1, 5)}, GAUSSIAN, given)
print(json.dumps(found))
"""


def patched(top: Path, patches: Mapping[str, tuple[tuple[str, str], ...]]) -> Path:
    """The package as it is installed, with patches: in a file, what stands in place of what; nothing, in a new file."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(TOP / "privspec", top / "privspec", ignore=ignored)
    for part in ("solvers", "specs"):
        shutil.copytree(TOP / part, top / "privspec" / part, ignore=ignored, dirs_exist_ok=True)
    for name, edits in patches.items():
        text = (top / name).read_text("utf-8") if (top / name).exists() else ""
        for old, new in edits:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (top / name).write_text(text, "utf-8")
    return top


def ran(copy: Path, *words: str) -> str:
    """What a program prints in the copy."""
    held = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run([sys.executable, *words], cwd=copy, env=held, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_measure_is_added_by_its_entry_and_its_words(tmp_path: Path) -> None:
    """From spec through solve, verify, pages, audit, run and ledger, by a patch of two files.

    The editor's grammar is generated; it is told by a test of its own to be written again.
    """
    assert len(PATCHES) <= 3
    copy = patched(tmp_path, PATCHES)
    for name, body in SPECS.items():
        unit = "one entry" if name == "noise" else "everything"
        line = f"privacy: O is 0.2-advantage-DP wrt x, replacing {unit}"
        (copy / f"{name}.priv").write_text(f"variables:\n{body}\n{line}\n", "utf-8")
    found = json.loads(ran(copy, "-c", REFUSED + USED, str(copy)))
    # 2 Phi(mu / 2) - 1 = 0.2, and no table tells two values of four apart by more than 0.2
    assert found["noise"]["achieved"]["mu"] == pytest.approx(0.5066942, rel=1e-6)
    assert found["table"]["achieved"]["alpha"] == pytest.approx(0.2, rel=1e-6)
    for name in SPECS:
        own = found[name]
        assert own["holds"] and own["forged"]
        assert own["bound"] == pytest.approx(own["loss"], rel=1e-5)
        for page in own["pages"].values():
            assert "cannot describe" not in page
        assert "0.2-advantage-DP" in own["pages"]["auditor"]
        assert all(0 < shown <= promised for promised, shown in own["audit"])
    assert "no set of results is by more than alpha likelier" in found["help"]
    assert found["implied"]
    for name, values, limit in (("noise", "0.1 0.5 0.2 0.9", "mu=1"), ("table", "2", "epsilon=1 delta=0.5")):
        (copy / f"{name}.csv").write_text("\n".join(["x", *values.split()]) + "\n", "utf-8")
        ledger = str(copy / f"{name}.ledger.db")
        ran(copy, "-m", "privspec", "ledger", "init", ledger, "--limit", limit)
        words = [f"{name}.json", "--input", f"x={name}.csv", "--ledger", ledger, "-o", f"{name}.out.json"]
        ran(copy, "-m", "privspec", "run", *words, "--other-people", "made up for a test")
        shown = ran(copy, "-m", "privspec", "ledger", "show", ledger)
        assert "0.2" in shown if name == "table" else "0.50669" in shown, shown


def test_no_module_but_its_home_names_a_voting_rule() -> None:
    """Two of them are laws of what is drawn by scores as well, and plurality is a function of the language."""
    names = {one.name for one in VOTING} - {"exponential", "permute_and_flip"}
    home = TOP / "privspec" / "kernel" / "laws" / "voting.py"
    found = {}
    for path in modules():
        said = texts_in(path, names) & names
        if path != home and said:
            found[path.name] = said
    assert found == {}


def test_no_module_of_the_kernel_but_its_home_names_a_law_of_noise() -> None:
    """Noise of statistics, tables and streams has names in common with these; and a law may rest on another's note."""
    kernel = TOP / "privspec" / "kernel"
    known = tuple(by_shape().values())
    homes = {name: law for law in known for name in (law.FORM, law.family, *law.words)}
    shared = {"gaussian", "laplace", "geometric", "knorm", "knorm-l2"}
    found = {}
    for path in kernel.rglob("*.py"):
        others = {
            name
            for name in texts_in(path, homes) & set(homes)
            if homes[name].__module__.rpartition(".")[2] != path.stem
        }
        others -= {
            note for law in by_shape().values() if law.__module__.endswith(f".{path.stem}") for note in law.notes
        }
        listed = set(FAMILIES) if path.stem == "law" else set()
        if others - listed - (shared if path.stem in ("statistics", "marginals", "streams") else set()):
            found[path.name] = others
    assert found == {}


def test_a_law_of_noise_says_all_that_is_asked_of_it() -> None:
    """Each has names of its own, words, a title, a note that there is, and an object that draws it."""
    assert len({law.family for law in laws()}) == len(laws())
    for law in by_shape().values():
        assert law.words and law.title and law.family and law.figures[-1] in law.exposed
        for note in law.notes:
            assert (TOP / "privspec" / "noise" / "notes" / f"{note}.md").exists()
        home = import_module(f"privspec.noise.{law.__module__.rpartition('.')[2]}")
        assert [one for one in home.DRAWN if one.known is law]


# --- a voting rule that there is not: the alternative with fewest points is less likely than each other ----

LAW = '''
class SparedLoser(VotingRule):
    """All are alike but the alternative with fewest points, which is so many times less likely than each other."""

    name, parameter, note = "spared_loser", "ratio", "randomised-winner"

    def weights(self, number: Fraction, scores: Scores) -> list[Fraction]:
        last = scores.index(min(scores))
        return [Fraction(1) if a == last else number for a in range(len(scores))]

    def ratio(self, drawn: Winner, change: Records) -> Ratio:
        return drawn.number, 1


SPARED_LOSER = SparedLoser()
DUMMY_VOTES, ONE_REPORT'''
CALIBRATED = """    Rule("spared_loser", "spared loser", lambda _, most: Draw("spared_loser", 1 + growth_simple(most))),
    Rule(WITHOUT,"""
WORDS = '''
class SparedLoserWords(Response):
    """All but the candidate with fewest votes have the same chance."""

    rule: ClassVar[VotingRule] = SPARED_LOSER
    title: ClassVar[str] = "spared loser"
    named: ClassVar[str] = "how many times as likely each other candidate is as the one with fewest votes"
    adds_up: ClassVar[bool] = False


_RULES = {'''
SPARED = """
[public_rule.spared]
proved = "The winner is drawn by lot; the candidate with fewest votes has a smaller chance than the others."
by = ["{note}", "claim privacy"]
if = "family is spared_loser"

[auditor.spared]
proved = "Each candidate but the one with fewest votes is r = {rule.shown} times as likely as that one."
by = ["{note}", "claim privacy"]
if = "family is spared_loser"

[exactly]"""
VOTING_PATCHES = {
    "privspec/kernel/laws/voting.py": (
        ("\nDUMMY_VOTES, ONE_REPORT", LAW),
        ("    TURNED_WINNER,\n)\n", "    TURNED_WINNER,\n    SPARED_LOSER,\n)\n"),
    ),
    "privspec/families/voting/rules.py": (("    Rule(WITHOUT,", CALIBRATED),),
    "privspec/explain/voting_rules.py": (
        ("    PLURALITY,\n    TURNED", "    PLURALITY,\n    SPARED_LOSER,\n    TURNED"),
        ("\n_RULES = {", WORDS),
        ("LocalDictator, RandomisedWinner)", "LocalDictator, RandomisedWinner, SparedLoserWords)"),
    ),
}
SENTENCES = {
    "privspec/explain/messages/voting.toml": (
        (
            "\nplace = ",
            '\nspared = { text = "one of {vote.size} candidates, the one with fewest votes {rule.shown} times less '
            'likely", if = "family is spared_loser" }\nplace = ',
        ),
        ("\n[exactly]", SPARED),
    ),
}
VOTE = """parties:
  voter in 1..{voters}
variables:
  input vote[voter] in {{a, b, c}}
  output O in {{a, b, c}}
background:
  vote ~ uniform
loss: E[ mean(mismatch(O, vote[voter]) for voter) ]
privacy: O is 1-DP wrt vote, replacing one voter
options: noise family spared_loser
"""
VOTED = """
import json, sys
from pathlib import Path
from privspec import load
from privspec.audit import audit
from privspec.kernel import judge

folder, found = Path(sys.argv[1]), {}
for name in ("few", "many"):
    plan = load(str(folder / f"{name}.priv")).solve()
    plan.write(str(folder / f"{name}.json"))
    text = plan.to_json()
    ratio = plan.document["mechanism"]["ratio"]
    forged = text.replace(f'"ratio": "{ratio}"', '"ratio": "3"')
    found[name] = {
        "family": plan.document["mechanism"]["family"],
        "loss": plan.loss.value,
        "ranked": [one["name"] for one in plan.document["alternatives"]],
        "holds": judge(text).ok,
        "forged": refused(forged),
        "pages": {reader: plan.explain(reader) for reader in ("public", "auditor", "engineer")},
        "audit": [(one.promised, one.shown) for one in audit(plan, draws=2000, seed=1).findings],
    }
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_voting_rule_is_added_by_its_law_its_number_and_its_words(tmp_path: Path) -> None:
    """From spec through solve, verify, pages, audit and run, by a patch of three files and of its sentences."""
    assert len(VOTING_PATCHES) <= 3
    copy = patched(tmp_path, VOTING_PATCHES | SENTENCES)
    for name, voters in (("few", 5), ("many", 4000)):
        (copy / f"{name}.priv").write_text(VOTE.format(voters=voters), "utf-8")
    found = json.loads(ran(copy, "-c", REFUSED + VOTED, str(copy)))
    for own in found.values():
        assert own["family"] == "spared_loser"
        assert own["holds"] and own["forged"]
        assert 1 / 2 < own["loss"] < 2 / 3 and len(own["ranked"]) >= 4
        assert all(0 < shown <= promised for promised, shown in own["audit"])
        for page in own["pages"].values():
            assert "cannot describe" not in page
        assert "fewest votes has a smaller chance" in own["pages"]["public"]
        assert "spared loser" in own["pages"]["engineer"]
    (copy / "vote.csv").write_text("\n".join(["vote", "a", "a", "b", "b", "c"]) + "\n", "utf-8")
    ledger = str(copy / "ledger.db")
    ran(copy, "-m", "privspec", "ledger", "init", ledger, "--limit", "epsilon=1 delta=0")
    words = ["few.json", "--input", "vote=vote.csv", "--ledger", ledger, "-o", "out.json"]
    ran(copy, "-m", "privspec", "run", *words, "--other-people", "made up for a test")
    assert json.loads((copy / "out.json").read_text("utf-8"))


# --- a law of noise that there is not: logistic noise, rounded with the answer -----------------------------

LOGISTIC = '''
"""Logistic noise of a scale for each answer, rounded with the answer to a lattice afterwards.

The logarithm of its density moves by at most 1 / scale for each unit that an answer moves, so that answers that move by
d let through the sum of |d| in scales; rounding afterwards is post-processing (noise/notes/logistic.md).
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx

from privspec.kernel.changes import Units
from privspec.kernel.core.numbers import BITS, ZERO, ball, end
from privspec.kernel.laws.laplace import Scaled
from privspec.kernel.laws.law import WORDS_OF, NoisyView
from privspec.kernel.losses import Loss, Response
from privspec.kernel.strategies.dense import Scaling


class Logistic(Scaled):
    """Density ~ e^(-x / scale) / (1 + e^(-x / scale))^2, independent for each answer."""

    family = FORM = "logistic"
    words, in_steps = WORDS_OF["logistic"], ()
    title = "logistic noise"
    notes = ("logistic",)
    entry = "scale"

    @classmethod
    def variance(cls, scale: Fraction, grid: Fraction) -> Fraction:
        """At most (pi scale / sqrt 3 + grid / 2)^2: rounding moves a number by half a step at most."""
        with ctx.workprec(BITS):
            return end(((arb.pi() * ball(scale) / arb(3).sqrt() + ball(grid) / 2) ** 2).upper())

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        scales = [self.scales[row] for row in view.rows]
        epsilon = view.seen.absolute_sensitivity(scales, [ZERO] * len(scales), change, view.lattice.shared)
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()


LAWS = (Logistic,)
'''
LOGISTIC_DRAWN = '''
"""Logistic noise, exact: by the inverse of its distribution function, with as many digits as rounding asks for."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import flint
import numpy as np

from privspec.core.matrices import ExactVector, Integers
from privspec.kernel.laws.logistic import Logistic
from privspec.noise.inverse import DrawnNumbers, Inverse
from privspec.noise.law import Array, ScaledNoise
from privspec.noise.samplers import Randomness


class LogisticSize(Inverse):
    """|x| for a logistic x of scale 1, which is beyond t with probability U = 2 / (1 + e^t): log((2 - U) / U)."""

    def at(self, uniform: flint.arb) -> flint.arb:
        return (2 - uniform).log() - uniform.log()

    def series(self, uniform: flint.arb, width: flint.arb, order: int) -> list[flint.arb]:
        falling, rising = -width / uniform, width / (2 - uniform)
        return [self.at(uniform), *((falling**n - rising**n) / n for n in range(1, order))]


SIZE = LogisticSize()


class LogisticNoise(ScaledNoise):
    """The points of the lattice nearest to answers + logistic noise, halves up. Note logistic."""

    known: ClassVar[type[Logistic]] = Logistic

    def release(self, answers: ExactVector, grid: Fraction, randomness: Randomness) -> Integers:
        twice = 2 * answers.denominator * grid.numerator
        starts = ExactVector(2 * grid.denominator * answers.numerators + twice // 2, twice)
        factors = [scale / grid for scale in self.scales]
        return DrawnNumbers(SIZE, len(answers), randomness).floors(starts, factors, signed=True)

    def approximate(self, size: int, repetitions: int, generator: np.random.Generator) -> Array:
        return np.asarray(generator.logistic(size=(repetitions, size)) * np.array(list(map(float, self._each(size)))))


DRAWN = (LogisticNoise,)
'''
LOGISTIC_NOTE = """# Logistic noise, rounded to a lattice

**Statement.** With exact scales `s_r` and answers `v`, the release is the lattice points nearest to v + x, of
independent logistic numbers x_r of scale s_r. For neighbours whose exact answers differ by `d` it is epsilon-DP with
epsilon = sum over r of |d_r| / s_r.

**Proof.** The derivative of log f(x) = -x / s - 2 log(1 + e^(-x / s)) is -tanh(x / 2s) / s, at most 1 / s in size.
Numbers are independent, and rounding is post-processing.
"""
NOISE_PATCHES = {
    "privspec/kernel/laws/logistic.py": (("", LOGISTIC.lstrip()),),
    "privspec/noise/logistic.py": (("", LOGISTIC_DRAWN.lstrip()),),
    "privspec/kernel/laws/law.py": (
        ('    "knorm": ("knorm",),\n', '    "knorm": ("knorm",),\n    "logistic": ("logistic",),\n'),
    ),
}
NOISE_NOTE = {"privspec/noise/notes/logistic.md": (("", LOGISTIC_NOTE),)}
NOISY = """variables:
  input x in [0, 1]^4
  output O
loss: E[ ||O - x||^2 ]
privacy: O is 1-DP wrt x, replacing one entry
options: noise family logistic
"""
NOISY_USED = """
import json, sys
from fractions import Fraction
from math import cosh, exp, log, sinh
from pathlib import Path
from privspec import load
from privspec.audit import audit
from privspec.core.matrices import ExactVector, integers
from privspec.kernel import judge
from privspec.noise.logistic import LogisticNoise
from privspec.noise.samplers import SimulationRandomness

folder = Path(sys.argv[1])
plan = load(str(folder / "noisy.priv")).solve()
plan.write(str(folder / "noisy.json"))
text = plan.to_json()
mechanism = plan.document["mechanism"]
(scale, *_) = stated = mechanism["executed"]["noise"]["scales"]
forged = text.replace(json.dumps(stated[0]), json.dumps(str(Fraction(scale) * Fraction(9, 10))))
beyond = lambda t: 1 / (1 + exp(t)) if t > 0 else exp(-t) / (1 + exp(-t))

# all sets of points of a coarse lattice, of an answer that moves by 1: no set says more than its points, of which each
# has the probability F(c + h) - F(c - h) = sinh h / (cosh c + cosh h)
step, wide = Fraction(1, 8), float(Fraction(scale))
def law(value):
    half = float(step / 2) / wide
    places = [(k * float(step) - value) / wide for k in range(-160, 161)]
    return [sinh(half) / (cosh(place) + cosh(half)) for place in places]
told = max(abs(log(p / q)) for p, q in zip(law(0.0), law(1.0)))

# how far the drawn numbers are from their law, of one answer and two scales by turns
many, at = 20000, Fraction(1, 3)
drawn = LogisticNoise((Fraction(3, 2), Fraction(1, 5)) * (many // 2)).release(
    ExactVector(integers([1] * many), 3), step, SimulationRandomness(26)
)
apart = []
for turn, size in enumerate((1.5, 0.2)):
    own = sorted(map(int, drawn[turn::2]))
    for point in set(own):
        known = 1 - beyond(float((point + Fraction(1, 2)) * step - at) / size)
        apart.append(abs(sum(one <= point for one in own) / len(own) - known))
print(json.dumps({
    "family": mechanism["family"],
    "loss": plan.loss.value,
    "bound": plan.loss.lower_bound,
    "scale": float(Fraction(scale)),
    "achieved": float(Fraction(plan.document["guarantees"][0]["achieved"]["epsilon"])),
    "others": [one["name"] for one in plan.document["alternatives"]],
    "holds": judge(text).ok,
    "forged": refused(forged),
    "pages": {reader: plan.explain(reader) for reader in ("public", "auditor", "engineer")},
    "audit": [(one.promised, one.shown) for one in audit(plan, draws=2000, seed=1).findings],
    "told": told,
    "apart": max(apart),
}))
"""


def test_a_law_of_noise_is_added_by_its_law_its_sampler_and_its_name(tmp_path: Path) -> None:
    """From spec through solve, verify, pages, audit and run, by a patch of three files beside its note.

    Drawn numbers miss their law by more than the distance below with a chance of 2 * 2 e^(-2 n d^2) < 1e-7, for each of
    two scales (Dvoretzky, Kiefer & Wolfowitz; Massart).
    """
    assert len(NOISE_PATCHES) <= 3
    copy = patched(tmp_path, {**NOISE_PATCHES, **NOISE_NOTE})
    (copy / "noisy.priv").write_text(NOISY, "utf-8")
    found = json.loads(ran(copy, "-c", REFUSED + NOISY_USED, str(copy)))
    assert found["family"] == "logistic"
    assert any("Laplace noise" in name for name in found["others"])
    assert found["holds"] and "privacy" in found["forged"]
    # epsilon is 1 / scale, and each of four numbers has the variance pi^2 scale^2 / 3
    assert found["scale"] == pytest.approx(1, rel=1e-9) and found["achieved"] == pytest.approx(1, rel=1e-9)
    assert found["loss"] == pytest.approx(4 * math.pi**2 / 3, rel=1e-6)
    assert 0.95 * found["achieved"] < found["told"] <= found["achieved"] * (1 + 1e-9)
    assert found["apart"] < math.sqrt(math.log(4e7) / (2 * 10_000))
    assert found["audit"] and all(0 < shown <= promised for promised, shown in found["audit"])
    for page in found["pages"].values():
        assert "cannot describe" not in page and "noise of the shape" not in page
        assert "1.8" in page  # pi / sqrt 3, the typical error of a number
    assert "logistic noise" in found["pages"]["auditor"] and "logistic" in found["pages"]["engineer"]
    (copy / "x.csv").write_text("x\n0.1\n0.5\n0.2\n0.9\n", "utf-8")
    ledger = str(copy / "ledger.db")
    ran(copy, "-m", "privspec", "ledger", "init", ledger, "--limit", "epsilon=1 delta=0")
    words = ["noisy.json", "--input", "x=x.csv", "--ledger", ledger, "-o", "out.json"]
    ran(copy, "-m", "privspec", "run", *words, "--other-people", "made up for a test")
    assert json.loads((copy / "out.json").read_text("utf-8"))


# --- a trust that there is not: the keeper adds noise in the open, where everybody sees all of it ----------


def test_no_module_but_its_home_names_a_trust() -> None:
    home = TOP / "privspec" / "kernel" / "trust.py"
    asked = re.compile(rf"\btrust ({'|'.join(KINDS)})\b")
    found = {}
    for path in modules():
        named = {text for text in texts_in(path, KINDS) if text in KINDS or asked.search(text)}
        if path != home and named:
            found[path.name] = named
    assert found == {}


IN_THE_OPEN = """
OPEN_BOOK = TrustModel(
    "open_book",
    "one keeper sees all raw data, and everybody sees every noisy number",
    "One keeper sees all data; everybody sees every noisy number.",
    "Central",
    public=True,
    shown="all {answers} noisy numbers",
)
KINDS = {model.name: model for model in (CURATOR, OPEN_BOOK, SECURE_SUM, NOBODY)}
"""
OPEN_WORD = """
## open_book

`trust open_book`: one keeper sees all raw data, and everybody sees every noisy number that outputs are made of.

```priv
variables:
  input x in [0, 1]^4
  output O
loss: E[ ||O - x||^2 ]
privacy: O is 1-DP wrt x, replacing one entry
options: trust open_book
```
"""
OPEN_SENTENCES = """
[open_book]
sees_raw = "The keeper, who makes the release."
stolen_server = "Yes, the keeper holds the raw data."
place = "at the keeper"
auditor = "One keeper holds all raw data and adds the noise; everyone sees every noisy number."

[nobody]
"""
TRUST_PATCHES = {
    "privspec/kernel/trust.py": (
        ("KINDS = {model.name: model for model in (CURATOR, SECURE_SUM, NOBODY)}\n", IN_THE_OPEN),
    ),
    "privspec/language/words.md": (
        ("\n## curator, nobody, secure_sum\n", OPEN_WORD + "\n## curator, nobody, secure_sum\n"),
    ),
    "privspec/explain/messages/trust.toml": (("\n[nobody]\n", OPEN_SENTENCES),),
}
TRUSTING = """variables:
  input x in [0, 1]^8
  output O
  output P
loss: E[ ||O - x||^2 ] + E[ (P - sum(x))^2 ]
privacy:
  O is 1-GDP wrt x, replacing one entry, seen by press
  (O, P) is 2-GDP wrt x, replacing one entry, seen by auditors
options: trust {trust}
"""
UNKNOWN_KEYS = """variables:
  input people in table(district in unknown)
  output shown
loss: worst[ missed(shown, keys(people, by = {{district}}, at_least = 5)) ]
privacy: shown is (1, 1e-3)-DP wrt people, adding or removing one record
options: trust {trust}
"""
TRUSTED = """
import json, sys
from pathlib import Path
from privspec import load
from privspec.audit import audit
from privspec.core.diagnostics import SpecError
from privspec.kernel import judge
from privspec.manual import help_text

folder, found = Path(sys.argv[1]), {"help": help_text("open_book")}
for trust in ("curator", "open_book"):
    plan = load(str(folder / f"{trust}.priv")).solve()
    plan.write(str(folder / f"{trust}.json"))
    text = plan.to_json()
    found[trust] = {
        "loss": plan.loss.value,
        "bound": plan.loss.lower_bound,
        "holds": judge(text).ok,
        "in the open": refused(text.replace('"kind": "curator"', '"kind": "open_book"')),
    }
found["pages"] = {reader: plan.explain(reader) for reader in ("public", "auditor", "engineer", "register")}
found["audit"] = [(one.promised, one.shown) for one in audit(plan, draws=500, seed=1).findings]
try:
    load(str(folder / "keys.priv")).solve()
except SpecError as error:
    found["keys"] = str(error)
print(json.dumps(found))
"""


def test_a_trust_is_added_by_its_entry_its_words_and_its_sentences(tmp_path: Path) -> None:
    """From spec through solve, verify, pages, audit and run, by a patch of three files; keys refuse it."""
    assert len(TRUST_PATCHES) <= 3
    copy = patched(tmp_path, TRUST_PATCHES)
    for trust in ("curator", "open_book"):
        (copy / f"{trust}.priv").write_text(TRUSTING.format(trust=trust), "utf-8")
    (copy / "keys.priv").write_text(UNKNOWN_KEYS.format(trust="open_book"), "utf-8")
    found = json.loads(ran(copy, "-c", REFUSED + TRUSTED, str(copy)))
    # the press sees what the auditors see: (sum of the roots of the eigenvalues of 1 + 11')^2 / 8 at a mu of 1
    assert found["open_book"]["loss"] == pytest.approx((7 + 3) ** 2 / 8, rel=1e-5)
    assert found["curator"]["loss"] < 10
    assert found["curator"]["in the open"] and not found["open_book"]["in the open"]
    for own in (found["curator"], found["open_book"]):
        assert own["holds"] and own["bound"] == pytest.approx(own["loss"], rel=1e-5)
    assert found["audit"] and all(0 < shown <= promised for promised, shown in found["audit"])
    for page in found["pages"].values():
        assert "cannot describe" not in page
        assert "urator holds" not in page
    assert "everybody sees every noisy number" in found["pages"]["auditor"]
    assert "at the keeper" in found["pages"]["engineer"]
    assert "The keeper, who makes the release." in found["pages"]["public"]
    assert "every noisy number that outputs are made of" in found["help"]
    assert "trust open_book" in found["keys"]
    (copy / "x.csv").write_text("\n".join(["x", *map(str, (0.1, 0.5, 0.2, 0.9, 0, 1, 0.4, 0.3))]) + "\n", "utf-8")
    ledger = str(copy / "ledger.db")
    ran(copy, "-m", "privspec", "ledger", "init", ledger, "--limit", "mu=2")
    words = ["open_book.json", "--input", "x=x.csv", "--ledger", ledger, "-o", "out.json"]
    ran(copy, "-m", "privspec", "run", *words, "--other-people", "made up for a test")
    assert json.loads((copy / "out.press.json").read_text("utf-8"))
