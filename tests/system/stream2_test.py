#!/usr/bin/python3
"""stream2_test.py - the sink `stream2` and its clients: an independent decoder (stream2.py) reads what DECTRIS recorded, then what
`sluice run` sends; every pixel is that of the NeXus file of the same run. Clients pull, stall, die and return."""
# with sanitizers in check-long

import contextlib
import json
import signal
import socket
import subprocess
import time

from harness import (GUARDED, LONG, RECEIVER, ROOT, SLUICE, Program, acquire, case, check, closes, equal, experiment, main, read_summary,
                     run_fails, sink, skip, wait_for)

try:
    import h5py
    import numpy

    import stream2
except ImportError as missing:
    LACKS = f"{missing.name} is not installed"
else:
    LACKS = ""

PORT = 31001
ENDPOINT = f"tcp://{RECEIVER}:{PORT}"
RATE_HZ = 100
PACED = {"kind": "pattern", "modules": 2, "rows": 256, "columns": 512, "frames": 150, "frame_rate_Hz": RATE_HZ}
DATA = ROOT / "tests/data/stream2"


def needs(function):
    """Of a case: skipped without the sink or the decoder's packages."""
    def checked(folder):
        if LACKS:
            skip(LACKS)
        if "(not in this program" in subprocess.run([SLUICE, "list", "stream2"], capture_output=True, text=True, check=False).stdout:
            skip("this program has no stream2 sink")
        try:
            function(folder)
        finally:
            stream2.Puller.end_all()
    return checked


def sinks(folder, nexus=(), **options):
    """A file with the same images, and the stream."""
    both = {"dataset": "raw", "image": "assembled"}
    both |= {key: options[key] for key in both if key in options}
    return [{"nexus": {"path": str(folder / "run.nxs"), **both, **dict(nexus)}},
            {"stream2": {"address": RECEIVER, "port": PORT, "wait_s": 20, **both, **options}}]


def start(folder, detector=PACED, program=None, **options):
    """`sluice run` with that stream, in the background."""
    path = experiment(folder, detector=detector, link={"kind": "shm"}, sinks=sinks(folder, **options))
    return Program("run", path, "--summary", folder / "summary.json", folder=folder, program=program)


def stored(folder):
    """The images of the file, as a stream has them: unsigned, without negatives, with the type's maximum where nothing was
    measured. And how many were negative."""
    with h5py.File(folder / "run.nxs") as file:
        images = file["entry/data/data"][:]
        mask = file["entry/instrument/detector/pixel_mask"][:] & 0x7fffffff if "pixel_mask" in file["entry/instrument/detector"] else 0
    negative = 0
    if images.dtype == numpy.int16:
        negative = int(((images < 0) & (images != -32768) & (mask == 0)).sum())
        images = numpy.where(images == -32768, 65535, numpy.maximum(images, 0)).astype(numpy.uint16)
    if isinstance(mask, numpy.ndarray):
        images[:, mask.reshape(images.shape[1:]) != 0] = numpy.iinfo(images.dtype).max
    return images, negative


def compare(messages, images, wanted=None):
    """Each image of the stream is that of the file; `wanted` ids, or all of them."""
    ids = [m["image_id"] for m in messages]
    equal(sorted(ids), list(range(len(images))) if wanted is None else list(wanted), "image ids")
    for message in messages:
        equal(list(message["data"]), ["threshold_1"], "channels")
        check((message["data"]["threshold_1"] == images[message["image_id"]]).all(), f"pixels of image {message['image_id']} differ")


def ends_well(program, folder, frames):
    """The run is intact, whatever the clients did."""
    program.ends(0)
    summary = read_summary(folder)
    closes(summary, 2 * frames)
    equal(summary["ledger"]["total"]["outcomes"]["stored"], 2 * frames, "module-frames stored")
    with h5py.File(folder / "run.nxs") as file:
        equal(len(file["entry/data/data"]), frames, "images in the file")
    return sink(summary, "stream2")


# ---- what is sent ----

