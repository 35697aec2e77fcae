"""Diagnostics of the budget ledger (PS10xx).

Append an `Entry(code, title, long_text, example)` in order of codes.
"""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS1001",
        "the budget of a data set is used up",
        """
        Every release on a data set adds to what can be learned about the people in it. The ledger
        adds the releases up and refuses the one that would exceed its limit; nothing was drawn or
        spent. A limit that `run --new-ledger` made is used up entirely by that release, so that a
        second run of the same plan cannot average its noise away. To allow more, say how
        much all releases together may cost.
        """,
        "privspec ledger init data.ledger.db --raise --limit 'epsilon=2 delta=1e-6'",
    ),
    Entry(
        "PS1002",
        "a limit cannot be read",
        """
        A limit is one of: epsilon and delta, epsilon alone (pure), rho (zero-concentrated), mu
        (Gaussian). It may name the unit it is for; otherwise it is for that of the first release.
        Amounts are not negative, delta is below 1.
        """,
        "privspec ledger init data.ledger.db --limit 'epsilon=2 delta=1e-6 wrt x, replacing one record'",
    ),
    Entry(
        "PS1003",
        "no limit covers this release",
        """
        A limit is for one unit: certain inputs and one neighbour relation. Amounts for different
        units cannot be added up, and a limit in pure epsilon cannot count a Gaussian release, which
        has none. Set a limit for the unit, in a measure that both have.
        """,
        "privspec ledger init data.ledger.db --raise --limit 'mu=0.5 wrt x, replacing one entry'",
    ),
    Entry(
        "PS1004",
        "there is no ledger",
        """
        The ledger of a data set is beside its first file unless --ledger or PRIVSPEC_LEDGER names another. It is made
        once, deliberately: with `ledger init`, or by a run with --new-ledger.
        """,
        "privspec ledger init data.ledger.db --limit 'epsilon=2 delta=1e-6'",
    ),
    Entry(
        "PS1005",
        "a ledger was changed or is damaged",
        """
        Every entry of a ledger holds a digest of the one before it. One of them does not fit, or a
        debit exceeds the limit of its time. Nothing is released until a sound copy is restored: what
        was spent on the data cannot be known from this file.
        """,
        "privspec ledger verify data.ledger.db",
    ),
    Entry(
        "PS1006",
        "nothing bounds what all outputs together reveal",
        """
        All outputs are released at once, and the ledger counts what someone who sees all of them
        learns. Guarantees for single outputs do not add up to one for all: their noise may be
        shared. Add a requirement that names all outputs together.
        """,
        "(O1, O2) is (2, 1e-6)-DP wrt x",
    ),
    Entry(
        "PS1007",
        "a ledger exists already",
        """
        A data set has one ledger. Its limit can be changed, and the change is recorded; what was
        spent stays spent.
        """,
        "privspec ledger init data.ledger.db --raise --limit 'epsilon=3 delta=1e-6'",
    ),
    Entry(
        "PS1008",
        "a guarantee states no amount that can be added up",
        """
        The ledger needs mu, rho, epsilon, or epsilon and delta of every guarantee. Plans of this
        version have them; the plan was made by another version or edited.
        """,
        "privspec solve shop_queries.priv -o shop.plan.json",
    ),
    Entry(
        "PS1009",
        "a ledger cannot be opened or written",
        """
        The file is no ledger, is locked by another program for too long, or its folder does not
        allow writing. A release needs its debit on disk first, so nothing was released.
        """,
        "ls -l data.ledger.db",
    ),
    Entry(
        "PS1010",
        "a data set has no budget yet",
        """
        How much all releases of a data set together may reveal is decided once, by somebody who knows the data, before
        the first of them. Either a ledger is made with a limit, or the first run makes one that it uses up entirely. A
        run with neither is refused, so that another name of a file or of a ledger never begins a budget anew.
        """,
        """
        privspec ledger init people.ledger.db --limit 'epsilon=2 delta=1e-6'
        privspec run people.plan.json --input people=people.csv --new-ledger
        """,
    ),
    Entry(
        "PS1011",
        "a data set has a budget already",
        """
        `run --new-ledger` declares the budget of a data set, which happens once. Its ledger is there: nothing was drawn
        and nothing was spent. Run without --new-ledger, and what was spent so far counts.
        """,
        "privspec run people.plan.json --input people=people.csv",
    ),
    Entry(
        "PS1012",
        "data belong to another ledger",
        """
        The data were released before, perhaps under another name, from a copy, or in another format, and paid for in
        another ledger. What several releases reveal about the people in the data adds up wherever it is written down,
        so there is one ledger. Data are recognised by what is in them; where other people's data happen to be equal to
        the last cell, keep them under a registry of their own (another XDG_STATE_HOME).
        """,
        "privspec run people.plan.json --input people=copy.csv --ledger people.ledger.db",
    ),
    Entry(
        "PS1013",
        "the ledger of these data is gone or an older copy",
        """
        The user's registry knows that releases of these data were paid for in a ledger that is not there any more, or
        that had more events than the one that is there. A release that forgets what was spent would promise too much.
        Put the newest ledger back; if it was moved, --ledger names its place. Nobody can notice that the ledger *and*
        the registry were deleted, or that the data were released elsewhere.
        """,
        "privspec run people.plan.json --input people=people.csv --ledger archive/people.ledger.db",
    ),
    Entry(
        "PS1014",
        "the registry of data sets cannot be used",
        """
        The registry keeps which ledger each data set has, under keyed fingerprints that leave it for nothing else. It
        is a file of the user's own, written before anything is drawn; where it cannot be, nothing is released.
        """,
        "ls -l ~/.local/state/privspec",
    ),
    Entry(
        "PS1015",
        "a release does not fit a ledger",
        """
        Every release names the ledger that paid for it, the event of the debit and the first digits of that event's
        digest. This ledger has another event there, or ends before it: it is another ledger, an older copy, or
        its end was cut off. A simulation, and a release that parties' messages add up to, name no ledger.
        """,
        "privspec ledger verify people.ledger.db --against may.csv june.csv",
    ),
)
