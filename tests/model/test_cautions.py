"""What is allowed and seldom meant: large amounts, names that look alike."""

import pytest

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.core.suggest import alike, disguised, fold
from privspec.model.build import load_model
from privspec.model.observers import together
from privspec.problem.systems import parts_of

SPEC = """variables:
  input x in [0, 1]^64
  intermediate y
  output O
background: y = prefix_sums(x)
loss: E[ ||O - y||^2 ]
privacy: O is {amount} wrt x, {unit}
"""
PARAMETER = "parameters:\n  epsilon = 1\n"
TABLE = """variables:
  input people in table(age in 0..4, sex in {F, M})
  output O
loss: E[ ||O - histogram(people)||^2 ]
privacy: O is (1, DELTA)-DP wrt people, replacing one record
"""


def warnings(text: str, **parameters: str) -> dict[str, str]:
    model = load_model(Source("t.priv", text), parameters=parameters)
    return {found.code: found.message for found in model.warnings}


def of(amount: str, unit: str = "replacing one entry", **parameters: str) -> dict[str, str]:
    text = SPEC.format(amount=amount, unit=unit)
    return warnings(PARAMETER + text if "epsilon" in amount else text, **parameters)


def test_a_table_that_nobody_is_trusted_with_and_one_holds():
    text = TABLE.replace("DELTA", "1e-6")
    assert "PS0343" not in warnings(text)
    assert "belongs to no party" in warnings(text + "options: trust nobody\n")["PS0343"]
    parties = "parties: p in 1..9\n" + text.replace("people in table", "people[p] in table")
    assert "PS0343" not in warnings(parties + "options: trust nobody\n")


@pytest.mark.parametrize(
    ("amount", "code"),
    [
        ("10-DP", None),
        ("10.1-DP", "PS0324"),
        ("(20, 1e-6)-DP", "PS0324"),
        ("(1, 0.001)-DP", None),
        ("(1, 0.0011)-DP", "PS0325"),
        ("(1, 0.0157)-DP", "PS0325"),
        ("1-zCDP", None),
    ],
)
def test_amounts_that_promise_little(amount: str, code: str | None) -> None:
    assert set(of(amount)) == ({code} if code else set())


def test_a_delta_is_held_against_the_public_number_of_units() -> None:
    assert "64 entries" in of("(1, 0.02)-DP")["PS0325"]
    assert "64 records" in of("(1, 0.02)-DP", "replacing one record")["PS0325"]
    assert "in 83" in of("(1, 0.012)-DP")["PS0325"]
    assert "in 50" in of("(1, 0.02)-DP", "adding or removing one entry")["PS0325"]
    # how many records a table has is not public here
    assert "in 33" in warnings(TABLE.replace("DELTA", "0.03"))["PS0325"]
    assert not warnings(TABLE.replace("DELTA", "1e-6"))


def test_many_people_ask_for_a_smaller_delta() -> None:
    text = SPEC.replace("^64", "^20000").replace("{unit}", "replacing one entry")
    assert "20,000 entries" in warnings(text.replace("{amount}", "(1, 0.0001)-DP"))["PS0325"]
    assert not warnings(text.replace("{amount}", "(1, 1e-6)-DP"))


def test_a_parameter_that_is_set_is_judged_by_its_value() -> None:
    assert not of("epsilon-DP")
    assert "PS0324" in of("epsilon-DP", epsilon="50")


@pytest.mark.parametrize(
    "name", ["сумма", "größe", "prix_été", "Δx", "α_max", "σ_y", "данные1", "вес_kg", "名前", "μ1"]
)
def test_names_in_the_letters_of_a_language_are_fine(name: str) -> None:
    text = SPEC.format(amount="1-DP", unit="replacing one entry").replace("y", name).replace(f"entr{name}", "entry")
    text = text.replace(f"privac{name}", "privacy")
    assert disguised(name) is None
    assert not warnings(text)


@pytest.mark.parametrize(
    ("name", "plain"), [("pаy", "pay"), ("Оutput", "Output"), ("Ηours", "Hours"), ("ｐay", "pay"), ("cоunts", "counts")]
)
def test_a_letter_in_disguise_is_named(name: str, plain: str) -> None:
    text = SPEC.format(amount="1-DP", unit="replacing one entry").replace("intermediate y", f"intermediate {name}")
    text = text.replace("background: y", f"background: {name}").replace("- y", f"- {name}")
    model = load_model(Source("t.priv", text))
    (warning,) = model.warnings
    assert warning.code == "PS0232"
    assert plain in (warning.help or "")
    assert not warnings(text.replace(name, plain))


def test_two_names_that_look_the_same() -> None:
    text = SPEC.format(amount="1-DP", unit="replacing one entry")
    text = text.replace("  output O\n", "  output O\n  output О\n").replace("||^2 ]", "||^2 ] + E[ ||О - y||^2 ]")
    assert "look the same" in warnings(text)["PS0232"]
    assert alike(["x1", "x2", "xl", "X1"]) == [("x1", "xl")]
    assert fold("ﬁn") == fold("fin")


def test_two_words_of_a_set_that_look_the_same() -> None:
    text = TABLE.replace("DELTA", "1e-6").replace("{F, M}", "{north, nоrth}")
    assert "PS0232" in warnings(text)