@case("the decoder reads what DECTRIS recorded, and refuses what their parser refuses")
@needs
def recorded(_):
    data = (DATA / "image.cbor").read_bytes()
    message = stream2.decode(data)
    equal([message[key] for key in ("series_id", "image_id", "real_time", "series_unique_id")],
          [1, 0, [999995, 50000000], "01GRXWT80JSDY2FNW8SGCCDZD9"], "fields")
    low, high, difference = (message["data"][name].astype(numpy.int64) for name in ("threshold_1", "threshold_2", "difference"))
    equal(low.shape, (514, 1030), "the image")
    check((difference == numpy.where(low >= high, low - high, 65535)).all(), "difference is not that of the two others")
    equal(stream2.decode((DATA / "end.cbor").read_bytes())["type"], "end", "type of the end message")
    bad = {"no magic": data[3:], "an endless map": data[:3] + b"\xbf" + data[4:],
           "another type": data.replace(b"eimage", b"eother", 1), "an integer of another sign": data.replace(b"image_id\0", b"image_id\x20", 1)}
    for what, text in bad.items():
        with contextlib.suppress(stream2.Refused):
            stream2.decode(text)
            check(False, f"the decoder takes {what}")


@case("every pixel of photons is that of the file: clipped at 0, masked at the maximum")
@needs
def photons(folder):
    detector = {"kind": "jungfrau", "modules": 2, "frames": 24, "dark_frames": 16, "pool": 7, "photon_energy_keV": 2, "rows": None, "columns": None}
    puller = stream2.Puller(ENDPOINT)
    done, summary = acquire(folder, detector=detector, link={"kind": "shm"}, stages=["correct"],
                            goniometer=[{"omega": {"start_deg": 10, "increment_deg": 0.5}}],
                            sinks=sinks(folder, dataset="image"), program=GUARDED)
    equal(done.process.returncode, 0, "exit status")
    puller.join()
    images, negative = stored(folder)
    compare(puller.images(), images)
    figures = sink(summary, "stream2")
    equal([figures["images_sent"], figures["images_dropped"], figures["pixels_clipped"]], [24, 0, negative], "figures")
    check(negative > 1000, "no noise below 0: nothing was clipped")
    check_start(folder, puller.messages[0], images)
    equal([m["type"] for m in puller.messages], ["start"] + 24 * ["image"] + ["end"], "the series")
    equal({(m["series_id"], m["series_unique_id"]) for m in puller.messages},
          {(puller.messages[0]["series_id"], puller.messages[0]["series_unique_id"])}, "series")
    for before, after in zip(puller.images(), puller.images()[1:]):
        check(after["start_time"][0] - before["start_time"][0] == before["real_time"][0], "images do not follow each other")
        equal(after["user_data"]["frame_number"], before["user_data"]["frame_number"] + 1, "frame number")
    equal(puller.images()[0]["start_time"], [0, 10**9], "start of the first image")


def check_start(folder, message, images):
    """The start message and the file tell the same of the detector."""
    with h5py.File(folder / "run.nxs") as file:
        detector, beam = file["entry/instrument/detector"], file["entry/instrument/beam"]
        values = {"beam_center_x": detector["beam_center_x"], "beam_center_y": detector["beam_center_y"], "pixel_size_x": detector["x_pixel_size"],
                  "sensor_thickness": detector["sensor_thickness"], "incident_energy": beam["incident_energy"],
                  "incident_wavelength": beam["incident_wavelength"], "saturation_value": detector["saturation_value"]}
        equal({key: message[key] for key in values}, {key: value[()] for key, value in values.items()}, "start message")
        check((message["pixel_mask"]["threshold_1"] == detector["pixel_mask"][:]).all(), "the masks differ")
        equal(message["detector_translation"], [0, 0, detector["distance"][()]], "translation")
    equal([message[key] for key in ("type", "channels", "image_dtype", "image_size_y", "image_size_x", "number_of_images", "sensor_material")],
          ["start", ["threshold_1"], "uint16", *images.shape[1:], len(images), "Si"], "start message")
    equal(message["threshold_energy"], {"threshold_1": message["incident_energy"] / 2}, "threshold")
    equal(message["goniometer"], {"omega": {"start": 10.0, "increment": 0.5}}, "goniometer")


@case("8, 16 and 32 bits, packed by bslz4, lz4 or not, assembled or not")
@needs
def types(folder):
    for bits, compression, image, workers in ((8, "bslz4", "modules", 2), (16, "lz4", "assembled", 0), (32, "bslz4", "assembled", 1),
                                              (32, "none", "modules", 2), (8, "none", "assembled", 2), (16, "bslz4", "modules", 3)):
        place = folder / f"{bits}-{compression}"
        place.mkdir()
        puller = stream2.Puller(ENDPOINT)
        detector = {"kind": "pattern", "modules": 2, "rows": 50, "columns": 65, "bits": bits, "frames": 10}
        ends_well(start(place, detector, compression=compression, image=image, workers=workers), place, 10)
        puller.join()
        compare(puller.images(), stored(place)[0])
        equal(puller.messages[0]["image_dtype"], f"uint{bits}", "image_dtype")


