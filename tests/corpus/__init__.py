"""The corpus: every spec of the repository with what becomes of it, which later changes are compared with.

It holds all templates (in full and small), examples, questions and forms of the language (specs.py). Each becomes a
text: status, figures, claims of the kernel, three pages. A text does not hang on the format of plans, so that two
checkouts are compared, each by its own code:

    cd OLD; python -m tests.corpus write /tmp/old                # all, in two processes; progress on standard error
    cd NEW; python -m tests.corpus write /tmp/new
    python -m tests.corpus compare /tmp/old /tmp/new             # what differs by spec, and CPU times; exit 1 if any
    python -m tests.corpus write /tmp/new --only small questions/mean_pay    # names that begin so
    python -m tests.corpus times OLD NEW --only small            # CPU seconds of both, alternately in one run

    python -m tests.corpus mutants /tmp/today                    # verdicts of the kernel on 16,000 mutants
    python -m tests.corpus mutants /tmp/other --judge MODULE:FUNCTION        # of another one, on the same mutants
    python -m tests.corpus forgeries /tmp/f                      # what tests/kernel judges, for `mutants --forgeries`
    python -m tests.corpus plans                                 # solve and store anew the plans that are changed

`compare` lists, of two folders with verdicts, what one kernel accepts and the other does not. A checkout must stand
still while it writes: a file that changes meanwhile is "broken" in the text. What is stored of today's tree is in the
folder `book`, in verdicts.txt and plans.json.xz, and tests compare with it (test_corpus.py).

A difference is one of words, or of figures by more than what a processor's arithmetic changes (comparing.py); amounts
that are asked for are exact. `compare` also says by how much figures differ that read alike.
"""
