"""`python -m pipeline.cli` is `nightaudit`."""

from pipeline.cli import main

main()
