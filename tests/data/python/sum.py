"""Keeps frames whose pixels have an even sum: any wrong pixel changes the verdict, the score or the numbers."""

import numpy


def judge(frame):
    pixels = frame["raw"].astype(numpy.int64)
    total = int(pixels.sum())
    return {"keep": total % 2 == 0, "score": total % 1000, "numbers": [total, int((pixels.ravel() * numpy.arange(pixels.size)).sum())]}
