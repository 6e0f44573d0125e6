"""Analysis: what trajectories have in common, whether they come from training or from theory."""

from .compare import Comparison as Comparison
from .compare import compare as compare
from .compare import onset_times as onset_times
from .sinusoid import SinusoidFit as SinusoidFit
from .sinusoid import fit_sinusoid as fit_sinusoid
