#!/usr/bin/python3
"""packet_test.py - the link packet between two hosts (network namespaces with a veth pair) and on loopback: what it
stores is what udp stores, with all services, packet sizes and both versions of IP, with packets lost, beside another
owner of the port, and without the privilege."""

import os
import socket
import subprocess

from cable import Pair
from harness import (GUARDED, RECEIVER, ROCE_PORT, SOURCE, acquire, case, check, closes, equal, experiment, fewer, intact,
                     main, run_fails, skip)
from recording import compare

FRAMES = fewer(200, 60)
DETECTOR = {"frames": FRAMES, "dark_frames": 0, "rows": 128, "columns": 128}
LINK = {"kind": "packet", "listen": RECEIVER, "source": SOURCE}


def need_packet_sockets():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except OSError as error:
        skip(f"packet sockets need CAP_NET_RAW ({error})")


def same(name, offload=True, **variants):
    @case(f"between two hosts, {name}: the file is that of udp")
    def _(folder):
        need_packet_sockets()
        with Pair("packet", DETECTOR, offload) as pair:
            udp = pair.record(folder, "udp", link={"kind": "udp"})
            for number, variant in variants.items():
                compare(udp, pair.record(folder, number, **variant))


same("unreliable and reliable, 1024 and 4096 bytes",
     a={"link": {"pmtu": 4096}}, b={"link": {"pmtu": 1024}},
     c={"link": {"pmtu": 4096, "service": "rc"}}, d={"link": {"pmtu": 1024, "service": "rc"}})
same("IPv6", a={"version": "v6"}, b={"version": "v6", "link": {"service": "rc", "pmtu": 1024}})
same("one message per module and frame, sent or written", a={"link": {"message": "module"}},
     b={"link": {"operation": "send"}}, c={"link": {"operation": "send", "service": "rc"}})
same("every packet by itself on the wire", offload=False, a={}, b={"link": {"service": "rc"}},
     c={"link": {"segment": False}}, d={"version": "v6"})
same("in blocks", a={"link": {"delivery": "blocks"}}, b={"link": {"delivery": "blocks", "service": "rc"}})
same("two threads, each with a ring of its own", a={"link": {"pollers": 2}}, b={"link": {"pollers": 2, "service": "rc"}},
     c={"link": {"pollers": 2, "delivery": "blocks"}}, d={"link": {"pollers": 2}, "version": "v6"})
same("the front end over udp", a={"source_kind": "udp"}, b={"source_kind": "udp", "link": {"service": "rc"}})
same("packets lost, doubled and spoilt on a reliable connection",
     a={"link": {"service": "rc"}, "frontend": {"drop": 0.01, "duplicate": 0.01, "corrupt": 0.01}})


@case("between two hosts, the guarded program")
def _(folder):
    if not GUARDED:
        skip("this build has no guarded program")
    need_packet_sockets()
    with Pair("packet", DETECTOR) as pair:
        for service in ("uc", "rc"):
            done, summary = pair.acquire(folder, service, program=GUARDED, link={"service": service})
            intact(done, summary, FRAMES)


@case("packets lost on an unreliable connection: each cost its frame, the ledger closes")
def _(folder):
    need_packet_sockets()
    with Pair("packet", DETECTOR) as pair:
        done, summary = pair.acquire(folder, "lossy", frontend={"drop": 0.01, "duplicate": 0.01, "corrupt": 0.01})
    equal(done.process.returncode, 2, "exit status")
    closes(summary, 2 * FRAMES)
    total = summary["ledger"]["total"]["outcomes"]
    check(total["incomplete"] > 0 and total["stored"] > 0, f"outcomes {total}")
    check(summary["link"]["turned_away"]["icrc"] > 0, "no checksum was wrong")
    check(summary["link"]["turned_away"]["duplicate"] > 0, "nothing came twice")


@case("on loopback, while another program owns port 4791")
def _(folder):
    need_packet_sockets()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as owner:
        owner.bind((RECEIVER, ROCE_PORT))
        done, summary = acquire(folder, detector=DETECTOR, link=LINK)
    intact(done, summary, FRAMES)
    check("enforced" in summary["link"]["guard"] and "credited" in summary["link"]["guard"], "guards")


@case("without CAP_NET_RAW it says what to do")
def _(folder):
    wrapper = ("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", "--") if os.geteuid() == 0 else ()
    if wrapper and subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode:
        skip("setpriv cannot take the capability away here")
    run_fails("run", experiment(folder, link=LINK), folder=folder, wrapper=wrapper,
              says=("CAP_NET_RAW", "sudo setcap cap_net_raw+ep /"))


main()
