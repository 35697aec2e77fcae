"""Mutants: plans that say something else at one place, signed again; and what a kernel says of them.

Each is refused, or what it says is still true (`still_true`). The plans are stored (plans.json.xz), so that the same
mutants are judged wherever the verdicts are derived again, and by whichever kernel.
"""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path as File
from typing import Any

from privspec.core.diagnostics import PrivspecError
from privspec.kernel import judge
from privspec.trusted import WORTH
from tests.corpus.specs import corpus
from tests.plans import Document, Path, get, mutate, places, without

UNPROVED = ("spec", "assumptions", "alternatives", "remarks")
"""Parts that no claim of the kernel is about; `Plan.verify` derives the first two from the spec again."""
WITNESSES = ("claims",)
"""What proves the claims: another proof of the same claims is as good."""
PLANS = File(__file__).with_name("plans.json.xz")
LONGEST = 60_000
"""Characters of a plan whose mutants are judged: all plans of the corpus that are no longer."""
PLACES = 30
"""Places of a plan, each of which is changed in two ways."""
MARK = "the key that stands twice"

Mutation = tuple[str, Path, str]
"""What was done, where, and the text of the changed plan."""


def others(value: Any) -> list[Any]:
    """Other leaves in place of one."""
    if isinstance(value, bool):
        return [not value, None, 0]
    if value is None:
        return [0, False, "", []]
    if isinstance(value, int):
        return [value + 1 + abs(value) // 1000, -value if value else -1, 0 if value else 1.0]
    if isinstance(value, float):
        return [value * 1.01 + 0.001, -value if value else -1.0, None]
    if not isinstance(value, str):
        return []
    found: list[Any] = [value + "x", *([""] if value else []), None]
    try:
        number = Fraction(value)
    except (ValueError, ZeroDivisionError):
        return found
    return [str(number + 1), str(number * Fraction(99, 101) - 1), str(-number - 3), *found]


def twice(document: Document, path: Path) -> str:
    """The text of a plan in which one key stands twice; its digest is that of the plan."""
    whole, key = json.dumps(get(document, path)), json.dumps(path[-1])
    marked = json.dumps(mutate(document, path, MARK) | {"digest": document["digest"]})
    return marked.replace(f'{key}: "{MARK}"', f"{key}: {whole}, {key}: {whole}", 1)


def still_true(document: Document, done: str, path: Path, text: str) -> bool:
    """Whether a mutation may be accepted: where nothing is claimed, or where a bound is stated on the safe side."""
    inside = path[:2] in (("mechanism", "components"), ("design", "outcomes")) and len(path) > 3
    whole, path = path, path[3:] if inside else path[1:] if path[:2] == ("design", "problem") else path
    if path[0] in (*UNPROVED, *WITNESSES) and done != "stands twice":
        return True
    if path[0] == "problem":
        return done != "stands twice" and not done.startswith("a key")  # another problem: judged as that, not as this
    if document["problem"]["blocks"][0]["form"] == "statistics" and done != "stands twice":
        if path[0] == "loss" or path == ("mechanism", "finish_first"):
            return True  # simulated, what comes after the noise included: pages say that it was tested, not proved
        if "parameters" in path and "becomes" in done:  # more noise than is claimed; a report's epsilon is exact
            return Fraction(get(json.loads(text), whole)) > Fraction(get(document, whole)) and path[-1] != "epsilon"
    simulated = "standard_error" in document["loss"] and done != "stands twice" and not done.startswith("a key")
    if simulated and path[0] == "loss":
        return True  # a mean over simulated tables or votes is tested, not proved
    if simulated and path[0] == "mechanism" and document["problem"]["blocks"][0]["form"] == "selection":
        return True  # what is drawn is as private as is stated
    if path[-1] == "covariance" and path[:2] == ("mechanism", "sites") and done == "removed":
        return _independent(document["mechanism"]["output_covariance"])  # it says so of its noise
    if path == ("fairness",) and not get(document, whole):
        return done != "stands twice"  # a list of nothing
    before, after = get(document, whole), get(json.loads(text), whole) if "becomes" in done else None
    if path[-3:] == ("weights", "rows", 0) and after and len(get(document, whole[:-1])) == 1:
        return True  # a law's weights say how much more than one another: one alone says nothing
    if path[-4:-1] == ("strategy", "values", "rows") and _unread(get(document, whole[:-4]), path[-1]):
        return True  # it is drawn, and no output is made of it
    if "mechanism" in path and path[-2:-1] == ("rows",) and isinstance(after, int):
        # a step of a matrix, or round-off in it: privacy, bias and loss are derived of what is executed
        return bool(abs(after - before) <= 1 + 1e-10 * max(map(abs, get(document, whole[:-1]))))
    if after is not None and ("achieved" in path or (path[0] == "exposures" and "bound" in path)):
        return Fraction(after) > Fraction(before)
    return path[-1] == "lower_bound" and after is not None and after < before


def _unread(executed: Document, entry: int) -> bool:
    """Whether a noisy answer, by an entry of its row of the strategy, is in no output."""
    strategy, outputs = executed["strategy"], executed.get("reconstruction")
    if outputs is None or {strategy["form"], outputs["form"]} != {"sparse"}:
        return False
    answer = strategy["places"]["rows"][entry] // strategy["shape"][1]
    return answer not in {place % outputs["shape"][1] for place in outputs["places"]["rows"]}


def _independent(covariance: list[list[float]]) -> bool:
    """Whether covariances are nothing but round-off."""
    sizes = [row[place] ** 0.5 for place, row in enumerate(covariance)]
    pairs = [(i, j) for i in range(len(sizes)) for j in range(i)]
    return all(abs(covariance[i][j]) <= 1e-9 * sizes[i] * sizes[j] for i, j in pairs)


def sampled(document: Document, most: int, seed: int | str, left_out: Sequence[str] = ()) -> Iterator[Mutation]:
    """Two mutations of each of some places, outside of those parts of a plan that are left out."""
    dice = random.Random(seed)
    passed = ("digest", *left_out)
    paths = [path for path, _ in places(trimmed(document)) if path and path[0] not in passed]
    for path in dice.sample(paths, min(most, len(paths))):
        some = mutations(document, path)
        yield from ((done, place, text()) for done, place, text in dice.sample(some, min(2, len(some))))


def mutations(document: Document, path: Path) -> list[tuple[str, Path, Callable[[], str]]]:
    """A leaf changed in several ways; a key or an entry removed, doubled, added: the texts are written when wanted."""
    value = get(document, path)
    found: list[tuple[str, Path, Callable[[], str]]] = [
        (f"{value!r:.40} becomes {other!r:.40}", path, _said(mutate, document, path, other)) for other in others(value)
    ]
    found.append(("removed", path, _said(without, document, path)))
    if isinstance(value, dict):
        found.append(("a key more", (*path, "more"), _said(mutate, document, (*path, "more"), 0)))
    if isinstance(value, list) and value:
        found.append(("the last entry twice", path, _said(mutate, document, path, [*value, value[-1]])))
    if isinstance(path[-1], str):
        found.append(("stands twice", path, partial(twice, document, path)))
    return found


def _said(change: Callable[..., Document], *how: Any) -> Callable[[], str]:
    return lambda: json.dumps(change(*how))


def trimmed(value: Any) -> Any:
    """A document with at most four entries of every list: the places that are sampled."""
    if isinstance(value, dict):
        return {key: trimmed(part) for key, part in value.items()}
    return [trimmed(part) for part in value[:4]] if isinstance(value, list) else value


# --- the mutants of the corpus, and what a kernel says of them ------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a kernel said of a plan: "accepted", "refused", or "raised" and by what, which no kernel may.

    `true`: of an accepted one, whether what it says is still true, as `still_true` knows it.
    """

    plan: str
    where: str
    done: str
    said: str
    true: bool | None = None

    @property
    def accepted(self) -> bool:
        return self.said == "accepted"

    def line(self) -> str:
        """As one line of a table."""
        true = "-" if self.true is None else "true" if self.true else "UNTRUE"
        return "\t".join((self.plan, self.where, self.done, self.said, true))

    @classmethod
    def read(cls, line: str) -> Verdict:
        """From such a line."""
        plan, where, done, said, true = line.split("\t")
        return cls(plan, where, done, said, None if true == "-" else true == "true")


Judge = Callable[[str], Any]
"""What judges the text of a plan: a report with `ok`, or verdicts with `holds`, one a line of privacy."""


def privacy_of_a_report(text: str) -> list[Any]:
    """The claims of the kernel on which privacy rests: a judge to compare one with that judges privacy alone."""
    return [claim for claim in judge(text).claims if claim.name not in WORTH]


def judge_named(name: str) -> Judge:
    """The function "MODULE:FUNCTION"."""
    module, _, function = name.partition(":")
    found: Judge = getattr(import_module(module), function)
    return found


def said_by(judge: Judge, text: str) -> str:
    """What a kernel says of a text, in a word."""
    try:
        found = judge(text)
        holds = bool(found) and all(one.holds for one in found) if isinstance(found, list) else found.ok
        return "accepted" if holds else "refused"
    except Exception as error:  # noqa: BLE001 - whatever a kernel that is being written does is a verdict
        return f"raised {type(error).__name__}"


def verdicts(judge: Judge, name: str, plan: str, most: int = PLACES) -> Iterator[Verdict]:
    """The verdicts on the mutants of one plan, that on the plan itself first."""
    document = json.loads(plan)
    yield Verdict(name, "", "as it is", said_by(judge, plan), True)
    for done, path, text in sampled(document, most, name, UNPROVED):
        said = said_by(judge, text)
        true = _known_true(document, done, path, text) if said == "accepted" else None
        yield Verdict(name, ".".join(map(str, path)), " ".join(done.split()), said, true)


def plan_of(name: str) -> str | None:
    """The plan of a spec of the corpus, if it has one that is short enough."""
    try:
        plan = corpus()[name].problem.solve()
    except PrivspecError:
        return None
    text = json.dumps(plan.document)
    return text if plan.feasible and len(text) <= LONGEST else None


def _known_true(document: Document, done: str, path: Path, text: str) -> bool:
    """As `still_true`; what no kernel of ours accepts, such as a key more or a word for a number, is not true."""
    try:
        return still_true(document, done, path, text)
    except (LookupError, TypeError, ValueError):
        return False


def stored_plans() -> dict[str, str]:
    """The plans whose mutants are judged, by name."""
    found: dict[str, str] = json.loads(lzma.decompress(PLANS.read_bytes()))
    return found


def store_plans(plans: Mapping[str, str]) -> None:
    """Keep plans for `stored_plans`: in a few hundred kilobytes, of several millions."""
    PLANS.write_bytes(lzma.compress(json.dumps(dict(sorted(plans.items()))).encode(), preset=9))
