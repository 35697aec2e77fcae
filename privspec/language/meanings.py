"""What to write for words that authors bring from the field and from other languages.

Each table says, for a word that the language does not have, what it has instead, or that nothing does the same.
A word that is listed is never taken for the misspelling of another: the median is not the mean.
In `FUNCTIONS`, $1, $2 and $3 stand for the arguments as written and $* for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_ORDER = (
    "no function gives it yet, and no other statistic stands for it; "
    "release counts, histogram(t) or marginals(t, {age}) of a table, and read it off them"
)
_DENSITY = "noise is not written into a spec: the solver adds it; options: noise family laplace asks for a family"
_CELLS = "no function selects rows yet: count all cells, marginals(t, {age}), and add up those you want"
_SQUARED = "write E[ ||$1 - $2||^2 ], the sum of the squared errors"
_ABSOLUTE = "write E[ ||$1 - $2||_1 ], the sum of the absolute errors"
_AVERAGE = "write E[ $* ], with square brackets, for the average over the noise"
_WINNER = "no function gives the place of the largest entry; for the winner of votes write plurality(votes)"
_LENGTH = "write count(t) for the records of a table; the length of a vector stands in its domain"
_NOT_YET = "no function gives it; build it from sum(v), mean(v), variance(v), or release counts, histogram(t)"
_LAWS = "no function gives it; total_variation(a, b) compares the laws of two values"

FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(("median", "quantile", "percentile", "quartile", "decile", "iqr", "med", "quantiles"), _ORDER),
    **dict.fromkeys(("argmax", "argmin", "winner", "most_common", "topk", "top_k", "arg_max"), _WINNER),
    **dict.fromkeys(("mse", "sse", "squared_error", "mean_squared_error", "l2_loss", "rmse", "squared_loss"), _SQUARED),
    **dict.fromkeys(("mae", "absolute_error", "mean_absolute_error", "l1_loss"), _ABSOLUTE),
    **dict.fromkeys(("E", "expectation", "expected", "expected_value", "expect", "Exp", "EV"), _AVERAGE),
    **dict.fromkeys(("worst", "worst_case", "sup", "supremum"), "write worst[ $* ], with square brackets"),
    **dict.fromkeys(("count_if", "countif", "where", "filter", "select", "sumif", "sum_if"), _CELLS),
    **dict.fromkeys(
        ("groupby", "group_by", "crosstab", "contingency", "marginal", "pivot"), "write marginals(t, {age, sex})"
    ),
    **dict.fromkeys(("hist", "counts", "bincount", "value_counts", "tabulate"), "write histogram($1)"),
    **dict.fromkeys(("count_distinct", "distinct", "unique", "nunique"), _NOT_YET),
    **dict.fromkeys(("skewness", "kurtosis", "covariance", "cov", "correlation", "corr", "regression"), _NOT_YET),
    **dict.fromkeys(("kl", "kl_divergence", "entropy", "mutual_information", "wasserstein"), _LAWS),
    **dict.fromkeys(("laplace", "gaussian", "normal", "noise", "gauss", "lap", "random", "randn"), _DENSITY),
    **dict.fromkeys(("std", "stdev", "stddev", "sd", "standard_deviation"), "write sqrt(variance($1))"),
    **dict.fromkeys(("average", "avg", "arithmetic_mean"), "write mean($*)"),
    **dict.fromkeys(
        ("mode", "most_frequent"), "the most frequent of votes is plurality(votes); release counts for other data"
    ),
    **dict.fromkeys(("majority", "first_past_the_post", "relative_majority"), "write plurality($1)"),
    **dict.fromkeys(("random_ballot", "random_dictatorship"), "write random_dictator($1)"),
    "borda": "write borda_scores($1), or borda_lottery($1) for a winner drawn by them",
    "var": "write variance($1)",
    **dict.fromkeys(("maximum", "largest"), "write max($*)"),
    **dict.fromkeys(("minimum", "smallest"), "write min($*)"),
    "ln": "write log($1), which is the natural logarithm",
    "log10": "write log($1) / log(10)",
    "log2": "write log($1) / log(2)",
    **dict.fromkeys(("norm", "l2norm", "l2_norm", "norm2", "norm_2", "euclidean_norm"), "write ||$1||"),
    **dict.fromkeys(("l1norm", "l1_norm", "norm1", "norm_1"), "write ||$1||_1"),
    **dict.fromkeys(("linf_norm", "norm_inf", "max_norm", "linfnorm"), "write ||$1||_inf"),
    **dict.fromkeys(("square", "sqr", "squared"), "write ($1)^2"),
    **dict.fromkeys(("pow", "power"), "write ($1)^($2)"),
    **dict.fromkeys(("dot", "matmul", "inner", "matvec"), "write $1 @ $2"),
    **dict.fromkeys(("transpose", "t"), "write $1'"),
    **dict.fromkeys(("len", "length", "size", "nrow", "nrows"), _LENGTH),
    **dict.fromkeys(("cumsum", "cumulative_sum", "cumulative", "running_total"), "write prefix_sums($1)"),
    **dict.fromkeys(("diff", "difference"), "write differences($1)"),
    **dict.fromkeys(("eye", "identity_matrix"), "write identity($1)"),
    "diag": "write diagonal($1)",
    **dict.fromkeys(("tv", "tvd", "tv_distance"), "write total_variation($1, $2)"),
    **dict.fromkeys(("read_csv", "load_csv", "load", "open", "read", "file", "loadtxt"), "write csv($1)"),
    "round": "write floor($1 + 0.5)",
    **dict.fromkeys(("ceiling",), "write ceil($1)"),
    **dict.fromkeys(
        ("range", "arange", "seq", "linspace"), "write a range lo..hi, both ends included, as in for i in 1..10"
    ),
}

NAMES: Mapping[str, str] = {
    **dict.fromkeys(
        ("expected", "expectation", "Expectation", "Expected", "Ex"), "write E[ ... ] for the average over the noise"
    ),
    "e": "write exp(1); a number such as one millionth is written 1e-6",
    "noise": _DENSITY,
    "pi": "write 3.14159265",
    **dict.fromkeys(("infinity", "Inf", "infty", "oo"), "write inf, as in [0, inf)"),
    **dict.fromkeys(("true", "True", "TRUE"), "write 1"),
    **dict.fromkeys(("false", "False", "FALSE"), "write 0"),
    **dict.fromkeys(
        ("none", "None", "null", "nan", "NaN"),
        "every value is a number or a word: a missing value needs a word of its own",
    ),
}

_REAL = "write [lo, hi], as in [0, 1], for numbers between two bounds, and real for those without any"
_WHOLE = "write lo..hi, as in 0..100 or (0..100)^64, for whole numbers between two ends"
_WORDS = "list the words: {north, east, south}"

DOMAINS: Mapping[str, str] = {
    **dict.fromkeys(
        ("R", "reals", "Real", "Reals", "float", "float64", "double", "number", "numeric", "decimal"), _REAL
    ),
    **dict.fromkeys(("int", "integer", "integers", "Int", "Z", "N", "naturals", "natural", "int64", "uint"), _WHOLE),
    **dict.fromkeys(("bool", "boolean", "binary", "bit", "bits", "Bool", "flag"), "write {0, 1}"),
    **dict.fromkeys(("string", "str", "text", "category", "categorical", "enum", "word", "factor", "char"), _WORDS),
    **dict.fromkeys(("vector", "array", "list", "series"), "write the domain of one entry to a power: [0, 1]^64"),
    **dict.fromkeys(("matrix",), "write the domain of one entry to a power: [0, 1]^(32, 64)"),
    **dict.fromkeys(
        ("id", "ID", "key", "uuid"), "leave the column out: a record is one row, and columns for ids come later"
    ),
    **dict.fromkeys(
        ("dataframe", "database", "dataset", "records", "frame"),
        "list the columns: table(age in 0..120, sex in {F, M})",
    ),
    **dict.fromkeys(
        ("range", "interval", "bounded"), "write [lo, hi] for all numbers between two bounds, lo..hi for the whole ones"
    ),
    **dict.fromkeys(("ball", "sphere"), "write l2_ball(radius, dimension)"),
    **dict.fromkeys(("permutation", "permutations", "rank", "order"), "write ranking of {a, b, c}"),
}

SECTIONS: Mapping[str, str] = {
    **dict.fromkeys(("params", "settings", "constants", "values"), "parameters"),
    **dict.fromkeys(("people", "agents", "users", "persons", "indices", "index"), "parties"),
    **dict.fromkeys(("modules", "parts", "imports", "subspecs"), "components"),
    **dict.fromkeys(("vars", "var", "inputs", "outputs", "data", "declarations", "columns"), "variables"),
    **dict.fromkeys(
        ("definitions", "define", "model", "knowledge", "equations", "assumptions", "computation"), "background"
    ),
    **dict.fromkeys(
        ("objective", "cost", "goal", "error", "minimise", "minimize", "utility", "optimize", "optimise"), "loss"
    ),
    **dict.fromkeys(("targets", "tolerance", "tolerances", "quality"), "accuracy"),
    **dict.fromkeys(
        ("requirements", "requirement", "guarantee", "guarantees", "dp", "constraints", "constraint"), "privacy"
    ),
    **dict.fromkeys(("fair", "equity"), "fairness"),
    **dict.fromkeys(("config", "configuration", "opts"), "options"),
}
"""The section that another header means."""

MEASURES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("cdp", "concentrated"), ("zCDP", "rho")),
    **dict.fromkeys(("adp", "approxdp", "approximate-dp", "approx-dp"), ("DP", "(epsilon, delta)")),
    **dict.fromkeys(("pdp", "puredp", "pure-dp"), ("DP", "epsilon")),
    **dict.fromkeys(("edp", "indistinguishable", "private", "privacy", "differential"), ("DP", "")),
    **dict.fromkeys(("local-dp", "local"), ("LDP", "")),
    **dict.fromkeys(("gaussian-dp", "fdp"), ("GDP", "mu")),
    **dict.fromkeys(("renyi-dp", "rényi-dp", "renyi"), ("RDP", "(order, epsilon)")),
    **dict.fromkeys(("metricdp", "d-privacy", "dx-privacy", "geo-indistinguishability"), ("metric-DP", "")),
}
"""The measure that another name means, and what its amount is where that is not the amount written."""

DISTRIBUTIONS: Mapping[str, str] = {
    **dict.fromkeys(("gaussian", "gauss", "N"), "write normal(mean, sd)"),
    **dict.fromkeys(("unif", "U"), "write uniform"),
    **dict.fromkeys(("discrete", "choice", "weights"), "write categorical([0.2, 0.8])"),
    **dict.fromkeys(("data", "sample", "observed"), 'write empirical(csv("f"))'),
    **dict.fromkeys(("expon",), "write exponential(rate)"),
    **dict.fromkeys(("double_exponential",), "write laplace(mean, scale)"),
    **dict.fromkeys(
        ("student", "cauchy", "pareto", "zipf", "weibull", "hypergeometric"),
        "no such law yet; give its weights: categorical([0.2, 0.8])",
    ),
}

FAMILIES: Mapping[str, str] = {
    **dict.fromkeys(("normal", "gauss", "discrete_gaussian", "analytic_gaussian"), "write gaussian"),
    **dict.fromkeys(("discrete_laplace", "two_sided_geometric"), "write geometric"),
    **dict.fromkeys(("rr", "krr", "k_rr", "grr", "randomised_response", "randomized_response"), "write table"),
    **dict.fromkeys(("exponential_mechanism",), "write exponential"),
    **dict.fromkeys(("planar_laplace",), "write table: the planar mechanism is one, on a grid of points"),
    **dict.fromkeys(
        ("uniform", "student", "cauchy"), "no such family: noise of this law keeps no promise that can be asked for"
    ),
}

TRUST: Mapping[str, str] = {
    **dict.fromkeys(
        ("central", "server", "trusted", "trusted_curator", "aggregator", "central_curator"), "write curator"
    ),
    **dict.fromkeys(("none", "noone", "no_one", "local", "untrusted", "distributed"), "write nobody"),
    **dict.fromkeys(
        ("mpc", "smpc", "secure_aggregation", "secagg", "secure", "shuffle", "shuffler"),
        "write secure_sum: parties see only sums",
    ),
}

UNITS: Mapping[str, str] = {
    **dict.fromkeys(("row", "rows", "line", "tuple", "item", "items"), "record"),
    **dict.fromkeys(("value", "values", "number", "cell", "element", "coordinate", "component"), "entry"),
    **dict.fromkeys(("dataset", "database", "all", "data", "input"), "everything"),
}
"""The unit that another word means, where the spec declares no index set of that name."""


PEOPLE = frozenset(
    ("person", "people", "user", "users", "individual", "individuals", "participant", "respondent", "member", "patient")
)
"""Units that are one record where each holds one, and an index set where each holds several."""


def written(sense: str, arguments: Sequence[str], *, averaged: bool = False) -> str:
    """An advice of `FUNCTIONS` with the arguments in it; inside an average, without the average it proposes."""
    if averaged and sense in (_SQUARED, _ABSOLUTE):
        sense = sense.replace("E[ ", "").replace(" ]", "")
    for place in ("$2", "$3"):
        if place in sense and len(arguments) < int(place[1]):
            arguments = (*arguments, "y")
    sense = sense.replace("$*", ", ".join(arguments) or "...")
    for number, argument in enumerate(arguments, 1):
        sense = sense.replace(f"${number}", argument)
    return sense.replace("$1", "...")
