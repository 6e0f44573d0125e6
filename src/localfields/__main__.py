"""`python -m localfields` is `localfields`."""

from .cli import main

main()
