"""Diagnostics of loss, accuracy, background and components (PS04xx).

Append an `Entry(code, title, long_text, example)` in order of codes.
"""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS0401",
        "an average depends on data for which there is no model",
        """
        E[e] averages over the noise and over a model of the data. Here e still depends on an input without
        a model, so the average has no value. Either take the worst case over that input, worst[e], or say how
        the input is distributed. A model is used for the expected loss and for nothing else: it never weakens
        a guarantee. (O - y, where the solver draws O around y, is noise only and needs no model.)
        """,
        """
        loss: E[ ||O - y|| / ||y|| ]      # wrong without a model of y
        loss: worst[ ||O - y|| / ||y|| ]  # right
        """,
    ),
    Entry(
        "PS0402",
        "a loss is one number",
        """
        The solver makes the loss as small as it can, so it must be one number, not a vector or a word.
        Lengths, squares and sums turn vectors into numbers.
        """,
        """
        loss: E[ O - y ]           # wrong: a vector
        loss: E[ ||O - y||^2 ]     # right
        """,
    ),
    Entry(
        "PS0404",
        "there is no such distribution",
        """
        After ~ stands a distribution: uniform, normal(mean, sd), binomial(n, p), categorical(weights),
        empirical(csv("f")), thurstone_mosteller(d, n), bernoulli, poisson, geometric, exponential, laplace,
        gamma, beta, lognormal, dirichlet, multinomial.
        """,
        "x ~ normal(0, 1)",
    ),
    Entry(
        "PS0405",
        "a variable has two data models",
        "Each input or computed value may be given one distribution. Remove one of the lines.",
    ),
    Entry(
        "PS0406",
        "the arguments of a distribution do not fit",
        """
        A distribution takes public arguments, in the number it is defined with. `uniform` alone needs a
        variable with bounds; thurstone_mosteller(d, n) draws n pairs of d features for each person, so it
        belongs to an input of that shape.
        """,
    ),
    Entry(
        "PS0407",
        "a data model is for inputs and computed values",
        """
        ~ says what is believed of the data. An output's law is for the solver to find (a condition on it is
        written E[O | x] = ...), and public values have no law.
        """,
    ),
    Entry(
        "PS0408",
        "something random stands outside every average",
        """
        A loss or target compares numbers. An output, or a value computed from the data, differs from run to
        run; put it inside E[...] (its average) or worst[...] (the largest average over all inputs).
        """,
        """
        loss: ||O - y||^2          # wrong
        loss: E[ ||O - y||^2 ]     # right
        """,
    ),
    Entry(
        "PS0409",
        "a probability lies between 0 and 1",
        "`with probability p` asks that a target holds in that share of runs, so 0 < p < 1.",
    ),
    Entry(
        "PS0410",
        "an asserted sensitivity is not well formed",
        """
        A sensitivity is asserted of an intermediate or output that the compiler cannot look into, in the l1,
        l2 or linf norm, as a positive public number, with respect to an input. It is taken on trust: the plan
        lists it as asserted by the user.
        """,
        "y has l1 sensitivity at most 2 wrt x, replacing one record",
    ),
    Entry(
        "PS0411",
        "a relation says nothing about the mechanism",
        """
        A relation with E[...], <= or >= is a condition that the mechanism must obey, so it must speak of an
        output or of something the solver chooses. Beliefs about the data are written with ~.
        """,
    ),
    Entry(
        "PS0420",
        "a component cannot be read",
        """
        A component is written name = spec("file.priv", name = expression, ...). The file is looked up beside
        this one; it must exist, be text, and not use this spec in turn.
        """,
    ),
    Entry(
        "PS0421",
        "a component has no such parameter or input",
        """
        After the file name come settings of that spec's own parameters and inputs, and `trust`. An input
        takes the name of an input of this spec.
        """,
        'average = spec("average.priv", x = x, epsilon = e1, trust = protocol)',
    ),
    Entry(
        "PS0422",
        "the spec of a component has errors",
        "The errors of the other file are listed too; `privspec check` on that file shows them alone.",
    ),
    Entry(
        "PS0423",
        "inputs of one name are taken as the same data",
        """
        The component has an input that was not passed, and this spec has one of the same name. They are taken
        as the same data, so that the guarantees add up for the same people. Pass it to say so.
        """,
        'average = spec("average.priv", x = x)',
    ),
)
