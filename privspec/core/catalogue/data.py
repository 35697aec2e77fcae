"""Diagnostics of data at run (PS08xx).

Append an `Entry(code, title, long_text, example)` in order of codes.
"""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS0801",
        "an input has no data, or data are given for no input",
        """
        Every input of the plan needs one file or object, under its own name. Nothing was read,
        drawn or spent.
        """,
        "privspec run shop.plan.json --input x=shops.csv",
    ),
    Entry(
        "PS0802",
        "a data file does not exist or has an unknown suffix",
        """
        Data are read from .csv, .csv.gz, .tsv, .parquet, .npy and .json files, ballots also from PrefLib's
        .soc, .soi, .toc and .toi; the suffix says which reader to use.
        """,
        "privspec run shop.plan.json --input x=shops.parquet",
    ),
    Entry(
        "PS0803",
        "a data file cannot be read as what its suffix says",
        """
        The file is damaged or of another format, or a column is of a kind that holds neither numbers nor words, such
        as dates or lists. The reason is not printed, because the words of a reader may quote the data. A .npy file
        must hold one array of numbers or texts (no pickled objects, no structures). What stands in a single cell is
        never a reason: a cell that does not fit is put into its domain by a public rule (see PS0809).
        """,
        "python -c \"import polars; polars.read_csv('shops.csv')\"   # shows the reader's own words",
    ),
    Entry(
        "PS0804",
        "a column or entry is missing",
        """
        The first line of a text file is its header, whatever stands in it. It names a column for each attribute that
        the spec declares; for a vector the column that is named like the input; a JSON object has an entry with that
        name. Where a file has no header, say --no-header: its columns then stand in the order of the spec. The names
        that were found are not printed: a file without a header has data there.
        """,
        "age,sex          # first line of the file for: input x in table(age in 0..120, sex in {F, M})",
    ),
    Entry(
        "PS0805",
        "the data have another size than the input is declared with",
        """
        The declared size of an input is public and fixed: a vector is one column or one row of that length, a matrix
        one line a row, below the header of a text file (--no-header: from its first line on). Every line is a row, a
        blank one too: it is a missing value, and moves no other. A table of records may
        have any number of them, unless the spec says how many, as in table(...)^100, and its lines replace records.
        """,
        "input x in [0, 1]^64          # a line with the name x, and 64 lines with a number each",
    ),
    Entry(
        "PS0806",
        "parties have different numbers of rows",
        """
        Data of an indexed input come as a table with the party's index as a column. Every member of
        the index set must be there, each with the same number of rows.
        """,
        "voter,v1,v2\n1,0.2,-0.1\n2,0.5,0.3",
    ),
    Entry(
        "PS0808",
        "inputs of local reports have different numbers of records, or none",
        """
        Each row of the data is one person. Where the secret has several parts, record i of every input
        belongs to the same person; one file may hold them all, a column for each.
        """,
        "sex,income       # one file for two inputs: --input sex=people.csv --input income=people.csv\nF,high",
    ),
    Entry(
        "PS0809",
        "data that do not fit are refused because of --strict",
        """
        Without --strict a public rule is applied to every cell by itself: a number outside the domain moves to its
        nearest point, a missing or unreadable one becomes the point nearest to zero; a word that is not in its set
        becomes the set's first, a ballot that is none the first of all ballots. Where all guarantees are about adding
        or removing records (or voters), a record that fits no cell of a table, or a ballot that is none, is left out
        instead. Of a voter with several ballots the first counts; a count of ballots that is no whole number from 0
        counts as 0. A run tells its keeper how often, and `privspec data` also which words; neither costs anything.
        With --strict the run is refused instead, which reveals that such a record exists; not what stands in it.
        """,
        "privspec data shop.plan.json --input x=shops.csv          # how the data fit: for their keeper",
    ),
    Entry(
        "PS0810",
        "a strict run reveals whether all data fit",
        """
        Whether --strict refuses depends on single records, and no guarantee covers it. It is meant
        for the keeper of the data, before anything is released.
        """,
        "privspec run shop.plan.json --input x=shops.csv --strict",
    ),
    Entry(
        "PS0811",
        "the data are of another number of parties than the plan is for",
        """
        How many take part is public and fixed: a mean is divided by that number, and where everybody adds
        noise of their own, weights are for as many. Parties are counted by the different values of the
        column that is named like their index, which is a public fact as their number is; rows without a value there
        belong to nobody.
        """,
        "privspec solve society.priv --set N=132",
    ),
    Entry(
        "PS0812",
        "the rows of one party do not stand together",
        """
        Tables of records are read row after row, so that millions of parties fit in memory: all rows of a
        party must follow one another. Only the first n of them count, so their own order should stay as it
        is. The value that comes back is not printed.
        """,
        "polars.scan_csv('votes.csv').sort('voter', maintain_order=True)",
    ),
    Entry(
        "PS0818",
        "a PrefLib file does not fit the spec",
        """
        Files of orders (.soc, .soi, .toc, .toi) name their alternatives in their first lines. If all of these are
        names of the spec's alternatives (letter case and signs aside), they are found by name; if none is, their
        numbers count in the order of the spec, and there must be as many. Anything between would guess.
        """,
        "# ALTERNATIVE NAME 1: north\n# ALTERNATIVE NAME 2: south\n621: 1,2",
    ),
    Entry(
        "PS0820",
        "a plan cannot be executed",
        """
        The `executed` part of the plan is missing, is of a form that this version does not know, or
        contradicts itself: for instance an output that depends on more noise rows than its guarantee
        covers. Nothing was drawn or spent.
        """,
        "privspec solve shop_queries.priv -o shop.plan.json",
    ),
    Entry(
        "PS0821",
        "a plan estimates the inputs first and needs the spec",
        """
        Such a plan releases functions of noisy estimates of the inputs; the functions stand in the
        spec. `privspec run` takes it from the plan; from Python, pass the loaded model.
        """,
        'privspec.load("shop_queries.priv").solve().run({"x": data})',
    ),
    Entry(
        "PS0822",
        "a simulation would take too many exact draws",
        """
        Exact sampling takes about 12 microseconds a number. For large simulations use
        floating-point noise; a real release never does.
        """,
        "simulate(plan, 100_000, seed=1, approximate=True)",
    ),
    Entry(
        "PS0823",
        "a plan was changed after it was written",
        """
        The digest of a plan covers all of it. It shows accidental changes; that the claims of a plan
        are true is checked by `privspec verify`.
        """,
        "privspec verify shop.plan.json",
    ),
    Entry(
        "PS0824",
        "public values of a run that do not fit the plan",
        """
        A constant that the spec gives no value and that is added to a result may be left open by `solve`: each run is
        given its value, of the declared shape, and adds it after the noise. A constant that shapes the answer (a matrix
        of questions) is given to `solve` and stands in the plan.
        """,
        "privspec run shops.plan.json --input x=shops.csv --constant b=offsets.csv -o release.json",
    ),
    Entry(
        "PS0831",
        "no format of a release has this suffix",
        """
        Releases are written as .json, .csv, .parquet or .npy: one row a number, with its labels, or one row a
        report. Every row says whether it is private, which entry of the ledger paid for it, and which plan made
        it. A .npy holds an array with named columns.
        """,
        "privspec run shop.plan.json --input x=shops.csv -o answers.json",
    ),
    Entry(
        "PS0832",
        "an output would take the place of a file that the run needs",
        """
        The file to be written is one of the inputs, the plan, the ledger, the participation file, or reports or
        messages that were paid for: by name, by a link, or but for the case of letters. Writing it would destroy data,
        or the record of what was spent on them.
        """,
        "privspec run shop.plan.json --input x=shops.csv -o answers.csv",
    ),
    Entry(
        "PS0841",
        "a plan makes no local reports",
        """
        `aggregate` turns reports that each person drew by themselves back into the shares of the values
        behind them. A plan of a curator draws once about all data: its release is the statistic already.
        """,
        "privspec aggregate survey.plan.json reports.csv",
    ),
    Entry(
        "PS0842",
        "a report is not one that the plan can make",
        """
        Reports are values of the plan's outputs, exactly as it releases them: they are compared with the
        declared values and never moved to the nearest. One that the plan draws with probability zero from
        every value is refused as well. Either the file holds something else than reports, or another plan
        made them.
        """,
        "colour           # first line of a file with reports of: output colour in {red, green, blue}\nred",
    ),
    Entry(
        "PS0843",
        "reports were made under another plan",
        """
        What a report says about its person depends on the table it was drawn from. A release names its
        plan by digest; reports of another table would be read with the wrong probabilities.
        """,
        "privspec aggregate survey.plan.json reports.json",
    ),
    Entry(
        "PS0844",
        "parties make no messages under this plan",
        """
        `run --party` makes the message of one party from its own data, and `aggregate` combines the messages of
        all. That needs a plan where every party adds noise of its own: in other plans noise enters once, at the
        pool, and somebody has to see what it is added to.
        """,
        "privspec run society.plan.json --party 7 --input V=mine.csv -o seven.json",
    ),
    Entry(
        "PS0848",
        "participation cannot be counted under this plan",
        """
        With `--participation FILE.db` voters are counted, and left out of a round once they took part in as many as
        the budget allows one voter. That takes a plan whose rounds share a budget, a number of voters that is secret
        (else somebody missing would show), and one keeper who has all the votes.
        """,
        """
        O is (budget / rounds)-DP wrt vote, adding or removing one voter
        privspec run drones.plan.json --input vote=round_7.csv --participation drones.db
        """,
    ),
    Entry(
        "PS0849",
        "a participation file that does not fit",
        """
        The file counts in how many rounds of one plan each voter took part. It was made for another plan, is an older
        copy (the ledger knows of more rounds), or is another kind of file. With an older copy voters would take part
        more often than their privacy allows: nothing was drawn and nothing was spent.
        """,
        "privspec run drones.plan.json --input vote=round_7.csv --participation drones.db",
    ),
    Entry(
        "PS0850",
        "a joint draw needs PyNaCl",
        """
        Sealed boxes and signatures of a joint draw are libsodium's, through the library PyNaCl, which is not
        installed with privspec unless asked for.
        """,
        "pip install 'privspec[distributed]'",
    ),
    Entry(
        "PS0851",
        "a joint draw cannot be made under these terms",
        """
        Every voter is a party that posts several entries, so their number is limited; and it takes two mixers,
        because one alone would see whose ballot is whose. The ordinary `run` has no such limits.
        """,
        "privspec run vote.plan.json --input vote=ballots.csv",
    ),
    Entry(
        "PS0852",
        "this plan is not one that a joint draw can execute",
        """
        A joint draw is random dictatorship with dummy votes, of first choices, where the number of voters is public
        (`replacing one voter`). A transcript shows how many took part: under `adding or removing one voter`
        that number is secret.
        """,
        "privspec run compulsory.plan.json --input vote=ballots.csv --joint-draw transcript.json",
    ),
    Entry(
        "PS0853",
        "the ballots do not fit the terms of the joint draw",
        """
        Every voter casts one ballot, and a ballot is one of the alternatives, letter by letter.
        """,
        "vote             # a file of first choices among north and south\nnorth\nsouth",
    ),
    Entry(
        "PS0854",
        "the joint draw is void",
        """
        Some party did not keep to the rules: it did not post what was due, posted two things, or something that does
        not fit. Nothing was released, the budget stays debited. The notes say who; the transcript proves it to anybody.
        """,
        "privspec verify-draw transcript.json   # shows who is to blame",
    ),
    Entry(
        "PS0855",
        "a transcript of a joint draw cannot be read",
        """
        It is damaged, or of another format. A transcript that can be read and is wrong is no error: its report says
        what is wrong with it.
        """,
        "privspec verify-draw transcript.json --plan vote.plan.json",
    ),
    Entry(
        "PS0856",
        "a file of the voters' keys cannot be read",
        """
        `--keys` takes a JSON object with the public key that each voter signs with, as 64 hexadecimal digits, by the
        name that the transcript gives the voter. The keys have to come from the voters: a transcript names keys of its
        own, and whoever makes all of a transcript makes those as well.
        """,
        "privspec verify-draw transcript.json --keys voters.json --session autumn",
    ),
)
