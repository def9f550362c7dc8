"""`python -m made` is the command `made`."""

from made.cli import main

main()
