"""The corpus: every spec of the repository with what becomes of it, which later changes are compared with.

It holds all templates (in full and small), examples, questions and forms of the language (specs.py). Each becomes a
text: status, figures, claims of the kernel, three pages. A text does not hang on the format of plans, so that two
checkouts are compared, each by its own code:

    cd OLD; python -m tests.corpus write /tmp/old                # all, in two processes; progress on standard error
    cd NEW; python -m tests.corpus write /tmp/new
    python -m tests.corpus compare /tmp/old /tmp/new             # what differs by spec, and CPU times; exit 1 if any
    python -m tests.corpus write /tmp/new --only small questions/mean_pay    # names that begin so
    python -m tests.corpus times OLD NEW --only small            # CPU seconds of both, alternately in one run

A difference is one of words, or of figures by more than what a processor's arithmetic changes (comparing.py); amounts
that are asked for are exact. `compare` also says by how much figures differ that read alike.
"""
