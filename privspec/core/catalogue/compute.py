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
        The spec is well formed and `privspec check` accepts it, but the compiler does not know this
        construct yet. It computes linear systems: numeric inputs or tables, values that are linear in
        them, squared errors as loss, and (epsilon, delta)-DP, pure epsilon-DP, zCDP, GDP and RDP
        requirements. Every line that it cannot compute is listed.

        Nothing is approximated in silence: a line is computed as it reads, or refused.
        """,
        "loss: E[ ||O - A @ x||^2 ]        # linear and squared: computed\n"
        "loss: E[ |O[1] - x[1]| ]          # absolute error: not yet",
    ),
    Entry(
        "PS0502",
        "the loss is not a sum of squared errors",
        """
        Solve minimises weighted sums of squared errors, or the largest of several single squared errors
        written max(... for j in ...). Weights are positive numbers. Norms other than the Euclidean one,
        absolute errors and products of errors are not computed yet.
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
        An accuracy line bounds an expected squared error. The bound must be a positive public number:
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
)
