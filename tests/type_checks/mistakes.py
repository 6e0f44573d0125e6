"""A user's file in which every line marked WRONG is a mistake that type checkers must see, and
no other line is.
"""

import localfields as lf
from localfields import stimuli
from localfields.networks import Committee, SingleNeuron, gates

task = lf.Discrimination(stimuli.Ising(40), stimuli.Ising(40, coupling=0.3))

stimuli.Ising("40")  # WRONG
stimuli.Ising(40, coupling="0.7")  # WRONG
stimuli.Ising(40, couplng=0.7)  # WRONG
stimuli.Ising(40, 0.7, 3)  # WRONG
stimuli.NLGP(40, gain=None)  # WRONG
stimuli.NLGP(40, kernel=3)  # WRONG
stimuli.StudentT(40, table=[1, 2])  # WRONG
stimuli.Copula(40, marginal_law=3)  # WRONG
stimuli.SinglePulse(40, coding=1)  # WRONG
stimuli.Ising(40).coupling = 3.0  # WRONG
stimuli.Stimulus()  # WRONG
SingleNeuron(hidden=3)  # WRONG
Committee("ten")  # WRONG
Committee(10, bias=True)  # WRONG
gates.Several("bump", 3)  # WRONG
lf.Discrimination(stimuli.Ising(40), 3)  # WRONG
lf.Discrimination(stimuli.Ising(40), "signs")  # WRONG
lf.Discrimination(task)  # WRONG
lf.Training(steps="1000")  # WRONG
lf.Training(rest=1e-3)  # WRONG
lf.Solution(times="all")  # WRONG
lf.Experiment(stimuli.Ising(40))  # WRONG
lf.Experiment(task, precision=64)  # WRONG
lf.Sweep({"gain": [1, 2]}, 3)  # WRONG
lf.train(task, SingleNeuron(), rest=1e-3)  # WRONG
lf.train(task)  # WRONG
lf.train(stimuli.Ising(40), SingleNeuron())  # WRONG
lf.solve(task, SingleNeuron())  # WRONG
lf.tran(task, SingleNeuron())  # WRONG
