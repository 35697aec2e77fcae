import pytest

from privspec.core.suggest import nearest

SECTIONS = ["parameters", "parties", "components", "variables", "background", "loss", "privacy", "options"]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("varaibles", "variables"),
        ("Variables", "variables"),
        ("varibles", "variables"),
        ("losss", "loss"),
        ("lss", "loss"),
        ("los", "loss"),
        ("privacies", None),  # three letters of seven
        ("party", None),
        ("option", "options"),
        ("requirements", None),
        ("x", None),
        ("", None),
    ],
)
def test_nearest(word: str, found: str | None) -> None:
    assert nearest(word, SECTIONS) == found


def test_closest_wins_and_then_the_first() -> None:
    assert nearest("abcd", ["abxx", "abcx", "abce"]) == "abcx"
    assert nearest("x", ["y"]) is None
    assert nearest("ab", ["ba"]) == "ba"
    assert nearest("word", []) is None
