#!/usr/bin/python3
"""mutation.py - the mutation tool, tested: what it changes and what it leaves alone, what it counts in a small tree, and that its list of
equivalent mutants fits the code."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import lint

import mutants  # noqa: E402  (found through lint's path)
import mutate as mutate_tool  # noqa: E402

TOOL = lint.ROOT / "tools/mutate.py"

# name, code, the lines that mutants make of it
SAMPLES = [
    ("comparisons and logic", "int a(int b)\n{\n\treturn b < c && b != d;\n}\n",
     ["return b <= c && b != d;", "return b < c || b != d;", "return b < c && b == d;"]),
    ("numbers", "int a[9] = {0, 0x1fu, 1.5f};\n",
     ["int a[9] = {1, 0x1fu, 1.5f};", "int a[9] = {0, 0x1eu, 1.5f};", "int a[9] = {0, 0x20u, 1.5f};", "int a[9] = {0, 0x1fu, 3.0f};"]),
    ("conditions", "void a(void)\n{\n\twhile (b(c))\n\t\td();\n}\n",
     ["while (!(b(c)))", ";", "return; while (b(c))"]),
    ("statements", "int a(void)\n{\n\tint b = c();\n\n\td = b;\n\treturn b;\n}\n", [";", "return 0; d = b;"]),
    ("values in braces are no statements", "void a(void)\n{\n\tb = (struct c){.d = e, .f = g};\n}\n",
     [";", "return; b = (struct c){.d = e, .f = g};"]),
    ("a label is no part of a condition", "void a(void)\n{\n\tb = c ? d : e;\nundo:\n\tf();\n}\n",
     [";", "return; b = c ? d : e;", ";"]),
    ("comments, text and directives", '#define A 1 < 2 \\\n\t&& 3\n/* 1 < 2 */ // 3 && 4\nconst char *a = "5 < 6" + \'7\';\n', []),
    ("assertions, logs, options and times", '_Static_assert(1 < 2, "3");\nenum { WAIT_NS = 4 * 5 };\n'
     'void a(void)\n{\n\tint b[6];\n\n\tsl_error("%d", 7 < 8);\n\tassert(9 == 9);\n}\nx = {SL_U32(struct y, z, 1, 2, 3, "", "")};\n', []),
]

TINY = {
    "meson.build": "project('tiny', 'c')\nsubdir('src')\n",
    "src/meson.build": "folders = [\n  'tiny', # all there is\n]\n"
                       "program = executable('tiny_test', 'tiny/tiny_test.c', 'tiny/tiny.c', build_by_default: false)\n"
                       "test('tiny/tiny', program, protocol: 'tap')\n",
    "src/tiny/tiny.c": """int tiny_clamp(int value, int most);
int tiny_halve(unsigned value);
int tiny_both(int a, int b);

int tiny_clamp(int value, int most)
{
	return value > most ? most : value;
}

int tiny_halve(unsigned value)
{
	int n = 0;

	for (; value; n++)
		value /= 2;
	return n;
}

int tiny_both(int a, int b)
{
	return a && b;
}
""",
    "src/tiny/tiny_test.c": """#include <stdio.h>
int tiny_clamp(int value, int most);
int tiny_halve(unsigned value);
int tiny_both(int a, int b);
int main(void)
{
	int good = tiny_clamp(3, 2) == 2 && tiny_clamp(1, 2) == 1 && tiny_halve(5) == 3 && tiny_both(1, 1);
	printf("1..1\\n%sok 1 - tiny\\n", good ? "" : "not ");
	return !good;
}
""",
    "equivalent.txt": "# what nobody can see\nsrc/tiny/tiny.c\n- return value > most ? most : value;\n+ return value >= most ? most : value;\n"
                      "the larger of two equal numbers is either\n",
}


def check_samples(out):
    for name, code, expected in SAMPLES:
        made = [" ".join(after for _, after in mutant.change(code)).strip() for mutant in mutants.mutants_of(code)]
        out.case(f"mutants: {name}", [] if sorted(made) == sorted(expected) else [f"made {made}", f"expected {expected}"])


def plant(folder, **more):
    for name, text in {**TINY, **more}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def mutate(folder, *arguments):
    run = subprocess.run([sys.executable, TOOL, "--source", folder, "--work", folder / "build-mutants", "--equivalents", folder / "equivalent.txt",
                          "--plain", *arguments], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def check_tiny(out):
    """All mutants of a small tree: some are found, one of them because it hangs, one survives, one is known to be equivalent."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plant(folder)
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        status, said = mutate(folder, "-n", "100", "--patience", "1")
        survivors = re.findall(r"^    \+ (.*)", said, re.M)
        counts = re.search(r"^  tiny +(\d+) +(\d+) +\d+%   (\d+), (\d+), (\d+), (\d+)$", said, re.M)
        out.case("a mutant that no test sees survives", [] if survivors == ["return a || b;"] else said.splitlines())
        out.case("a hanging mutant is found", [] if re.search(r"found .* drop: tiny/tiny: \(timed out\)", said) else said.splitlines())
        out.case("an equivalent mutant is not counted", [] if counts and counts[3] == "1" and int(counts[1]) == int(counts[2]) + 1
                 else said.splitlines())
        out.case("fewer than 95 % fail the run", [] if status == 1 else said.splitlines())
        out.case("the tree is left as it was", [] if all(path.read_bytes() == data for path, data in before.items()) else ["changed"])
        out.case("a run of one line tries the mutants of that line", check_line(folder))
        out.case("a mutant whose tests do not end in time is not counted", check_undecided(folder))
        status, said = mutate(folder, "-n", "1", "--seed", "2", "--least", "0")
        out.case("fewer are enough where that is asked", [] if status == 0 else said.splitlines())