def test_a_parameter_that_nothing_uses() -> None:
    """`0.5-DP` beside `epsilon = 0.1`: the line says another amount than its author may think."""
    found = warnings(PARAMETER + SPEC.format(amount="0.5-DP", unit="replacing one entry"), epsilon="0.1")
    assert "nothing uses the parameter epsilon" in found["PS0233"]
    assert not of("epsilon-DP")
    assert not of("(2 * epsilon, 1e-6)-DP")


PEOPLE = """parties: voter in 1..9
variables:
  input visits in table(person in id, district in {north, south})
  input patients in table(patient in id, ill in {no, yes})
  input vote[voter] in [0, 1]
  input age[voter] in [0, 1]
  output V
  output P
  output W
loss: E[ ||V - histogram(visits)||^2 ] + E[ ||P - histogram(patients)||^2 ] + E[ (W - sum(vote) - sum(age))^2 ]
privacy:
  V is 0.5-GDP wrt visits, adding or removing one person with at most 2 records
  P is 0.5-GDP wrt patients, adding or removing one patient with at most 2 records
  W is 0.5-GDP wrt vote, replacing one voter
  W is 0.5-GDP wrt age, replacing one voter
"""


@pytest.mark.parametrize(
    ("lines", "sets"),
    [
        ((), ["visits patients vote age"]),
        (("visits, patients",), ["patients vote age", "visits vote age"]),
        (("visits, vote", "visits, age"), ["patients vote age", "visits patients"]),
        (("visits, patients, vote", "age, visits", "age, patients"), ["vote age"]),
    ],
)
def test_the_same_person_may_be_in_several_inputs(lines: tuple[str, ...], sets: list[str]) -> None:
    """In all that are not said to be of different people; parties of one index set are the same in all inputs."""
    options = "".join(f"\n  different people: {line}" for line in lines)
    model = load_model(Source("t.priv", PEOPLE + (f"options:{options}\n" if lines else "")))
    assert sorted(" ".join(one.inputs) for one in together(model)) == sets
    found = [one for one in model.warnings if one.code == "PS0344"]
    assert len(found) == len(sets)
    # whoever is a voter is one by both inputs: no line can say otherwise
    offers = ["different people" in (one.help or "") for one in found]
    assert sorted(offers) == sorted(not {"vote", "age"} <= {*one.split()} for one in sets)


def test_where_it_is_known_that_people_are_the_same_nothing_is_warned_of() -> None:
    """What lines let through together stays the same; pairs that a line does not name are still warned of."""
    plain, said, some = (
        load_model(Source("t.priv", PEOPLE + options))
        for options in (
            "",
            "options: same people: visits, patients, vote, age\n",
            "options: same people: visits, vote\n",
        )
    )
    assert together(said) == together(plain)
    assert [[one.code for one in model.warnings].count("PS0344") for model in (plain, said, some)] == [1, 0, 1]
    both = "options:\n  same people: visits, patients, vote\n  different people: visits, patients\n"
    with pytest.raises(SpecError, match="patients and visits are said to hold different people as well"):
        load_model(Source("t.priv", PEOPLE + both))


def test_parts_say_of_people_what_they_have_inputs_for() -> None:
    """A count and a median are parts of their own, of which neither has both tables."""
    text = """variables:
  input visits in table(person in id, district in {north, south})
  input patients in table(person in id, age in 0..9)
  output V
  output P
loss: E[ ||V - histogram(visits)||^2 ] + worst[ rank_error(P, median(patients.age)) ]
privacy:
  V is 0.5-DP wrt visits, adding or removing one person with at most 2 records
  P is 0.5-DP wrt patients, adding or removing one person with at most 1 record
options: KIND people: visits, patients
"""
    for kind in ("same", "different"):
        parts = parts_of(load_model(Source("t.priv", text.replace("KIND", kind))))
        assert [part.outputs for part in parts] == [("V",), ("P",)]


JOINED = """variables:
  input visits in table(person in id, district in {north, south})
  input patients in table(person in id, ill in {no, yes})
  output V
  output P
loss: E[ ||V - histogram(visits)||^2 ] + E[ ||P - histogram(patients)||^2 ]
privacy: NAMES 0.5-GDP wrt (visits, patients), adding or removing one person with at most 2 records
"""


def test_a_line_for_all_that_a_person_has_joins_inputs() -> None:
    assert "PS0344" not in warnings(JOINED.replace("NAMES", "all outputs are"))
    assert "PS0344" in warnings(JOINED.replace("NAMES", "V is"))


def test_many_inputs_of_different_people_are_told_apart_at_once() -> None:
    names = [f"t{i}" for i in range(24)]
    lines = [f"  input {name} in table(person in id, d in {{a, b}})" for name in names]
    lines += [f"  output O{name}" for name in names]
    loss = " + ".join(f"E[ ||O{name} - histogram({name})||^2 ]" for name in names)
    private = [f"  O{n} is 1-GDP wrt {n}, adding or removing one person with at most 1 record" for n in names]
    text = "\n".join(["variables:", *lines, f"loss: {loss}", "privacy:", *private, ""])
    assert "PS0344" in warnings(text)
    assert "PS0344" not in warnings(f"{text}options: different people: {', '.join(names)}\n")
