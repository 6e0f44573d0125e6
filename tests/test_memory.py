"""Memory is estimated before anything is computed: what does not fit is refused, and the estimate
is right within a factor of two.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

import localfields as lf
from localfields._memory import memory_limit, size_text


def test_the_limit_is_the_machine_s_or_the_user_s(monkeypatch):
    monkeypatch.delenv("LOCALFIELDS_MEMORY", raising=False)
    limit, source = memory_limit()
    assert limit > 1e8 and source.endswith("has")
    monkeypatch.setenv("LOCALFIELDS_MEMORY", "0.5")
    assert memory_limit() == (5e8, "$LOCALFIELDS_MEMORY allows")
    monkeypatch.setenv("LOCALFIELDS_MEMORY", "much")
    with pytest.raises(lf.InputError, match="LOCALFIELDS_MEMORY must be a number of GB"):
        memory_limit()
    assert [size_text(n) for n in (2e6, 3.4e9, 6.7e13)] == ["2 MB", "3.4 GB", "67 TB"]


def test_a_larger_limit_allows_more(monkeypatch):
    stimulus = lf.stimuli.Gaussian((8,), xi=0.6)
    monkeypatch.setenv("LOCALFIELDS_MEMORY", "1e-6")
    with pytest.raises(lf.InputError, match=r"allows 0.001 MB. Draw fewer samples"):
        stimulus.sample(0, 100)
    monkeypatch.setenv("LOCALFIELDS_MEMORY", "1")
    assert np.isfinite(stimulus.sample(0, 100)).all()


# What training took beyond a small run of the same process, and what was expected.
MEASURE = """
import json, sys, warnings
warnings.simplefilter("ignore")
import localfields as lf

def status(name):
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(name))

def train(shape, network, steps=2, quantities=("ipr", "loss"), evaluate=10, every=2, **settings):
    task = lf.Discrimination(*(lf.stimuli.NLGP(shape, xi=xi, gain=100) for xi in (0.5, 1)))
    record = lf.Record(every=every, quantities=quantities, evaluate=evaluate)
    return lf.train(task, network, steps=steps, record=record, **settings)

neuron = lf.networks.SingleNeuron()
train((8,), neuron, batch=10)
before = status("VmRSS")
run = eval(sys.argv[1])
print(json.dumps([status("VmHWM") - before, run.manifest["memory_bytes"]]))
"""
SETTINGS = {
    "batch": "train((128, 128), neuron, batch=1200)",
    "batch of a committee": "train((40,), lf.networks.Committee(100), batch=150_000)",
    "orbit": "train((32, 32), lf.networks.Committee(10), batch=2000, estimator='orbit')",
    "evaluation": "train((128, 128), neuron, batch=10, evaluate=2000)",
    "parameters": "train((40,), lf.networks.Committee(100), batch=10, members=5000)",
    "optimizer": "train((40,), lf.networks.Committee(100), batch=10, members=3000, optimizer='adam')",
    "records": "train((40,), neuron, batch=10, members=2000, steps=500, every=1, "
    "quantities=('weights',))",
}


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", SETTINGS)
def test_the_estimate_is_right_within_a_factor_of_two(name):
    command = [sys.executable, "-c", MEASURE, SETTINGS[name]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    measured, expected = json.loads(done.stdout)
    assert measured > 1.5e8, "too small a setting: the compiler's own memory is some 50 MB"
    assert 0.5 < measured / expected < 2, (measured / 1e6, expected / 1e6)
