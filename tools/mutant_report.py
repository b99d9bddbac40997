"""mutant_report.py - results of mutants as data and as a report, of one run or of several put together; for tools/mutate.py.

Results are a JSON document: totals, the runs they are from, and for each folder its mutants with their outcome and those that are not
counted. A document that was put together of others has the same form, so that it can be put together with more.
"""

import hashlib
import json
import re

NOT_PRODUCT = re.compile(r"_test\.c$|/testing\.h$|/conformance\.h$|oracle")
# Of two outcomes of the same mutant in two runs the one that says more counts: one host may find what another has no device for.
OUTCOMES = ("not compiled", "same code", "undecided", "survived", "equivalent", "found")
COUNTED, TRIED = ("found", "survived"), ("found", "survived", "undecided")


class Unusable(Exception):
    """Results that cannot be read, or are not of the same code."""


def fingerprint(tree):
    """Of the code that is mutated: results of different code are not put together. Tests may have come meanwhile."""
    digest = hashlib.sha256()
    for path in sorted((tree / "src").rglob("*.[ch]")):
        name = path.relative_to(tree).as_posix()
        if not NOT_PRODUCT.search(name):
            digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def key_of(mutant):
    return mutant["file"], mutant["line"], json.dumps(mutant["change"])


def folder_data(mutants, files, suites_left_out):
    """Of one folder: mutants with their outcome, those that count and those that do not."""
    def with_outcome(*names):
        return [mutant for mutant in mutants if mutant["outcome"] in names]

    return {"found": len(with_outcome("found")), "survived": len(with_outcome("survived")), "undecided": len(with_outcome("undecided")),
            "equivalent": len(with_outcome("equivalent")), "same_code": len(with_outcome("same code")),
            "not_compiled": len(with_outcome("not compiled")), "files": sorted(files), "suites_left_out": suites_left_out,
            "mutants": with_outcome(*TRIED), "not_counted": [mutant for mutant in mutants if mutant["outcome"] not in TRIED]}


def document(product, runs, folders, cannot_run_here):
    """runs: [{seed, piece, only, sanitizers, whole, out_of_time}]; cannot_run_here: {why: {file: mutants}}."""
    found, survived = (sum(folder[what] for folder in folders.values()) for what in COUNTED)
    return {"product": product, "mutants": found + survived, "found": found,
            "percent": round(100 * found / (found + survived), 1) if found + survived else 0, "runs": runs,
            "cannot_run_here": cannot_run_here, "folders": folders}


# ---- several runs ----

def read(path):
    try:
        data = json.loads(path.read_text())
        for part in ("product", "runs", "cannot_run_here", "folders"):
            data[part]  # noqa: B018  (whether it is there)
        for folder in data["folders"].values():
            for mutant in folder["mutants"] + folder["not_counted"]:
                key_of(mutant)
                OUTCOMES.index(mutant["outcome"])
    except OSError as why:
        raise Unusable(f"{path}: {why.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Unusable(f"{path}: these are no results of this version of tools/mutate.py; write them again with --json") from None
    return data


def merged_folder(parts):
    best = {}
    for mutant in (mutant for part in parts for mutant in part["mutants"] + part["not_counted"]):
        before = best.get(key_of(mutant))
        if not before or OUTCOMES.index(mutant["outcome"]) > OUTCOMES.index(before["outcome"]):
            best[key_of(mutant)] = mutant
    left_out = {name: why for part in parts for name, why in part["suites_left_out"].items()}
    return folder_data([best[key] for key in sorted(best)], {file for part in parts for file in part["files"]}, left_out)


def merge(paths):
    """The results of several runs as one: a mutant that several have tried counts once."""
    documents = [read(path) for path in paths]
    for path, data in zip(paths, documents):
        if data["product"] != documents[0]["product"]:
            raise Unusable(f"{path}: is of other code than {paths[0]}: measure both again")
    names = list(dict.fromkeys(name for data in documents for name in data["folders"]))
    folders = {name: merged_folder([data["folders"][name] for data in documents if name in data["folders"]]) for name in names}
    tried = {file for folder in folders.values() for file in folder["files"]}
    cannot = {}
    for data in documents:
        for why, files in data["cannot_run_here"].items():
            for file, count in files.items():
                if file not in tried and not any(file in others for others in cannot.values()):
                    cannot.setdefault(why, {})[file] = count
    runs = [run for i, run in enumerate(run for data in documents for run in data["runs"])]
    return document(documents[0]["product"], [run for i, run in enumerate(runs) if run not in runs[:i]], folders, cannot)


# ---- the report ----

def missed(data):
    """Folders that no run with this seed has tried to the end, and pieces that are not there: as texts."""
    whole = {(run["seed"], folder) for run in data["runs"] for folder in run["whole"]}
    late = list(dict.fromkeys((run["seed"], folder) for run in data["runs"] for folder in run["out_of_time"]
                              if (run["seed"], folder) not in whole))
    texts = [f"out of time for {', '.join(folder for _, folder in late)}"] if late else []
    groups = {}
    for run in data["runs"]:
        number, of = run["piece"]
        groups.setdefault((run["seed"], of, tuple(run["only"])), set()).add(number)
    for (seed, of, _), there in groups.items():
        absent = [f"{number}/{of}" for number in range(1, of + 1) if number not in there]
        if absent:
            texts.append(f"no results of piece {', '.join(absent)} of seed {seed}")
    return texts


def diff(mutant):
    lines = "".join(f"    - {before}\n    + {after}\n" for before, after in mutant["change"])
    return f"  {mutant['file']}:{mutant['line']}: {mutant['operator']}\n{lines}"


def title(data):
    seeds = list(dict.fromkeys(run["seed"] for run in data["runs"]))
    several = f"{len(data['runs'])} runs, " if len(data["runs"]) > 1 else ""
    plain = [run for run in data["runs"] if not run["sanitizers"]]
    return (f"\n{several}seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}" + "".join(f"; {text}" for text in missed(data))
            + (f"; {len(plain)} runs without sanitizers" if several and plain else ""))


def show(data, least):
    """Print the report; the exit status of the program."""
    print(title(data))
    for why, files in data["cannot_run_here"].items():
        print(f"  not tried, {why}: {sum(files.values())} mutants of {', '.join(files)}")
    print(f"  {'folder':22}{'mutants':>8}{'found':>8}{'score':>8}   not counted: equivalent, same code, not compiled, undecided")
    for name, folder in data["folders"].items():
        count = folder["found"] + folder["survived"]
        print(f"  {name:22}{count:8}{folder['found']:8}{100 * folder['found'] / count if count else 100:7.0f}%   "
              f"{folder['equivalent']}, {folder['same_code']}, {folder['not_compiled']}, {folder['undecided']}")
    for outcome, heading in (("undecided", "undecided, and not counted"), ("survived", "survivors")):
        listed = [mutant for folder in data["folders"].values() for mutant in folder["mutants"] if mutant["outcome"] == outcome]
        if listed:
            print(f"{heading}:\n" + "".join(diff(mutant) for mutant in listed), end="")
    total, found = data["mutants"], data["found"]
    percent = 100 * found / total if total else 0
    undecided = sum(folder["undecided"] for folder in data["folders"].values())
    left = [f"{undecided} undecided", f"{sum(folder['equivalent'] for folder in data['folders'].values())} equivalent",
            f"{sum(sum(files.values()) for files in data['cannot_run_here'].values())} not tried"]
    print(f"{found} of {total} mutants found, {percent:.1f} %; {', '.join(left)}; at least {least} % are asked for")
    return 0 if total and percent >= least and not missed(data) else 1
