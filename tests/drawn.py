"""What a matplotlib figure shows, read back as numbers and words."""

import numpy as np
from matplotlib.colors import to_hex


def ipr(fields):
    """Σw⁴/(Σw²)² over the last axis."""
    fields = np.asarray(fields, float)
    return (fields**4).sum(-1) / (fields**2).sum(-1) ** 2


def is_color(found, wanted):
    return to_hex(found) == to_hex(wanted)


def lines(ax, color=None, style=None, marker=None):
    """The curves of an axes as arrays (x, y), in drawing order; legend entries without points
    are left out.
    """
    return [
        np.stack([np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)])
        for line in ax.lines
        if len(line.get_xdata())
        and (color is None or is_color(line.get_color(), color))
        and (style is None or line.get_linestyle() == style)
        and (marker is None or line.get_marker() == marker)
    ]


def line(ax, label):
    """The one curve with a label, as (x, y)."""
    (result,) = (line for line in ax.lines if line.get_label() == label)
    return np.asarray(result.get_xdata(), float), np.asarray(result.get_ydata(), float)


def level(ax, color=None, style=None):
    """The height of the one horizontal line across an axes."""
    (result,) = (y[0] for x, y in lines(ax, color, style) if list(x) == [0, 1] and y[0] == y[1])
    return result


def upright(ax, color=None, style=None):
    """The place of the one vertical line across an axes."""
    (result,) = (x[0] for x, y in lines(ax, color, style) if list(y) == [0, 1] and x[0] == x[1])
    return result


def legend(ax):
    """Words of a legend (of axes or a figure) with the color of each."""
    box = ax if hasattr(ax, "legend_handles") else ax.get_legend()
    colors = []
    for handle in box.legend_handles:
        first = handle[0] if isinstance(handle, tuple) else handle
        if hasattr(first, "get_color"):
            color = first.get_color()
        else:  # a patch or a collection
            color = np.atleast_2d(first.get_facecolor())[0]
        colors.append(to_hex(np.atleast_2d(color)[0] if not isinstance(color, str) else color))
    return dict(zip((text.get_text() for text in box.get_texts()), colors, strict=True))


def words(ax):
    """All free texts inside an axes."""
    return [text.get_text() for text in ax.texts]


def ticks(axis):
    """Places of an axis's labels, and the labels."""
    return list(axis.get_ticklocs()), [label.get_text() for label in axis.get_ticklabels()]


def error_bars(ax):
    """Every errorbar drawn: label, color, x, y, and the ends of its bars along their axis (none:
    no ends).
    """
    result = []
    for container in ax.containers:
        if not hasattr(container, "has_yerr"):
            continue
        data, _, bars = container.lines
        segments = [segment for part in bars for segment in part.get_segments()]
        ends = np.array([segment[:, int(container.has_yerr)] for segment in segments]).reshape(
            -1, 2
        )
        x, y = (np.asarray(part, float) for part in (data.get_xdata(), data.get_ydata()))
        result.append((container.get_label(), data.get_color(), x, y, ends[:, 0], ends[:, 1]))
    return result


def over_time(ax):
    """Fields drawn with a color for time: the fields (time, site), the times, and the time that
    is all red.
    """
    (result,) = ax.collections
    fields = np.array([segment[:, 1] for segment in result.get_segments()])
    sites = result.get_segments()[0][:, 0]
    np.testing.assert_array_equal(sites, np.arange(fields.shape[1]))
    return fields, np.asarray(result.get_array()), result.get_clim()[1]


def tiles(ax, shape):
    """Small pictures of a shape on a sheet with gaps of one between them, row by row; empty
    places are left out.
    """
    (image,) = ax.images
    sheet = np.ma.filled(image.get_array().astype(float), np.nan)
    high, wide = shape[0] + 1, shape[1] + 1
    result = [
        sheet[top : top + shape[0], left : left + shape[1]]
        for top in range(0, sheet.shape[0], high)
        for left in range(0, sheet.shape[1], wide)
    ]
    return np.array([one for one in result if np.isfinite(one).all()])


def columns_of(ax, shape):
    """How many pictures stand side by side on a sheet."""
    return (ax.images[0].get_array().shape[1] + 1) // (shape[1] + 1)


def scaled(fields):
    """Each field over its largest absolute weight."""
    fields = np.asarray(fields, float)
    return fields / np.abs(fields).reshape(len(fields), -1).max(axis=1).reshape(
        -1, *(1,) * (fields.ndim - 1)
    )


def dots(collection):
    """Points of a scatter and their colors."""
    points = np.asarray(collection.get_offsets(), float)
    colors = [to_hex(color) for color in collection.get_facecolors()]
    return points, colors if len(colors) > 1 else colors * len(points)
