"""Each question a pass asks, with the code and the help of its complaint."""

import model_specs as specs
import numpy as np
import pytest
from model_specs import errors, helps

from privspec.core.diagnostics import Diagnostic, SpecError
from privspec.core.render import render_all

BASE = """parameters:
  N = 3
parties: voter in 1..N
variables:
  input V[voter] in [0, 1]^2
  input t in table(age in 0..9, sex in {F, M})
  intermediate b[voter]
  intermediate s
  output O
  output P
background:
  b[voter] = 2 * V[voter]
  s = mean(b[voter] for voter)
loss: E[ ||O - s||^2 ] + E[ ||P - marginals(t, 1)||^2 ]
privacy:
  O is 1-DP wrt V, replacing one voter
  P is 1-DP wrt t, replacing one record
"""

S = "s = mean(b[voter] for voter)"
PRIVATE = "P is 1-DP wrt t, replacing one record"

WRONG = [
    ("b[voter] = 2 * V[voter]", "b = 2 * V", "PS0228", "write b[voter] = ..."),
    (S, "s = b[voter]", "PS0228", "`for voter` inside sum"),
    (S, "s = voter", "PS0203", "`for voter`"),
    (S, "s = mean(b[voter] for vote)", "PS0228", "did you mean `for voter`?"),
    (S, "s = maen(b[voter] for voter)", "PS0205", "did you mean mean?"),
    (S, "s = mean(bb[voter] for voter)", "PS0201", "did you mean b?"),
    (S, "s = s + 1", "PS0210", ""),
    (S, f"{S}\n  s = 1", "PS0211", ""),
    (S, "", "PS0212", "add `s = ...`"),
    (S, f"{S}\n  V = 1", "PS0215", ""),
    (S, f"{S}\n  2 * s = O", "PS0215", "write O = 2 * s"),
    (S, "s = V[1] / 0", "PS0260", ""),
    (S, "s = V[4]", "PS0209", ""),
    (S, "s = V[1, 1, 1]", "PS0209", ""),
    (S, "s = V[1] + V[1][1] + [1, 2, 3]", "PS0207", ""),
    (S, "s = V @ [1, 2, 3]", "PS0207", "did you mean V' @ [1, 2, 3]? (V' is the transpose)"),
    (S, "s = sum(V[j] for j in 1..4)", "PS0209", ""),
    (S, "s = sum(V[1] for t in 1..3)", "PS0204", "another letter"),
    (S, "s = probit_mle(V[1])", "PS0207", ""),
    (S, "s = mean(b[voter].weights for voter)", "PS0229", ""),
    (S, "s = mean(b[voter] for voter)\n  b[1] = 2", "PS0215", ""),
    ("marginals(t, 1)", "marginals(t, 3)", "PS0206", "it is written"),
    ("marginals(t, 1)", "marginals(t, {age, sx})", "PS0206", "did you mean sex?"),
    ("marginals(t, 1)", "t", "PS0208", ""),
    ("marginals(t, 1)", "prefix_sums(t)", "PS0208", ""),
    ("||P - marginals(t, 1)||^2", "P - marginals(t, 1)", "PS0402", "square and sum it"),
    ("E[ ||P - marginals(t, 1)||^2 ]", "||P - marginals(t, 1)||^2", "PS0408", "E[ ... ]"),
    ("E[ ||O - s||^2 ]", "E[ ||O - s||^2 * ||s|| ]", "PS0401", "worst[ ||O - s||^2 * ||s|| ]"),
    ("{F, M}", "{F, F}", "PS0222", ""),
    ("{F, M}", "{F, 1}", "PS0222", ""),
    ("0..9", "0..1.5", "PS0223", "write [lo, hi]"),
    ("0..9", "9..0", "PS0221", "did you mean 0..9?"),
    ("age in 0..9", "age in real", "PS0226", ""),
    ("age in 0..9", "age in 0..9, age in 0..1", "PS0202", ""),
    ("[0, 1]^2", "[1, 0]^2", "PS0221", "did you mean [0, 1]?"),
    ("[0, 1]^2", "(1, 1]^2", "PS0221", ""),
    ("[0, 1]^2", "[inf, 1]^2", "PS0221", ""),
    ("[0, 1]^2", "[0, 1e400]^2", "PS0224", ""),
    ("[0, 1]^2", "[0, 1]^0", "PS0223", ""),
    ("[0, 1]^2", "[0, 1]^2.5", "PS0223", ""),
    ("[0, 1]^2", "[0, 1]^(1e15)", "PS0225", ""),
    ("[0, 1]^2", "[0, s]^2", "PS0203", ""),
    ("[0, 1]^2", "grid(0, 1, 0)^2", "PS0226", ""),
    ("[0, 1]^2", "grid(0, 1, 0.3)^2", "PS0226", "the last point would be 0.9"),
    ("[0, 1]^2", "l2_ball(-1, 2)", "PS0226", ""),
    ("[0, 1]^2", "l2_bal(1, 2)", "PS0220", "did you mean l2_ball?"),
    ("[0, 1]^2", "rael^2", "PS0201", "did you mean real?"),
    ("[0, 1]^2", "ranking of A", "PS0220", "A = {a, b, c}"),
    ("[0, 1]^2", "partial_ranking(A)", "PS0201", "declare it under"),
    ("[0, 1]^2", "partial_ranking(N)", "PS0220", "A = {a, b, c}"),
    ("[0, 1]^2", "partial_ranking(1..3)", "PS0226", "partial_ranking(A, places)"),
    ("[0, 1]^2", "partial_ranking({a, b}, 2, 1)", "PS0226", ""),
    ("[0, 1]^2", "partial_ranking({a, b}, places = 1)", "PS0226", ""),
    ("[0, 1]^2", "partial_ranking({a, b}, 3)", "PS0226", "leave the number out"),
    ("[0, 1]^2", "partial_ranking({a, b}, 0)", "PS0223", ""),
    ("[0, 1]^2", "partial_ranking({a, a})", "PS0222", ""),
    ("[0, 1]^2", "partial_rankin({a, b})", "PS0220", "did you mean partial_ranking?"),
    ("N = 3", "N = 0", "PS0227", ""),
    ("N = 3", "N = 2.5", "PS0227", ""),
    ("N = 3", "N = M\n  M = N", "PS0210", ""),
    ("N = 3", "N = 10^10^10", "PS0260", ""),
    ("N = 3", "N = 3\n  N = 4", "PS0202", "another name"),
    ("N = 3", "N = 3\n  inf = 4", "PS0204", ""),
    ("N = 3", "N = 3\n  e[voter] = [1, 2]", "PS0207", ""),
    ("1..N", "0..N", "PS0227", ""),
    ("V[voter] in", "V[votr] in", "PS0228", "did you mean V[voter]?"),
    ("input t in", "input t = 3\n  input u in", "PS0214", ""),
    ("output P", "output P\n  choose q", "PS0216", ""),
    ("output P", "output P\n  constant c", "PS0217", ""),
    ("output P", "output P\n  constant c in real = [1, 2]", "PS0253", ""),
    ("output P", "output P\n  constant c = s", "PS0203", "as intermediate"),
    ("output P", "output P\n  constant c = csv(3)", "PS0206", ""),
    ("output P", "output P\n  output Q", "PS0213", "E[ ||Q - y||^2 ]"),
    ("output P", "output P\n  intermediate q in real^7 = V[1]", "PS0218", ""),
    (PRIVATE, f"{PRIVATE}\n  s is 1-DP wrt t", "PS0301", "the outputs are O and P"),
    (PRIVATE, f"{PRIVATE}\n  PP is 1-DP wrt t", "PS0301", "did you mean P?"),
    (PRIVATE, f"{PRIVATE}\n  P is 1-DP wrt N", "PS0302", ""),
    (PRIVATE, "P is (1, 1e-6)-zCDP wrt t", "PS0303", "rho-zCDP"),
    (PRIVATE, "P is 1-RDP wrt t", "PS0303", ""),
    (PRIVATE, "P is 0-DP wrt t", "PS0304", "a chosen range may include it"),
    (PRIVATE, "P is (N - 4)-DP wrt t", "PS0304", ""),
    (PRIVATE, "P is 1e400-DP wrt t", "PS0304", ""),
    (PRIVATE, "P is (1, 1)-DP wrt t", "PS0305", ""),
    (PRIVATE, "P is (1, -1e-6)-DP wrt t", "PS0305", ""),
    (PRIVATE, "P is (1, 1)-RDP wrt t", "PS0306", ""),
    (PRIVATE, "P is inf-DP wrt t", "PS0307", ""),
    (PRIVATE, "P is s-DP wrt t", "PS0307", ""),
    (PRIVATE, "P is M-DP wrt t", "PS0201", "parameters:"),
    (PRIVATE, "P is 1-metric-DP wrt t", "PS0309", "distance euclidean"),
    (PRIVATE, "P is 1-metric-DP wrt t, distance euclidian", "PS0309", "did you mean euclidean?"),
    (PRIVATE, f"{PRIVATE}, replacing one record", "PS0310", "one requirement per line"),
    (PRIVATE, f"{PRIVATE}, distance euclidean", "PS0310", ""),
    (PRIVATE, "P is 1-LDP wrt t, replacing one record", "PS0310", ""),
    (PRIVATE, "P is 1-DP wrt t, adding or removing everything", "PS0311", "replacing everything"),
    (PRIVATE, "P is N[voter]-DP wrt V", "PS0317", "write N"),
    (PRIVATE, "P is 1-DP wrt t, replacing one row", "PS0230", "did you mean `one record`?"),
    (PRIVATE, "P is 1-DP wrt t, replacing one person", "PS0230", "privspec help privacy"),
    (PRIVATE, "P is 1-DP wrt t, replacing one shop", "PS0230", "parties: shop in 1..N"),
    (PRIVATE, "P is 1-DP wrt t, replacing up to 0 records", "PS0223", ""),
    (PRIVATE, "P is 1-DP wrt t, replacing one entry", "PS0231", "one record"),
    (PRIVATE, "P is 1-DP wrt t, replacing one voter", "PS0231", "t[voter]"),
    (PRIVATE, f"{PRIVATE}\nfairness: O is independent of sexx", "PS0320", "did you mean sex?"),
    (PRIVATE, f"{PRIVATE}\nfairness: O is independent of sex, up to 2", "PS0321", ""),
    (PRIVATE, f"{PRIVATE}\noptions: trust curater", "PS0270", "did you mean curator?"),
    (PRIVATE, f"{PRIVATE}\noptions: trust secure_sum(colluding = -1)", "PS0270", ""),
    (PRIVATE, f"{PRIVATE}\noptions: trust nobody\n  trust curator", "PS0273", ""),
    (PRIVATE, f"{PRIVATE}\noptions: noise at N", "PS0271", ""),
    (PRIVATE, f"{PRIVATE}\noptions: noise family gauss", "PS0272", "write gaussian"),
    (PRIVATE, f"{PRIVATE}\noptions: different people: x", "PS0274", ""),
    (PRIVATE, f"{PRIVATE}\noptions: same people: x", "PS0274", ""),
    (PRIVATE, "P is 1-LDP wrt t\noptions: trust curator", "PS0308", "trust nobody"),
    (S, f"{S}\n  V ~ unifrm", "PS0404", "did you mean uniform?"),
    (S, f"{S}\n  V ~ uniform\n  V ~ uniform", "PS0405", ""),
    (S, f"{S}\n  V ~ normal(1)", "PS0406", ""),
    (S, f"{S}\n  V ~ thurstone_mosteller(1, 2)", "PS0406", ""),
    (S, f"{S}\n  V ~ normal(s, 1)", "PS0406", ""),
    (S, f"{S}\n  O ~ uniform", "PS0407", ""),
    (S, f"{S}\n  s has l3 sensitivity at most 1 wrt V", "PS0410", ""),
    (S, f"{S}\n  s has l1 sensitivity at most 0 wrt V", "PS0410", ""),
    (S, f"{S}\n  E[V] = 1", "PS0411", "written with ~"),
    ("privacy:", "accuracy: E[ ||O - s||^2 ] <= 4 with probability 2\nprivacy:", "PS0409", ""),
    ("privacy:", "accuracy: E[ O ] <= 4\nprivacy:", "PS0402", ""),
    ("parties:", 'components: c = spec("none.priv")\nparties:', "PS0420", ""),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "hint"), WRONG, ids=[f"{c}-{n[:30]}" for _, n, c, _ in WRONG])
