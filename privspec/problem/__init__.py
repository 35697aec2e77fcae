"""The problem: everything that a spec promises and wants, in numbers; the waist between language and programs."""
