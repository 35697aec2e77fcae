"""Diagnostics of names, shapes, domains and units (PS02xx).

Append an `Entry(code, title, long_text, example)` in order of codes.
"""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS0201",
        "a name that stands for nothing",
        """
        Every name must be declared: inputs, constants, intermediates, outputs and choices under `variables:`,
        numbers under `parameters:`, index sets under `parties:`. Upper and lower case differ. Only inside
        {...} is a bare word a symbol of its own.
        """,
    ),
    Entry(
        "PS0202",
        "a name is declared twice",
        "A name stands for one thing in the whole file. Give one of the two another name.",
    ),
    Entry(
        "PS0203",
        "a name of the wrong kind",
        """
        The name exists, but cannot stand here: a domain is public, so it cannot depend on an input; an index
        set is not a value; a function needs arguments; a constant cannot be computed from secret data.
        """,
        """
        s = voter                       # wrong: voter is an index set
        s = mean(V[voter] for voter)    # right
        """,
    ),
    Entry(
        "PS0204",
        "a name hides another meaning",
        """
        The word already means something: a fixed word of the language (inf, real, E, worst, spec), a library
        function, or a variable that `for ...` would hide. Choose another word.
        """,
    ),
    Entry(
        "PS0205",
        "there is no such function",
        """
        Linear: prefix_sums, suffix_sums, range_sums, total, differences, diagonal, and the public matrices
        identity, prefix_matrix, range_matrix, ones, zeros.

        Statistics: sum, mean, variance, max, min, count, histogram, marginals. Comparison: mismatch,
        total_variation, angle, disagreement, cost. Entry by entry: sqrt, exp, log, abs, floor, ceil, sign.

        Preferences and votes: probit_mle, random_dictator, borda_lottery, exponential, permute_and_flip, plurality,
        borda_scores, manipulation. Files: csv("f"), npy("f"). The entry of a vector is written v[i], with square
        brackets.
        """,
    ),
    Entry(
        "PS0206",
        "a function is called in a way it does not know",
        """
        The number, kind or value of the arguments does not fit. The help line shows how the function is
        written. Sizes and attributes must be public: numbers, parameters, or words in {...}.
        """,
    ),
    Entry(
        "PS0207",
        "shapes do not fit",
        """
        + - * / ^ act entry by entry, so both sides have the same shape or one of them is one number. @ is the
        matrix product: the columns of the left side must match the rows of the right. A' is the transpose.
        The labels show where each shape comes from.
        """,
        """
        constant A in real^(32, 64)
        input x in [0, 1]^64
        y = A' @ x                 # wrong: A' is 64 x 32
        y = A @ x                  # right: a vector of 32
        """,
    ),
    Entry(
        "PS0208",
        "a value of the wrong kind",
        """
        Arithmetic needs numbers; words, rankings, tables and sets have none. Compare words with mismatch or
        total_variation; count a table with histogram or marginals.
        """,
    ),
    Entry(
        "PS0209",
        "there is no such entry",
        "Entries are counted from 1. A vector takes one index, a matrix two: A[i, j]; A[i] is a row.",
    ),
    Entry(
        "PS0210",
        "definitions in a circle",
        """
        Each of these names is computed from the next, and the last from the first, so none can be computed.
        A condition on the mechanism is not a definition: write E[z | x] = ...
        """,
    ),
    Entry(
        "PS0211",
        "something is said twice",
        "A variable has one definition and one domain. Remove one of the two, or define another variable.",
    ),
    Entry(
        "PS0212",
        "an intermediate that nothing defines",
        """
        An intermediate is computed: give it a value with `=`, under `variables:` or `background:`. If it comes
        from a function the compiler cannot look into, give it a domain and assert its sensitivity.
        """,
        """
        intermediate y
        y = A @ x + b              # under background
        """,
    ),
    Entry(
        "PS0213",
        "nothing says what an output should be",
        """
        The solver draws an output so that the loss is small, so the loss must compare it with something:
        E[ ||O - y||^2 ]. Or define it from noisy values with `=`, or give the condition E[O | x] = ... Without
        any of these, or a domain, neither its meaning nor its shape is known.
        """,
    ),
    Entry(
        "PS0214",
        "an input needs a domain and has no value",
        """
        What can be promised depends on which values the data may take, so an input has a domain; values outside
        are clipped to it. Its value is data, given to `run` and never written in a spec. Choices have no value
        either: the solver finds it.
        """,
        "input x in [0, 1]^64",
    ),
    Entry(
        "PS0215",
        "the left side of an equation cannot be defined",
        """
        Under `background:`, name = expression defines an intermediate or an output, and E[...] = expression is
        a condition on the mechanism. Inputs are data, constants get their value under `variables:`, choices
        from the solver.
        """,
    ),
    Entry(
        "PS0216",
        "a choice needs a domain",
        "Say what the solver may choose from.",
        "choose epsilon in [0, 10]",
    ),
    Entry(
        "PS0217",
        "a constant needs a value or a domain",
        """
        A constant is public. Give its value, or a domain if the value comes with `--constant NAME=FILE`.
        """,
        """
        constant A = csv("queries.csv")
        constant b in real^32
        """,
    ),
    Entry(
        "PS0218",
        "a definition does not fit the declared domain",
        "The domain in the declaration has another shape, or holds another kind of value, than the expression.",
    ),
    Entry(
        "PS0219",
        "a section is missing",
        """
        A spec needs an input (whose data), an output (what is released), and a requirement (what is promised).
        The loss may be left out when nothing is to be solved.
        """,
    ),
    Entry(
        "PS0220",
        "there is no such domain",
        """
        Domains are real, [lo, hi], [lo, inf), (lo, hi], lo..hi, {a, b, c}, grid(lo, hi, step), l1_ball(r, d),
        l2_ball(r, d), ranking of A, partial_ranking(A), table(name in ..., ...), law(D), a parameter that is a
        set, and powers D^n or D^(m, n) of these.
        """,
    ),
    Entry(
        "PS0221",
        "an empty domain",
        "The lower end is above the upper end, or nothing is listed. No data could have such a value.",
        """
        input x in [1, 0]^64       # wrong
        input x in [0, 1]^64       # right
        """,
    ),
    Entry(
        "PS0222",
        "a set that is no set",
        "Each member stands once, and the members are all words or all numbers.",
    ),
    Entry(
        "PS0223",
        "a size must be a positive whole number",
        """
        Exponents, dimensions, sizes of groups and the ends of lo..hi count things. For all numbers between two
        ends write [lo, hi].
        """,
    ),
    Entry(
        "PS0224",
        "a number must be finite and public",
        "The ends of domains are finite numbers (or inf where an interval is open to that side).",
    ),
    Entry(
        "PS0225",
        "too large to lay out",
        """
        The domain may be named, but its elements, or the coordinates of an input, would have to be listed in
        memory. Use fewer or coarser attributes, or a smaller size. Extents beyond 2^48 are refused at once.
        """,
    ),
    Entry(
        "PS0226",
        "a domain is not written as it should be",
        """
        grid(lo, hi, step) with a positive step that reaches hi; l1_ball(radius, dimension) and
        l2_ball(radius, dimension) with a positive radius; law(D) of a range, set or grid; partial_ranking(A) of a
        set, or partial_ranking(A, places) with at most as many places as alternatives; table(name in D, ...) with
        attributes that have finitely many values.
        """,
    ),
    Entry(
        "PS0227",
        "an index set is written name in 1..N",
        "An index set numbers people from 1 to N, with N a whole number that a parameter may give.",
        "parties: voter in 1..100",
    ),
    Entry(
        "PS0228",
        "an index does not fit",
        """
        V[voter] holds for every voter on the line that defines it. Elsewhere V alone is everybody's values, and
        `for voter` inside sum(...) or mean(...) runs through them. What is declared with an index is defined
        with it.
        """,
        """
        beta[voter] = 2 * V[voter]
        society = mean(beta[voter] for voter)
        """,
    ),
    Entry(
        "PS0229",
        "there is no such part",
        "After the dot stands an output or `loss` of a component, or a hidden value of a data model (weights).",
    ),
    Entry(
        "PS0230",
        "there is no such unit of privacy",
        """
        Units are `one entry` (one number), `one record` (one factor of the outermost power, one row of a matrix
        or table), one of an index set such as `one voter` (all that person holds), and `everything`.
        """,
    ),
    Entry(
        "PS0231",
        "the unit does not fit the input",
        """
        `one voter` needs an input that voter indexes; `one entry` needs numbers, and a table consists of
        records.
        """,
    ),
    Entry(
        "PS0232",
        "names that look alike",
        """
        Somebody who reads the spec must see which variable a line is about. A name that mixes letters of two
        alphabets (a Cyrillic letter among Latin ones), or two names that differ only in letters that look the same
        (O and the Cyrillic letter O, x1 and xl), may be read as another name: a promise for one of them would be
        taken for a promise about the other. Names in the letters of any one language are fine.
        """,
    ),
    Entry(
        "PS0233",
        "a parameter that nothing uses",
        """
        The parameter has a value and stands in no line: changing it, with --set too, would change nothing. Where it is
        a privacy parameter, a line most likely says another amount than the author thinks.
        """,
        """
        parameters: epsilon = 0.1
        privacy: O is 0.5-DP wrt x         # wrong: the parameter is not used
        privacy: O is epsilon-DP wrt x     # right
        """,
    ),
    Entry(
        "PS0240",
        "a file cannot be found or read",
        "Files named in a spec are looked up beside the spec, unless the name starts at the root.",
    ),
    Entry(
        "PS0241",
        "a cell of a file is not a number",
        """
        A CSV of numbers has commas between cells and points in decimals. One row of headings is allowed; it must
        be the first line and hold no number. Row and column are counted from 1.
        """,
    ),
    Entry(
        "PS0242",
        "a number in a file is not finite",
        "NaN and infinite numbers cannot be computed with. Row and column are counted from 1.",
    ),
    Entry(
        "PS0243",
        "the rows of a file differ in length",
        "All rows of a CSV have the same number of cells; a comma at the end of a line makes one more.",
    ),
    Entry(
        "PS0244",
        "a file is too large",
        "Public constants are read whole; files beyond 1 GB are refused.",
    ),
    Entry(
        "PS0245",
        "a file holds no numbers",
        "The file is empty, or has a row of headings only.",
    ),
    Entry(
        "PS0246",
        "a file is not in the format it should be",
        'csv("f") reads text in UTF-8, npy("f") an array of numbers in NumPy\'s own format.',
    ),
    Entry(
        "PS0250",
        "there is no such parameter",
        "--set changes what stands under `parameters:`. Constants are given with --constant.",
        "privspec solve SPEC --set epsilon=0.5",
    ),
    Entry(
        "PS0251",
        "the value given for a parameter cannot be read",
        "A value is an expression of numbers and other parameters: 0.5, 1e-6, [1, 2], {a, b}.",
    ),
    Entry(
        "PS0252",
        "there is no such constant",
        "--constant gives values to constants that are declared under `variables:`.",
    ),
    Entry(
        "PS0253",
        "the value of a constant does not fit",
        """
        The array has another shape than the declared domain, an entry outside it, or an entry that is not a
        finite number. A single column or row may stand for a vector.
        """,
    ),
    Entry(
        "PS0260",
        "arithmetic without a finite result",
        "Division by zero, the logarithm or root of a negative number, or a power too large to compute.",
    ),
    Entry(
        "PS0261",
        "a name without a public value",
        """
        Here a number must be known before any data are seen. Inputs, what is computed from them, and choices
        have no such value; constants without a value get one with --constant.
        """,
    ),
    Entry(
        "PS0262",
        "an expression whose value cannot be computed",
        """
        Averages over the noise, worst cases, random draws and estimates that this version does not compute
        have a type but no value.
        """,
    ),
    Entry(
        "PS0270",
        "there is no such trust model",
        """
        `trust curator`: one keeper sees all data. `trust nobody`: each person's message is public.
        `trust secure_sum` or secure_sum(colluding = 10): everybody sees only the sum. A `choose` variable over
        these words lets the solver compare them.
        """,
    ),
    Entry(
        "PS0271",
        "noise cannot enter there",
        """
        Noise enters at inputs, intermediates and outputs (or in an objective that is minimised,
        objective(name)). Noise on public values hides nothing. Give an expression a name of its own first.
        """,
        "noise at x, y",
    ),
    Entry(
        "PS0272",
        "there is no such family of noise",
        """
        Families are gaussian, laplace, geometric, knorm, table, dictator, exponential, permute_and_flip,
        local_dictator, randomised_winner, staircase, functional, mixed, sphere.
        """,
    ),
    Entry(
        "PS0273",
        "an option is given twice",
        "Each option stands once; several sites or families stand in one line, with commas.",
    ),
)
