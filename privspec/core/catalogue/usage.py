"""Diagnostics of files, options and constants (PS07xx). Append an `Entry(...)` in order of codes."""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS0700",
        "a command that cannot be understood",
        """
        The command, one of its options or the number of its arguments is not known. Every command
        explains itself with --help and an example. The exit code is 2.
        """,
        "privspec --help\nprivspec solve --help",
    ),
    Entry(
        "PS0701",
        "a spec file does not exist",
        """
        No file has this name. Names are relative to the folder in which the command runs; files
        named inside a spec are relative to the spec.
        """,
        "privspec check specs/linear_queries.priv\nprivspec templates            # lists the built-in specs",
    ),
    Entry(
        "PS0702",
        "a spec file cannot be read",
        """
        The file is there but the system refuses to read it: it is a folder, or you have no
        permission, or the disk failed. The message gives the system's reason.
        """,
        "ls -l shop_queries.priv",
    ),
    Entry(
        "PS0703",
        "no diagnostic has this code",
        """
        Codes are PS and four digits, as every error prints them in brackets.
        """,
        "privspec explain-error PS0103",
    ),
    Entry(
        "PS0704",
        "the input is nested too deeply",
        """
        Brackets, lists or JSON are nested more deeply than any meaningful input is. Nothing was read
        or written.
        """,
        "background: y = ((A @ x))           # a few levels are fine",
    ),
    Entry(
        "PS0705",
        "not enough memory",
        """
        The matrices of this problem do not fit into memory. Restricting noise to few places, fewer
        table cells or fewer answers makes it smaller; the size that counts is inputs times outputs.
        """,
        "input people in table(age in 0..84, sex in {F, M})     # 170 cells",
    ),
    Entry(
        "PS0710",
        "a file does not exist",
        """
        No file has this name. Names on the command line are relative to the folder in which the
        command runs.
        """,
        "privspec verify prefix_sums.plan.json",
    ),
    Entry(
        "PS0711",
        "a file that is not a plan",
        """
        Plans are JSON documents that `privspec solve` writes, with a format of privspec-plan/1.x. This
        file is something else, or it is damaged.
        """,
        "privspec solve specs/prefix_sums.priv -o prefix_sums.plan.json",
    ),
    Entry(
        "PS0712",
        "a plan of another major version",
        """
        A minor change of the plan format is compatible, a major one is not: this program would read the
        plan wrongly, so it refuses.
        """,
        "privspec solve SPEC               # write the plan again with this version",
    ),
    Entry(
        "PS0713",
        "a file cannot be written",
        """
        The folder does not exist, is not writable or is full. Files are written under a temporary name
        and then renamed, so nothing half-written is left behind.
        """,
        "privspec solve SPEC -o /tmp/my.plan.json",
    ),
    Entry(
        "PS0714",
        "a plan without a mechanism",
        """
        The spec behind this plan is infeasible: the plan says which lines conflict and holds no
        mechanism that could be explained or run.
        """,
        "privspec solve SPEC               # shows the conflict and ways out",
    ),
    Entry(
        "PS0720",
        "a name and a value are wanted",
        """
        --set, --constant and --input take NAME=VALUE: the name of the spec, then the value or the file.
        """,
        "privspec solve SPEC --set epsilon=0.5 --constant b=offsets.csv\nprivspec run PLAN --input x=shops.csv",
    ),
    Entry(
        "PS0721",
        "an option has a value that is not known",
        """
        The message lists the values that the option takes.
        """,
        "privspec solve SPEC --solver cvxpy\nprivspec explain PLAN --for auditor",
    ),
    Entry(
        "PS0722",
        "a range of values cannot be read",
        """
        --over takes a parameter and its values: low, high, log or lin, and how many; or a list with
        commas.
        """,
        "privspec sweep SPEC --over epsilon=0.1:10:log:20\nprivspec sweep SPEC --over epsilon=0.1,0.5,1",
    ),
    Entry(
        "PS0730",
        "there is no template of this name",
        """
        `privspec templates` lists the built-in specs.
        """,
        "privspec templates prefix_sums -o mine.priv",
    ),
    Entry(
        "PS0731",
        "a file is there already",
        """
        Copying a template never overwrites a file.
        """,
        "privspec templates prefix_sums -o another.priv",
    ),
)
