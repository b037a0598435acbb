#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests coco doctor where no MPI is needed: alone, and as ranks that this script starts as a launcher does.

usage: doctor_test.py COCO WITHOUT_CALLS SCHEMA      WITHOUT_CALLS: tests/support/without_calls.c
"""
import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

COCO, WITHOUT_CALLS, SCHEMA = sys.argv[1:4]
del sys.argv[1:4]
LAUNCHERS = ("PMI_", "PMIX_", "OMPI_", "HYDI_", "SLURM_", "MPI_LOCAL", "COCO_", "LD_PRELOAD", "XDG_CACHE_HOME")
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env"]  # only a second program has lost root's rights for good
LIMIT_S = 60
IS_ROOT = os.geteuid() == 0
# Another user's process that has no part in the job. It sits at the door of the ranks before they come, or comes to it when it is
# there. It prints what it hears from each rank that it meets.
STRANGER = """
import socket, sys, time
end = time.monotonic() + 60
name, how, meets = "\\0" + sys.argv[1], sys.argv[2], int(sys.argv[3])
sitting = socket.socket(socket.AF_UNIX)
if how == "sits":
    sitting.bind(name)
    sitting.listen()
    print("sits", flush=True)
sitting.settimeout(60)
def meet():
    if how == "sits":
        return sitting.accept()[0]
    while True:
        try:
            own = socket.socket(socket.AF_UNIX)
            own.connect(name)
            return own
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
for _ in range(meets):
    met = meet()
    met.settimeout(60)
    try:
        if how == "comes":
            met.sendall(b"{}" * 4096)
        print("heard", met.recv(100), flush=True)
    except (BrokenPipeError, ConnectionResetError):
        print("heard", b"", flush=True)
