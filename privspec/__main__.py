"""`python -m privspec` is the command line."""

from privspec.cli import main

main()
