"""How right the responses of the theories are, stimulus by stimulus: the table of docs/choose.md.

    python benchmarks/validity.py

For each law on forty sites, the relative error ‖f̃ − f‖/‖f‖ of the effective and of the linear
response against f = E[1(⟨w, X⟩ ≥ 0) X], which is exact for Ising and elliptical data and drawn for
the others: for a field of Gaussian noise, as training starts from, and for a bump e^{−d/2}, as it
may end in. Noise of drawing is taken off the squares; what is left of it is printed behind ±.
"""

import numpy as np

import localfields as lf
from localfields.lattice import distance

SITES, DRAWS, FIELDS = 40, 300_000, 4
LAWS = {
    "Gaussian, ξ = 2": lf.stimuli.Gaussian((SITES,), xi=2),
    "Student t(5), ξ = 2": lf.stimuli.StudentT((SITES,), xi=2, nu=5),
    "shell, ξ = 2": lf.stimuli.EllipticalShell((SITES,), xi=2),
    "Ising, J = 0.3": lf.stimuli.Ising((SITES,), coupling=0.3),
    "Ising, J = 0.7": lf.stimuli.Ising((SITES,), coupling=0.7),
    "NLGP(1), ξ = 2": lf.stimuli.NLGP((SITES,), xi=2, gain=1),
    "NLGP(100), ξ = 2": lf.stimuli.NLGP((SITES,), xi=2, gain=100),
    "Kur(3), ξ = 2": lf.stimuli.Kur((SITES,), xi=2, k=3),
    "Kur(5), ξ = 2": lf.stimuli.Kur((SITES,), xi=2, k=5),
    "Kur(10), ξ = 2": lf.stimuli.Kur((SITES,), xi=2, k=10),
}


def trajectory(fields):
    """Fields as the records of one run, which is what `check_trajectory` looks at."""
    start = lf.solve(
        lf.Discrimination(LAWS["Ising, J = 0.3"], LAWS["Ising, J = 0.7"]),
        lf.theory.EffectiveFlow(),
        times=[0.0, 1e-6],
    )
    times = np.arange(len(fields), dtype=float)
    series = {"weights": fields[None, :, None, :]}
    return lf.Trajectory(times, times, start.initial, start.final, series, start.outcome, {}, {})


def errors(run, law, theory):
    """Mean over noise fields, and the bump, each with its standard error."""
    check = lf.theory.check_trajectory(run, law, theory=theory, num=DRAWS)
    noise, told = check.error[:FIELDS], check.uncertainty[:FIELDS]
    return (noise.mean(), np.sqrt((told**2).mean() / FIELDS)), (
        check.error[FIELDS],
        check.uncertainty[FIELDS],
    )


def main():
    generator = np.random.default_rng(0)
    fields = np.concatenate(
        [generator.normal(size=(FIELDS, SITES)), np.exp(-distance((SITES,)) / 2)[None]]
    )
    run = trajectory(fields)
    theories = lf.theory.EffectiveFlow(), lf.theory.LinearResponse("gaussian")
    print(
        "| distribution | excess kurtosis | effective, noise | linear, noise | effective, bump "
        "| linear, bump |"
    )
    print("|---|---|---|---|---|---|")
    for name, law in LAWS.items():
        found = [errors(run, law, theory) for theory in theories]
        cells = [
            f"{mean:.3f} ± {se:.3f}"
            for place in (0, 1)
            for mean, se in (one[place] for one in found)
        ]
        print(
            f"| {name} | {law.marginal().excess_kurtosis:.2f} | {' | '.join(cells)} |", flush=True
        )


if __name__ == "__main__":
    main()
