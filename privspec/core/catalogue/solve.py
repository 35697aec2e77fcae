"""Diagnostics of infeasible and unbounded specs, and solvers (PS06xx).

Append an `Entry(code, title, long_text, example)` in order of codes.
"""

from __future__ import annotations

from privspec.core.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "PS0601",
        "the requirements cannot hold together",
        """
        It is proved that no mechanism the spec allows meets all of its lines. The message names the
        smallest set of lines that conflict: leave any one of them out and the others can hold. Below
        them stand single changes that make the spec feasible, each with the loss it would have.

        The usual causes: an input without bounds, so that one person can move a result by any amount;
        `noise at` places that leave a way from the secret to the output bare; a noise family that never
        satisfies the measure asked for (Gaussian noise and pure epsilon); an accuracy target that this
        budget cannot pay for. The exit code is 4.
        """,
        "input x in real^64                  # one shop could change an answer without limit\n"
        "input x in [0, 1]^64                # bounded; values outside are clipped",
    ),
    Entry(
        "PS0610",
        "no answer within the limits",
        """
        The solver stopped before it had a solution with a certified gap: time ran out, or numbers of
        very different size made it stall. The exit code is 5. Allow more time, scale the inputs to
        similar ranges, or compare with the reference path.
        """,
        "privspec solve big.priv --time-limit 600\nprivspec solve big.priv --solver cvxpy",
    ),
    Entry(
        "PS0611",
        "accuracy lines for too many outputs",
        """
        Accuracy lines that the best mechanism does not meet by itself are solved by the reference path,
        which is limited to small systems. Asking for the accuracy in the loss is solved at any size.
        """,
        "loss: max(E[ (O[j] - y[j])^2 ] for j in 1..256)",
    ),
    Entry(
        "PS0612",
        "no known mechanism meets the accuracy lines",
        """
        Under pure epsilon the noise of least error is not known. Solve tries Laplace noise at every place of the
        graph, with the best scales that the accuracy lines leave, and K-norm noise; none of them is accurate enough.
        The bound that holds for every unbiased mechanism does not exclude that another one would be. The message says
        how far the nearest is, and which accuracy or which epsilon it needs. The exit code is 5.
        """,
        "accuracy: E[ (O[8] - y[8])^2 ] <= 16      # what Laplace noise of scale 1 on eight entries has",
    ),
    Entry(
        "PS0620",
        "the plan did not pass the independent check",
        """
        Every plan is re-checked by code that shares nothing with the compiler before it is shown. This
        one failed, so it is not printed as a plan: no guarantee was given and nothing was released.
        This is a bug of privspec; the notes say which claims failed. The exit code is 7.
        """,
        "privspec verify PLAN        # the same check, on a plan file",
    ),
)
