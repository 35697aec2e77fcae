"""Entries of the register of deployments: the fields that it knows, and no amount understated."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from privspec.explain.curves import GaussianCurve
from privspec.explain.register import AT_DELTA, register_entry, up

from .plans import SPECS, explain, facts, plan

FIELDS = {
    "basic": "name data_curators description intended_use data_product_type data_product_region publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type data_source_type access_type",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
VARIANTS = {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"}


@pytest.mark.parametrize("name", SPECS)
def test_the_register_would_take_it(name: str) -> None:
    entry = json.loads(explain(plan(name), "register"))
    assert set(entry) == {"url_slug", "status", "tier", "deployment"}
    assert {part: set(fields) for part, fields in entry["deployment"].items()} == {
        part: set(fields.split()) for part, fields in FIELDS.items()
    }
    found = entry["deployment"]
    assert found["dp_variant"]["variant_name"] in VARIANTS
    assert found["deployment_model"]["model_name"] in {"Local", "Central", "Federated", "Varies"}
    assert set(found["privacy_loss"]["privacy_parameters"]) <= {"epsilon", "delta", "rho"}
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
