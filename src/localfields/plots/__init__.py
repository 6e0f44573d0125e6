"""Plots: one function per picture. Each draws on `ax`, or on a new figure, and returns the axes."""

from ._comparison import comparison as comparison
from ._fields import fields as fields
from ._fields import final_fields as final_fields
from ._fields import pictures as pictures
from ._fields import sample as sample
from ._populations import populations as populations
from ._populations import tuning as tuning
from ._prediction import prediction as prediction
from ._runs import ipr as ipr
from ._runs import loss as loss
from ._runs import overview as overview
from ._runs import spectrum as spectrum
from ._stimuli import amplifier as amplifier
from ._stimuli import covariance as covariance
from ._stimuli import density as density
from ._stimuli import marginal as marginal
from ._stimuli import stimulus as stimulus
from ._sweeps import sweep as sweep
