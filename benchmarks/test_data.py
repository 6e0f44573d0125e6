"""How often `predict` says of an array what it says of the law that the array was drawn from."""

from __future__ import annotations

import warnings

import data_cases


def test_verdicts_from_arrays(report):
    """At least 19 of 20 alike at 50 000 samples; at 500, no verdict but `undecided`."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for num in (data_cases.MANY, data_cases.FEW):
            for name, task in data_cases.cases().items():
                rows.append(data_cases.row(name, task, num))
                print(rows[-1], flush=True)
    many, few = (
        [one for one in rows if one["samples"] == num] for num in (data_cases.MANY, data_cases.FEW)
    )
    unlike = sum(one["data"] != one["exact"] for one in many)
    wrong = sum(one["data"] not in (one["exact"], "undecided") for one in rows)
    guessed = sum(one["data"] != "undecided" for one in few)
    assert len(many) == len(few) == 20
    assert unlike <= 1, [one["task"] for one in many if one["data"] != one["exact"]]
    assert guessed == 0, [one["task"] for one in few if one["data"] != "undecided"]
    assert wrong == 0, [
        one["task"] for one in rows if one["data"] not in (one["exact"], "undecided")
    ]
    report(
        f"verdicts from {data_cases.MANY} samples unlike the law's, of {len(many)}",
        unlike,
        "tasks",
        limit=1,
        rows=rows,
    )
    report(
        f"verdicts from {data_cases.FEW} samples that are not undecided, of {len(few)}",
        guessed,
        "tasks",
        limit=0,
    )
    report("verdicts from samples that are sure and wrong", wrong, "tasks", limit=0)