"""


def environment(extra):
    plain = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
    return {k: v for k, v in (plain | extra).items() if v is not None}


def start(*words, before=(), coco=COCO, limits=(), **extra):
    def set_limits():
        for which, value in limits:
            resource.setrlimit(which, (value, value))
    return subprocess.Popen([*before, coco, "doctor", *words], env=environment(extra), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, preexec_fn=set_limits)


def finish(process):
    output, errors = process.communicate(timeout=LIMIT_S)
    return process.returncode, output, errors


def build(folder, name, text, *words):
    path = os.path.join(folder, name)
    subprocess.run(["cc", "-x", "c", "-", "-x", "none", "-o", path, *words], input=text, text=True, check=True, timeout=LIMIT_S)
    return path


class DoctorTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name

    def report(self, *words, **more):
        """What doctor says as JSON, whose exit status must fit."""
        status, output, errors = finish(start("--json", *words, **more))
        self.assertIn(status, (0, 1), errors)
        report = json.loads(output)
        self.assertEqual(report["works"], status == 0)
        self.assertEqual(report["works"], all(f["level"] != "problem" for f in report["findings"]))
        return report

    def find(self, report, check, level, words):
        for finding in report["findings"]:
            if (finding["check"], finding["level"]) == (check, level) and re.search(words, finding["what"]):
                self.assertEqual(finding["remedy"] is None, level == "ok", finding)
                return finding
        self.fail(f"no finding is {check}, {level}, {words!r}:\n" + "\n".join(map(str, report["findings"])))

    def finds(self, check, level, expected, *words, **more):
        return self.find(self.report(*words, **more), check, level, expected)


class Alone(DoctorTest):
    def test_all_checks_answer(self):
        report = self.report("/bin/true")
        self.assertEqual({f["check"] for f in report["findings"]} - {"heap"},
                         {"library", "preloads", "program", "MPI", "allocator", "devices", "settings", "learned rules", "shared memory", "limits",
                          "huge pages", "kernel", "CPUs", "NUMA", "memory", "container", "processes"})
        self.assertIsNone(report["expected_ranks"])
        self.assertEqual([host["ranks"] for host in report["hosts"]], [[]])

    def test_for_people(self):
        status, output, errors = finish(start("/etc/passwd"))
        lines = output.splitlines()
        self.assertEqual((status, errors), (1, ""))
        self.assertRegex(lines[0], "^coco doctor, libcoco [0-9]")
        places = {re.match(r"(ok|note|problem) +(?=\S)(.*?)  +(?=\S)", line).end() for line in lines[1:-1] if line[0] != " "}
        self.assertEqual(len(places), 1, "columns are not aligned")
        self.assertTrue(all(line.startswith(" " * places.copy().pop() + "-> ") for line in lines if line[0] == " "))
        self.assertRegex(lines[-1], "^1 problem, .*does not work here")

    def test_schema(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads(pathlib.Path(SCHEMA).read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        for words in ([], ["no-such-program"]):
            report = self.report(*words)
            self.assertEqual(list(validator.iter_errors(report)), [])
            for key in report:
                self.assertFalse(validator.is_valid({k: v for k, v in report.items() if k != key}), key)
            for key in report["findings"][0]:
                worse = json.loads(json.dumps(report))
                del worse["findings"][0][key]
                self.assertFalse(validator.is_valid(worse), key)

    def test_wrong_use(self):
        for words in (["--no-such-option"], ["one", "two"]):
            self.assertEqual(finish(start(*words))[0], 2)


class Library(DoctorTest):
    def copy(self, library):
        shutil.copy(COCO, self.folder)
        shutil.copy(library, os.path.join(self.folder, "libcoco.so"))
        return os.path.join(self.folder, "coco")

    def ours(self):
        return os.path.join(os.path.dirname(os.path.realpath(COCO)), "libcoco.so")

    def test_taken(self):
        self.finds("library", "ok", re.escape(self.ours()) + ".*version.*which the loader takes")

    def test_missing(self):
        shutil.copy(COCO, self.folder)
        self.finds("library", "problem", "there is no libcoco.so", coco=os.path.join(self.folder, "coco"))

    def test_damaged(self):
        junk = pathlib.Path(self.folder, "junk")
        junk.write_bytes(b"no library")
        self.finds("library", "problem", "does not preload.*cannot be preloaded", coco=self.copy(junk))

    def test_another_version(self):
        text = 'const char* coco_version(void) { return "9.9.9"; } int coco_is_shared(const void* p) { return p != 0; }'
        other = build(self.folder, "other.so", text, "-shared", "-fPIC")
        self.finds("library", "problem", "is of version 9.9.9, this command of", coco=self.copy(other))
        os.rename(other, os.path.join(self.folder, "libcoco.so.9"))
        self.finds("preloads", "problem", "another libcoco.*of version 9.9.9", LD_PRELOAD=f"{self.folder}/libcoco.so.9")

    def test_the_same_twice(self):
        self.finds("preloads", "ok", "no other", LD_PRELOAD=self.ours())

    def test_other_preloads(self):
        text = "void* __libc_malloc(unsigned long); void* malloc(unsigned long n) { return __libc_malloc(n); }"
        malloc = build(self.folder, "malloc.so", text, "-shared", "-fPIC", "-fno-builtin")
        tool = build(self.folder, "tool.so", "int MPI_Alltoall(void) { return 0; }", "-shared", "-fPIC")
        report = self.report(LD_PRELOAD=f"{tool}:{malloc} no-such-library.so")
        self.find(report, "preloads", "ok", "tool.so in LD_PRELOAD defines MPI functions, as tools do")
        self.find(report, "preloads", "note", "malloc.so in LD_PRELOAD defines malloc")
        self.find(report, "preloads", "note", "names no-such-library.so, which the loader does not find")
        self.find(report, "heap", "note", "another allocator serves malloc")


class Program(DoctorTest):
    def test_unfit(self):
        self.finds("program", "problem", "no-such-program: not found", "no-such-program")
        self.finds("program", "problem", "is not executable", "/etc/passwd")
        self.finds("program", "problem", "is setuid or setgid", "/usr/bin/passwd")
        static = build(self.folder, "static", "int main(void) { return 0; }", "-static")
        self.assertIn("link it", self.finds("program", "problem", "is static", static)["remedy"])

    def test_file_capabilities(self):
        program = shutil.copy("/bin/true", self.folder)
        try:
            os.setxattr(program, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
        except OSError as why:
            self.skipTest(f"no file capabilities here: {why}")
        self.finds("program", "problem", "has file capabilities", program)

    def test_another_libc(self):
        musl = build(self.folder, "musl", "int main(void) { return 0; }", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
        self.finds("program", "problem", "uses the C library musl", musl)

    def test_missing_library(self):
        needed = build(self.folder, "libneeded.so", "int needed(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libneeded.so")
        program = build(self.folder, "program", "int needed(void); int main(void) { return needed(); }", needed)
        os.remove(needed)
        self.finds("program", "problem", "needs libneeded.so, which the loader does not find", program)

    def test_script(self):
        script = os.path.join(self.folder, "script")
        pathlib.Path(script).write_text("#!/usr/bin/env sh\n", encoding="utf-8")
        os.chmod(script, 0o755)
        self.finds("program", "ok", "script, which .*sh runs, takes the preload", script)

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_execute_only(self):
        os.chmod(self.folder, 0o755)
        program = shutil.copy("/bin/true", self.folder)
        os.chmod(program, 0o711)
        self.finds("program", "note", "cannot be read", program, before=NOBODY, coco=self.readable_command())

    def readable_command(self):
        """A command that users who may not enter the build folder can run."""
        for name in ("coco", "libcoco.so"):
            shutil.copy(os.path.join(os.path.dirname(os.path.realpath(COCO)), name), self.folder)
        os.chmod(os.path.join(self.folder, "coco"), 0o755)
        return os.path.join(self.folder, "coco")

    def test_runtime_of_a_device(self):
        library = build(self.folder, "libcuda.so.1", "int cuInit(int f) { return f; }", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
        program = build(self.folder, "program", "int cuInit(int); int main(void) { return cuInit(0); }", library,
                        f"-Wl,-rpath,{self.folder}")
        self.finds("devices", "note", "libcuda.so.1: collectives on memory of a device are left to the MPI library", program)
        self.finds("devices", "ok", "no runtime", "/bin/true")

    def test_own_malloc(self):
        text = "void* malloc(unsigned long n) { return (void*)(n & 0); } void free(void* p) { (void)p; }"
        library = build(self.folder, "libown.so", text, "-shared", "-fPIC", "-fno-builtin")
        program = build(self.folder, "program", "void* malloc(unsigned long); int main(void) { return malloc(1) != 0; }",
                        "-fno-builtin", library, f"-Wl,-rpath,{self.folder}")
        self.finds("allocator", "note", "libown.so serves malloc", program)
        self.finds("allocator", "ok", "the C library's malloc", "/bin/true")

    def test_sanitizer(self):
        program = build(self.folder, "program", "int main(void) { return 0; }", "-fsanitize=address")
        finding = self.finds("allocator", "problem", "libasan.*has to come before libcoco", program)
        self.assertIn("LD_PRELOAD=", finding["remedy"])

    def test_locks_memory(self):
        program = build(self.folder, "program", "int mlockall(int); int main(void) { return mlockall(1); }")
        self.finds("limits", "note", "program calls mlockall", program, limits=[(resource.RLIMIT_MEMLOCK, 65536)])


class Mpi(DoctorTest):
    """With libraries that only look like MPI libraries."""
    MPI = "int PMPI_Alltoall(void) { return 0; } int MPI_Alltoall(void) { return 0; } int MPI_Init(void) { return 0; }"

    def library(self, name):
        return build(self.folder, name, self.MPI, "-shared", "-fPIC", f"-Wl,-soname,{name}")

    def program(self, *libraries):
        return build(self.folder, "program", "int MPI_Init(void); int main(void) { return MPI_Init(); }", "-Wl,--no-as-needed",
                     *libraries, f"-Wl,-rpath,{self.folder}")

    def test_no_family(self):
        self.finds("MPI", "problem", "libmpi.so.99 is of no family", self.program(self.library("libmpi.so.99")))

    def test_two(self):
        program = self.program(self.library("libmpi.so.99"), self.library("libmpich.so.98"))
        self.finds("MPI", "problem", "two MPI libraries.*libmpi.so.99 and .*libmpich.so.98", program)
        one = self.program(self.library("libmpi.so.99"))
        self.finds("MPI", "problem", "two MPI libraries", one, LD_PRELOAD=f"{self.folder}/libmpich.so.98")

    def test_none(self):
        self.finds("MPI", "note", "true is linked with no MPI library", "/bin/true")


class Settings(DoctorTest):
    def test_right(self):
        self.finds("settings", "ok", "all have their defaults")
        self.finds("settings", "ok", "COCO_ALLTOALL=morton, COCO_STATS=1", COCO_ALLTOALL="morton", COCO_STATS="1")

    def test_wrong(self):
        self.finds("settings", "problem", "^COCO_HEAP_LIMIT=12Q: must be bytes", COCO_HEAP_LIMIT="12Q")
        self.finds("settings", "problem", "^COCO_BCAST=morton: ", COCO_BCAST="morton")

    def test_effects(self):
        self.finds("settings", "problem", "COCO_DISABLE=1 leaves every call", COCO_DISABLE="1")
        self.finds("settings", "note", "COCO_DISABLE leaves bcast,alltoall to", COCO_DISABLE="bcast,alltoall")
        self.finds("settings", "problem", "COCO_HEAP_LIMIT=0 shares no memory", COCO_HEAP_LIMIT="0")
        self.finds("settings", "note", "COCO_HEAP=off", COCO_HEAP="off")
        self.finds("settings", "note", "COCO_TEST_DELAY is for tests only", COCO_TEST_DELAY="1")

    def test_unknown(self):
        finding = self.finds("settings", "note", "^COCO_ALLTOAL is no variable", COCO_ALLTOAL="naive")
        self.assertEqual(finding["remedy"], "did you mean COCO_ALLTOALL?")
        finding = self.finds("settings", "note", "^COCO_DATASET_FOLDER is no variable", COCO_DATASET_FOLDER="/")
        self.assertIn("coco info --settings", finding["remedy"])

    def test_learned_rules(self):
        self.finds("learned rules", "ok", "none are read", COCO_LEARN="off")
        self.finds("learned rules", "ok", f"read from {self.folder}/coco$", COCO_LEARN="read", XDG_CACHE_HOME=self.folder)
        self.finds("learned rules", "ok", "none: neither XDG_CACHE_HOME nor HOME", COCO_LEARN="read", HOME=None)
        self.finds("learned rules", "ok", f"read and made in {self.folder}/coco$", XDG_CACHE_HOME=self.folder)
        self.finds("learned rules", "note", "no folder", HOME=None)
        rules = os.path.join(self.folder, "rules.toml")
        pathlib.Path(rules).write_text("", encoding="utf-8")
        os.chmod(rules, 0o666)
        self.finds("learned rules", "note", "rules.toml: is another user's, or may be written by others", COCO_LEARN=rules)
        os.chmod(rules, 0o600)
        pathlib.Path(rules).write_text("[[rule]\n", encoding="utf-8")
        self.finds("learned rules", "note", "rules.toml: Error while parsing", COCO_LEARN=rules)
        os.remove(rules)
        os.chmod(self.folder, 0o777)
        self.finds("learned rules", "note", "may be written by all users", COCO_LEARN=rules)


class Machine(DoctorTest):
    def fake(self, target, files):
        """Words for a program that sees `files` in the folder or file `target`."""
        if not IS_ROOT:
            self.skipTest("a mount namespace of its own needs root")
        if not os.path.exists(target):
            self.skipTest(f"there is no {target}")
        source = os.path.join(self.folder, "fake")
        for name, text in files.items():
            path = os.path.join(source, name) if name else source
            os.makedirs(os.path.dirname(path), exist_ok=True)
            pathlib.Path(path).write_text(text, encoding="utf-8")
        return ["unshare", "-m", "sh", "-c", f'mount --bind {source} {target} && exec "$@"', "sh"]

    def test_memfd_is_closed(self):
        before = [WITHOUT_CALLS, "memfd_create"]
        report = self.report(before=before)
        finding = next(f for f in report["findings"] if f["check"] == "shared memory")
        self.assertIn(finding["level"], ("note", "problem"))  # by the size of /dev/shm
        self.assertRegex(finding["what"], "memfd_create fails: Operation not permitted.*/dev/shm")
        self.assertIn("seccomp", finding["remedy"])
        if IS_ROOT:
            small = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=2m tmpfs /dev/shm && exec "$@"', "sh"]
            report = self.report(before=small + before)
            self.find(report, "shared memory", "problem", "/dev/shm has 0 B for the heap of a rank")
            self.find(report, "heap", "note", "no shared memory in a process with libcoco: no shared heap")

    def test_process_memory_is_closed(self):
        finding = self.finds("processes", "note", "process_vm_readv .Operation not permitted", before=[WITHOUT_CALLS, "process_vm_readv"])
        self.assertIn("seccomp", finding["remedy"])

    def test_yama(self):
        before = self.fake("/proc/sys/kernel", {"yama/ptrace_scope": "2\n", "random/boot_id": "here\n"})
        finding = self.finds("processes", "note", "process_vm_readv", before=before + [WITHOUT_CALLS, "process_vm_readv"])
        self.assertIn("kernel.yama.ptrace_scope=0", finding["remedy"])

    @unittest.skipUnless(IS_ROOT, "a mount namespace of its own needs root")
    def test_proc_is_closed(self):
        before = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /proc && exec "$@"', "sh"]
        report = self.report(before=before)
        self.find(report, "processes", "problem", "cannot open the descriptors .*No such file")
        self.assertEqual(self.find(report, "library", "problem", "cannot find out where it lies")["remedy"], "mount /proc")

    def test_limits(self):
        self.finds("limits", "ok", "open files 1000, locked memory", limits=[(resource.RLIMIT_NOFILE, 1000)])
        report = self.report(limits=[(resource.RLIMIT_NOFILE, 100), (resource.RLIMIT_AS, 4 << 30)])
        self.find(report, "limits", "note", "may open 100 files")
        self.find(report, "limits", "note", "address space to 4 GiB .*: the heap of a rank has [0-9.]+ [MG]iB at most")
        self.finds("limits", "problem", "files to 1 MiB .*: the heap of a rank has .* too little", limits=[(resource.RLIMIT_FSIZE, 1 << 20)])

    def test_huge_pages(self):
        for file, text, level, words in (("shmem_enabled", "always within_size [advise] never\n", "ok", "in shared memory advise"),
                                         ("shmem_enabled", "always advise [never]\n", "ok", "in shared memory never"),
                                         ("shmem_enabled", "always advise never [deny]\n", "note", "shmem_enabled is deny"),
                                         ("enabled", "always madvise [never]\n", "note", "enabled is never")):
            with self.subTest(f"{file} {text}"):
                files = {"enabled": "always [madvise] never\n", "shmem_enabled": "always advise [never]\n", file: text}
                self.finds("huge pages", level, words, before=self.fake(HUGE_PAGES, files))

    def test_kernel(self):
        finding = self.finds("kernel", "note", "^Linux 2.6.[0-9]+.*which is older than 6.1 ", before=["setarch", "--uname-2.6"])
        self.assertIsNotNone(finding["remedy"])

    def test_domains(self):
        cpu = min(os.sched_getaffinity(0))
        both = {"node0/cpulist": f"{cpu}\n", "node1/cpulist": f"{cpu}\n", "node2/cpulist": "\n"}
        before = self.fake("/sys/devices/system/node", both)
        self.finds("NUMA", "ok", "CPUs in domain 0-1 of 2 domains", before=before)
        self.finds("NUMA", "note", "may run on CPUs in 2 of 2 domains", before=before, PMI_RANK="0", PMI_SIZE="1", MPI_LOCALNRANKS="1")
        self.finds("NUMA", "note", "cannot be chosen here .mbind", before=before + [WITHOUT_CALLS, "mbind"])

    def test_memory_of_group(self):
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            groups = [line.strip().split(":") for line in file]
        if groups[-1][0] != "0":
            self.skipTest("no control groups of version 2")
        before = self.fake("/sys/fs/cgroup", {"." + groups[-1][2] + "/memory.max": f"{100 << 20}\n"})
        self.finds("memory", "note", "the control group grants 100 MiB", before=before)


class Ranks(DoctorTest):
    """This script is the launcher: the processes find each other by having the same parent."""
    def launch(self, count, *words, each=lambda rank: {}, size=None, host_ranks=None, before=lambda rank: [], coco=lambda rank: COCO):
        """Starts ranks. Returns: the report, which one of them has printed, and all must end alike."""
        common = {"PMI_SIZE": str(size or count), "MPI_LOCALNRANKS": str(host_ranks or count)}
        processes = [start("--json", *words, before=before(rank), coco=coco(rank), **common, PMI_RANK=str(rank), **each(rank))
                     for rank in range(count)]
        ends = [finish(process) for process in processes]
        statuses, outputs = {end[0] for end in ends}, [end[1] for end in ends]
        self.assertEqual(outputs[1:], [""] * (count - 1), "another rank than the first has printed")
        report = json.loads(outputs[0])
        self.assertEqual(statuses, {0 if report["works"] else 1}, ends)
        return report

    def test_equal(self):
        report = self.launch(3)
        self.assertEqual(report["expected_ranks"], 3)
        self.assertEqual([host["ranks"] for host in report["hosts"]], [[0, 1, 2]])
        self.find(report, "ranks", "ok", r"^3 ranks on .* \(0-2\)$")
        for check in ("same libcoco", "same MPI", "same settings", "containers"):
            self.find(report, check, "ok", "")
        self.find(report, "same settings", "ok", "")
        self.find(report, "processes", "ok", "each opens the other's")
        self.assertTrue(all(finding["ranks"] is None for finding in report["findings"]))

    def test_behind_shells(self):
        report = self.launch(2, before=lambda rank: ["sh", "-c", '"$@"; exit $?', "sh"] if rank else [])
        self.find(report, "ranks", "ok", r"^2 ranks on .* \(0-1\)$")

    def test_unequal_settings(self):
        report = self.launch(3, each=lambda rank: {"COCO_ALLTOALL": "eager", "COCO_LOG": "info"} if rank == 1 else {})
        finding = self.find(report, "same settings", "problem", "^COCO_ALLTOALL differs.*: unset on ranks 0,2, eager on rank 1$")
        self.assertIsNone(finding["ranks"])
        self.assertFalse(any("COCO_LOG differs" in f["what"] for f in report["findings"]), "it may differ")

    def test_finding_of_one(self):
        report = self.launch(3, each=lambda rank: {"COCO_BCAST": "morton"} if rank == 2 else {})
        self.assertEqual(self.find(report, "settings", "problem", "^COCO_BCAST=morton")["ranks"], [2])
        self.assertEqual(self.find(report, "settings", "ok", "defaults")["ranks"], [0, 1])

    def test_policies(self):
        rules = []
        for number, algorithm in enumerate(("naive", "morton")):
            rules.append(os.path.join(self.folder, f"{number}.toml"))
            pathlib.Path(rules[-1]).write_text(f'[[rule]]\nalgorithm = "{algorithm}"\ncollective = "alltoall"\n', encoding="utf-8")
        copy = shutil.copy(rules[0], os.path.join(self.folder, "copy.toml"))
        self.find(self.launch(2, each=lambda rank: {"COCO_POLICY": rules[rank]}), "same settings", "problem", "the rules of COCO_POLICY differ")
        self.find(self.launch(2, each=lambda rank: {"COCO_POLICY": [rules[0], copy][rank]}), "same settings", "ok", "")

    def test_unequal_libraries(self):
        shutil.copy(COCO, self.folder)
        library = os.path.join(os.path.dirname(os.path.realpath(COCO)), "libcoco.so")
        longer = pathlib.Path(library).read_bytes() + b"\n"
        pathlib.Path(self.folder, "libcoco.so").write_bytes(longer)
        report = self.launch(2, coco=lambda rank: os.path.join(self.folder, "coco") if rank else COCO)
        self.find(report, "same libcoco", "problem", "ranks have different libraries: version .* on rank .*, version .* on rank")

    def test_crowd(self):
        cpus = sorted(os.sched_getaffinity(0))
        report = self.launch(2 * len(cpus) if len(cpus) <= 4 else 2, before=lambda rank: ["taskset", "-c", str(cpus[0])])
        self.find(report, "crowd", "note", f"binds ranks .* to CPU {cpus[0]} of|on 1 CPU:")
        if len(cpus) > 1:
            report = self.launch(2, before=lambda rank: ["taskset", "-c", str(cpus[0])])
            self.find(report, "crowd", "note", f"binds ranks 0-1 to CPU {cpus[0]} of {os.cpu_count()}")
            report = self.launch(2, before=lambda rank: ["taskset", "-c", str(cpus[rank])])
            self.find(report, "crowd", "ok", "")

    def test_alone_in_its_job(self):
        self.find(self.launch(1), "ranks", "note", "calls of one rank are left to the MPI library")

    def test_some_have_not_come(self):
        report = self.launch(2, "--no-mpi", size=3)
        self.find(report, "ranks", "note", r"\(0-1\) answered, of 3$")
        self.assertEqual(report["expected_ranks"], 3)

    def test_memory_is_closed(self):
        report = self.launch(3, before=lambda rank: [WITHOUT_CALLS, "process_vm_readv"] if rank == 1 else [])
        self.find(report, "processes", "note", "^rank 1 cannot read the private memory of ranks 0,2 by")

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_users(self):
        coco = Program.readable_command(self)
        os.chmod(self.folder, 0o755)
        report = self.launch(3, coco=lambda rank: coco, before=lambda rank: NOBODY if rank == 1 else [])
        self.find(report, "containers", "problem", "different users: 0 on ranks 0,2, 65534 on rank 1")
        self.find(report, "processes", "problem", "^rank 1 cannot open the descriptors of ranks 0,2 in /proc .Permission denied")

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_descriptors_are_passed(self):
        coco = Program.readable_command(self)
        os.chmod(self.folder, 0o755)
        os.chmod(coco, 0o711)
        report = self.launch(2, coco=lambda rank: coco, before=lambda rank: NOBODY)
        self.find(report, "processes", "note", "^ranks 0-1 cannot open the descriptors of each other.*passed by sockets")
        self.assertTrue(report["works"])

    def stranger(self, how, meets):
        """Starts one that is no child of this launcher. Returns: the file that has what it prints."""
        with open("/proc/self/stat", encoding="ascii") as stat:
            started = stat.read().rsplit(")", 1)[1].split()[19]
        said = pathlib.Path(self.folder, how)
        with open(said, "w", encoding="ascii") as out:
            subprocess.run(["sh", "-c", '"$@" &', "sh", *NOBODY, "python3", "-c", STRANGER, f"coco-doctor-{os.getpid()}-{started}", how,
                            str(meets)], stdout=out, check=True, timeout=LIMIT_S)
        return said

    def wait_for(self, said, lines):
        end = time.monotonic() + LIMIT_S
        while len(said.read_text(encoding="ascii").splitlines()) < lines:
            self.assertLess(time.monotonic(), end, said.read_text(encoding="ascii"))
            time.sleep(0.01)
        return said.read_text(encoding="ascii").splitlines()

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_stranger_comes(self):
        """The ranks do not let it in, and tell it nothing."""
        said = self.stranger("comes", 1)
        report = self.launch(2, "--no-mpi", before=lambda rank: ["sh", "-c", f'n=0; until [ -s {said} ] || [ $((n += 1)) -gt 3000 ]; do sleep 0.01; done; exec "$@"',
                                                                       "sh"] if rank else [])
        self.assertEqual(self.wait_for(said, 1), ["heard b''"])
        self.find(report, "ranks", "ok", r"^2 ranks on .* \(0-1\)$")

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_stranger_sits_there(self):
        """The ranks tell it nothing; each is alone, and says so."""
        said = self.stranger("sits", 2)
        self.wait_for(said, 1)
        processes = [start("--json", "--no-mpi", PMI_SIZE="2", MPI_LOCALNRANKS="2", PMI_RANK=str(rank)) for rank in range(2)]
        for status, output, errors in map(finish, processes):
            self.assertEqual(status, 0, errors)
            self.find(json.loads(output), "ranks", "note", "^1 rank on .* answered, of 2$")
        self.assertEqual(self.wait_for(said, 3), ["sits", "heard b''", "heard b''"])

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_network_namespaces(self):
        # They see each other's processes, and do not meet.
        processes = [start("--json", "--no-mpi", before=["unshare", "-n"], PMI_SIZE="2", MPI_LOCALNRANKS="1", PMI_RANK=str(rank))
                     for rank in range(2)]
        for status, output, errors in map(finish, processes):
            self.assertEqual(status, 0, errors)
            self.find(json.loads(output), "ranks", "note", "^1 rank on .* answered, of 2$")


if __name__ == "__main__":
    unittest.main()