def test_each_complaint(old, new, code, hint):
    text = BASE.replace(old, new, 1)
    assert old in BASE
    found = errors(text)
    assert code in found, found
    assert hint in helps(text)[code]


def test_the_base_is_right():
    assert errors(BASE) == {}


def test_every_complaint_has_a_place_and_can_be_shown():
    for old, new, code, _ in WRONG:
        with pytest.raises(SpecError) as caught:
            specs.load(BASE.replace(old, new, 1))
        assert all(d.labels for d in caught.value.diagnostics), code
        assert code in render_all(caught.value.diagnostics)


def test_the_sample_of_a_wrong_product(tmp_path):
    text = specs.SHOPS.replace("A @ x", "A' @ x")
    with pytest.raises(SpecError) as caught:
        specs.load(text, specs.folder(tmp_path))
    (found,) = caught.value.diagnostics
    assert found.code == "PS0207"
    assert found.message == "A' has 32 columns and x has 64 entries"
    assert found.help == "did you mean A @ x? (A' is the transpose)"
    source = found.source
    assert source is not None
    assert [source.slice(label.span) for label in found.labels][:1] == ["A' @ x"]
    assert [label.text for label in found.labels] == [
        "a 64 x 32 matrix cannot multiply x, a vector of 64",
        "a 32 x 64 matrix",
        "a vector of 64",
    ]


