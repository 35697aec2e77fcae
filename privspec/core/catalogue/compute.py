"""Diagnostics of what cannot be computed yet (PS05xx).

Append an `Entry(code, title, long_text, example)` in order of codes.
"""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS0501",
        "solve cannot compute this yet",
        """
        The spec is well formed and `privspec check` accepts it, but the compiler does not know this construct yet, or
        not beside the others of this spec. It takes each spec with the one of its four parts that fits:
        - sums and counts: numbers or tables of records, answers that are linear in them, squared errors, and
          epsilon-DP, (epsilon, delta)-DP, zCDP, GDP or RDP: noise is added;
        - tables of probabilities: inputs and outputs of finitely many values, any loss that can be averaged over them,
          conditions on the mechanism, fairness, and DP, LDP or metric-DP;
        - votes: one winner drawn from the ballots of many voters, epsilon-DP or epsilon-LDP, and the least epsilon for
          accuracy that must be met;
        - statistics of many parties, such as fitted models (probit_mle) and what is computed from them: ways to add
          noise are compared on simulated data.

        Every line that cannot be computed is listed. Nothing is approximated in silence: a line is computed as it
        reads, or refused.
        """,
        "loss: E[ ||O - A @ x||^2 ]        # linear and squared: noise is added\n"
        "loss: E[ |O[1] - x[1]| ]          # absolute error of a real output: not yet\n"
        "loss: E[ |z - x| ]                # of x and z in 1..10: a table of probabilities",
    ),
    Entry(
        "PS0502",
        "the loss is not a sum of squared errors",
        """
        A loss is a sum of averages E[ ... ] and worst cases worst[ ... ] with public weights. Where noise is added to
        real numbers, the averages are of squared errors, with positive weights, or the loss is the largest of several
        written max(... for j in ...): norms other than the Euclidean one, absolute errors and products of errors are
        computed for outputs of finitely many values only. Total variation and worst cases cannot be rewarded.
        """,
        "loss: E[ ||O - y||^2 ]\nloss: 2 * E[ (O[1] - y[1])^2 ] + E[ ||P - z||^2 ]\n"
        "loss: max(E[ (O[j] - y[j])^2 ] for j in 1..32)",
    ),
    Entry(
        "PS0503",
        "a weight of the loss is not positive",
        """
        A weight says how much an error costs. A weight of zero or less would make error free or
        welcome, and no finite amount of noise would be best.
        """,
        "loss: 4 * E[ ||coarse - regions||^2 ] + E[ ||fine - totals||^2 ]",
    ),
    Entry(
        "PS0504",
        "there is no loss to minimise",
        """
        A spec without a loss can be checked, not solved: among all mechanisms that meet the privacy
        requirements nothing says which is best.
        """,
        "loss:\n  E[ ||O - y||^2 ]",
    ),
    Entry(
        "PS0505",
        "noise at a place that reaches no output",
        """
        A node under `noise at` must lie on the way from the inputs to what the outputs stand for.
        Noise anywhere else would change nothing that is released.
        """,
        "background: y = A @ x\nloss: E[ ||O - y||^2 ]\noptions: noise at x, y",
    ),
    Entry(
        "PS0506",
        "the loss does not mention an output",
        """
        An output that costs nothing when it is wrong could be drowned in noise: the spec does not say
        how good it should be. Every output (and every combination of outputs) needs a term in the loss.
        """,
        "loss: E[ ||detailed - totals||^2 ] + E[ ||coarse - regions||^2 ]",
    ),
    Entry(
        "PS0507",
        "the loss compares an output with different things",
        """
        A real output is sought among unbiased mechanisms: on average it equals the value that the loss
        compares it with. Here no such value exists, because terms of the loss ask for different ones,
        or because an output that is computed (with =) does not average to what it is compared with.
        """,
        "loss: E[ ||O - y||^2 ] + E[ ||O - z||^2 ]     # O cannot be both y and z\n"
        "background: w = (y + z) / 2                    # one value to compare with",
    ),
    Entry(
        "PS0508",
        "an accuracy target is not a positive number",
        """
        Where noise is added, an accuracy line bounds an expected squared error. The bound must be a positive number:
        no noise at all would be needed to reach 0, and nothing private could be released.
        """,
        "accuracy: E[ (O[j] - y[j])^2 ] <= 4 for j in 1..32",
    ),
    Entry(
        "PS0511",
        "there is nothing to protect",
        """
        Whatever one unit of the inputs is, every output that a requirement names stays the same: an input
        has a domain of a single value, or what the outputs are compared with is not computed from the
        inputs. Such a result can be published as it is; solve has no noise to place.
        """,
        "input x in [0, 1]^64          # not [1, 1]^64\nbackground: y = A @ x         # not y = 0 * x",
    ),
    Entry(
        "PS0512",
        "a value is too large to compute with",
        """
        Solve writes every value as a matrix over all secret numbers: entries of the value times entries of
        the inputs (or cells of the tables). Beyond 2^27 coefficients that takes more than a gigabyte.
        """,
        "input people in table(age in 0..84, sex in {F, M})     # 170 cells",
    ),
    Entry(
        "PS0513",
        "a number is too large or too small to compute with",
        """
        A width of a domain, a coefficient or a weight lies beyond 1e100 or, without being zero, below 1e-100:
        its square or its inverse would be no number of double precision. Other units help.
        """,
        "input x in [0, 1]^64          # not [0, 1e-320]^64",
    ),
    Entry(
        "PS0514",
        "a data model has no exact law on these values",
        """
        Tables are computed from exact probabilities. On a finite domain these distributions have one:
        - uniform, uniform(lo, hi), categorical(weights), empirical(observations), binomial(n, p), bernoulli(p)
          and geometric(p), which gives weight (1 - p)^k to k, as they are;
        - normal(mean, sd), laplace(mean, scale), exponential(rate) and poisson(mean) at the values of the
          domain: the weight of a value is the density (or probability) there, divided by that of the most
          likely value, rounded to the nearest multiple of 2^-60. exponential and poisson give no weight to
          numbers below 0, poisson none to fractions. The mean of a normal or laplace law may be a vector,
          for points in the plane.
        Weights are divided by their sum, exactly; a law is thus one of the values of the domain only. Whole
        numbers beyond 65,536 and probabilities with thousands of digits are refused.
        Several inputs that depend on one another have a joint law: (sex, y) ~ categorical([[0.3, 0.2],
        [0.1, 0.4]]), a row for each value of the first name and a column for each value of the second (the last
        name changes fastest). Inputs with models of their own are independent.

        A data model serves the expected loss and nothing else: rounding it never weakens a guarantee.
        """,
        """
        background:
          x ~ normal(5, 2)                               # x in 1..10: ten weights
          (sex, y) ~ categorical([[0.3, 0.2], [0.1, 0.4]])
        """,
    ),
    Entry(
        "PS0515",
        "too many values to list, or to simulate",
        """
        A finite mechanism is a table with a row for each value of the secret and a column for each joint value of
        the outputs. Up to 65,536 joint values of the inputs are listed, of which the table may tell up to 1,024
        apart (or the values computed from them that the loss looks at), and up to 4,194,304 entries and pairs of
        neighbours are computed with. Coarser domains need fewer. An input D^n costs less if only functions that
        ignore the order of its records look at it, such as sum or mean: then counts of the values are enough.
        Where losses are predicted on simulated crowds, all records of one crowd have to fit in memory: up to
        536,870,912 numbers.
        """,
        """
        input x in {0, 1}^10
        background: count = sum(x)        # 11 rows, not 1,024
        """,
    ),
    Entry(
        "PS0516",
        "tables are for a fixed number of records",
        """
        `adding or removing` changes how many records there are, and a table has a row for each value of inputs
        of one size. State the requirement for replacing; or make absence a value, as in `vote in {none, north,
        south}`, so that somebody who takes part replaces none.
        """,
        "z is 1-DP wrt x, replacing one record",
    ),
    Entry(
        "PS0517",
        "nothing says how the data are distributed",
        """
        Where an answer is not linear in the data, the loss of each way to release it is predicted by simulating data
        from a data model. The model serves the choice only: every guarantee holds for all data, and real data are
        never looked at.
        """,
        "background: V ~ thurstone_mosteller(d, n)",
    ),
    Entry(
        "PS0518",
        "the spec asks for no privacy",
        """
        Without a line under privacy: whatever is computed is published as it is, and may reveal the records that it
        was computed from. There is no plan for that. The message tells the loss that would have, as something to
        compare private plans with.
        """,
        "privacy: O is 1-DP wrt V, replacing one voter",
    ),
    Entry(
        "PS0519",
        "the winner of a vote has other alternatives than the ballots",
        """
        A vote draws one winner among the alternatives that ballots name. Leave out the domain of the output: it is
        taken from what the loss compares it with. Or name the same alternatives, in any order.
        """,
        """
        input vote[voter] in {north, east, south}
        output O                                    # not in {north, east}
        """,
    ),
    Entry(
        "PS0520",
        "the winner of a vote is compared with something else than votes",
        """
        Solve knows rules for votes: it compares the law of the winner with that of a lottery of the ballots, or the
        winner with every ballot on average. Lotteries are random_dictator(vote), borda_lottery(vote),
        plurality(vote), exponential(vote, epsilon) and permute_and_flip(vote, epsilon); those of one loss count the
        same points, first choices or Borda's.
        """,
        """
        loss: worst[ total_variation(O, random_dictator(vote)) ]
        loss: E[ mismatch(O, plurality(vote)) ]
        loss: E[ mean(mismatch(O, vote[voter]) for voter) ]
        """,
    ),
    Entry(
        "PS0521",
        "a requirement that no rule of private voting is known for",
        """
        The rules of private voting (dummy votes, permute-and-flip, the exponential mechanism, randomised response of
        every ballot) bound ratios of probabilities. They meet epsilon-DP, and (epsilon, delta)-DP and epsilon-LDP by
        way of it, for whole voters: replacing one voter, or adding or removing one voter.
        """,
        """
        O is epsilon-DP wrt vote, adding or removing one voter
        """,
    ),
    Entry(
        "PS0522",
        "an average over votes that are not modelled, or over too many kinds of ballots",
        """
        E[ ... ] averages over the votes, too. It needs a data model of the ballots, each drawn by itself; a model is
        read for up to 5,040 kinds of ballots. worst[ ... ], the largest over all votes, needs none.
        """,
        """
        background: vote ~ uniform
        background: vote ~ categorical([50, 30, 20])
        """,
    ),
    Entry(
        "PS0523",
        "a worst case over votes that has no exact value",
        """
        The worst case over all votes is known by a formula for some rules and losses, and by looking at all totals of
        points where they are few (up to 5,000). For others only a bound from below is known, so that no plan could
        state the loss. Ask for an average under a data model, for fewer voters, or for another distance.
        """,
        """
        loss: worst[ total_variation(O, random_dictator(vote)) ]     # known for dummy votes, any number of voters
        loss: E[ total_variation(O, random_dictator(vote)) ]
        """,
    ),
    Entry(
        "PS0524",
        "an epsilon of a vote that solve cannot choose",
        """
        Solve finds the least epsilon of a vote where it is the whole loss, stands alone in the requirement, and
        accuracy lines say how near the winner must be to a lottery of the votes.
        """,
        """
        variables: choose epsilon in [0.01, 5]
        loss: epsilon
        privacy: O is epsilon-DP wrt vote, replacing one voter
        accuracy: worst[ total_variation(O, random_dictator(vote)) ] <= 0.01
        """,
    ),
    Entry(
        "PS0525",
        "a number of rounds that solve cannot choose",
        """
        A budget that is shared by many votes stands in every requirement as budget / rounds, the same budget and the
        same number. Solve finds the most rounds that accuracy lines leave room for: rounds is chosen from a range of
        whole numbers from 1, and the loss is -rounds or 1 / rounds.
        """,
        """
        variables: choose rounds in 1..10000
        loss: -rounds
        privacy: O is (budget / rounds)-DP wrt vote, adding or removing one voter
        accuracy: worst[ total_variation(O, random_dictator(vote)) ] <= 0.01
        """,
    ),
)
