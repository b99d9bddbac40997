#!/usr/bin/python3
"""plugin_test.py - plug-ins as users meet them: receiver and front end load the same ones, from the experiment file, --plugins or
SLUICE_PLUGINS; one that is broken, or that other users could change, stops the program with a message that says where it was named; and
the library shows what src/libsluice.map lists, and nothing else."""
# with sanitizers in check-long

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from harness import ROOT, SLOW, SLUICE, acquire, build_plugin as build, case, check, closes, equal, experiment, main, run, run_fails, sink, skip

sys.path.insert(0, str(ROOT / "tests/docs"))
import extract  # noqa: E402  (found through the line above)

GOOD = (ROOT / "tests/lib/plugin_good.c").read_text()
SPOT = "\n".join(extract.blocks((ROOT / "docs/tutorials/write-a-detector.md").read_text(), "c"))
SPOT_DETECTOR = {"kind": "spot", "modules": 2, "frames": 50, "rows": None, "columns": None}


def changed(*pairs):
    """The good plug-in with texts replaced."""
    code = GOOD
    for old, new in pairs:
        check(old in code, f"plugin_good.c has no '{old}'")
        code = code.replace(old, new)
    return code


def refused(folder, path, *says):
    """`run` with the plug-in in its file ends with 1, and the message has file and line."""
    file = experiment(folder, plugins=[str(path)], stages=["copy"])
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if str(path) in text)
    return run_fails("run", file, folder=folder, says=(f"experiment.yaml:{line}: plugins[0]: plug-in {path}: ", *says))


@case("receiver and front end load the detector of a plug-in that the experiment names")
def named_in_file(folder):
    plugin = build(folder / "spot.so", SPOT)
    done, summary = acquire(folder, plugins=[str(plugin)], detector=SPOT_DETECTOR)
    equal(done.process.returncode, 0, "exit status")
    closes(summary, 100)
    equal(sink(summary, "verify")["frames_compared"], 50, "frames compared")


@case("--plugins loads all plug-ins of a folder, in the receiver, in those of transfers, and in the front end")
def named_by_option(folder):
    build(folder / "plugins/spot.so", SPOT)
    build(folder / "plugins/good.so", GOOD)
    (folder / "plugins/readme.txt").write_text("not an object\n")
    transfers = {"one": {"first_module": 0, "modules": 1}, "two": {"first_module": 1, "modules": 1}}
    for sections in ({}, {"transfers": transfers, "sinks": ["verify"], "link": {"kind": "shm"}}):
        done, _ = acquire(folder, arguments=("--plugins", folder / "plugins"), detector=SPOT_DETECTOR, stages=["copy", {"fixture": {"depth": 5}}],
                          **sections)
        equal(done.process.returncode, 0, "exit status")
    for command in (("truth", folder / "experiment.yaml", "--transfer", "one", "--output", "truth.h5"),
                    ("doctor", folder / "experiment.yaml", "--transfer", "one"), ("list", "spot")):
        program = run(*command, "--plugins=plugins", folder=folder)
        check("no detector is called" not in program.err() and "nothing is called" not in program.err(), program.err())
    run_fails("run", folder / "experiment.yaml", folder=folder, says=["no detector is called 'spot'"])
    run_fails("list", "--plugins", "nowhere", folder=folder, says=["cannot read the folder of plug-ins nowhere"])
    run_fails("list", "--plugins", folder=folder, says=["--plugins takes a folder"])


@case("SLUICE_PLUGINS names folders, and sluice list says where an add-on came from")
def named_by_environment(folder):
    plugin = build(folder / "plugins/good.so", GOOD)
    (folder / "other").mkdir()
    program = run("list", "fixture", folder=folder, wrapper=("env", f"SLUICE_PLUGINS={folder}/other:{folder}/plugins"))
    equal(program.process.returncode, 0, "exit status")
    equal(program.out().count(f"(plug-in fixture 1.2: {plugin.resolve()})"), 2, "origins of stage and sink")


@case("a plug-in of another ABI or with other sizes is refused")
def other_abi(folder):
    refused(folder, build(folder / "abi.so", changed(("SL_PLUGIN_HEAD,", "SL_PLUGIN_HEAD, .abi = 7,"))), "built for plug-in ABI 7",
            "build it again")
    refused(folder, build(folder / "size.so", changed(("SL_PLUGIN_HEAD,", "SL_PLUGIN_HEAD, .frame_bytes = 64,"))),
            "its struct sl_frame has 64 bytes")