def test_independent_errors_are_told_together(tmp_path):
    text = (
        specs.SHOPS.replace("epsilon = 1.0", "epsilon = 0")
        .replace("[0, 1]^64", "[1, 0]^64")
        .replace("trust curator", "trust curater")
        .replace("O - y", "O - yy")
        .replace("one entry", "one row")
    )
    assert set(errors(text, specs.folder(tmp_path))) >= {"PS0304", "PS0221", "PS0270", "PS0201", "PS0230"}


def test_one_mistake_is_told_once(tmp_path):
    text = specs.SHOPS.replace("y = A @ x + b", "y = AA @ x + b")
    assert set(errors(text, specs.folder(tmp_path))) == {"PS0201"}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"parameters": {"epsilom": "1"}}, "PS0250"),
        ({"parameters": {"epsilon": "1 +"}}, "PS0251"),
        ({"parameters": {"epsilon": "x"}}, "PS0251"),
        ({"parameters": {"epsilon": float("nan")}}, "PS0251"),
        ({"constants": {"c": 1}}, "PS0252"),
        ({"constants": {"b": [1, 2, 3]}}, "PS0253"),
        ({"constants": {"b": np.full(32, np.inf)}}, "PS0253"),
    ],
)
def test_values_from_outside(options, code, tmp_path):
    assert code in errors(specs.SHOPS, specs.folder(tmp_path), **options)


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        (b"1,2\n3,x\n", "PS0241", "row 2, column 2"),
        (b"a,b\n1,2\n", None, ""),
        (b"a,b\nc,d\n", "PS0241", "row 2, column 1"),
        (b"1,2\n3,nan\n", "PS0242", "row 2, column 2"),
        (b"1,2\n3,1e999\n", "PS0242", "row 2, column 2"),
        (b"1,2\n3\n", "PS0243", "row 2"),
        (b"", "PS0245", ""),
        (b"a,b\n", "PS0245", ""),
        (b"\xff\xfe", "PS0246", ""),
        (b"1_0,2\n", None, ""),
    ],
)
def test_files(content, code, place, tmp_path):
    (tmp_path / "queries.csv").write_bytes(content)
    text = specs.SHOPS.replace("[0, 1]^64", "[0, 1]^2").replace("  constant b in real^32", "")
    text = text.replace("A @ x + b", "A @ x")
    found = errors(text, tmp_path)
    if code is None:
        assert not found or content.startswith(b"1_0")
    else:
        assert place in found[code]


