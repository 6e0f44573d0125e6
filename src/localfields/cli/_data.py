"""Files of data at the command line: their names come first, one a class, and options say how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import Said, refuse
from ._options import Option, changed, field_options, option

BLURS = "0,1"


def leading_files(argv: Sequence[str], names: Sequence[str]) -> list[str]:
    """The files that a command line begins with; none where its first word is no file, or the name of something."""
    from ..stimuli._load import SUFFIXES

    words = []
    for word in argv:
        if word.startswith("-"):
            break
        words.append(word)
    if not words or words[0] in names:
        return []
    first = words[0].rpartition(":")[0] or words[0]
    looks = any(name.lower().endswith(SUFFIXES) for name in (first, words[0]))
    return words if looks or "/" in words[0] or Path(words[0]).exists() else []


def data_options() -> dict[str, Option]:
    """How files are read: the fields of `Samples` but for the file, and what makes two classes of one file."""
    from ..stimuli import Samples

    own = field_options(Samples)
    blur = f"of one file: its samples blurred by each of these widths, in sites, are the classes; {BLURS} if left out"
    classes = own["classes"]
    own["classes"] = option(
        str, "", "of one file: labels, one number a sample; each is a class", classes[3]
    )
    del own["data"], own["chosen"]
    return {"blur": option(str, "", blur, "SIGMA,…"), **own}


def read_files(
    files: Sequence[str], own: dict[str, Option], task: dict[str, Option], values: dict[str, Any]
) -> Any:
    """The task of some files, from options that are taken out of `values`: a file, a label or a blur a class."""
    from .. import data
    from .._spec import parse_fields
    from ..stimuli import Samples
    from ..tasks import Discrimination

    given = changed(own, values)
    blur, labels = given.pop("blur", None), given.pop("classes", "")
    read, said = parse_fields(Samples, given), parse_fields(Discrimination, changed(task, values))
    if len(files) > 1 and (labels or blur):
        name = "--classes" if labels else "--blur"
        refuse(
            f"`{name}`",
            Said(f"with {len(files)} files"),
            "an option of one file",
            "Each file is a class already.",
        )
    if labels and blur:
        refuse("`--blur`", Said("with --classes"), "left out", "Labels are the classes already.")
    if labels:
        found = data.labelled(files[0], labels, labels="zero-one", **read)
    elif len(files) > 1:
        found = data.sources(*files, **read)
    else:
        found = data.blurs(
            data.sources(files[0], files[0], **read).stimuli[0], _widths(blur or BLURS)
        )
    return found.replace(**said)


def _widths(text: str) -> list[float]:
    try:
        each = [float(part) for part in text.split(",")]
    except ValueError:
        each = []
    if len(set(each)) < max(2, len(each)):
        refuse(
            "`--blur`", text, "two or more different widths, 0 for none", "For example --blur 0,1."
        )
    return each
