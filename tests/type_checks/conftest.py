"""Files that are type-checked and run by `test_types`, not collected for doctests."""

collect_ignore = ["calls.py", "mistakes.py"]
