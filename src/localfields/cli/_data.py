"""Files of data at the command line: their names come first, one a class, and options say how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._check import Said, refuse
from .._spec import fields
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
    blur = "of one file: its samples blurred by each of these widths, in sites, are the classes"
    classes = own["classes"]
    own["classes"] = option(str, "", "of one file: labels, one number a sample; each is a class", classes[3])
    del own["data"], own["chosen"]
    return {"blur": option(str, BLURS, blur, "SIGMA,…"), **own}


def read_files(files: Sequence[str], own: dict[str, Option], task: dict[str, Option], values: dict[str, Any]) -> Any:
    """The task of some files, from options that are taken out of `values`: a file, a label or a blur a class."""
    import numpy as np

    from ..stimuli import Samples
    from ..stimuli._load import Data
    from ..tasks import Discrimination

    given = changed(own, values)
    blur, labels = given.pop("blur", None), given.pop("classes", "")
    kinds = {field.name: say.kind for field, say in fields(Samples)}
    read = {name: kinds[name].parse(name, text) for name, text in given.items()}
    if len(files) > 1 and (labels or blur):
        name = "--classes" if labels else "--blur"
        refuse(f"`{name}`", Said(f"with {len(files)} files"), "an option of one file", "Each file is a class already.")
    if labels and blur:
        refuse("`--blur`", Said("with --classes"), "left out", "Labels are the classes already.")
    stimuli: list[Any]
    if labels:
        column = Data(labels=True).check("classes", labels)
        assert column is not None
        kept = [int(one) for one in np.unique(np.concatenate([piece.ravel() for piece in column.pieces()]))]
        stimuli = [Samples(data=files[0], classes=column, chosen=one, **read) for one in kept]
    elif len(files) > 1:
        stimuli = [Samples(data=one, **read) for one in files]
    else:
        stimuli = blurred(Samples(data=files[0], **read), blur or BLURS)
    kinds = {field.name: say.kind for field, say in fields(Discrimination)}
    said = {name: kinds[name].parse(name, text) for name, text in changed(task, values).items()}
    return Discrimination(*stimuli, **said)


def blurred(samples: Any, widths: str) -> list[Any]:
    """Classes of one file: its samples after each of the blurs, all of one variance, so that only lengths differ."""
    from ..stimuli.preprocess import LowPass, Scale

    try:
        each = [float(part) for part in widths.split(",")]
    except ValueError:
        each = []
    if len(each) < 2 or len(set(each)) < len(each) or min(each) < 0:
        refuse("`--blur`", widths, "two or more different widths, 0 for none", "For example --blur 0,1.")
    steps = [((LowPass(sigma=one),) if one else ()) + (Scale(each="all"),) for one in each]
    return [samples.replace(preprocess=samples.preprocess + one) for one in steps]
