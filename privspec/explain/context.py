"""What explanations need of the spec itself: its title, trust, inputs and the lines that say so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privspec.explain.sentences import SpecLine


@dataclass(frozen=True, slots=True)
class TrustWords:
    """How a trust model reads for the public and for auditors."""

    sees_raw: str
    stolen_server: str
    place: str
    auditor: str


_CURATOR = TrustWords(
    sees_raw="The keeper of the data, who makes the release. The guarantee is about the published result only.",
    stolen_server="Yes. The keeper holds the raw data, and this guarantee does not protect what is stored there.",
    place="at the curator",
    auditor="One curator holds all raw data, adds the noise and publishes the outputs; everyone else sees outputs only.",
)
_NOBODY = TrustWords(
    sees_raw="Nobody but you. Noise is added before your answer leaves you.",
    stolen_server="No more than the messages that were sent, which the guarantee already covers.",
    place="at each party",
    auditor="No party is trusted: every message is taken to be seen by all, so each must satisfy the requirement itself.",
)
_SECURE_SUM = TrustWords(
    sees_raw="Nobody. The parties add up their answers in such a way that only the sum becomes known.",
    stolen_server="Not from one server alone. Parties that pool what they hold could learn more than the sum.",
    place="in shares at the parties",
    auditor="The parties add shares of the noise inside a secure sum; everyone sees the sum and nothing else.",
)
_TRUST = {"curator": _CURATOR, "nobody": _NOBODY, "secure_sum": _SECURE_SUM}


@dataclass(frozen=True, slots=True)
class Context:
    """Facts of the spec that are no numbers of the plan.

    `trust_stated` is whether the spec names its trust model (else it is the default), `trust_line` the line that
    says so, or the first requirement.
    """

    title: str
    source: tuple[str, ...]
    trust: str
    trust_stated: bool
    trust_line: SpecLine
    input_lines: Mapping[str, SpecLine]
    output_lines: Mapping[str, SpecLine]
    loss_line: SpecLine | None
    sites_line: SpecLine | None

    @property
    def trust_words(self) -> TrustWords | None:
        """The words for the trust model; None where it is not known here."""
        return _TRUST.get(self.trust)

    def line(self, number: int) -> SpecLine:
        """A line of the spec by number, with its text where there is one."""
        inside = 1 <= number <= len(self.source)
        return SpecLine(number, self.source[number - 1].strip() if inside else "")


def context(plan: Mapping[str, Any]) -> Context:
    """The context of a plan, read from the source text that the plan carries."""
    spec = plan.get("spec") or {}
    lines = tuple(str(spec.get("source") or "").splitlines())
    found = {
        name: _find(lines, pattern)
        for name, pattern in {
            "trust": r"\btrust\s+(?P<word>\w+)",
            "loss": r"^\s*(?:loss\s*:\s*)?(?P<word>(?:E|𝔼|worst)\s*\[)",
            "sites": r"\bnoise\s+at\s+(?P<word>.+)",
        }.items()
    }
    first = int((plan.get("guarantees") or [{}])[0].get("line") or 1)
    trust = found["trust"]
    stated = trust is not None
    local = any(str(g.get("measure", "")).endswith("LDP") for g in plan.get("guarantees") or ())
    word = trust[1] if trust else ("nobody" if local else "curator")
    return Context(
        title=_title(str(spec.get("source") or ""), str(spec.get("name") or "this plan")),
        source=lines,
        trust=word,
        trust_stated=stated,
        trust_line=trust[0] if trust else _line(lines, first),
        input_lines=_declared(lines, "input"),
        output_lines=_declared(lines, "output"),
        loss_line=found["loss"][0] if found["loss"] else None,
        sites_line=found["sites"][0] if found["sites"] else None,
    )


def _line(lines: tuple[str, ...], number: int) -> SpecLine:
    return SpecLine(number, lines[number - 1].strip() if 1 <= number <= len(lines) else "")


def _find(lines: tuple[str, ...], pattern: str) -> tuple[SpecLine, str] | None:
    compiled = re.compile(pattern)
    for number, text in enumerate(lines, start=1):
        match = compiled.search(text.split("#", 1)[0])
        if match:
            return SpecLine(number, text.strip()), match["word"]
    return None


def _declared(lines: tuple[str, ...], kind: str) -> dict[str, SpecLine]:
    pattern = re.compile(rf"(?:^|:)\s*{kind}\s+(\w+)")
    return {
        match[1]: SpecLine(number, text.strip())
        for number, text in enumerate(lines, start=1)
        if (match := pattern.search(text.split("#", 1)[0]))
    }


def _title(source: str, name: str) -> str:
    match = re.search(r'"""(.*?)"""', source, re.DOTALL)
    first = match[1].strip().splitlines()[0].strip() if match and match[1].strip() else ""
    return first or name
