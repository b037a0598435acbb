// SPDX-License-Identifier: BSD-3-Clause
//
// What a program's own file and the libraries that it is linked with tell: whether it takes a preload, which MPI library
// serves it, and whose malloc.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "os/devices.h"
#include "os/process.h"
#include "tools/doctor_checks.h"
#include "tools/doctor_preload.h"
#include "tools/launch.h"
#include "tools/mpi_found.h"
#include "tools/program_file.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

// The file that the kernel starts for a program; empty if it is not there or takes no preload.
std::string fit_binary(const std::string& program) {
    std::string why;
    const std::string file = find_program(program);
    const std::string binary = file.empty() ? file : find_binary(file, &why);
    return why.empty() ? binary : std::string();
}

// The files that the loader brings in for a program, itself first, and what is preloaded.
std::vector<std::string> files_of(const std::string& binary) {
    std::vector<std::string> files = {binary};
    for (std::string& file : all_needed(binary)) files.push_back(std::move(file));
    for (const Preload& preload : preloads()) files.push_back(find_library(preload.name));
    return files;
}

std::vector<std::string> not_found(const std::string& binary) {
    std::vector<std::string> names = all_needed(binary);
    std::erase_if(names, [](const std::string& name) { return name.find('/') != std::string::npos; });
    return names;
}

// The different files that define a name for others.
std::vector<std::string> definers(const std::vector<std::string>& files, const std::string& name) {
    std::set<std::string> found;
    for (const std::string& file : files)
        if (names_in(file, {name}).defined.contains(name)) {
            std::error_code ignored;
            found.insert(std::filesystem::weakly_canonical(file, ignored));
        }
    return {found.begin(), found.end()};
}

// "is static: nothing can be preloaded; link it with ..." -> what is wrong, and what to do.
void say_unfit(const std::string& binary, const std::string& why, Findings& findings) {
    const std::size_t end = why.find("; ");
    findings.problem(
        "program", binary + " " + why.substr(0, end),
        end != std::string::npos ? why.substr(end + 2) : "name a program that this machine can run");
}

}  // namespace

void check_program(const std::string& program, Findings& findings) {
    if (program.empty()) return;
    const std::string file = find_program(program);
    if (file.empty())
        return findings.problem("program", program + ": not found", "name a file, or a command in PATH");
    std::string why;
    const std::string binary = find_binary(file, &why);
    if (!why.empty()) return say_unfit(binary, why, findings);
    if (read_elf(binary).interpreter.find("ld-musl") != std::string::npos)
        return findings.problem("program", binary + " uses the C library musl, which libcoco does not fit",
                                "build it with the GNU C library");
    if (const std::vector<std::string> names = not_found(binary); !names.empty())
        return findings.problem("program",
                                binary + " needs " + joined(names) + ", which the loader does not find",
                                "load the module that the program was built with, or set LD_LIBRARY_PATH");
    const std::string which = binary == file ? file : file + ", which " + binary + " runs,";
    if (access(binary.c_str(), R_OK) != 0)
        return findings.note("program",
                             which +
                                 " cannot be read: other ranks read no memory of such a process, and large "
                                 "private buffers go in pieces",
                             "chmod +r " + binary);
    findings.ok("program", which + " takes the preload");
}

namespace {

// Whose launcher started this process, by the variables that it sets: the name of a family, or empty.
std::string family_of_launcher() {
    if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) return "Open MPI";
    const bool is_hydra = std::getenv("HYDI_CONTROL_FD") != nullptr ||
                          (std::getenv("PMI_RANK") != nullptr && std::getenv("MPI_LOCALNRANKS") != nullptr);
    return is_hydra ? "MPICH" : "";
}

// The maker of a library, whichever ABI it has.
std::string maker_of(const MpiFound& mpi) {
    return mpi.version.find("Open MPI") != std::string::npos ? "Open MPI"
           : mpi.family == "MPI standard ABI"                ? "MPICH"
                                                             : mpi.family;
}

bool fits_launcher(const MpiFound& mpi) {
    const std::string launcher = family_of_launcher();
    return launcher.empty() || mpi.family.empty() || launcher == maker_of(mpi);
}

std::string name_of(const MpiFound& mpi) {
    return version_in_brief(mpi) + ", family " + mpi.family + ", " + mpi.file;
}

void check_found(const MpiFound& mpi, Findings& findings) {
    if (mpi.family.empty())
        findings.problem("MPI", mpi.file + " is of no family that libcoco knows: all calls are left to it",
                         "use an MPI library that docs/mpis.md names");
    else if (!fits_launcher(mpi))
        findings.problem("MPI",
                         "the launcher is " + family_of_launcher() + "'s, the program's library is " +
                             mpi.file + " (" + maker_of(mpi) + "): each rank would be alone",
                         "start the program with the mpiexec of its own MPI library");
    else
        findings.ok("MPI", name_of(mpi));
}

