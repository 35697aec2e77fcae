"""Small specs of every shape that the linear compiler knows, by name."""

from __future__ import annotations

from .specs import spec

SERIES = "input x in [0, 1]^4; intermediate y; output O"
PREFIX = "y = prefix_sums(x)"
LARGEST = "max(E[ (O[j] - y[j])^2 ] for j in 1..4)"
SQUARES = "E[ ||O - y||^2 ]"
ENTRY = "O is 1-GDP wrt x, replacing one entry"
RECORD = "O is 1-GDP wrt x, replacing one record"
EVERYTHING = "O is 1-GDP wrt x, replacing everything"
TABLE = "input p in table(a in 0..4); intermediate y; output O"
OBSERVERS = (
    "input x in [0, 1]^4; intermediate y; intermediate t; output O; output P",
    "y = prefix_sums(x); t = total(x)",
    "E[ ||O - y||^2 ] + 4 * E[ (P - t)^2 ]",
    "P is 0.5-GDP wrt x, replacing one entry, seen by press; "
    "(O, P) is 1-GDP wrt x, replacing one entry, seen by auditors",
)

GAUSSIAN = {
    "full": spec(SERIES, PREFIX),
    "full, worst": spec(SERIES, PREFIX, LARGEST),
    "at x and y": spec(SERIES, PREFIX, options="noise at x, y"),
    "at x and y, worst": spec(SERIES, PREFIX, LARGEST, options="noise at x, y"),
    "at x": spec(SERIES, PREFIX, options="noise at x"),
    "two observers": spec(*OBSERVERS),
    "two observers at x, y and P": spec(*OBSERVERS, "noise at x, y, P"),
    "histogram, replacing": spec(
        TABLE, "y = prefix_sums(histogram(p))", SQUARES, "O is 1-GDP wrt p, replacing one record"
    ),
    "histogram, adding": spec(
        TABLE, "y = range_sums(histogram(p))", SQUARES, "O is 1-GDP wrt p, adding or removing one record"
    ),
    "ball": spec("input x in l2_ball(1, 4); intermediate y; output O", PREFIX, SQUARES, EVERYTHING),
    "records in balls": spec(
        "input x in l2_ball(1, 2)^3; intermediate y; output O", "y = [1, 2, 3] @ x", SQUARES, RECORD
    ),
    "box, everything": spec(SERIES, PREFIX, SQUARES, EVERYTHING),
    "box, everything, at x and y": spec(SERIES, PREFIX, SQUARES, EVERYTHING, "noise at x, y"),
    "records in boxes": spec(
        "input x in [0, 1]^(3, 2); intermediate y; output O", "y = [[1, 2, 3], [0, 1, 1]] @ x", SQUARES, RECORD
    ),
    "group": spec(SERIES, PREFIX, SQUARES, "O is 1-GDP wrt x, replacing up to 2 entries"),
    "nobody": spec(SERIES, PREFIX, SQUARES, ENTRY, "trust nobody"),
    "two inputs": spec(
        "input x in [0, 1]^2; input w in [0, 3]^2; intermediate y; output O",
        "y = [x[1], x[1] + w[2], x[2] - w[1]]",
        SQUARES,
        "O is 1-GDP wrt x, replacing one entry; O is 0.5-GDP wrt w, replacing one entry",
    ),
    "several measures": spec(
        SERIES,
        PREFIX,
        SQUARES,
        "O is (1, 1e-6)-DP wrt x, replacing one entry; O is 0.1-zCDP wrt x, replacing one entry; "
        "O is (2, 0.5)-RDP wrt x, replacing one entry",
    ),
}

PURE = {
    "laplace on a series": spec(SERIES, PREFIX, SQUARES, "O is 1-DP wrt x, replacing one entry"),
    "laplace, worst": spec(SERIES, PREFIX, LARGEST, "O is 1-DP wrt x, replacing one entry"),
    "laplace at x": spec(SERIES, PREFIX, SQUARES, "O is 1-DP wrt x, replacing one entry", "noise at x"),
    "geometric": spec(TABLE, "y = histogram(p)", SQUARES, "O is 1-DP wrt p, adding or removing one record"),
    "geometric, replacing": spec(TABLE, "y = histogram(p)", SQUARES, "O is 1-DP wrt p, replacing one record"),
    "ranges": spec(TABLE, "y = range_sums(histogram(p))", SQUARES, "O is 1-DP wrt p, adding or removing one record"),
    "knorm ball": spec(
        "input x in l2_ball(1, 3); output O", "", "E[ ||O - x||^2 ]", "O is 1-DP wrt x, replacing everything"
    ),
    "laplace, nobody": spec(SERIES, PREFIX, SQUARES, "O is 1-DP wrt x, replacing one entry", "trust nobody"),
}
