"""nvmeof.py - the raw container on a disk that is reached over NVMe/TCP: the guest's kernel is target and initiator, with an ext4
file system on it. To the container it is a path."""

import json

from peers import check, equal

PORT, NQN = 4420, "nqn.2026-01.org.sluice:test"
MIB, CHUNKS = 128, 400
CONFIG = "/sys/kernel/config/nvmet"

# A file in memory as the namespace of a subsystem that listens on loopback. A module that is there already is no error.
TARGET = f"""
while read -r module; do insmod /modules/$module 2>/dev/null; done </modules/storage
set -e
mount -t configfs none /sys/kernel/config 2>/dev/null || true
dd if=/dev/zero of=/disk bs=1M count={MIB} 2>/dev/null
mkdir {CONFIG}/subsystems/{NQN}
cd {CONFIG}/subsystems/{NQN}
echo 1 >attr_allow_any_host
mkdir namespaces/1
echo -n /disk >namespaces/1/device_path
echo 1 >namespaces/1/buffered_io
echo 1 >namespaces/1/enable
mkdir {CONFIG}/ports/1
cd {CONFIG}/ports/1
echo tcp >addr_trtype
echo ipv4 >addr_adrfam
echo 127.0.0.1 >addr_traddr
echo {PORT} >addr_trsvcid
ln -s {CONFIG}/subsystems/{NQN} subsystems/{NQN}
"""
CONNECT = f"""
set -e
echo "transport=tcp,traddr=127.0.0.1,trsvcid={PORT},nqn={NQN}" >/dev/nvme-fabrics
for i in $(seq 300); do [ -b /dev/nvme0n1 ] && break; sleep 0.1; done
[ "$(cat /sys/class/nvme/nvme0/transport)" = tcp ]
mke2fs -q -t ext4 /dev/nvme0n1
mkdir -p /mnt
mount -t ext4 /dev/nvme0n1 /mnt
"""
# Everything goes in the order in which it came; what is not there is no error.
REMOVE = f"""
umount /mnt
echo 1 >/sys/class/nvme/nvme0/delete_controller
rm -f {CONFIG}/ports/1/subsystems/{NQN}
rmdir {CONFIG}/ports/1
echo 0 >{CONFIG}/subsystems/{NQN}/namespaces/1/enable
rmdir {CONFIG}/subsystems/{NQN}/namespaces/1 {CONFIG}/subsystems/{NQN}
rm -f /disk
true
"""


def programs(build, find):
    """What the guest needs for it."""
    return {"raw_file": build / "tests/raw/raw_file", "mke2fs": find("mke2fs")}


def sectors_written(guest):
    return int(guest.must("cat /sys/block/nvme0n1/stat").text().split()[6])


def write_and_read(guest):
    before = sectors_written(guest)
    done = guest.must(f"raw_file write /mnt/run.raw chunks={CHUNKS} bytes=100000 file_bytes=4194304", timeout_s=120)
    wrote = json.loads(done.text().splitlines()[-1])
    equal((wrote["chunks"], wrote["durable"]), (CHUNKS, CHUNKS), "chunks written, and durable")
    equal((wrote["direct"], wrote["uring"]), (True, True), "past the page cache, through io_uring")
    check(wrote["files"] > 3, "several data files")
    check((sectors_written(guest) - before) * 512 >= wrote["bytes"], "all of it went to the disk")
    guest.must("umount /mnt && echo 3 >/proc/sys/vm/drop_caches && mount -t ext4 /dev/nvme0n1 /mnt")
    read = json.loads(guest.must("raw_file read /mnt/run.raw", timeout_s=120).text())
    equal((read["state"], read["chunks"], read["bytes"], read["missing"]), ("complete", CHUNKS, wrote["bytes"], 0),
          "what is read back")


def over_tcp(guest):
    try:
        guest.must(TARGET, timeout_s=120)
        guest.must(CONNECT, timeout_s=120)
        write_and_read(guest)
    finally:
        guest.run(REMOVE, timeout_s=60)


def cases(ends):
    yield "raw container: written to and read from a disk over NVMe/TCP", lambda: over_tcp(ends.lab.guest)
