"""results.py - results in a file of `nexus`, for tests.

/entry/results has a row for every frame that went through the stages; most tests compare with images and want those of kept frames, in the
order of the images: of_images().
"""

import numpy as np

WHOSE = ("sequence", "frame_number", "image_index")


def is_of_images(item):
    """Rows go with /entry/data, as lists of the stage sparse do."""
    return item.attrs["aligned_with"] == "/entry/data/sequence"


def tables(group, name):
    """The rows of each frame of a ragged result."""
    return [group[name][first:first + rows] for first, rows in zip(group[f"{name}_first"][()].astype(int), group[f"{name}_rows"][()].astype(int))]


def profiles(file):
    """As the stage integrate makes them: {"profile": [n][position, intensity, sigma][bins]}, or cake, cake_sigma, cake_azimuth, cake_radius."""
    found = {}
    for name in ("profile", "cake"):
        group = file.get(f"entry/{name}")
        if group is None:
            continue
        intensity, errors = group["intensity"][()], group["intensity_errors"][()]
        axes = [np.broadcast_to(group[axis][()], (len(intensity), group[axis].size)) for axis in group.attrs["axes"][1:]]
        if name == "profile":
            found["profile"] = np.stack([axes[0], intensity, errors], axis=1)
        else:
            found |= {"cake": intensity, "cake_sigma": errors, "cake_azimuth": axes[0], "cake_radius": axes[1]}
    return found


def of_results(file):
    """{name: rows} of every frame that has results, kept or not; ragged ones are lists of tables."""
    group = file["entry/results"]
    found = {name: tables(group, name) if f"{name}_rows" in group else item[()] for name, item in group.items()
             if not name.endswith(("_rows", "_first"))}
    return found | profiles(file)


def of_images(file):
    """{name: array}: what stages found out about kept frames, image by image. Ragged ones are lists of tables."""
    group, found = file.get("entry/results"), {}
    if group is None:
        return found
    pick = file["entry/data/result_index"][()].astype(int)
    for name, item in group.items():
        if f"{name}_rows" in group:
            rows = tables(group, name)
            found[name] = rows if is_of_images(group[f"{name}_rows"]) else [rows[i] for i in pick]
        elif name not in WHOSE and not name.endswith(("_rows", "_first")):
            found[name] = item[()] if is_of_images(item) else item[()][pick]
    return found | {name: rows[pick] for name, rows in profiles(file).items()}


def joined(file):
    """The same, where a ragged result is one table of all images, beside NAME_rows."""
    found = of_images(file)
    rows = {f"{name}_rows": np.array([len(table) for table in item]) for name, item in found.items() if isinstance(item, list)}
    return {name: np.concatenate(item) if isinstance(item, list) else item for name, item in found.items()} | rows
