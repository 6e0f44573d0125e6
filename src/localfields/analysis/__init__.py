"""Analysis: what trajectories have in common, whether they come from training or from theory."""

from .compare import Comparison as Comparison
from .compare import compare as compare
from .compare import onset_times as onset_times
from .gabor import GaborFit as GaborFit
from .gabor import fit_gabor as fit_gabor
from .shape import entropic_excess as entropic_excess
from .shape import position as position
from .shape import spectral_concentration as spectral_concentration
from .shape import spectral_peak as spectral_peak
from .shape import spectrum as spectrum
from .shape import uncertainty as uncertainty
from .shape import width as width
from .sinusoid import SinusoidFit as SinusoidFit
from .sinusoid import fit_sinusoid as fit_sinusoid