def check_line(folder):
    """A mutant of one line, and what --json says of it."""
    status, said = mutate(folder, "-n", "100", "--patience", "1", "--json", folder / "results.json", "src/tiny/tiny.c:21")
    data = json.loads((folder / "results.json").read_text())
    tried = [(mutant["line"], mutant["outcome"], mutant["change"]) for mutant in data["folders"]["tiny"]["mutants"]]
    good = status == 1 and tried == [(21, "survived", [["return a && b;", "return a || b;"]])] and (data["mutants"], data["found"]) == (1, 0)
    return [] if good else [str(tried), *said.splitlines()]


def check_undecided(folder):
    """One that hangs, with less time than a hang takes; and no time for the whole run."""
    status, said = mutate(folder, "-n", "100", "--patience", "30", "--mutant-seconds", "2", "src/tiny/tiny.c:15")
    problems = [] if "undecided src/tiny/tiny.c:15" in said and "undecided, and not counted:" in said else said.splitlines()
    status, said = mutate(folder, "-n", "100", "--patience", "30", "--seconds", "2", "src/tiny/tiny.c:15")
    return problems + ([] if status == 1 and "out of time for tiny" in said else said.splitlines())


def three_folders():
    """The small tree three times."""
    names = ("one", "two", "three")
    build = "folders = [\n" + "".join(f"  '{name}', # of three\n" for name in names) + "]\n" + "".join(
        f"program = executable('{name}_test', '{name}/tiny_test.c', '{name}/tiny.c', build_by_default: false)\n"
        f"test('{name}/tiny', program, protocol: 'tap')\n" for name in names)
    files = {f"src/{name}/{file}": TINY[f"src/tiny/{file}"] for name in names for file in ("tiny.c", "tiny_test.c")}
    return {"meson.build": TINY["meson.build"], "src/meson.build": build, "equivalent.txt": "", **files}


def check_workers(out):
    """Two workers report what one reports."""
    with tempfile.TemporaryDirectory() as name:
        folder, reports = pathlib.Path(name), []
        for path, text in three_folders().items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        for jobs in ("1", "2"):
            status, said = mutate(folder, "-n", "3", "--patience", "1", "--jobs", jobs)
            reports.append((status, said[said.find("\nseed 1"):], sorted(re.findall(r"^  (?:found|survived) +\S+ \S+", said, re.M))))
        good = reports[0] == reports[1] and len(reports[0][2]) == 9 and (folder / "build-mutants/tree-1").is_dir()
        out.case("two workers find what one finds", [] if good else [str(report) for report in reports])
        (folder / "src/two/tiny_test.c").write_text("#error\n")
        status, said = mutate(folder, "-n", "1", "--patience", "1", "--jobs", "2")
        out.case("a worker that cannot go on ends the run, and says why",
                 [] if status == 1 and "does not build without a mutant" in said else [str(status), *said.splitlines()])


def report_of(said):
    """The report without its title and what came before."""
    return said[said.find("\n", said.find("\nseed") + 1 if "\nseed" in said else said.find(" runs, seed")):]


def results(folder, name, *arguments):
    status, said = mutate(folder, "-n", "3", "--patience", "1", "--json", folder / name, *arguments)
    return status, said


def merge(folder, *names, **options):
    return mutate(folder, "--merge", *(folder / name for name in names), *(word for pair in options.items() for word in (f"--{pair[0]}", pair[1])))


