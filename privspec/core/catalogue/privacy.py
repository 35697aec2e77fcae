"""Diagnostics of privacy and fairness requirements (PS03xx).

Append an `Entry(code, title, long_text, example)` in order of codes.
"""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS0301",
        "a requirement must name outputs",
        """
        A requirement protects what is released, so the words before `is` must be outputs of this spec,
        outputs of a component (part.O), or `all outputs`. A value that stays inside needs no protection.
        """,
        """
        y is 1-DP wrt x            # wrong when y is an intermediate
        O is 1-DP wrt x            # right
        """,
    ),
    Entry(
        "PS0302",
        "a requirement must name inputs after wrt",
        """
        What is protected is the data of people: the words after `wrt` must be inputs, or `all inputs`.
        Constants and parameters are public and cannot be protected.
        """,
        "O is 1-DP wrt x            # x is declared as `input x in ...`",
    ),
    Entry(
        "PS0303",
        "a measure has the wrong number of figures",
        """
        Each measure takes figures of its own: epsilon-DP and (epsilon, delta)-DP, rho-zCDP, mu-GDP,
        (order, epsilon)-RDP, epsilon-LDP and (epsilon, delta)-LDP, epsilon-metric-DP.
        """,
        """
        O is (1, 1e-6)-zCDP wrt x  # wrong: zCDP has one figure, rho
        O is 0.5-zCDP wrt x        # right
        """,
    ),
    Entry(
        "PS0304",
        "a figure of a measure must be positive",
        """
        Epsilon, rho and mu say how much the outputs may depend on one unit of the data. With 0 they may
        not depend on it at all, and no useful mechanism exists; a negative figure has no meaning. A range
        from which the solver chooses may include 0. Figures beyond 1e300, or closer to 0 than 1e-300,
        are refused too.
        """,
    ),
    Entry(
        "PS0305",
        "delta must be at least 0 and below 1",
        """
        Delta is the probability with which the bound of epsilon may fail. At 1 nothing is promised. For data
        of N people, a delta near 1/N allows publishing the record of somebody at random, so take it far
        below that: 1e-6 is common.
        """,
    ),
    Entry(
        "PS0306",
        "the order of a Renyi divergence must be above 1",
        """
        (order, epsilon)-RDP bounds the Renyi divergence of that order, which is defined here for orders
        above 1. The order comes first.
        """,
        "O is (8, 0.5)-RDP wrt x",
    ),
    Entry(
        "PS0307",
        "an amount is not a public number",
        """
        The figures of a requirement are part of the promise: they are public, finite and known before any
        data are seen. They may be numbers, parameters, expressions of parameters in parentheses, a figure
        for each person (epsilon[voter]), or `choose` variables.
        """,
    ),
    Entry(
        "PS0308",
        "a local requirement contradicts the trust model",
        """
        LDP promises that each person's own report is protected before it leaves their hands, so it means
        `trust nobody`. With `trust curator` or `secure_sum` somebody handles more than the protected report.
        """,
        """
        O is 1-LDP wrt x
        trust curator              # wrong: write `trust nobody`, or DP in place of LDP
        """,
    ),
    Entry(
        "PS0309",
        "a distance is missing or unknown",
        """
        metric-DP and Lipschitz requirements compare inputs by how far apart they are. Name the distance:
        euclidean, manhattan, chebyshev, hamming, discrete, or for rankings kendall or footrule.
        """,
        "z is 1-metric-DP wrt x, distance euclidean",
    ),
    Entry(
        "PS0310",
        "a clause does not belong to this line",
        """
        A line may have one unit (`replacing ...` or `adding or removing ...`), one distance if its measure
        needs one, and one `seen by`. LDP, metric-DP and Lipschitz compare any value with any other, so they
        take no unit. Two promises are two lines.
        """,
    ),
    Entry(
        "PS0311",
        "everything cannot be added or removed",
        """
        `adding or removing` changes the size of the data by one unit. When the unit is everything, nothing
        is left to compare with; write `replacing everything`.
        """,
    ),
    Entry(
        "PS0312",
        "one unit can change the data without limit",
        """
        Noise hides one unit only if that unit can move a result by a bounded amount. An input without
        bounds, or a table of which everything may be replaced, gives no such limit. Bound the input (values
        outside are clipped), or protect a smaller unit. For functions that bound their result by themselves,
        state it: `y has l1 sensitivity at most 1 wrt x`.
        """,
        """
        input x in real^64         # wrong with `O is 1-DP wrt x`
        input x in [0, 100]^64     # right
        """,
    ),
    Entry(
        "PS0313",
        "one observer sees several outputs, and no line joins them",
        """
        A requirement speaks of the outputs it names, together. Two lines that name one output each leave
        open what both reveal to somebody who sees both; that is the composed bound, which is weaker than
        either line. Add a line that names them all to have it bounded by the solver.
        """,
        """
        O1 is 1-DP wrt x
        O2 is 1-DP wrt x
        (O1, O2) is 1.5-DP wrt x   # the joint promise
        """,
    ),
    Entry(
        "PS0314",
        "an input is protected by no requirement",
        """
        No line names this input after `wrt`, so nothing is promised to the people it is about. If the data
        are public, declare them as a constant.
        """,
    ),
    Entry(
        "PS0315",
        "an output is protected by no requirement",
        """
        No line names this output, so it may reveal anything about the data, up to all of it. Add a
        requirement, or do not release it.
        """,
    ),
    Entry(
        "PS0317",
        "figures by person do not fit",
        """
        A figure for each person (epsilon[voter]) needs an input that the same index set indexes, a list with
        one figure for each person, and a unit that belongs to one person.
        """,
        """
        parameters: epsilon[voter] = csv("epsilons.csv")
        privacy: O is epsilon[voter]-DP wrt V[voter], replacing one voter
        """,
    ),
    Entry(
        "PS0320",
        "a fairness line names something that does not vary",
        """
        Independence is a statement about inputs, computed values, outputs, or attributes of a table. The
        word is none of them.
        """,
        "O is independent of sex given income",
    ),
    Entry(
        "PS0321",
        "a tolerance must be from 0 to below 1",
        """
        `up to 0.05` allows the laws of the output in two groups to differ by that much in total variation,
        which is never above 1.
        """,
    ),
)