@case("several sockets share the images by blocks; start and end go to all")
@needs
def several(folder):
    pullers = [stream2.Puller(f"tcp://{RECEIVER}:{PORT + i}") for i in range(3)]
    figures = ends_well(start(folder, {**PACED, "frames": 31, "frame_rate_Hz": 0}, sockets=3, block=4, on_slow="wait", required=True), folder, 31)
    images, _ = stored(folder)
    for i, puller in enumerate(pullers):
        puller.join()
        equal([puller.of("start"), puller.of("end")], [1, 1], "start and end messages")
        compare(puller.images(), images, [n for n in range(31) if n // 4 % 3 == i])
    equal([figures["images_sent"], figures["images_dropped_31002"]], [31, 0], "figures")


# ---- clients that stall, die and return ----

@case("a client that stalls: images are dropped and counted, and the run is intact")
@needs
def stalls(folder):
    puller = stream2.Puller(ENDPOINT, receive_buffer=4096)
    program = start(folder, {**PACED, "frames": 120, "rows": 512}, queue=3, compression="none")
    wait_for("images", puller.images)
    puller.stall()
    wait_for("a drop", lambda: "too slow" in program.err())
    puller.resume()
    figures = ends_well(program, folder, 120)
    puller.join()
    ids = [m["image_id"] for m in puller.images()]
    compare(puller.images(), stored(folder)[0], ids)
    check(0 < figures["images_dropped"] < 120, f"{figures['images_dropped']} images were dropped")
    equal([len(ids), sorted(set(ids))], [120 - figures["images_dropped"], ids], "images that came")


@case("a client that stalls with on_slow: wait: the run waits, and nothing is dropped")
@needs
def waits(folder):
    puller = stream2.Puller(ENDPOINT, receive_buffer=4096)
    program = start(folder, {**PACED, "rows": 512, "frames": 100, "frame_rate_Hz": 0}, queue=3, compression="none", on_slow="wait", required=True)
    wait_for("images", puller.images)
    puller.stall()
    time.sleep(0.5)
    check(program.running(), "the run did not wait")
    puller.resume()
    figures = ends_well(program, folder, 100)
    puller.join()
    compare(puller.images(), stored(folder)[0])
    equal(figures["images_dropped"], 0, "images dropped")


@case("a client that stalls for good is given up: the run ends in time")
@needs
def given_up(folder):
    puller = stream2.Puller(ENDPOINT, receive_buffer=4096)
    program = start(folder, {**PACED, "rows": 512, "frame_rate_Hz": 0}, queue=3, compression="none", on_slow="wait", timeout_s=0.5)
    wait_for("images", puller.images)
    puller.stall()
    figures = ends_well(program, folder, PACED["frames"])
    check("has taken nothing for" in program.err(), "nothing was said")
    check(figures["images_dropped"] and 1 <= figures["images_untaken"] <= 3, f"{figures}")
    puller.stop()


@case("a client that dies and returns gets nothing until the next start message; the run is intact")
@needs
def dies(folder):
    first, second = stream2.Puller(ENDPOINT), None
    path = experiment(folder, detector={**PACED, "frames": 120}, link={"kind": "shm"}, sinks=sinks(folder, nexus={"path": "run.nxs"}))
    program = Program("session", path, "--root", folder / "data", "--runs", "2", folder=folder)
    wait_for("images", lambda: len(first.images()) > 10)
    first.stop()
    wait_for("the sink sees it", lambda: "has disconnected" in program.err())
    second = stream2.Puller(ENDPOINT)
    program.ends(0)
    second.join()
    results = [json.loads((folder / f"data/00000{n}/result.json").read_text()) for n in (1, 2)]
    for summary in results:
        closes(summary, 240)
        equal(summary["ledger"]["total"]["outcomes"]["stored"], 240, "module-frames stored")
    equal([m["type"] for m in second.messages], ["start"] + 120 * ["image"] + ["end"], "what the second client got")
    check(second.messages[0]["series_id"] > first.messages[0]["series_id"], "series_id does not grow")
    one, two = (sink(summary, "stream2") for summary in results)
    equal([one["images_sent"] + one["images_dropped"], one["pullers_lost"], two["images_dropped"]], [120, 1, 0], "figures")
    check(one["images_dropped"] > 0, "nothing was dropped")


@case("without any client a run is as it would be, and drops are counted")
@needs
def nobody(folder):
    figures = ends_well(start(folder, {**PACED, "frame_rate_Hz": 0}, wait_s=0), folder, PACED["frames"])
    equal([figures["images_sent"], figures["images_dropped"]], [0, PACED["frames"]], "figures")


@case("required: a run does not begin without its client, and a client that dies makes frames unwritten")
@needs
def required(folder):
    began = time.monotonic()
    program = start(folder, required=True, wait_s=0.3)
    program.ends(1)
    check(f"no puller has connected to {ENDPOINT} within 0.3 s" in program.err(), "the message")
    check(time.monotonic() - began < 10, "it took long")
    check(not (folder / "run.nxs").exists(), "a run that never began left a file")
    puller = stream2.Puller(ENDPOINT)
    program = start(folder, {**PACED, "frames": 60}, required=True)
    wait_for("images", lambda: len(puller.images()) > 10)
    puller.stop()
    program.ends(2)
    summary = read_summary(folder)
    closes(summary, 120)
    check(summary["ledger"]["total"]["outcomes"]["unwritten"] > 0, "no frame is unwritten")
    check(sink(summary, "stream2")["images_dropped"] > 0, "no image was dropped")


@case("a second client on a socket is told of; programs that are no client do no harm")
@needs
def strangers(folder):
    puller = stream2.Puller(ENDPOINT)
    program = start(folder, {**PACED, "frames": 100})
    wait_for("images", puller.images)
    for text in (b"", b"GET / HTTP/1.0\r\n\r\n" * 10):
        with socket.create_connection((RECEIVER, PORT)) as stranger:
            stranger.sendall(text)
    second = stream2.Puller(ENDPOINT)
    wait_for("a warning", lambda: f"2 pullers are connected to {ENDPOINT}" in program.err())
    wait_for("its share", second.images)
    second.stop()
    figures = ends_well(program, folder, 100)
    puller.join()
    equal([figures["pullers_extra"], figures["pullers_lost"], figures["images_dropped"]], [1, 0, 0], "figures")
    check(puller.of("start") == 1 and second.of("start") == 0, "start messages")


@case("SIGINT while a client stalls ends the run")
@needs
def interrupted(folder):
    puller = stream2.Puller(ENDPOINT, receive_buffer=4096)
    program = start(folder, {**LONG, "frame_rate_Hz": 0}, queue=3, compression="none", on_slow="wait", timeout_s=0.5)
    wait_for("images", puller.images)
    puller.stall()
    time.sleep(0.2)
    program.send(signal.SIGINT)
    program.ends(0, 30)
    puller.stop()


# ---- options ----

@case("what cannot be sent is refused, with what to do")
@needs
def refused(folder):
    jungfrau = {"kind": "jungfrau", "modules": 1, "frames": 2, "dark_frames": 2, "pool": 1, "rows": None, "columns": None}
    for says, detector, stages, options in (
            ("'image' is float32, and Eiger clients read uint8, uint16, uint32", jungfrau, [{"correct": {"output": "kev_f32"}}], {"dataset": "image"}),
            ("no stage makes 'picture'; set dataset to what there is: raw", PACED, ["copy"], {"dataset": "picture"}),
            ("port 65535 and 2 sockets go beyond port 65535", PACED, ["copy"], {"port": 65535, "sockets": 2}),
            ("cannot bind tcp://192.0.2.1:31001: ", PACED, ["copy"], {"address": "192.0.2.1"}),
            ("sinks[0].stream2.sockets: 17 is out of range; takes 1..16 sockets", PACED, ["copy"], {"sockets": 17}),
            ("on_slow: 'hurry' is not one of its values; takes drop or wait", PACED, ["copy"], {"on_slow": "hurry"})):
        stream = {"address": RECEIVER, "dataset": "raw", "wait_s": 0, **options}
        path = experiment(folder, detector=detector, stages=stages, link={"kind": "shm"}, sinks=[{"stream2": stream}])
        run_fails("run", path, folder=folder, says=[says])


@case("a port that is taken is named")
@needs
def taken(folder):
    with socket.create_server((RECEIVER, PORT)):
        path = experiment(folder, link={"kind": "shm"}, sinks=sinks(folder))
        run_fails("run", path, folder=folder, says=[f"cannot bind {ENDPOINT}: Address already in use"])
    check(not (folder / "run.nxs").exists(), "a run that never began left a file")


if __name__ == "__main__":
    main()
