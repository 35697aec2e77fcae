"""Diagnostics of the syntax of a spec (PS01xx). Append an `Entry(...)` in order of codes."""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS0101",
        "something stands where it cannot",
        """
        The statement is understood up to the marked word or sign, and nothing that could follow
        looks like it. The message lists what could. Often the slip is just before the mark: a
        missing comma, operator or bracket.

        Only this statement is affected: all others were read and their errors are listed too.
        """,
        """
        output O P                 # wrong: two names
        output O                   # right
        output P
        """,
    ),
    Entry(
        "PS0102",
        "a statement ends too early",
        """
        The line ends in the middle of a statement. A statement ends with its line unless a round,
        square or curly bracket is open; the bars of |x| and ||x|| are no brackets and do not hold
        lines together.
        """,
        """
        y = A @ x +                # wrong: nothing follows the +
            b

        y = (A @ x +               # right: the bracket holds the lines together
            b)
        """,
    ),
    Entry(
        "PS0103",
        "a bracket is never closed",
        """
        While a bracket is open, lines are read as one. This bracket was still open when the section
        or the file ended, so the rest of the section could not be read: mend it and look again.

        An interval that leaves out an end, such as [0, inf) or (0, 1], mixes both kinds of bracket;
        that is right.
        """,
        """
        y = mean(x                 # wrong
        y = mean(x)                # right
        """,
    ),
    Entry(
        "PS0104",
        "a bracket closes nothing, or the wrong one",
        """
        Brackets come in pairs: ( ), [ ], { }. The only mixed pairs are intervals: [0, 1) and (0,
        1].
        """,
        """
        y = mean(x))               # wrong: one ) too many
        vote[voter} = 1            # wrong: [ is closed by }
        y = mean(x)                # right
        """,
    ),
    Entry(
        "PS0105",
        "two equals signs",
        """
        A spec states equalities, it does not test them, so one sign is enough everywhere.
        """,
        """
        y == A @ x                 # wrong
        y = A @ x                  # right
        """,
    ),
    Entry(
        "PS0106",
        "a strict inequality",
        """
        Only <= and >= can be written. An error that must stay below 4 but may come as close to it
        as you like has no best mechanism, while "at most 4" has one. Functions take no conditions
        yet: to count the records with age above 2, count every age and add up those that are meant.
        """,
        """
        E[ (O - y)^2 ] < 4         # wrong
        E[ (O - y)^2 ] <= 4        # right
        y = [0, 0, 0, 1, 1] @ marginals(people, {age})     # those with age in 3..4, of age in 0..4
        """,
    ),
    Entry(
        "PS0107",
        "a colon is missing after the name of a section",
        """
        A section begins with its name and a colon, at the start of a line. Its statements follow on
        the same line or on the next ones; indentation means nothing.
        """,
        """
        variables                  # wrong
        variables:                 # right
          input x in [0, 1]^64
        """,
    ),
    Entry(
        "PS0108",
        "a section that does not exist",
        """
        The sections are parameters, parties, components, variables, background, loss, accuracy,
        privacy, fairness and options. Each may appear once, in any order, in small letters. A colon
        stands nowhere else in a spec.
        """,
        """
        requirements:              # wrong
        privacy:                   # right
        """,
    ),
    Entry(
        "PS0109",
        "a section appears twice",
        """
        Each section appears at most once, so that a reader who has found the privacy section has
        found all of it. Move the lines under one header.
        """,
        """
        privacy: O is epsilon-DP wrt x
        privacy: P is epsilon-DP wrt x     # wrong

        privacy:                           # right
          O is epsilon-DP wrt x
          P is epsilon-DP wrt x
        """,
    ),
    Entry(
        "PS0110",
        "a power behind a range",
        """
        1..10^3 could mean three numbers from 1 to 10, or one number from 1 to 1000, so it is
        refused. Put brackets around what you mean.
        """,
        """
        input x in 1..10^3         # wrong
        input x in (1..10)^3       # right: three numbers from 1 to 10
        input x in 1..(10^3)       # right: one number from 1 to 1000
        """,
    ),
    Entry(
        "PS0111",
        "an amount and a measure that do not fit together",
        """
        A requirement joins an amount and a measure by a hyphen, without spaces: epsilon-DP,
        (epsilon, delta)-DP, rho-zCDP, mu-GDP, (order, epsilon)-RDP, epsilon-LDP, epsilon-metric-DP,
        (epsilon, delta)-per-atom-LDP; 1-Lipschitz under fairness. An amount is a number, a name, or an
        expression in round brackets.
        """,
        """
        O is epsilon DP wrt x            # wrong
        O is 2 * epsilon-DP wrt x        # wrong: the amount needs brackets
        O is (2 * epsilon)-DP wrt x      # right
        """,
    ),
    Entry(
        "PS0112",
        "a text in quotes without an end",
        """
        A text in quotes begins and ends on one line, with the straight sign ".
        """,
        """
        constant A = csv("queries.csv)     # wrong
        constant A = csv("queries.csv")    # right
        """,
    ),
    Entry(
        "PS0113",
        "a description without an end",
        '''
        The description of a spec stands between two triple quotes """ and may have several lines.
        The second one is missing, so that the rest of the file was taken as description and nothing
        in it was checked.
        ''',
        '''
        spec shop_queries
        """Answer linear questions about 64 shops."""
        ''',
    ),
    Entry(
        "PS0114",
        "a description in the wrong place",
        """
        A text between triple quotes describes the whole spec. It stands right after the line `spec
        NAME`, once. Remarks elsewhere are comments: # and the rest of the line.
        """,
        '''
        spec shop_queries
        """Answer linear questions about 64 shops."""
        variables:
          input x in [0, 1]^64     # one number a shop
        ''',
    ),
    Entry(
        "PS0115",
        "a character that means nothing in a spec",
        """
        Outside comments and texts in quotes a spec uses letters, digits, _ and the signs of its
        grammar. Word processors and web pages like to replace quotes, minus signs and spaces by
        others that look alike; the message names the character and what to write.

        Some signs of formulas may be used as they are: ε δ μ ρ α ∈ ℝ 𝔼 ‖ ² ≤ ≥ ∼ · ⊤.
        """,
        """
        constant A = csv(“queries.csv”)    # wrong: curly quotes
        constant A = csv("queries.csv")    # right
        """,
    ),
    Entry(
        "PS0116",
        "a sign that other languages have and this one does not",
        """
        A power is ^, a value is given with =, and statements stand on lines of their own. A colon
        only ends the header of a section; what a variable may be is said with `in`.
        """,
        """
        y = x ** 2                 # wrong
        y = x^2                    # right
        input x: [0, 1]            # wrong
        input x in [0, 1]          # right
        """,
    ),
    Entry(
        "PS0117",
        "a file without sections",
        """
        The file is empty or holds nothing but comments. A spec has at least the section variables,
        and for a mechanism to be found also loss and privacy.
        """,
        """
        privspec templates linear_queries -o my.priv     # copies a whole spec to start from
        """,
    ),
    Entry(
        "PS0118",
        "a character that no text should hold",
        """
        Control characters, half characters, and characters that change the direction of writing are
        refused everywhere, comments and quotes included: with them a file can look different from
        what is in it, and people must be able to trust what they read in a spec.
        """,
    ),
    Entry(
        "PS0119",
        "a file too large to be a spec",
        """
        A spec has at most a million characters. Large tables belong into files of their own.
        """,
        """
        constant A = csv("queries.csv")    # rows of numbers, relative to the spec
        constant B = npy("weights.npy")
        """,
    ),
    Entry(
        "PS0120",
        "a statement nested too deeply",
        """
        An expression may be a hundred levels deep; a chain a + b + c + ... counts one level for
        every term. Give parts of it names as intermediate variables, or write a long chain as a
        sum.
        """,
        """
        total = sum(x[i] for i in 1..500)
        """,
    ),
    Entry(
        "PS0121",
        "a number that cannot be read",
        """
        Numbers are written 12, 0.5, 1e-6 or 2.5e3: digits before and after the point, no separators
        for thousands, no units. They are exact: 0.1 is one tenth.
        """,
        """
        epsilon = .5               # wrong
        epsilon = 0.5              # right
        n = 1000000                # right, 1_000_000 is not
        """,
    ),
    Entry(
        "PS0122",
        "a line before the first section",
        """
        Every statement belongs to a section. Before the first one only the line `spec NAME`, the
        description and comments may stand.
        """,
        """
        spec shop_queries
        variables:                 # this header was missing
          input x in [0, 1]^64
        """,
    ),
    Entry(
        "PS0123",
        "a loss section without a loss",
        """
        Under loss: stands the one expression to be made small. Leave the section out to check a
        spec without solving it.
        """,
        """
        loss: E[ ||O - y||^2 ]
        """,
    ),
    Entry(
        "PS0124",
        "several losses",
        """
        There is one loss. Two aims are weighed against each other by adding them, with weights that
        say how much of one is worth how much of the other: that is the author's decision, no tool
        can make it. What must merely hold stands under accuracy.
        """,
        """
        loss: E[ (O - y)^2 ] + 3 * E[ (P - z)^2 ]
        """,
    ),
    Entry(
        "PS0125",
        "a line under the wrong header",
        """
        The line reads well, but as a line of another section. Move it there.
        """,
        """
        background:
          input x in [0, 1]^64     # wrong: this declares a variable

        variables:
          input x in [0, 1]^64     # right
        """,
    ),
    Entry(
        "PS0126",
        "a variable without its kind",
        """
        A line of variables starts with one of five words: input (secret data), constant (public,
        given from outside), intermediate (computed), output (released), choose (picked by the
        solver).
        """,
        """
        variables:
          x in [0, 1]^64           # wrong
          input x in [0, 1]^64     # right
        """,
    ),
    Entry(
        "PS0127",
        "a requirement that is no sentence",
        """
        A requirement reads as a sentence: what is released, is, how well it is protected, wrt,
        whose data, and then what counts as one person's part and who sees it. Several outputs stand
        in round brackets.
        """,
        """
        O is (epsilon, delta)-DP wrt x, replacing one record
        (O1, O2) is 1-zCDP wrt x, seen by auditors
        all outputs are epsilon-DP wrt all inputs
        """,
    ),
    Entry(
        "PS0128",
        "a requirement that does not say whose data it protects",
        """
        After the measure stands wrt (or `w.r.t.`, or `with respect to`) and the input that is
        protected. Without it the requirement would say nothing about any person.
        """,
        """
        O is epsilon-DP                                # wrong
        O is epsilon-DP wrt x, replacing one record    # right
        O is epsilon-DP wrt all inputs                 # right
        """,
    ),
    Entry(
        "PS0129",
        "a second `spec` line, or one that comes too late",
        """
        A file holds one spec, and its name, if it has one, comes first. Specs that use others name
        their files under components.
        """,
        """
        components:
          average = spec("average.priv", x = x)
        """,
    ),
    Entry(
        "PS0130",
        "a name that is no name",
        """
        A name is one word of letters, digits and _ that starts with a letter.
        """,
        """
        spec shop-queries          # wrong
        spec shop_queries          # right
        """,
    ),
    Entry(
        "PS0131",
        "a word that is not expected",
        """
        Between two values stands an operator, and between the parts of a statement one of the words
        of the language. Here two things follow each other, or a word is misspelt; the message names
        the nearest word that would fit.
        """,
        """
        y = 2 x                                      # wrong
        y = 2 * x                                    # right
        O is epsilon-DP wrt x, replaces one entry    # wrong
        O is epsilon-DP wrt x, replacing one entry   # right
        """,
    ),
    Entry(
        "PS0132",
        "a line that goes on where no bracket is open",
        """
        A statement ends with its line unless a round, square or curly bracket is open. This line
        begins like the rest of one.
        """,
        """
        y = a
          + b                      # wrong

        y = (a
          + b)                     # right
        """,
    ),
    Entry(
        "PS0133",
        "a file that is not UTF-8",
        """
        Specs are text in UTF-8, which includes plain ASCII. The message shows the first byte that
        is not; it may be an accented letter of an older encoding in a comment, or the file is no
        text at all. Save it again as UTF-8.
        """,
        "iconv -f WINDOWS-1252 -t UTF-8 old.priv > new.priv",
    ),
    Entry(
        "PS0134",
        "more errors than are worth reading",
        """
        Only the first hundred errors of a file are listed. Mend those and look again: many of the
        others may go with them.
        """,
    ),
)