@case("a plug-in with a descriptor that lacks a call, or a name that is taken, is refused")
def incomplete(folder):
    refused(folder, build(folder / "call.so", changed(("\t.put = put,\n", ""))), "sink 'fixture' has no open(), put() or close()")
    refused(folder, build(folder / "name.so", changed(('.name = "fixture",\n\t.doc = "a stage', '.name = "copy",\n\t.doc = "a stage'))),
            "there is a built-in stage 'copy' already")
    build(folder / "plugins/a.so", GOOD)
    build(folder / "plugins/b.so", GOOD)
    run_fails("list", "--plugins", "plugins", folder=folder, says=["b.so: there is a stage 'fixture' already, of the plug-in ", "a.so"])


@case("what is no shared object, has no sl_plugin, or needs functions that plug-ins have not, is refused")
def no_plugin(folder):
    text = folder / "text.so"
    text.write_text("#!/bin/sh\n")
    refused(folder, text, "it cannot be loaded: ", "pkg-config")
    refused(folder, build(folder / "none.so", "int nothing;\n"), "it has no symbol sl_plugin")
    hidden = changed(("SL_PUBLIC const", "const"), ("#include <sluice/plugin.h>", "#define SL_PUBLIC\n#include <sluice/plugin.h>"))
    refused(folder, build(folder / "hidden.so", hidden), "it has no symbol sl_plugin")
    private = changed(("\treturn 0;\n}\n\nstatic void close_stage", "\treturn sl_crc32c_of_nothing();\n}\n\nstatic void close_stage"),
                      ("struct nothing {", "int sl_crc32c_of_nothing(void);\nstruct nothing {"))
    refused(folder, build(folder / "private.so", private), "undefined symbol: sl_crc32c_of_nothing")
    refused(folder, folder / "missing.so", "No such file or directory")
    run_fails("run", experiment(folder, plugins="spot.so"), folder=folder, says=["plugins: takes a list of paths"])


@case("a plug-in that other users can write, or whose folder they can write, is refused")
def writable(folder):
    plugin = build(folder / "plugins/good.so", GOOD)
    plugin.chmod(0o666)
    refused(folder, plugin, "other users can write it (mode 0666): chmod go-w ")
    plugin.chmod(0o644)
    plugin.parent.chmod(0o777)
    refused(folder, plugin, f"other users can write the folder {plugin.parent.resolve()} (mode 0777)")
    plugin.parent.chmod(0o1777)
    refused(folder, plugin, "lies in a folder that other users can write")
    plugin.parent.chmod(0o755)
    equal(run("run", experiment(folder, plugins=[str(plugin)]), folder=folder).process.returncode, 0, "exit status once it is ours alone")


@case("a program with capabilities finds its library, and takes plug-ins of root alone")
def capabilities(folder):
    nobody = 65534
    if os.geteuid() or not shutil.which("setcap") or not shutil.which("setpriv"):
        skip("needs root, setcap and setpriv")
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        place = pathlib.Path(place)
        place.chmod(0o755)
        program = place / "sluice"
        shutil.copy2(SLUICE, program)
        if subprocess.run(["setcap", "cap_net_raw+ep", program], capture_output=True, check=False).returncode:
            skip("files have no capabilities here")
        user = ("setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups", "--")
        if subprocess.run([*user, "test", "-r", pathlib.Path(SLUICE).parent / "libsluice.so.0"], check=False).returncode:
            skip("the build folder is closed to other users")
        plugin = build(place / "plugins/good.so", GOOD)
        command = ("list", "fixture", "--plugins", plugin.parent)
        equal(run(*command, folder=folder, program=program, wrapper=user).process.returncode, 0, "exit status with root's plug-in")
        os.chown(plugin, nobody, nobody)
        run_fails(*command, folder=folder, program=program, wrapper=user, says=["belong to root: this program has capabilities"])
        shutil.copy2(SLUICE, place / "plain")
        equal(run(*command, folder=folder, program=place / "plain", wrapper=user).process.returncode, 0, "exit status without capabilities")


@case("the library shows only versioned symbols, and calls its own functions directly")
def symbols(folder):
    library = pathlib.Path(SLUICE).parent / "libsluice.so.0"
    if SLOW:
        skip("a sanitizer adds symbols of its own")
    for tool in ("nm", "objdump"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in listed.splitlines() if " A " not in line]
    equal([name for name in names if not re.fullmatch(r"sl_\w+@@SLUICE_(1|PRIVATE)", name)], [], "symbols without a version")
    check("sl_plugin_load@@SLUICE_1" in names, "sl_plugin_load is not public")
    code = subprocess.run(["objdump", "-d", library], capture_output=True, text=True, check=True).stdout
    equal(re.findall(r"call.*<sl_\w+@plt>", code)[:3], [], "calls of its own functions through the PLT")


if __name__ == "__main__":
    main()
