"""Tasks on data: classes are what they say, and no more than two of them differ in one thing."""

import numpy as np
import pytest
from PIL import Image

import localfields as lf

ROWS = np.random.default_rng(7).normal(size=(60, 12)).cumsum(axis=1)


def correlation(stimulus):
    row = stimulus.covariance()
    return row / row.flat[0]


def test_blurs_of_samples_lengthen_correlations_alone():
    task = lf.data.blurs(lf.stimuli.Samples(ROWS, symmetry="shifts"), (0, 0.7, 1.5))
    near = [correlation(one)[1] for one in task.stimuli]
    assert near[0] < near[1] < near[2]
    for stimulus in task.stimuli:
        assert stimulus.rows.var(axis=0) == pytest.approx(1, rel=1e-9)
    # A blur multiplies frequency k by exp(−σ²k²/2); nothing else happens but the scale.
    for sigma, stimulus in zip((0, 0.7, 1.5), task.stimuli, strict=True):
        damped = np.exp(-0.5 * (sigma * 2 * np.pi * np.fft.fftfreq(12)) ** 2)
        blurred = np.fft.ifft(np.fft.fft(ROWS, axis=1) * damped, axis=1).real
        np.testing.assert_allclose(stimulus.rows, blurred / blurred.std(axis=0), rtol=1e-9)
    assert task.targets().ravel().tolist() == [0, 1, 2]


def test_blurs_of_images_are_of_the_images():
    task = lf.data.blurs(lf.stimuli.ImagePatches(shape=(8, 8), patches=300), loss="absolute")
    assert [one.blur for one in task.stimuli] == [0.5, 2.0] and task.loss == "absolute"
    short, long = (one.covariance().reshape(64, 64)[0, 7] for one in task.stimuli)
    assert short < long


def test_zooms_of_leaves_and_images():
    leaves = lf.data.zooms(lf.stimuli.DeadLeaves(smallest=2.0), (4, 1))
    assert [one.smallest for one in leaves.stimuli] == [0.5, 2.0]
    assert leaves.stimuli[0].covariance()[0, 1] < leaves.stimuli[1].covariance()[0, 1]
    images = lf.data.zooms(lf.stimuli.ImagePatches(shape=(8, 8), patches=5000), (4, 1))
    far, near = (one.covariance().reshape(64, 64)[0, 7] for one in images.stimuli)
    assert far < near


def test_labels_of_ones_own():
    numbers = np.arange(60) % 4 * 10
    task = lf.data.labelled(ROWS, numbers, preprocess="center")
    assert task.labels == "one-hot" and task.outputs == 4
    for place, stimulus in enumerate(task.stimuli):
        rows = ROWS[numbers == 10 * place]
        np.testing.assert_allclose(stimulus.rows, rows - rows.mean(axis=0), atol=1e-12)
    two = lf.data.labelled(ROWS, numbers > 5)
    assert two.labels == "zero-one" and two.stimuli[0].num == 15 and two.stimuli[1].num == 45
    assert lf.from_json(task.to_json()).stimuli == task.stimuli


def test_fields_of_sources_reach_stimuli():
    stimuli = [lf.stimuli.Samples(rows) for rows in (ROWS, -ROWS)]
    task = lf.data.sources(*stimuli, symmetry="signs", labels="signs")
    assert [one.symmetry for one in task.stimuli] == ["signs", "signs"]
    with pytest.raises(lf.InputError, match="Unknown parameter of Samples 'symetry'. Did you mean"):
        lf.data.sources(*stimuli, symetry="signs")
    with pytest.raises(lf.InputError, match="Unknown parameter of NLGP 'symmetry'"):
        lf.data.sources(lf.stimuli.NLGP(12, xi=1), stimuli[0], symmetry="signs")


def test_a_source_may_be_a_folder_of_images(tmp_path):
    generator = np.random.default_rng(8)
    for name in ("near", "far"):
        (tmp_path / name).mkdir()
        for place in range(2):
            pixels = generator.integers(0, 255, (12, 12), np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{place}.png")
    folders = [str(tmp_path / name) for name in ("near", "far")]
    task = lf.data.sources(*folders, shape=(6, 6), patches=50)
    assert [len(one.source.files) for one in task.stimuli] == [2, 2]
    assert task.shape == (6, 6) and task.stimuli[0].num == 50
    one = lf.data.sources(f"{folders[0]}/0.png", tmp_path / "far", shape=(6, 6), patches=50)
    assert [len(one.source.files) for one in one.stimuli] == [1, 2]


def test_sources_are_classes(tmp_path):
    np.save(tmp_path / "a.npy", ROWS)
    shifted = lf.stimuli.Samples(-2 * ROWS, symmetry="shifts")
    first = lf.data.sources(tmp_path / "a.npy", shifted, symmetry="shifts").stimuli[0]
    task = lf.data.sources(first, shifted, lf.stimuli.Gaussian(12, xi=1))
    assert [type(one).__name__ for one in task.stimuli] == ["Samples", "Samples", "Gaussian"]
    np.testing.assert_allclose(
        4 * task.stimuli[0].covariance(), task.stimuli[1].covariance(), atol=1e-9
    )


@pytest.mark.parametrize(
    "make, says",
    [
        (
            lambda: lf.data.blurs(lf.stimuli.Gaussian(12, xi=1)),
            "made of data.*each class its own `xi`",
        ),
        (lambda: lf.data.blurs(lf.stimuli.Samples(ROWS), (1.0,)), "at least two numbers"),
        (lambda: lf.data.blurs(lf.stimuli.Samples(ROWS), 1.0), "at least two numbers"),
        (lambda: lf.data.blurs(lf.stimuli.Samples(ROWS), (1.0, -1.0)), "zero or positive"),
        (lambda: lf.data.zooms(lf.stimuli.Samples(ROWS)), "ImagePatches or DeadLeaves"),
        (lambda: lf.data.zooms(lf.stimuli.DeadLeaves(), (1, 0.5)), "whole number"),
        (lambda: lf.data.labelled(ROWS, np.arange(60) / 7), "whole numbers"),
        (lambda: lf.data.labelled(ROWS, None), "one label per sample"),
        (lambda: lf.data.labelled(ROWS, np.arange(59) % 2), "59 labels for 60 samples"),
        (
            lambda: lf.data.labelled(ROWS, np.arange(60)),
            "Only 1 samples have the label 0; at least two are needed",
        ),
        (lambda: lf.data.sources(ROWS), "at least two"),
    ],
)
def test_what_is_no_task_is_refused(make, says):
    with pytest.raises(lf.InputError, match=says):
        make()


def test_many_classes_are_trained_on():
    task = lf.data.labelled(ROWS, np.arange(60) % 3, preprocess="scale:each=all")
    network = lf.networks.TwoLayer(3, "relu")
    run = lf.train(
        task,
        network,
        steps=20,
        batch=30,
        estimator="epochs",
        record=lf.Record(every=20, evaluate=60),
    )
    assert run.weights.shape == (1, 2, 3, 12) and np.abs(np.diff(run.weights, axis=1)).max() > 0
