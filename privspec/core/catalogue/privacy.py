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
        (order, epsilon)-RDP, epsilon-LDP and (epsilon, delta)-LDP, (epsilon, delta)-per-atom-LDP,
        epsilon-metric-DP.
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
        "a distance is missing, unknown or does not fit",
        """
        metric-DP and Lipschitz requirements compare inputs by how far apart they are. Say how:
        - by name: euclidean, manhattan (the sum of absolute differences), chebyshev (the largest of them),
          hamming (how many entries differ), discrete (1 between any two values), and for rankings kendall
          or footrule. Words count as one apart where they differ;
        - as the size of a difference, with the name of the input: |x - x'| and ||x - x'||_1 (manhattan),
          ||x - x'|| (euclidean), ||x - x'||_inf (chebyshev);
        - as a matrix of your own: csv("roads.csv"), a parameter, a constant (see PS0318).
        After `wrt (x, y)` the numbers of x and y are taken together, as one longer list. A factor belongs
        to the amount: (2 * epsilon)-metric-DP.
        """,
        """
        z is 1-metric-DP wrt x, distance |x - x'|
        z is 1-metric-DP wrt (x, y), distance euclidean
        """,
    ),
    Entry(
        "PS0310",
        "a clause does not belong to this line",
        """
        A line may have one unit (`replacing ...` or `adding or removing ...`), one distance if its measure
        needs one, and one `seen by`. LDP, per-atom-LDP, metric-DP and Lipschitz compare any value with any
        other, so they take no unit. Two promises are two lines.
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
        either line. Add a line that names them all to have it bounded by the solver; without one, the plan and
        every page state the composed bound of the mechanism that was found.

        Whoever is named after `seen by` also sees what anyone sees, and a coalition sees what its members see.
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
        are public, declare them as a constant. The plan and every page state what the noise that serves other
        lines happens to give, and call outputs without any bound "not protected".
        """,
    ),
    Entry(
        "PS0315",
        "an input is protected by no requirement in an output",
        """
        This output depends on the input, somebody sees it, and no line names the two together: it may reveal
        anything about the input, up to all of it. Add a requirement, or do not release it. Plans and pages call it
        "not protected".
        """,
    ),
    Entry(
        "PS0316",
        "a condition on single outputs does not bound sets of them",
        """
        (epsilon, delta)-per-atom-LDP is the condition printed by Ramon & Basu 2020, section 3.3: for any two
        of the |X| inputs a, b and each single output y, Pr(y | a) <= e^epsilon Pr(y | b) + delta / |X|. It can
        be asked for by name, for instance to compare with the paper. It is not (epsilon, delta)-LDP, which is
        about sets of outputs: what single outputs may exceed adds up, to (|Y| - 1) / |X| times delta for |Y|
        outputs. So it implies (epsilon, delta)-LDP where |Y| is at most |X| + 1, and is then stricter than
        needed; with more outputs it may promise less than it seems to.

        Two inputs, 100 outputs, delta = 0.01 and e^epsilon = 2: draw y from 1..99 with probability 0.005 each,
        and else, with 0.505, the output 100 if the input is a; always the output 100 if it is b. No single
        output breaks the condition, as 0.005 <= 2 * 0 + 0.01 / 2. But the outputs 1..99 together have
        probability 0.495 for a and 0 for b: they give a away in half of all cases, and the true delta is
        0.495, not 0.01.

        The plan names the true delta of the table that was found. Values are counted, so that inputs and
        outputs need finite domains.
        """,
        """
        z is (0.5, 0.01)-per-atom-LDP wrt x   # the paper's condition
        z is (0.5, 0.01)-LDP wrt x            # what is usually meant
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
        "PS0318",
        "a matrix holds no distances",
        """
        A distance of one's own is a public matrix with a row and a column for each value of the input, in
        the order of its domain: a file, a parameter, a constant, or an expression of these. For `wrt (x, y)`
        it lists all joint values, those of the last name changing fastest. Distances are finite numbers, not
        negative, 0 from a value to itself, and the same in both directions. A number in a file is taken as
        the shortest decimal that gives its double, so that up to 15 digits mean exactly what they say. The
        numbers travel inside the plan.
        """,
        """
        parameters: toll = [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
        variables: input place in {north, east, south}
        privacy: z is 0.5-metric-DP wrt place, distance toll
        """,
    ),
    Entry(
        "PS0319",
        "distances allow a detour that is shorter than the way",
        """
        In a matrix of distances, going from one value to another by way of a third is shorter than the entry
        for the two. Rounded figures often do that by a little, and one-off tariffs by a lot. The requirement
        still means what it says, for each pair by itself; no distance is replaced by a shorter one. As ratios
        multiply along a detour, the mechanism will in fact be held to the shorter figure.
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
    Entry(
        "PS0322",
        "a fairness line names no output",
        """
        Fairness is asked of what is drawn: the line needs an output, as in `O is independent of sex given y`.
        How attributes of people depend on one another is a fact about the data and belongs to the background.
        """,
        """
        fairness: O is independent of sex given y
        background: (sex, y) ~ categorical([[0.3, 0.2], [0.1, 0.4]])
        """,
    ),
    Entry(
        "PS0323",
        "an attribute never takes this value",
        """
        `given y = 1` is about the people for whom y is 1. The value must lie in the domain of y; words are
        written as they stand in it, as in `given sex = F`.
        """,
        """
        input y in {0, 1}
        O is independent of sex given y = 1
        """,
    ),
    Entry(
        "PS0324",
        "an epsilon that promises very little",
        """
        The probability of any result may change by a factor of e^epsilon with one person's data. At 1 the factor is
        2.7, at 3 it is 20, at 10 already 22,026: who compares what was released with what would have been may then be
        all but sure about a single person. Nothing is refused, and the plan keeps the promise as it is written; the
        public page says what it means in odds.
        """,
        "epsilon = 1                # not 20",
    ),
    Entry(
        "PS0325",
        "a delta that leaves room for publishing a person",
        """
        Delta is the probability with which the bound of epsilon may fail altogether. A mechanism that publishes the
        record of one of N people, drawn at random, satisfies (0, 1/N)-DP: so a delta above one over the number of
        people, or above 1/1000 where that number is not public, promises less than it seems to.
        """,
        "delta = 1e-6               # for 10,000 people",
    ),
)
