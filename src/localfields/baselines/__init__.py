"""Unsupervised methods to compare with. A new file in this folder is found automatically."""

from typing import Any

from .._spec import attribute as _attribute
from .._spec import discover as _discover
from .autoencoder import Autoencoder as Autoencoder
from .base import Baseline as Baseline
from .base import Fitted as Fitted
from .ica import FastICA as FastICA
from .pca import PCA as PCA
from .rbm import RBM as RBM
from .sparse import SparseCoding as SparseCoding

_modules = tuple(_discover(__name__, __path__))


def __getattr__(name: str) -> Any:
    return _attribute(__name__, "baseline", name)
