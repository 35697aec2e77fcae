"""The problem: everything that a spec promises and wants, in numbers; the waist between language and programs."""

import privspec.functions  # noqa: F401 - specs are read with the functions that it provides
