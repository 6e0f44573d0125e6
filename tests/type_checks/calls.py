"""A user's file: every form in which a constructor can be called, all of them right. Type
checkers must accept it.
"""

import jax.numpy as jnp
import numpy as np

import localfields as lf
from localfields import marginals, stimuli
from localfields.experiments import Fit
from localfields.lattice import Given, Periodized
from localfields.networks import Committee, GatedLinear, SingleNeuron, TwoLayer, gates
from localfields.stimuli.preprocess import Center, LowPass, Scale, Whiten
from localfields.theory import BestKnown, EffectiveFlow, ErfCommittee, ExactIsing, LinearResponse

# A lattice is a bare number, a tuple, a list or an array; a number is an int, a float, or an array
# to sweep.
stimuli.Ising()
stimuli.Ising(40)
stimuli.Ising((40,), 0.7)
stimuli.Ising([40], coupling=1)
stimuli.Ising(np.int64(40), coupling=np.float32(0.5))
stimuli.Ising(np.array([40]), coupling=[0.3, 0.7])
stimuli.Ising(40, coupling=(0.3, 0.7))
stimuli.Ising(40, coupling=np.linspace(0, 1, 5))
stimuli.Ising(40, coupling=jnp.linspace(0, 1, 5))

# A kernel is a value, its name, a row, or a function of distance; a marginal likewise.
stimuli.NLGP((30, 30), xi=3, gain=100)
stimuli.NLGP(40, 1, 100, "periodized")
stimuli.NLGP(40, kernel=Periodized())
stimuli.NLGP(4, kernel=[1, 0.5, 0.25, 0.5])
stimuli.NLGP(40, kernel=lambda d: np.exp(-d))
stimuli.NLGP(4, kernel=Given(np.array([1, 0.5, 0.25, 0.5])))
stimuli.NLGP.with_correlation(stimuli.Ising(40).covariance(), gain=100)
stimuli.Kur(40)
stimuli.Kur((40,), k=3)
stimuli.Gaussian(40, xi=2, scale=2, offset=-1)
stimuli.Copula(40, marginal_law=marginals.StudentT(nu=5))
stimuli.Copula(40, xi=2, marginal_law="algebraic:k=5")
stimuli.Copula(40, marginal_law=lambda u: -np.log1p(-u))
stimuli.DenseGaussian(2, [[2, 1], [1, 2]])
stimuli.StudentT(40, nu=5)
stimuli.EllipticalShell(40, xi=1)
stimuli.Elliptical(40, radial=lambda u: 3 + u**2)
stimuli.SinglePulse(40, 4, 8, coding="zero-one")
stimuli.BlockPulse((4, 6), length=2)
stimuli.DeadLeaves((16, 16), ratio=3, gray="uniform")
stimuli.Samples(np.eye(8), preprocess=("center", Scale()), symmetry="shifts")
stimuli.Samples("recordings.npy", (8, 8), preprocess="center+scale")
stimuli.ImagePatches(
    shape=(8, 8), patches=1e2, preprocess=[Center(), Whiten(cutoff=0.01), LowPass(2)]
)
stimuli.Ising(40).replace(coupling=0.5).sample(0, 100)

marginals.ErfNormal(gain=2, scale=1)
marginals.Empirical([1, 2, 3], weights=[0.5, 0.25, 0.25])
marginals.SphereProjection(7, [1, 2], np.array([0.5, 0.5]))
marginals.Tabulated.of(lambda u: u**3)

SingleNeuron()
SingleNeuron("erf", init_scale=1e-4)
SingleNeuron(init="positive", init_scale=np.geomspace(1e-4, 1, 5))
Committee(10, activation="sigmoid", bias="trained")
Committee(np.int64(4), bias="fixed", bias_value=-1)
TwoLayer(hidden=20)
GatedLinear(gates.Bump(site=1, copies=3))
GatedLinear("mexican-hat:width=3")
gates.Several(gates.Flat(), gates.Bump(width=2))
gates.Several()
gates.Redundant(gates.Wave(cycles=2), copies=2)
gates.Directions([[1, 0], [0, 1]])

