#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An ARM machine of 64 bits to build for and to test on where there is none: Debian's cross compiler, Debian's
libraries of that processor in a folder of their own, and qemu-user, which runs their programs by the kernel that is there.

The folder is filled with what apt-get downloads for the other processor, by package lists of its own: nothing of the
machine's own packages changes, and it takes no root. MPI jobs are started by the launcher of the machine itself, of the
same release, and only the ranks are emulated.

usage: arm64.py           makes build/arm64 ready, if it is not
"""
import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "build", "arm64")
SYSTEM = os.path.join(FOLDER, "root")  # as / would be on that machine
CROSS_FILE = os.path.join(FOLDER, "cross.ini")
TRIPLET = "aarch64-linux-gnu"
EMULATOR = ["qemu-aarch64-static", "-L", SYSTEM]
PACKAGES = ["libc6-dev", "libhwloc-dev", "libjemalloc-dev", "libtomlplusplus-dev", "nlohmann-json3-dev",
            "libcli11-dev", "valgrind", "catch2", "libmpich-dev", "libopenmpi-dev"]


class NoArm64(Exception):
    """It cannot be made ready here; the text says why."""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoArm64(f"{' '.join(command[:1] + command[-3:])}: {(done.stderr or done.stdout).strip()}")


def apt_get(*words):
    """apt-get for the other processor, with state of its own, in which nothing is installed: so that it brings all that
    the packages depend on."""
    state = os.path.join(FOLDER, "apt")
    for folder in ("lists/partial", "archives/partial"):
        os.makedirs(os.path.join(state, folder), exist_ok=True)
    with open(os.path.join(state, "status"), "w", encoding="utf-8"):
        pass
    options = {"APT::Architecture": "arm64", "APT::Architectures::": "arm64", "APT::Install-Recommends": "false",
               "APT::Sandbox::User": "", "Dir::State": state, "Dir::State::status": f"{state}/status", "Dir::Cache": state}
    run("apt-get", *(f"-o{name}={value}" for name, value in options.items()), "-q", "-y", *words)
    return state


def fetch_system():
    """The libraries and headers. The last thing made is the mark that all of it is there."""
    mark = os.path.join(SYSTEM, ".complete")
    if os.path.exists(mark):
        return
    print("fetching Debian's libraries for arm64 to build/arm64/root", flush=True)
    apt_get("update")
    state = apt_get("--download-only", "install", *PACKAGES)
    for package in sorted(glob.glob(f"{state}/archives/*.deb")):
        run("dpkg", "-x", package, SYSTEM)
        os.remove(package)
    with open(mark, "w", encoding="utf-8"):
        pass


def write_cross_file():
    """What Meson wants to know of the other machine."""
    libraries = f"{SYSTEM}/usr/lib/{TRIPLET}"
    compiler_words = f"'--sysroot={SYSTEM}', '-B{libraries}'"
    tools = "\n".join(f"{tool} = '{TRIPLET}-{tool}'" for tool in ("ar", "ld", "nm", "objcopy", "strip"))
    emulator = ", ".join(f"'{word}'" for word in EMULATOR)
    text = f"""[binaries]
c = ['{TRIPLET}-gcc', {compiler_words}]
cpp = ['{TRIPLET}-g++', {compiler_words}]
{tools}
pkgconfig = 'pkg-config'
exe_wrapper = [{emulator}]

[properties]
sys_root = '{SYSTEM}'
pkg_config_libdir = ['{libraries}/pkgconfig', '{SYSTEM}/usr/share/pkgconfig']
needs_exe_wrapper = true

[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""
    if os.path.exists(CROSS_FILE):
        with open(CROSS_FILE, encoding="utf-8") as file:
            if file.read() == text:
                return
    with open(CROSS_FILE, "w", encoding="utf-8") as file:
        file.write(text)


def prepare():
    """Raises NoArm64."""
    os.makedirs(FOLDER, exist_ok=True)
    fetch_system()
    write_cross_file()


def translated(words, native):
    """Words of a compiler that name folders of this machine, for the same folders of the other one."""
    return [word.replace("/usr/", f"{SYSTEM}/usr/").replace(native, TRIPLET) for word in words]


if __name__ == "__main__":
    try:
        prepare()
    except NoArm64 as why:
        sys.exit(f"arm64: {why}")