def test_missing_files_are_guessed(tmp_path):
    specs.folder(tmp_path)
    text = specs.SHOPS.replace("queries.csv", "querys.csv")
    assert helps(text, tmp_path)["PS0240"] == "did you mean queries.csv?"


def test_npy(tmp_path):
    np.save(tmp_path / "q.npy", specs.queries())
    text = specs.SHOPS.replace('csv("queries.csv")', 'npy("q.npy")')
    assert errors(text, tmp_path) == {}
    wrong = specs.queries()
    wrong[3, 4] = np.nan
    np.save(tmp_path / "q.npy", wrong)
    assert "entry [4, 5]" in errors(text, tmp_path)["PS0242"]
    (tmp_path / "q.npy").write_bytes(b"not an array")
    assert "PS0246" in errors(text, tmp_path)
    np.save(tmp_path / "q.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "PS0246" in errors(text, tmp_path)


def test_warnings():
    # P depends on t alone, so whoever sees both learns of V what O tells
    assert not specs.load(BASE.replace(PRIVATE, "P is 1-DP wrt (t, V)")).warnings
    both = BASE.replace("marginals(t, 1)", "s").replace(PRIVATE, "P is 1-DP wrt V, replacing one voter")
    assert [d.code for d in specs.load(both).warnings] == ["PS0313"]
    model = specs.load(BASE.replace(f"  {PRIVATE}\n", ""))
    assert [d.code for d in model.warnings] == ["PS0314"]
    assert model.warnings[0].message == "no requirement protects the input t, and anyone sees P"


def test_parts_with_errors(tmp_path):
    specs.folder(tmp_path)
    assert "PS0421" in errors(specs.WHOLE.replace("epsilon = e1", "epsilom = e1"), tmp_path)
    (tmp_path / "average.priv").write_text(specs.PART.replace("mean(x)", "maen(x)"))
    found = errors(specs.WHOLE, tmp_path)
    assert set(found) == {"PS0205"}
    (tmp_path / "average.priv").write_text(specs.PART.replace("mean(x)", "mean(x"))
    assert "PS0422" in errors(specs.WHOLE, tmp_path)
    (tmp_path / "average.priv").write_text(specs.WHOLE)
    assert any("uses itself" in m for m in errors(specs.WHOLE, tmp_path).values())


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("N = 3", "N = inf", "PS0261"),
        ("N = 3", "N = 3\n  unused = inf", "PS0261"),
        ("N = 3", "N = 3\n  unused = partial_ranking({a, b}, 1)", "PS0205"),
        ("[0, 1]^2", "[0, 1]^inf", "PS0261"),
        ("  intermediate s", "  intermediate s\n  choose r in 1..9\n", "PS0201"),
    ],
)
def test_nothing_without_a_value_is_passed_over(old, new, code):
    """What would follow from another error is an error where there is no other."""
    text = BASE.replace(old, new, 1)
    assert code in errors(text.replace("P is 1-DP", "P is (budget / r)-DP") if "choose" in new else text)


def test_no_secret_and_no_sections():
    assert set(errors("variables: output O\n")) >= {"PS0219"}


def test_every_code_has_a_long_form():
    from privspec.core.catalogue import entries

    assert {code for _, _, code, _ in WRONG} <= set(entries())


def test_what_is_told_is_compared_with_no_more_than_what_is_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of warnings are thousands of steps: each was compared with all those before it."""
    compared, plain = [0], Diagnostic.__eq__

    def counting(one: Diagnostic, other: object) -> bool:
        compared[0] += 1
        return plain(one, other)

    monkeypatch.setattr(Diagnostic, "__eq__", counting)
    many = 2000
    unused = "".join(f"  p{i} = {i}\n" for i in range(many))
    model = specs.load("parameters:\n" + unused + BASE.removeprefix("parameters:\n"))
    assert len(model.warnings) >= many
    assert compared[0] < many
