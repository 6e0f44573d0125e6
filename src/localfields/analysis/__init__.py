"""Analysis: what trajectories have in common, and what their fields are like.

Whether they come from training or from theory makes no difference. A metric in a new file here is
found by itself.
"""

from .._spec import discover as _discover
from .compare import Comparison as Comparison
from .compare import compare as compare
from .compare import onset_times as onset_times
from .gabor import GaborFit as GaborFit
from .gabor import fit_gabor as fit_gabor
from .gates import GateHistory as GateHistory
from .gates import gates_along as gates_along
from .metrics import METRICS as METRICS
from .metrics import Metric as Metric
from .metrics import measure as measure
from .metrics import metric as metric
from .populations import Populations as Populations
from .populations import populations as populations
from .shape import entropic_excess as entropic_excess
from .shape import oscillatory_from as oscillatory_from
from .shape import position as position
from .shape import power_spectrum as power_spectrum
from .shape import spectral_concentration as spectral_concentration
from .shape import spectral_participation as spectral_participation
from .shape import spectral_peak as spectral_peak
from .shape import uncertainty as uncertainty
from .shape import width as width
from .sinusoid import SinusoidFit as SinusoidFit
from .sinusoid import fit_sinusoid as fit_sinusoid
from .tiling import Tiling as Tiling
from .tiling import tiling as tiling
from .tuning import Tuning as Tuning
from .tuning import subfields as subfields
from .tuning import tuning as tuning

_modules = tuple(_discover(__name__, __path__))
