"""The plan as an object: a frozen view of the JSON document that scripts, auditors and `run` share.

A plan holds if its spec means its problem, and the kernel derives every statement about the mechanism again. The kernel
never sees the spec, and this file never judges a mechanism: it elaborates the spec inside the plan once more, requires
the very problem that the plan holds, and the words that follow from it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.diagnostics import PrivspecError, UsageError, VerificationError
from privspec.core.files import PRIVATE, refuse_overwriting, write_atomically
from privspec.core.records import dataclass, replace
from privspec.kernel import Claim, Report, judge
from privspec.kernel.core.problem import PLAN
from privspec.kernel.core.reading import JsonNode, Refused, parse
from privspec.kernel.judging import Judged
from privspec.kernel.writing import write
from privspec.model.graph import Model
from privspec.model.parameters import overrides
from privspec.problem.assumptions import assumptions
from privspec.problem.elaborate import elaborate
from privspec.problem.stored import model_inside
from privspec.problem.words import block_words, words

if TYPE_CHECKING:
    from privspec.execute.family import Progress
    from privspec.execute.keeper import DataOwnerReport
    from privspec.execute.release import Release
    from privspec.execute.synthetic import Synthetic
    from privspec.explain.facts import Judgement
    from privspec.families.tables.aggregate import Aggregate
    from privspec.model.graph import Model
    from privspec.noise.samplers import Randomness
    from privspec.stated import Guarantee, Loss, Stated
    from privspec.trusted import Trusted


OUTSIDE = (
    "that the data are what the owner says",
    "that the machine running it is not compromised",
    "that whoever is trusted in the spec deserves it",
)
"""What no checker can find in a plan."""
DEFECTS = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError, MemoryError)


@dataclass(frozen=True, slots=True)
class Verification(Judged):
    """The claims of a plan, what the plan is about in full sentences, and what the kernel and the spec say."""

    told: tuple[str, ...] = ()
    kernel: Report | None = None
    model: Model | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """What `privspec verify` prints.

        Args: width, in characters; by default as many as there are; colour, whether a terminal shows what holds.
        """
        hang = TEXT_AT if width is None or width >= 3 * TEXT_AT else 2

        def painted(status: str, words: str) -> str:
            return f"\x1b[{COLOURS[status]}m{words}\x1b[0m" if colour else words

        word = "claim" if len(self.claims) == 1 else "claims"
        lines = [
            *(_filled(line, width) for line in (f"{TOLD} ({len(self.told)} sentences):", *self.told)),
            "",
            _filled(f"{len(self.claims)} {word} checked; compiler and solver not used", width),
        ]
        for claim in self.claims:
            shown = _filled(str(claim), width, hang)
            lines.append(painted(claim.status, claim.status) + shown.removeprefix(claim.status))
        rest = _filled("not checked: " + "; ".join(OUTSIDE), width)
        lines.append(rest if self.ok else painted("failed", _verdict(len(self.failed))))
        return "\n".join(lines) + "\n"


TOLD = "what this plan has to keep, by the spec inside"
COLOURS = {"ok": "32", "tested": "33", "failed": "1;31"}
"""How a terminal shows what became of a claim."""
WIDEST, TEXT_AT = 120, 21
"""Characters of a line at most; where the text of a claim begins."""


def _filled(line: str, width: int | None, hang: int = 2) -> str:
    """A line cut into as many as it takes, whose later ones are indented."""
    from textwrap import fill

    if width is None:
        return line
    width = max(30, min(width, WIDEST))
    return fill(line, width, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False)


def _verdict(failed: int) -> str:
    return f"this plan is NOT verified: {failed} failed"


def verify(text: str) -> Verification:
    """Derive every claim of a plan again. Never raises for a bad plan.

    Args: text, the JSON of the plan.
    """
    claims: list[Claim] = []
    told: list[str] = []
    model = report = None
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            plan = parse(text)
            model = _spec(plan, claims, told)
            if all(claim.holds for claim in claims):
                report = judge(plan)
                claims.extend(report.claims)
    except (Refused, PrivspecError) as error:
        claims.append(Claim("integrity", False, _sentence(error)))
    except DEFECTS as error:
        said = f"the plan cannot be evaluated ({type(error).__name__}: {str(error)[:120]})"
        claims.append(Claim("integrity", False, said))
    return Verification(tuple(claims), tuple(told), report, model)


def _sentence(error: Exception) -> str:
    return "; ".join(d.message for d in error.diagnostics) if isinstance(error, PrivspecError) else str(error)


def _spec(plan: JsonNode, claims: list[Claim], told: list[str]) -> Model:
    """The spec builds, asks for something, and means the problem that the plan holds.

    Raises: Refused, SpecError.
    """
    parts = dict(plan.entries())
    for key in ("format", "spec", "problem", "mechanism", "guarantees", "claims", "assumptions"):
        if key not in parts:
            raise plan.wrong(f"does not have {key}")
    parts["format"].same(PLAN)
    model = model_inside(parts["spec"])
    if not model.requirements and not model.fairness:
        raise parts["spec"].wrong("asks for no privacy")
    if (left_out := _unread(model)) is not None:
        raise parts["spec"].wrong(left_out)
    claims.append(Claim("spec", True, "the spec inside is the one that was solved, and it builds"))
    problem = elaborate(model)
    told += [f"Parameter as solved: {sentence}." for sentence in overrides(model)]
    told += words(problem)
    if model.design is not None and model.chosen:
        told.append(next(iter(block_words(_whole_design(model)))))
    same = write(problem) == parts["problem"].value and _left_open(model, parts)
    found = "the spec, elaborated again, is the problem of the plan" if same else "the plan is about another problem"
    claims.append(Claim("problem", same, found))
    document = {key: item.value for key, item in parts.items()}
    kept = assumptions(model, document) == parts["assumptions"].value
    found = "what is assumed, and by whose word, is stated" if kept else "the assumptions stated are not those made"
    claims.append(Claim("assumptions", kept, found))
    return model


def _left_open(model: Model, parts: Mapping[str, JsonNode]) -> bool:
    """Whether the plan has all alternatives of the spec, and no others."""
    stated = dict(parts["design"].entries()) if "design" in parts and not parts["design"].absent else {}
    if model.design is None or not model.chosen:
        return not stated and not model.open
    return "problem" in stated and write(_whole_design(model)) == stated["problem"].value


def _whole_design(model: Model) -> Any:
    """The design of a spec in which a choice was made, with all of its alternatives."""
    from privspec.problem.designs import block_of  # most specs leave nothing open

    return block_of(replace(model, chosen={}))


def _unread(model: Model) -> str | None:
    """A line of the spec that asks for something and that its model leaves out; None if there is none."""
    asked = (*model.spec.privacy, *model.spec.fairness, *model.spec.accuracy)
    read = {line.line for line in (*model.requirements, *model.fairness, *model.accuracy)}
    for line in asked:
        number, _ = model.source.position(line.span.start)
        if number not in read:
            return f"asks for something on line {number} that cannot be read without further values"
    return None


FORMAT_NAME = "privspec-plan"
FORMAT_MAJOR = 3
PLAN_BYTES = 2**31
"""Largest plan file that is read."""
REMEMBERED = 64
_VERIFIED: dict[str, Verification] = {}
"""What was verified in this process, by the SHA-256 of a plan's text: checked once, whoever holds it."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A solved spec. Equal plans have equal digests.

    >>> from privspec import load
    >>> plan = load("histogram").solve()
    >>> plan.status, plan.guarantees[0].neighbours
    ('optimal', 'adding or removing one record')
    >>> Plan.of(json.loads(plan.to_json())).loss.value == plan.loss.value
    True
    """

    document: Mapping[str, Any]
    path: Path | None = None

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read a plan file, or `-`: standard input.

        Raises: UsageError PS0711 if it is no plan, PS0712 if its major version is another.
        """
        from privspec.kernel.core.reading import Refused, parse

        try:
            if str(path) == "-":
                return cls._of(parse(sys.stdin.read()).value, Path("the plan on standard input"))
            if path.stat().st_size > PLAN_BYTES:
                raise _not_a_plan(path, "it is larger than 2 GB")
            data = parse(path.read_text(encoding="utf-8")).value
        except FileNotFoundError as error:
            raise UsageError.of("PS0710", f"the file {path} does not exist") from error
        except (OSError, UnicodeDecodeError) as error:
            raise _not_a_plan(path, "it is not a JSON document") from error
        except Refused as error:
            raise _not_a_plan(path, str(error)) from error
        return cls._of(data, path)

    @classmethod
    def of(cls, data: object, path: Path | None = None) -> Plan:
        """A plan from its JSON document, which it takes a copy of.

        Raises: UsageError PS0711, PS0712.
        """
        return cls._of(copy.deepcopy(data), path)

    @classmethod
    def _of(cls, data: object, path: Path | None) -> Plan:
        """As `of`, from a document that nobody else holds."""
        where = path or Path("the plan")
        if not isinstance(data, dict) or not isinstance(data.get("format"), str):
            raise _not_a_plan(where, "it has no format")
        name, _, version = data["format"].partition("/")
        if name != FORMAT_NAME:
            raise _not_a_plan(where, f"its format is {data['format'][:40]}")
        if version.split(".")[0] != str(FORMAT_MAJOR):
            raise UsageError.of(
                "PS0712",
                f"{where} has plan format {version[:20]}; this privspec reads version {FORMAT_MAJOR}",
                help="solve the spec again, or use the privspec that wrote the plan",
            )
        return cls(data, path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.digest == other.digest and self.document == other.document

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical document."""
        return str(self.document.get("digest", ""))

    @cached_property
    def stated(self) -> Stated:
        """What the plan states, in types."""
        from privspec.stated import Stated

        return Stated.of(self.document)

    @property
    def name(self) -> str:
        """The name of the spec."""
        return self.stated.spec.name

    @property
    def status(self) -> str:
        """One of "optimal", "feasible" and "infeasible"."""
        return self.stated.status

    @property
    def feasible(self) -> bool:
        """Whether there is a mechanism."""
        return "mechanism" in self.document

    @property
    def loss(self) -> Loss:
        """The loss with its certified bound.

        Raises: KeyError if the plan is infeasible.
        """
        if self.stated.loss is None:
            raise KeyError("loss")
        return self.stated.loss

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What is promised to whom."""
        return self.stated.guarantees

    def model(self) -> Model:
        """The typed graph of the spec that was solved, rebuilt from the plan alone, once for a verified text.

        Raises: VerificationError PS0911 if the spec inside is not the one that was solved.
        """
        return self._model(_VERIFIED.get(self._fingerprint))

    def _model(self, known: Verification | None) -> Model:
        from privspec.kernel.core.reading import JsonNode, Refused
        from privspec.problem.stored import model_inside

        if known is not None and known.model is not None:
            return known.model
        try:
            return model_inside(JsonNode(self.document.get("spec"), "spec"))
        except Refused as error:
            message = f"the spec inside this plan cannot be used: {error}"
            raise VerificationError.of("PS0911", message) from error

    def verify(self) -> Verification:
        """Re-check every claim with code that uses nothing of compiler and solvers, once for a text in a process.

        >>> from privspec import load
        >>> load("prefix_sums").solve(n=4).verify().ok
        True
        """
        _, text = self._copied()
        return _judged(text)

    def trusted(self) -> Trusted:
        """What the privacy of this plan rests on: functions of the kernel, as measured now, and notes.

        >>> from privspec import load
        >>> found = load("prefix_sums").solve(n=4).trusted()
        >>> found.files[0].path, found.files[0].entered[0].name
        ('privspec/kernel/judging.py', 'judge')

        Raises: VerificationError PS0910 if a claim fails; UsageError PS0721 if the plan promises nothing.
        """
        from privspec.trusted import trusted

        plan = self.verified()
        if not plan.feasible:
            raise UsageError.of("PS0721", f"{self.path or 'the plan'} is {plan.status}: it promises nothing")
        parts = [one for part in plan.stated.mechanism.components.values() for one in part.guarantees]
        notes = [note for one in (*plan.guarantees, *parts) for note in one.because]
        return trusted(plan._text, tuple(notes))

    def verified(self) -> Plan:
        """This plan as it stands now, in a copy that nobody else can change, once every claim of it was re-derived.

        Whatever runs or prints a plan goes through here. A document is checked once in a process; one that was changed
        since is another document. A plan that says "infeasible" promises nothing and only has to be unchanged.
        Raises: VerificationError PS0910 if a claim fails.
        """
        return self._verified()[0]

    def _verified(self) -> tuple[Plan, Verification | None]:
        """As `verified`, with what was derived again, if anything was."""
        plan, text = self._copied()
        if plan._promises_nothing:
            return plan, _VERIFIED.get(_sha256(text))
        report = _judged(text)
        if not report.ok:
            raise VerificationError.of(
                "PS0910",
                f"{self.path or 'the plan'} is not verified, so it is neither run nor shown",
                *(f"{c.name}: {c.text}" for c in report.failed),
                help=f"`privspec verify {self.path or 'PLAN'}` shows every claim; solve the spec again",
            )
        return plan, report

    def _copied(self) -> tuple[Plan, str]:
        """The plan of the JSON text that the document is now, and the text."""
        try:
            text = self._text
            return Plan(json.loads(text), self.path), text
        except (TypeError, ValueError, RecursionError) as error:
            raise _not_a_plan(self.path or Path("the plan"), "it is not a JSON document") from error

    @property
    def _text(self) -> str:
        return json.dumps(dict(self.document), allow_nan=False)

    @property
    def _fingerprint(self) -> str:
        return _sha256(self._text)

    @property
    def _promises_nothing(self) -> bool:
        if self.feasible or self.status != "infeasible" or self.guarantees:
            return False
        from privspec.execute.run import check_digest

        check_digest(self.document)
        return True

    def explain(self, reader: str = "public", format: str = "md") -> str:  # noqa: A002 - the word of the interface
        """The explanation for "public", "auditor" or "engineer", as "md", "html" or "json"."""
        from privspec.explain.reports import _explain

        plan, known = self._verified()
        return _explain(plan.document, reader, format, plan._model(known), _judgement(known))

    def explain_release(self, release: Path | str, format: str = "md") -> str:  # noqa: A002 - the word of the interface
        """The figures of a release of this plan (.json) with their limits, and what is said of their errors."""
        from privspec.explain.reports import _explain_release

        plan, known = self._verified()
        return _explain_release(plan.document, Path(release), format, plan._model(known), _judgement(known))

    def summary(self, width: int | None = None, waited: float | None = None) -> str:
        """The short table that `privspec solve` prints; `waited`, the seconds until it was there, if they are known."""
        from privspec.explain.summary import _summary

        plan, known = self._verified()
        path = None if self.path is None else str(self.path)
        model, judged = plan._model(known), _judgement(known)
        return _summary(plan.document, width=width, path=path, model=model, judgement=judged, waited=waited)

    def run(
        self,
        inputs: Mapping[str, Any],
        ledger: Path | str | None = None,
        output: Path | str | None = None,
        *,
        new_ledger: bool = False,
        strict: bool = False,
        randomness: Randomness | None = None,
        seed: int | None = None,
        progress: Progress | None = None,
        party: str | None = None,
        key: Path | str | None = None,
        roster: Sequence[Path | str] = (),
        joint_draw: Path | str | None = None,
        participation: Path | str | None = None,
        mode: int = PRIVATE,
        force: bool = False,
        header: bool = True,
        quoted_newlines: bool = False,
        separator: str | None = None,
        decimal: str = ".",
        keeper: DataOwnerReport | None = None,
        constants: Mapping[str, Any] | None = None,
        check_fit: float | None = None,
        consent: Callable[[DataOwnerReport], None] | None = None,
        other_people: str | None = None,
    ) -> Release:
        """Execute the plan on data (paths or objects in memory), paid for in the ledger of these data first.

            >>> from privspec import load
            >>> plan = load("prefix_sums").solve(n=4)
            >>> release = plan.run({"x": [0.5, 0.25, 1, 0]}, ledger="four.ledger.db", new_ledger=True)
            >>> release["O"].shape, release.private
            ((4,), True)
            >>> plan.run({"x": [0.5, 0.25, 1, 0]}, seed=1).private
            False

        Args: ledger, by default beside the first file of the data (data in memory need a named one); new_ledger, to
            declare the budget of these data as exactly what this plan spends; seed, for a simulation, which is not
            private, says so and debits nothing; progress, told what is done, how many records of it, and how many there
            are; party, the one whose message is made from its own data, for
            `combine`; key and roster, in a secure sum, the files of its own key and of the public keys of all
            (`privspec keys`); joint_draw, where to write the transcript of a joint draw by all voters and two mixers
            (random dictatorship with a public number of voters; needs PyNaCl); participation, the file that counts in
            how many rounds each voter took part, where rounds share a budget; mode, the permissions of the release's
            files (only their owner reads them, unless told otherwise); force, to replace a file that is a release and
            was paid for; header, whether the first line of a text file
            names its columns; quoted_newlines, whether quoted cells of a .csv file may hold line feeds (else every
            line is a row); separator, what stands between cells, where the suffix of a text file does not say it;
            decimal, "," where its numbers have decimal commas;
            keeper, told how the data fit, for their keeper alone; constants, the public values that
            the plan leaves open; check_fit, the share of the data that has to fit the spec, else nothing is drawn or
            spent (whoever sees that learns something about the data); consent, given how they fit, may raise too;
            other_people, why these are not the people of another ledger whose data they agree with, though so little
            may agree by chance: the ledger keeps it.
        Raises: BudgetError, DataError, MisfitError, UsageError, VerificationError.
        """
        from privspec.execute.engines import opened_meanwhile

        with opened_meanwhile(inputs):
            from privspec.execute.family import keys_of, silent
            from privspec.execute.run import _run
            from privspec.execute.sources import text_files
            from privspec.noise.samplers import SimulationRandomness

            plan, known = self._verified()
        out = Path(output) if output is not None else None
        if out is not None:
            refuse_overwriting([out], {"the plan": self.path})
        if seed is not None and (randomness is not None or new_ledger or other_people is not None):
            other = "takes its noise from the seed" if randomness is not None else "is paid for by no ledger"
            raise UsageError.of("PS0721", f"a run with a seed is a simulation, which {other}", help="leave one out")
        told = progress or silent
        board = Path(joint_draw) if joint_draw is not None else None
        counted = Path(participation) if participation is not None else None
        return _run(
            plan.document,
            inputs,
            ledger,
            out,
            strict,
            plan._model(known),
            randomness if seed is None else SimulationRandomness(seed),
            new_ledger=new_ledger,
            progress=told,
            party=party,
            keys=keys_of(key, roster),
            joint_draw=board,
            participation=counted,
            mode=mode,
            force=force,
            texts=text_files(header, quoted_newlines, separator, decimal),
            keeper=keeper,
            constants=constants,
            consent=consent if check_fit is None else lambda told: told.check(check_fit),
            other_people=other_people,
        )

    @property
    def by_messages(self) -> bool:
        """Whether a release is made from messages of the parties: noisy or masked answers, randomised ballots."""
        from privspec.execute.family import mechanism_of

        return mechanism_of(self.document).by_messages

    def combine(
        self, messages: Sequence[Any], output: Path | str | None = None, *, mode: int = PRIVATE, force: bool = False
    ) -> Release:
        """The release, from the messages that all parties made with `run(..., party=...)`; it costs nothing more.

        Args: messages, releases or the JSON files that they were written to.
        Raises: UsageError (PS0844 if the plan's parties make no messages), DataError, VerificationError.
        """
        from privspec.execute.run import _combine

        plan, out = self.verified(), None if output is None else Path(output)
        if out is not None:
            refuse_overwriting([out], {"the plan": self.path})
        return _combine(plan.document, messages, out, plan.model(), mode, force=force)

    def aggregate(
        self,
        reports: Sequence[Any],
        *,
        estimator: str = "auto",
        level: float = 0.95,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Aggregate:
        """The shares of the values behind local reports (paths, releases, or objects in memory).

        Args: estimator, "auto" (chosen by simulation), "inverse", "clip", "simplex" or "ibu"; level of the intervals.
        Raises: UsageError (PS0841 if the plan makes no local reports), DataError, VerificationError.
        """
        from privspec.execute.family import silent
        from privspec.families.tables.aggregate import _aggregate_reports

        plan = self.verified()
        return _aggregate_reports(
            plan.document,
            reports,
            plan.model(),
            estimator=estimator,
            level=level,
            seed=seed,
            progress=progress or silent,
        )

    def synthetic(self, release: Any, records: int, *, progress: Progress | None = None) -> Synthetic:
        """Made-up records that agree best with the tables of counts of a release of this plan, at no cost.

        Args: release, a file of it (.json), or what `run` gave; records, how many.
        Raises: UsageError, DataError (PS0845), VerificationError.
        """
        from privspec.execute.family import silent
        from privspec.execute.synthetic import synthetic

        plan = self.verified()
        return synthetic(plan.document, release, plan.model(), records, progress or silent)

    def to_json(self) -> str:
        """The document as text: what `-o` writes. The rows of an array stand in a line each."""
        return _laid_out(self.document, "\n") + "\n"

    def write(self, path: Path | str) -> Plan:
        """Write the document atomically; the plan with its new place."""
        write_atomically(Path(path), self.to_json().encode("utf-8"))
        return Plan(self.document, Path(path))

    def __repr__(self) -> str:
        if not self.feasible:
            return f"<Plan {self.name}: {self.status}>"
        checked = "" if self._fingerprint in _VERIFIED else ", not verified yet"
        return f"<Plan {self.name}: {self.status}, loss {self.loss.value:.6g}{checked}>"

    def _repr_html_(self) -> str:
        from privspec.explain.reports import _plan_html

        plan, known = self._verified()
        return _plan_html(plan.document, plan._model(known), _judgement(known))


def _laid_out(value: object, line: str) -> str:
    """JSON with every item of an object, and every one of a list of lists or objects, in a line of its own."""
    inner = line + " "
    if isinstance(value, dict) and value:
        items = (f"{json.dumps(key, ensure_ascii=False)}: {_laid_out(one, inner)}" for key, one in value.items())
        return f"{{{inner}{f',{inner}'.join(items)}{line}}}"
    if isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        return f"[{inner}{f',{inner}'.join(_laid_out(one, inner) for one in value)}{line}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _judged(text: str) -> Verification:
    """What is derived again of the text of a plan: once in a process, if every claim of it holds."""
    known = _sha256(text)
    found = _VERIFIED.pop(known, None) or verify(text)
    if found.ok:
        if len(_VERIFIED) >= REMEMBERED:
            _VERIFIED.pop(next(iter(_VERIFIED)))
        _VERIFIED[known] = found
    return found


def _judgement(found: Verification | None) -> Judgement:
    """What was derived again of a document, for pages."""
    from privspec.explain.facts import Judgement

    if found is None:
        return Judgement()
    from datetime import date

    claims = tuple((c.name, c.text) for c in found.claims if c.holds and c.derived)
    return Judgement(claims, found.told, _kernel_version(), date.today().isoformat())


@cache
def _kernel_version() -> str:
    """The version of this package, and a digest of the kernel's own source."""
    from importlib.resources import files

    def texts(folder: Any) -> Iterator[str]:
        for entry in sorted(folder.iterdir(), key=lambda one: one.name):
            if entry.is_dir() and entry.name != "__pycache__":
                yield from texts(entry)
            elif entry.name.endswith(".py"):
                yield entry.read_text("utf-8")

    return f"{sys.modules['privspec'].__version__}, source {_sha256(''.join(texts(files('privspec.kernel'))))[:16]}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _not_a_plan(path: Path, why: str) -> UsageError:
    return UsageError.of("PS0711", f"{path} is not a plan: {why}", help="`privspec solve SPEC` writes plans")
