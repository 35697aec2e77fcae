"""Entries of the register of deployments: the fields that it knows, and no amount understated."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import pytest

from privspec.explain.curves import GaussianCurve
from privspec.explain.engineer import AT_DELTA, TO_FILL, register_entry, up

from .plans import SPECS, explain, facts, plan

TEXT, DATE, NUMBER = "a text", "a date", "a number"
SCHEMA = {
    "url_slug*": TEXT,
    "deployment*": {
        "basic*": {
            "name*": TEXT,
            "data_curators*": [
                {"data_curator_name*": TEXT, "data_curator_type*": {"Government", "Industry", "Nonprofit"}}
            ],
            "description*": TEXT,
            "intended_use*": TEXT,
            "data_product_type*": {
                *("Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API"),
                "SQL queries",
            },
            "data_product_region*": TEXT,
            "data_product_sector": {"Technology", "Healthcare", "Education", "Government", "Energy", "Finance"},
            "publication_date*": DATE,
        },
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "number_of_privacy_units": NUMBER,
            "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER, "rho": NUMBER},
            "privacy_parameters_details": TEXT,
        },
        "deployment_model": {
            "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
            "model_name_details": TEXT,
            "trust_assumptions": TEXT,
            "actors": TEXT,
            "release_type": {"One release", "Many releases"},
            "release_type_details": TEXT,
            "data_source_type": {"Static", "Dynamic"},
            "data_source_type_details": TEXT,
            "access_type": {"Interactive", "Non-interactive"},
            "access_type_details": TEXT,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "composition": TEXT,
            "post_processing": TEXT,
            "justification": TEXT,
            "utility": TEXT,
            "additional_information": TEXT,
        },
        "administrative*": {
            "status*": {"Converted", "Draft", "Pending", "Changes Required", "Approved"},
            "registry_authors*": [TEXT],
            "tier*": {1, 2, 3},
        },
    },
}
"""What the register takes: schemas/deployments-schema.yaml of opendp/deployments-registry-data at its commit 057e5d81,
read in November 2026; `*` marks what it demands, and no other field is taken. Evidence is left out: we give none."""


def refused(value: Any, form: Any, where: str = "") -> list[str]:
    """The places that the register would refuse."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return [where]
        known = {name.rstrip("*"): (name.endswith("*"), inner) for name, inner in form.items()}
        found = [f"{where}.{name}" for name in value if name not in known]
        found += [f"{where}.{name}" for name, (needed, _) in known.items() if needed and name not in value]
        return found + [
            at
            for name, inner in value.items()
            if name in known
            for at in refused(inner, known[name][1], f"{where}.{name}".strip("."))
        ]
    if isinstance(form, list):
        several = isinstance(value, list) and value
        return [at for one in value for at in refused(one, form[0], where)] if several else [where]
    if isinstance(form, set):
        return [] if value in form else [where]
    if form == DATE:
        return [] if re.fullmatch(r"\d{4}-\d\d-\d\d", str(value)) else [where]
    return [] if isinstance(value, str if form == TEXT else int | float) else [where]


@pytest.mark.parametrize("name", SPECS)
def test_the_register_takes_it_once_its_curator_has_completed_it(name: str) -> None:
    entry = json.loads(explain(plan(name), "register"))
    basic = "deployment.basic"
    assert refused(entry, SCHEMA) == [f"{basic}.data_curators.data_curator_type", f"{basic}.publication_date"]
    found = entry["deployment"]
    blank = [key for key, value in found["basic"].items() if value == TO_FILL]
    assert blank == ["intended_use", "data_product_region", "publication_date"]
    found["basic"] |= {"data_curators": [{"data_curator_name": "A town", "data_curator_type": "Government"}]}
    found["basic"] |= {"publication_date": "2026-12-01"}
    assert not refused(entry, SCHEMA)
    assert refused({**entry, "status": "Draft"}, SCHEMA)
    texts = [t for part in found.values() for t in part.values() if isinstance(t, str)]
    assert all("None" not in text for text in texts)
    claims = [fact.claim for fact in facts(plan(name)).claims]
    amounts = found["privacy_loss"]["privacy_parameters"]
    exact = [claim.epsilon for claim in claims if claim.epsilon is not None]
    if amounts and exact:
        assert any(Fraction(amounts["epsilon"]) >= epsilon for epsilon in exact)
    assert all(claim.sentence in found["privacy_loss"]["privacy_parameters_details"] for claim in claims)


def test_amounts_of_other_measures() -> None:
    document = plan("histogram")
    guarantee = document["guarantees"][0]
    for key in ("epsilon", "achieved"):
        del guarantee[key]
    guarantee |= {"measure": "mu-GDP", "mu": "1/3", "achieved": {"mu": "0.3333333333333333"}}
    loss = register_entry(facts(document))["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"]["delta"] >= float(AT_DELTA)
    assert "-GDP" in loss["privacy_parameters_details"]
    stated = GaussianCurve(1 / 3).bound(AT_DELTA)
    assert loss["privacy_parameters"]["epsilon"] == pytest.approx(float(stated.split("(")[1].split(",")[0]), rel=1e-3)
    del guarantee["mu"]
    guarantee |= {"measure": "rho-zCDP", "rho": "1/10", "achieved": {}}
    assert Fraction(register_entry(facts(document))["deployment"]["privacy_loss"]["privacy_parameters"]["rho"]) >= (
        Fraction(1, 10)
    )


def test_amounts_are_rounded_up() -> None:
    for value in (Fraction(1, 3), Fraction(1, 10), Fraction(2, 3), Fraction(7)):
        assert Fraction(up(value)) >= value
        assert up(value) <= float(value) * (1 + 1e-15)
