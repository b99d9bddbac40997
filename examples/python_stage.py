"""A hit finder: frames with enough bright pixels are kept.

See examples/python-stage.yaml; docs/how-to/python-stage.md says what the stage `python` calls, and when.
"""

import numpy as np

PHOTONS, PIXELS = 10, 20


def setup(run):
    """Called in each process when a run begins."""
    print(f"{run['detector']}: {run['arrays']['image']['shape']} pixels, process {run['process']}")


def judge(frame):
    """Called with each frame; returns whether to keep it."""
    image = frame["image"]  # photons, [rows of all modules][columns]; read-only
    bright = image >= PHOTONS
    found = np.count_nonzero(bright)
    brightest = image.max() if found else 0
    return {"keep": found >= PIXELS, "score": found, "numbers": [found, brightest]}
