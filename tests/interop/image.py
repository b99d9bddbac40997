"""image.py - a bootable guest with Soft-RoCE, made of Debian packages.

    kernel package ──downloaded, taken apart, never installed──▶ kernel (ELF), modules
    busybox, rdma-core, perftest, our own programs, what ldd says ──▶ one cpio archive

The kernel is unpacked here rather than in the guest, and the archive is not compressed: under emulation that halves
the time to boot. QEMU boots an ELF kernel through its PVH entry.
"""

import os
import pathlib
import shutil
import stat
import subprocess
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
# The package that depends on the newest kernel of a series. Those for clouds lack rdma_rxe.
KERNELS = {"6.1": "linux-image-amd64", "6.12": "linux-image-6.12-amd64"}
MODULES = ("virtio_pci", "virtio_net", "crc32_generic", "rdma_rxe", "ib_uverbs")
# In the guest's /modules, too, but not loaded: the benchmark wants them.
SPARE_MODULES = ("veth", "crc32-pclmul")
# Likewise, in the order of /modules/storage: a disk over NVMe/TCP, target and initiator, with a file system (nvmeof.py).
STORAGE_MODULES = ("crc32c_generic", "nvmet-tcp", "nvme-tcp", "ext4")
PROGRAMS = ("rdma", "ibv_devinfo", "ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ib_write_bw", "ib_send_bw",
            "ib_read_bw")
# Where the modules above and what they need may lie, to unpack little of the package.
MODULE_FOLDERS = ("drivers/infiniband", "drivers/net/", "drivers/virtio", "net/", "crypto", "lib", "arch",
                  "block", "drivers/nvme", "fs/configfs", "fs/ext4", "fs/jbd2", "fs/mbcache")
PACKERS = ((b"\x28\xb5\x2f\xfd", ("zstd", "-qdc")), (b"\xfd7zXZ\0", ("xz", "-qdc", "--single-stream")),
           (b"\x1f\x8b\x08", ("gzip", "-qdc")))


class Unavailable(Exception):
    """What is needed is not here; the text says what."""


def run(*command, **options):
    """The output of a command that must succeed."""
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options).stdout
    except FileNotFoundError:
        raise Unavailable(f"no program {command[0]}") from None
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"'{' '.join(map(str, command))}': {error.stderr.decode(errors='replace').strip()}") from None


def unpack(data):
    """What gzip, xz or zstd packed; anything else as it is."""
    for magic, command in PACKERS:
        if data.startswith(magic):
            return run(*command, input=data)
    return data


# ---- the kernel ----

class Kernel:
    """A kernel in the cache: `image`, an ELF file, and `modules`, paths in the order of loading; `spare`: more modules,
    for who wants them; `storage`: those for a disk over the network."""

    def __init__(self, folder):
        self.release = folder.name
        self.image = folder / "vmlinux"
        self.modules = [folder / name for name in (folder / "order").read_text().split()]
        self.spare = [folder / name for name in (folder / "spare").read_text().split()]
        self.storage = [folder / name for name in (folder / "storage").read_text().split()]


def newest_package(meta):
    """The kernel package that a metapackage stands for now."""
    for line in run("apt-cache", "depends", meta, text=True).splitlines():
        kind, _, name = line.strip().partition(": ")
        if kind == "Depends" and name.startswith("linux-image-"):
            return name
    raise Unavailable(f"apt knows no kernel for {meta}")


def kernel(series, cache):
    """The newest kernel of a series, from the cache or from its package."""
    package = newest_package(KERNELS[series])
    folder = cache / package.removeprefix("linux-image-")
    if not (folder / "storage").exists():
        shutil.rmtree(folder, ignore_errors=True)  # of an older kind
        partial = cache / f"{folder.name}.{os.getpid()}"
        partial.mkdir(parents=True)
        try:
            unpack_kernel(package, folder.name, partial)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return Kernel(folder)


def unpack_kernel(package, release, folder):
    run("apt-get", "download", package, cwd=folder)
    tree = folder / "tree"
    for deb in folder.glob("*.deb"):
        extract(deb, release, tree)
        deb.unlink()
    (folder / "vmlinux").write_bytes(elf_inside((tree / f"boot/vmlinuz-{release}").read_bytes()))
    run("depmod", "-b", tree, release)
    order = load_order(tree, release, MODULES)
    spare = [path for path in load_order(tree, release, SPARE_MODULES) if path not in order]
    storage = [path for path in load_order(tree, release, STORAGE_MODULES) if path not in order]
    for list_, paths in (("order", order), ("spare", spare), ("storage", storage)):
        (folder / list_).write_text("".join(unpack_module(path, folder) + "\n" for path in paths))
    shutil.rmtree(tree)


def unpack_module(path, folder):
    """Its name there."""
    name = path.name.removesuffix(".xz").removesuffix(".zst")
    (folder / name).write_bytes(unpack(path.read_bytes()))
    run("strip", "--strip-debug", folder / name)
    return name


