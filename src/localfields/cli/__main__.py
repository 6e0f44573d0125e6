"""`python -m localfields.cli` is `localfields`."""

from . import main

main()