def check_merge(out):
    """Pieces of a campaign, put together, say what one run says, and what is missing is named."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path, text in three_folders().items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        status, said = results(folder, "all.json")
        for number in ("1", "2"):
            results(folder, f"{number}.json", "--piece", f"{number}/2")
        pieces = [json.loads((folder / f"{number}.json").read_text()) for number in (1, 2)]
        shares = [sorted(data["folders"]) for data in pieces]
        out.case("pieces share the folders out", [] if shares == [["one", "three"], ["two"]] else [str(shares)])
        both = merge(folder, "1.json", "2.json", json=folder / "both.json")
        whole = {line for line in report_of(said).splitlines() if line}
        same = {line for line in report_of(both[1]).splitlines() if line} == whole and both[0] == status
        out.case("the report of two pieces is that of one run", [] if same else [*said.splitlines(), "merged:", *both[1].splitlines()])
        again = merge(folder, "both.json", "1.json", "all.json")
        out.case("what several runs have tried counts once", [] if {line for line in report_of(again[1]).splitlines() if line} == whole
                 else again[1].splitlines())
        alone = merge(folder, "2.json", least="0")
        out.case("a piece that is not there is named and fails the run", [] if alone[0] == 1 and "no results of piece 1/2 of seed 1" in alone[1]
                 else alone[1].splitlines())
        check_outcomes(out, folder, pieces)


def check_outcomes(out, folder, pieces):
    """What becomes of a mutant on which two runs do not agree; of files that one host could not run; of what is no result."""
    def changed(name, change):
        data = json.loads(json.dumps(pieces[1]))
        change(data)
        (folder / name).write_text(json.dumps(data))

    def first(outcome):
        def change(data):
            data["folders"]["two"]["mutants"][0]["outcome"] = outcome
        return change

    def elsewhere(data):
        data["cannot_run_here"] = {"no GPU": {"src/two/tiny.c": 7, "src/four/gpu.c": 9}}
    changed("undecided.json", first("undecided"))
    changed("found.json", first("found"))
    changed("elsewhere.json", elsewhere)
    changed("unknown.json", first("odd"))
    changed("other.json", lambda data: data.update(product="another"))
    (folder / "text.json").write_text("{}")
    said = merge(folder, "1.json", "undecided.json", "found.json")[1]
    out.case("found by one run is found", [] if " 0 undecided" in said and "undecided, and not counted" not in said else said.splitlines())
    said = merge(folder, "1.json", "undecided.json")[1]
    out.case("undecided in all runs is undecided", [] if " 1 undecided" in said and "undecided, and not counted:\n  src/two" in said
             else said.splitlines())
    said = merge(folder, "1.json", "elsewhere.json")[1]
    out.case("files that one of the hosts could run are not called untried", [] if "not tried, no GPU: 9 mutants of src/four/gpu.c\n" in said
             and " 9 not tried" in said else said.splitlines())
    for name, says in (("other.json", "is of other code"), ("unknown.json", "no results of this version"), ("text.json", "no results of this version"),
                       ("absent.json", "No such file")):
        status, said = merge(folder, "1.json", name)
        out.case(f"{name} is refused", [] if status == 1 and f"{name}: " in said and says in said else [str(status), *said.splitlines()])


def check_equivalents(out):
    run = subprocess.run([sys.executable, TOOL, "--check-equivalents"], capture_output=True, text=True, check=False)
    out.case("every equivalent mutant is one of the code", [] if run.returncode == 0 else run.stdout.splitlines() + run.stderr.splitlines())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plant(folder)
        status, said = mutate(folder, "--check-equivalents")
        out.case("entries survive a shift of lines", [] if status == 0 else said.splitlines())
        plant(folder, **{"src/tiny/tiny.c": TINY["src/tiny/tiny.c"].replace("value > most", "value < most")})
        status, said = mutate(folder, "--check-equivalents")
        out.case("an entry that fits no line is named", [] if status == 1 and "src/tiny/tiny.c: no such mutant" in said else said.splitlines())


def check_users(out):
    """System tests that folders are said to be tested by, and cases of them."""
    problems = []
    for name in sorted({name for names in mutate_tool.USERS.values() for name in names if name.startswith("system/")}):
        test, _, words = name.removeprefix("system/").partition(" ")
        path = lint.ROOT / f"tests/system/{test}_test.py"
        if not path.exists():
            problems.append(f"{name}: there is no {path.name}")
        elif words and words not in path.read_text():
            problems.append(f"{name}: no case has '{words}' in its name")
    out.case("tests of folders without unit tests are there", problems)


def main():
    out = lint.tap.Writer()
    check_users(out)
    check_samples(out)
    check_tiny(out)
    check_workers(out)
    check_merge(out)
    check_equivalents(out)
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