def extract(deb, release, tree):
    """Of a package's files, those that can matter."""
    modules = f"./lib/modules/{release}/"
    wanted = (f"./boot/vmlinuz-{release}", f"{modules}modules.", *(f"{modules}kernel/{f}" for f in MODULE_FOLDERS))
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as source:
        with tarfile.open(fileobj=source.stdout, mode="r|") as archive:
            for member in archive:
                # usr/lib in newer packages
                name = member.name.replace("./usr/lib/", "./lib/")
                if member.isfile() and name.startswith(wanted):
                    member.name = name
                    archive.extract(member, tree)
    if source.returncode:
        raise Unavailable(f"dpkg-deb cannot unpack {deb.name}")


def elf_inside(image):
    """The kernel proper, which a boot image carries compressed. Magic numbers occur by chance, too."""
    for magic, command in PACKERS:
        at = image.find(magic)
        while at >= 0:
            # The packed kernel is followed by other bytes: complaints about those do not matter.
            out = subprocess.run(command, input=image[at:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 check=False).stdout
            if out.startswith(b"\x7fELF"):
                return out
            at = image.find(magic, at + 1)
    raise Unavailable("no kernel found in the boot image")


def load_order(tree, release, modules):
    order = []
    for module in modules:
        for line in run("modprobe", "-d", tree, "-S", release, "--show-depends", module, text=True).splitlines():
            action, path = line.split()[:2]
            if action == "insmod" and pathlib.Path(path) not in order:
                order.append(pathlib.Path(path))
    return order


# ---- the root file system ----

class Archive:
    """A cpio archive (newc), which the kernel unpacks into its first root file system."""

    def __init__(self):
        self.blob = bytearray()
        self.names = set()

    def add(self, name, mode, data=b""):
        """One entry, and the folders above it."""
        name = name.strip("/")
        if name in self.names:
            return
        parent = os.path.dirname(name)
        if parent:
            self.add(parent, stat.S_IFDIR | 0o755)
        self.names.add(name)
        self.entry(name, mode, data)

    def entry(self, name, mode, data):
        path = name.encode() + b"\0"
        fields = (len(self.names), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        self.blob += b"070701" + b"".join(b"%08X" % field for field in fields) + path
        self.blob += bytes(-len(self.blob) % 4)
        self.blob += data
        self.blob += bytes(-len(self.blob) % 4)

    def folder(self, name):
        self.add(name, stat.S_IFDIR | 0o755)

    def link(self, name, target):
        self.add(name, stat.S_IFLNK | 0o777, target.encode())

    def file(self, name, data, mode=0o644):
        self.add(name, stat.S_IFREG | mode, data)

    def program(self, name, path):
        """A program or library under this name, and the libraries it needs under theirs."""
        path = pathlib.Path(path)
        self.file(name, path.read_bytes(), 0o755)
        for library in libraries(path):
            self.file(library, pathlib.Path(library).read_bytes(), 0o755)

    def write(self, path):
        self.entry("TRAILER!!!", 0, b"")
        path.write_bytes(self.blob)


def libraries(path):
    """What a program is linked with, by full path; nothing for a static one."""
    out = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return [word for line in out.splitlines() for word in line.split() if word.startswith("/")]


def find(program):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Unavailable(f"no program {program}")
    return path


def rdma_provider(archive):
    """libibverbs finds a device's library through a file in /etc and a folder beside itself."""
    found = sorted(pathlib.Path("/usr/lib").glob("*/libibverbs/librxe-rdmav*.so"))
    if not found:
        raise Unavailable("no librxe (package ibverbs-providers)")
    archive.file("/etc/libibverbs.d/rxe.driver", pathlib.Path("/etc/libibverbs.d/rxe.driver").read_bytes())
    archive.program(str(found[-1]), found[-1])


def initrd(path, kernel_, programs):
    """Write the archive a guest boots into; `programs`: {name in /bin: path here}."""
    archive = Archive()
    for folder in ("dev", "proc", "sys", "tmp"):
        archive.folder(folder)
    busybox = find("busybox")
    archive.program("/bin/busybox", busybox)
    for name in PROGRAMS:
        archive.program(f"/bin/{name}", find(name))
    for name, source in programs.items():
        archive.program(f"/bin/{name}", source)
    for applet in run(busybox, "--list", text=True).split():
        archive.link(f"/bin/{applet}", "busybox")
    rdma_provider(archive)
    for module in (*kernel_.modules, *kernel_.spare, *kernel_.storage):
        archive.file(f"/modules/{module.name}", module.read_bytes())
    for name, modules in (("order", kernel_.modules), ("storage", kernel_.storage)):
        archive.file(f"/modules/{name}", "".join(m.name + "\n" for m in modules).encode())
    archive.file("/etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    archive.file("/etc/group", b"root:x:0:\n")
    archive.file("/init", (HERE / "guest-init").read_bytes(), 0o755)
    archive.write(path)