# A task takes its stimuli by position, and labels by name or one number per class.
short, long = (stimuli.NLGP((40,), xi=xi, gain=100) for xi in (1, 3))
task = lf.Discrimination(short, long)
lf.Discrimination()
lf.Discrimination(
    *(stimuli.Ising(40, coupling=j) for j in (0.3, 0.7)), labels="signs", loss="absolute"
)
lf.Discrimination(short, long, labels=(-1, 1), proportions=[0.25, 0.75], l2=1e-3)
lf.Discrimination(
    short, long, stimuli.Ising(40), labels="one-hot", loss="cross-entropy", l1=[0, 0.1]
)
lf.Discrimination(short, long, labels=np.array([0, 1]))

BestKnown()
ExactIsing(frequencies=512)
EffectiveFlow("taylor", order=5)
EffectiveFlow("samples", samples=np.linspace(-1, 1, 100))
LinearResponse(slope="gaussian")
ErfCommittee(terms=20)

lf.Training()
lf.Training(0.05, 2000, 100, 4, estimator="orbit")
lf.Training(learning_rate=[0.05, 0.1], steps=1e4, batch=100, seed=[1, 2], quantities=["ipr"])
lf.Solution(ExactIsing(), times=[0, 1, 10])
lf.Solution("exact-ising", times=np.geomspace(1, 100, 10), members=4, until=100)
Fit("pca", samples=1000)
Fit(lf.baselines.FastICA(10, algorithm="deflation"))
lf.baselines.PCA(components=5)
lf.baselines.SparseCoding(penalty=2)
lf.Experiment(task, SingleNeuron(), lf.Training(steps=10))
lf.Experiment(task, "committee:hidden=4", method=lf.Solution(), precision="float64")
lf.Experiment(task, initial=np.zeros((1, 40)))
lf.Sweep(lf.Experiment(task), {"gain": [1, 10, 100], "batch": [100, 200]}, seeds=5)
lf.Sweep(lf.Experiment(task), [("gain", "logspace:0.1:10:5")], seeds=[1, 2, 3], together="list")
lf.Record(every=100, quantities=("ipr", "loss"))
lf.Store("runs")
lf.Store()

# What a field holds is its plain form, whatever was given.
sites: tuple[int, ...] = stimuli.Ising(40).shape
coupling: float = stimuli.Ising(40, coupling=1).coupling
hidden: int = Committee(10).hidden
row: np.ndarray = Given([1, 0.5]).row
kernel: lf.lattice.Kernel = stimuli.NLGP(40, kernel="periodized").kernel
classes: tuple[stimuli.Stimulus, ...] = task.stimuli


def verbs() -> None:
    """Not called: what they return is tested elsewhere."""
    run = lf.train(task, SingleNeuron(), learning_rate=0.05, steps=20, record=lf.Record(every=10))
    lf.train(
        task, SingleNeuron(), learning_rate=np.array([0.05, 0.1]), seed=[1, 2], initial=run.initial
    )
    lf.train(task, SingleNeuron(), learning_rate=lambda step: 0.1 / (1 + step), stop_tol=1e-3)
    flow = lf.solve(task, BestKnown(), initial=run.initial, times=run.times)
    lf.solve(task, EffectiveFlow(), times=[0, 1, 10], members=3)
    lf.compare(run, flow)
    lf.measure(run, "width")
    lf.predict(task, starts=3)
    lf.run_or_load(lf.Experiment(task), "runs")
    lf.data.sources(np.eye(8), "other.npy", preprocess="scale", symmetry="shifts")
    lf.data.blurs(stimuli.ImagePatches(), (0.5, 2))
    # Every plot returns axes of matplotlib's own type.
    lf.plots.fields(run, member=1).set_title("a field")
    lf.plots.ipr(run, ax=lf.plots.loss(run)).get_ylabel()
    lf.plots.comparison(run, flow)[0].set_title("compared")
    lf.plots.stimulus(stimuli.Ising(40), num=100, seed=1)
