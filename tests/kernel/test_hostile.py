"""Plans made to exhaust whoever reads them: every one is refused, within ten seconds and a gigabyte."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path as File
from typing import Any

import pytest

from tests.plans import Document, get, mutate, places, resign, solved

SECONDS, BYTES = 10, 2**30
JUDGED = ("problem", "loss", "mechanism", "guarantees", "claims")
BASES = ("prefix_sums", "histogram", "counting_query", "dp_random_dictatorship")
READER = f"""
import resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, ({BYTES}, {BYTES}))
from privspec.kernel import judge
for path in sys.argv[1:]:
    begun = time.process_time()
    report = judge(open(path, encoding="utf-8").read())
    print(path, time.process_time() - begun, bool(report.failed) or not report.claims, flush=True)
"""
"""One process that judges plans one after the other; what it says of each is a line."""


def nested(depth: int, inside: Any, form: str | None = None) -> Any:
    """An object or list in an object or list, and so on."""
    for _ in range(depth):
        inside = [inside] if form is None else {"form": form, "parts": [inside, inside], "terms": [inside]}
    return inside


def packed(shape: list[int], entries: int, unit: str = "1") -> Document:
    """A packed array whose length is another than its shape says."""
    return {"shape": shape, "unit": unit, "data": base64.b64encode(bytes(8 * entries)).decode(), "sha256": "0" * 64}


VALUES: dict[str, Any] = {
    "5,000 digits": int("7" * 600),
    "5,000 digits in a text": "7" * 5000,
    "5,000 digits below": "1/" + "7" * 5000,
    "a large exponent": "1e999999999",
    "a negative exponent": "1e-999999999",
    "a power of two": "2^99999999",
    "no number": float("nan"),
    "infinite": float("inf"),
    "deep lists": nested(250, 0),
    "sums of sums": nested(9, 0, "sum"),
    "Kronecker products": nested(9, 0, "kron"),
    "a long text": "x" * 10**6,
    "a long list": [0] * 10**6,
    "many keys": {f"key {i}": i for i in range(10**5)},
    "a huge shape": {"shape": [2**31, 2**31], "unit": "1", "rows": []},
    "a huge packed shape": packed([2**20, 2**20], 1),
    "too much packed": packed([2, 2], 2**20),
    "a negative shape": {"shape": [-1, -1], "unit": "1", "rows": [0]},
    "many dimensions": {"shape": [1] * 10**5, "unit": "1", "rows": [0]},
    "sparse beyond its shape": {"form": "sparse", "shape": [2, 2], "places": packed([9], 9), "values": packed([9], 9)},
    "repeated": {"form": "repeat", "count": 10**18, "of": {"shape": [1, 1], "unit": "1", "rows": [1]}},
    "a great many": 10**18,
    "less than none": -(10**18),
    "below zero, exactly": "-" + "9" * 399,
}


def hostile(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Texts of hostile plans with what is wrong with them."""
    dice = random.Random(seed)
    documents = {name: solved(name) for name in BASES}
    for name, document in documents.items():
        text = json.dumps(document)
        yield f"{name}: brackets", "[" * 10**6
        yield f"{name}: objects", '{"a":' * 10**5
        yield f"{name}: in front", "[" * 200 + text + "]" * 200
        yield f"{name}: a key twice", text[:-1] + ', "status": "optimal"}'
        yield f"{name}: a key often", text[:-1] + ', "status": "optimal"' * 10**5 + "}"
        yield f"{name}: digits", text[:-1] + ', "more": ' + "9" * 10**5 + "}"
        yield f"{name}: an exponent", text.replace('"value": ', '"value": 1e999 , "other": ', 1)
        yield f"{name}: cut off", text[: len(text) // 2]
        yield f"{name}: no digest", json.dumps(document | {"digest": ""})
        yield f"{name}: nothing of it", json.dumps(resign(dict.fromkeys(document, None)))
    listed = {name: [path for path, _ in places(doc) if path and path[0] in JUDGED] for name, doc in documents.items()}
    for number in range(count):
        name, kind = BASES[number % len(BASES)], list(VALUES)[number % len(VALUES)]
        path = dice.choice(listed[name])
        text = isinstance(get(documents[name], path), str | None) and isinstance(VALUES[kind], str)
        if not (path[0] == "problem" and text):  # a label of the problem may be any text
            changed = mutate(documents[name], path, VALUES[kind])
            yield f"{name}: {kind} at {'.'.join(map(str, path))}", json.dumps(changed)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_hostile_plans_end_soon(seed: int, tmp_path: File) -> None:
    assert not failures(hostile(seed, 170 if seed else 40), tmp_path)


def failures(plans: Iterable[tuple[str, str]], folder: File) -> list[tuple[str, str, str]]:
    """Plans that take too long, end the process or are not refused: what is wrong with them, and what happened."""
    what = {}
    for number, (name, text) in enumerate(plans):
        path = folder / f"{number}.json"
        path.write_text(text, "utf-8")
        what[str(path)] = name
    waiting, bad = list(what), []
    while waiting:
        command = [sys.executable, "-c", READER, *waiting]
        told = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * len(waiting), check=False)
        lines = [line.rsplit(" ", 2) for line in told.stdout.splitlines()]
        bad += [(what[p], took, refused) for p, took, refused in lines if float(took) > SECONDS or refused != "True"]
        waiting = waiting[len(lines) :]
        if waiting:
            bad.append((what[waiting.pop(0)], "ended", told.stderr[-200:]))
    return bad
