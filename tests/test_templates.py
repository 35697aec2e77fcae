"""The built-in specs: listed, shown, copied, and in the canonical format."""

from __future__ import annotations

from pathlib import Path

import pytest

from privspec.api import load
from privspec.core.diagnostics import UsageError
from privspec.core.spans import Source
from privspec.language.formatter import format_source
from privspec.manual import copy_template, list_templates, template_text

NAMES = (
    *("histogram", "linear_queries", "marginals", "prefix_sums", "range_queries", "two_observers"),
    *("city_report", "press_and_auditors", "street_report"),
    *("counting_query", "fair_response", "frequency_survey", "geo_indistinguishability", "k_randomised_response"),
    *("metric_dp_line", "power_means", "means_of_parties", "crowd_rlcp", "crowd_rldp", "crowd_vlcp", "crowd_vldp"),
    *("noothigattu_baseline", "wang_algorithm_1", "wang_algorithm_2", "wang_algorithm_3"),
    *("random_dictatorship", "dp_random_dictatorship", "dp_random_dictatorship_compulsory", "borda_lottery"),
    *("private_plurality", "correlated_readings", "location_reports", "rounded_answers", "local_words"),
    *("secure_sum_or_noise", "shared_budget"),
    *("two_studies", "pay_study", "work_study", "yearly_releases", "yearly_survey"),
    *("daily_counts", "momentum_training"),
    *("hospital_network", "pages_read", "census_tables", "median_hours"),
)


def test_the_templates_that_are_promised_are_there() -> None:
    found = list_templates()
    assert tuple(t.name for t in found) == tuple(sorted(t.name for t in found))
    assert set(NAMES) <= {t.name for t in found}
    for template in found:
        assert template.title.endswith(".")
        assert "\n" not in template.title


@pytest.mark.parametrize("name", [t.name for t in list_templates()])
def test_a_template_is_formatted_and_its_parameters_explained(name: str) -> None:
    text = template_text(name)
    assert text == template_text(f"{name}.priv")
    assert format_source(Source(name, text)) == text
    assert text.startswith(f"spec {name}\n")
    inside = text.split("parameters:\n")[1].split("\n\n")[0] if "parameters:" in text else ""
    for line in inside.strip().split("\n"):
        assert "#" in line, f"{line} has no comment"


@pytest.mark.parametrize("name", [t.name for t in list_templates()])
def test_a_copy_stands_by_itself(name: str, tmp_path: Path) -> None:
    written = copy_template(name, tmp_path / "mine.priv")
    assert written[0] == tmp_path / "mine.priv"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in written)
    assert written[0].read_text("utf-8") == template_text(name)
    model = load(written[0]).check()
    assert model.name == name
    assert not model.warnings


def test_a_copy_into_a_folder_keeps_its_name(tmp_path: Path) -> None:
    written = copy_template("linear_queries", tmp_path)
    assert [p.name for p in written] == ["linear_queries.priv", "linear_queries.csv"]


def test_a_copy_has_the_specs_of_its_parts(tmp_path: Path) -> None:
    written = copy_template("two_studies", tmp_path)
    assert {p.name for p in written} == {"two_studies.priv", "pay_study.priv", "work_study.priv"}


@pytest.mark.parametrize("taken", ["mine.priv", "linear_queries.csv"])
def test_nothing_is_written_over(taken: str, tmp_path: Path) -> None:
    (tmp_path / taken).write_text("mine", "utf-8")
    with pytest.raises(UsageError) as caught:
        copy_template("linear_queries", tmp_path / "mine.priv")
    assert caught.value.diagnostics[0].code == "PS0731"
    assert [p.read_text("utf-8") for p in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(("name", "hint"), [("prefix_sum", "prefix_sums"), ("zzz", "there are"), ("", "there are")])
def test_a_template_that_does_not_exist(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        template_text(name)
    (found,) = caught.value.diagnostics
    assert found.code == "PS0730"
    assert hint in (found.help or "")
