"""The field's words are written one way, in American spelling."""

import re

import pytest

from docs.pages import ROOT, pages, prose

# What is written wrong, as a pattern, and what is meant.
WORDS = {
    r"localis\w+": "localiz…",
    r"normalis\w+": "normaliz…",
    r"initialis\w+": "initializ…",
    r"generalis\w+": "generaliz…",
    r"regularis\w+": "regulariz…",
    r"optimis(?:e|es|ed|er|ers|ing|ation)\b": "optimiz…",
    r"recognis\w+|organis(?:e|es|ed|ing|ation)\b": "…iz…",
    r"(?:neighb|behavi|col|fav)our\w*": "…or",
    r"modell\w+|travell\w+": "one l",
    r"cent(?:re|res|red|ring)\b": "center",
    r"grey\w*": "gray",
    r"analyse[dr]?\b|analysing": "analyze",
    r"licence\b": "license",
    r"length[ -]scales?": "lengthscale",
    r"receptive-fields?|receptive fileds?|receptor fields?": "receptive field",
    r"curtosis|kurtosys|kurtossis": "kurtosis",
    r"NLPG|NGLP": "NLGP",
    r"Issing|Izing": "Ising",
    r"ellyptic\w*|eliptic\w*": "elliptic…",
    r"inverse participation rate|participation-ratio": "inverse participation ratio",
    r"pre-activations?": "preactivation",
    r"Lufkin et al\.?|Lufkin, Saxe,? and Grant|Lufkin and Saxe": "Lufkin, Saxe & Grant",
    r"Ingrosso and Goldt": "Ingrosso & Goldt",
    r"ocurr\w*|occured|seperat\w*|dependan\w*|independan\w*": "check the spelling",
}
CAPITALS = {
    r"nlgp\b": "NLGP",
    r"ipr\b": "IPR",
    r"ising\b": "Ising",
    r"gaussian\b": "Gaussian",
    r"relu\b": "ReLU",
}


def mistakes(text):
    result = []
    for patterns, flags in ((WORDS, re.IGNORECASE), (CAPITALS, 0)):
        for pattern, right in patterns.items():
            for match in re.finditer(rf"\b(?:{pattern})", text, flags):
                result.append(
                    f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}; write {right!r}"
                )
    return result


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_words_of_a_page(path):
    assert not mistakes(prose(path))


def test_the_words_of_docstrings_and_comments():
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        wrong = [
            f"{path.name}, line {text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
            for pattern in WORDS
            for match in re.finditer(rf"\b(?:{pattern})", text, re.IGNORECASE)
        ]
        assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "a localised field",
        "the length scale",
        "Lufkin et al. show",
        "neighbours",
        "an nlgp",
        "Issing",
    ],
)
def test_a_wrong_word_is_seen(text):
    assert mistakes(text)
    assert not mistakes(
        "A localized field of one lengthscale: Lufkin, Saxe & Grant on NLGP and Ising data."
    )