// The library by whose names the loader finds it, without a program that is linked with one.
MpiFound check_known_mpis(Findings& findings) {
    std::vector<std::string> lines;
    MpiFound fitting;
    for (const std::string& name : known_mpi_names())
        if (std::optional<MpiFound> mpi = find_mpi(name)) {
            lines.push_back(name_of(*mpi));
            if (fitting.file.empty() && fits_launcher(*mpi)) fitting = *mpi;
        }
    if (lines.empty())
        findings.note("MPI", "the loader finds no MPI library by the names that libcoco knows",
                      "coco doctor PROGRAM looks at a program's own");
    else
        findings.ok("MPI", "the loader finds " + joined(lines, "; "));
    return fitting;
}

void say_none(const std::string& program, const std::string& binary, Findings& findings) {
    const std::set<std::string> starts = {"MPI_Init", "MPI_Init_thread", "MPI_Session_init", "mpi_init_",
                                          "mpi_init_thread_"};
    if (names_in(binary, starts).wanted.empty())
        findings.note("MPI",
                      program +
                          " is linked with no MPI library: it may open one late, as Python does, or have one "
                          "inside, which libcoco does not see",
                      "link the program with a shared MPI library, if it has one inside");
    else
        findings.problem("MPI", program + " calls MPI, but none of its libraries defines it",
                         "load the module of the MPI library that it was built with");
}

}  // namespace

MpiFound check_mpi(const std::string& program, Findings& findings) {
    if (program.empty()) return check_known_mpis(findings);
    const std::string binary = fit_binary(program);
    if (binary.empty()) return {};
    const std::vector<std::string> libraries = definers(files_of(binary), "PMPI_Alltoall");
    std::vector<std::string> others;
    std::ranges::copy_if(libraries, std::back_inserter(others), [](const std::string& file) {
        return file.find("libcoco.so") == std::string::npos;
    });
    if (others.empty()) {
        say_none(program, binary, findings);
        return {};
    }
    if (others.size() > 1) {
        findings.problem("MPI",
                         "two MPI libraries would be in one process, " + joined(others, " and ") +
                             ": all calls are left alone",
                         "link the program and its libraries with one MPI library");
        return {};
    }
    const MpiFound mpi = find_mpi(others[0]).value_or(MpiFound{others[0], {}, {}, {}});
    check_found(mpi, findings);
    return mpi;
}

void check_allocators(const std::string& program, Findings& findings) {
    const std::string binary = program.empty() ? program : fit_binary(program);
    if (binary.empty()) return;
    std::vector<std::string> own, sanitizers;
    std::vector<std::string> files = all_needed(binary);
    files.insert(files.begin(), binary);
    for (const std::string& file : definers(files, "malloc")) {
        const std::string name = std::filesystem::path(file).filename();
        const bool is_of_libc =
            !names_in(file, {"gnu_get_libc_version"}).defined.empty() || name.starts_with("ld-");
        if (is_sanitizer(file))
            sanitizers.push_back(file);
        else if (!is_of_libc && !name.starts_with("libcoco.so"))
            own.push_back(file);
    }
    if (!sanitizers.empty())
        return findings.problem("allocator",
                                joined(sanitizers) + ", a sanitizer's runtime, has to come before libcoco",
                                "instead of coco run: LD_PRELOAD=" + sanitizers[0] + ":" + library_file());
    if (!own.empty())
        return findings.note(
            "allocator",
            joined(own) +
                " serves malloc: the program's buffers are private, and copied or read through the kernel",
            "link the program without it; libcoco brings an allocator");
    findings.ok("allocator", "the C library's malloc, in whose place libcoco's comes");
}

void check_devices(const std::string& program, Findings& findings) {
    const std::string binary = program.empty() ? program : fit_binary(program);
    if (binary.empty()) return;
    const auto is_of_device = [](const std::string& file) {
        const std::string name = std::filesystem::path(file).filename();
        return os::runtime_of(name) != os::Runtime::none || name.starts_with("libcudart.so");
    };
    std::vector<std::string> runtimes;
    std::ranges::copy_if(all_needed(binary), std::back_inserter(runtimes), is_of_device);
    if (runtimes.empty())
        return findings.ok("devices", "the program is linked with no runtime of a device (GPU)");
    findings.note("devices",
                  joined(runtimes) +
                      ": collectives on memory of a device are left to the MPI library, and "
                      "so are those that follow on the same communicator",
                  "a communicator of its own for collectives on the processor's memory");
}

}  // namespace coco::tools
