// SPDX-License-Identifier: BSD-3-Clause
//
// What a program's file and its libraries tell: whether it takes a preload, which MPI library serves it, and
// whose malloc.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "os/devices.h"
#include "tools/doctor_check.h"
#include "tools/launch.h"
#include "tools/program_file.h"

namespace coco::tools {
namespace {

std::string name_of_file(const std::string& file) { return std::filesystem::path(file).filename(); }

// The different files that define a name for others.
std::vector<std::string> definers(const std::vector<std::string>& files, const std::string& name) {
    std::set<std::string> found;
    std::error_code ignored;
    for (const std::string& file : files)
        if (names_in(file, {name}).defined.contains(name))
            found.insert(std::filesystem::weakly_canonical(file, ignored));
    return {found.begin(), found.end()};
}

Answers ask_program(Patient& patient) {
    const std::string &file = patient.file, &binary = patient.binary, &why = patient.why_unfit;
    if (patient.program.empty()) return {};
    if (file.empty()) return problem({patient.program}, "{}: not found -> name a file, or a command in PATH");
    if (!why.empty()) return problem_in_line(binary + " " + why, "name a program that this machine can run");
    if (read_elf(binary).interpreter.find("ld-musl") != std::string::npos)
        return problem(
            {binary},
            "{} uses the C library musl, which libcoco does not fit -> build it with the GNU C library");
    std::vector<std::string> missing = patient.files;
    std::erase_if(missing, [](const std::string& name) { return name.find('/') != std::string::npos; });
    if (!missing.empty())
        return problem({binary, joined(missing)},
                       "{} needs {}, which the loader does not find -> load the module that the program was "
                       "built with, or set LD_LIBRARY_PATH");
    const std::string which = binary == file ? file : filled({file, binary}, "{}, which {} runs,");
    if (access(binary.c_str(), R_OK) != 0)
        return note({which, binary},
                    "{} cannot be read: other ranks read no memory of such a process, and large private "
                    "buffers go in pieces -> chmod +r {}");
    return ok({which}, "{} takes the preload");
}

// The family whose launcher started this process, by the variables that it sets; empty: unknown.
std::string family_of_launcher() {
    if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) return "Open MPI";
    const bool is_hydra = std::getenv("HYDI_CONTROL_FD") != nullptr ||
                          (std::getenv("PMI_RANK") != nullptr && std::getenv("MPI_LOCALNRANKS") != nullptr);
    return is_hydra ? "MPICH" : "";
}

// The maker of a library, whichever ABI it has.
std::string maker_of(const MpiFound& mpi) {
    if (mpi.version.find("Open MPI") != std::string::npos) return "Open MPI";
    return mpi.family == "MPI standard ABI" ? "MPICH" : mpi.family;
}

bool fits_launcher(const MpiFound& mpi) {
    const std::string launcher = family_of_launcher();
    return launcher.empty() || mpi.family.empty() || launcher == maker_of(mpi);
}

std::string name_of(const MpiFound& mpi) {
    return filled({version_in_brief(mpi), mpi.family, mpi.file}, "{}, family {}, {}");
}

Answers answers_of_mpi(const MpiFound& mpi) {
    if (mpi.family.empty())
        return problem({mpi.file},
                       "{} is of no family that libcoco knows: all calls are left to it -> use an MPI "
                       "library that docs/mpis.md names");
    if (!fits_launcher(mpi))
        return problem({family_of_launcher(), mpi.file, maker_of(mpi)},
                       "the launcher is {}'s, the program's library is {} ({}): each rank would be alone -> "
                       "start the program with the mpiexec of its own MPI library");
    return ok(name_of(mpi));
}

// Without a program, the libraries that the loader finds by known names. found: the one that fits the
// launcher.
Answers answers_of_known_mpis(MpiFound& found) {
    std::vector<std::string> lines;
    for (const std::string& name : known_mpi_names())
        if (const std::optional<MpiFound> mpi = find_mpi(name)) {
            lines.push_back(name_of(*mpi));
            if (found.file.empty() && fits_launcher(*mpi)) found = *mpi;
        }
    if (!lines.empty()) return ok({joined(lines, "; ")}, "the loader finds {}");
    return note(
        "the loader finds no MPI library by the names that libcoco knows -> coco doctor PROGRAM looks at a "
        "program's own");
}

Answers answers_without_mpi(const Patient& patient) {
    const std::set<std::string> starts = {"MPI_Init", "MPI_Init_thread", "MPI_Session_init", "mpi_init_",
                                          "mpi_init_thread_"};
    if (!names_in(patient.binary, starts).wanted.empty())
        return problem({patient.program},
                       "{} calls MPI, but none of its libraries defines it -> load the module of the MPI "
                       "library that it was built with");
    return note(
        {patient.program},
        "{} is linked with no MPI library: it may open one late, as Python does, or have one inside, which "
        "libcoco does not see -> link the program with a shared MPI library, if it has one inside");
}

Answers ask_mpi(Patient& patient) {
    if (patient.program.empty()) return answers_of_known_mpis(patient.mpi);
    if (!patient.has_fit_program()) return {};
    std::vector<std::string> files = patient.files;
    for (const Preload& preload : preloads()) files.push_back(preload.file);
    std::vector<std::string> libraries = definers(files, "PMPI_Alltoall");
    std::erase_if(libraries, [](const auto& file) { return is_libcoco(file); });
    if (libraries.empty()) return answers_without_mpi(patient);
    if (libraries.size() > 1)
        return problem({joined(libraries, " and ")},
                       "two MPI libraries would be in one process, {}: all calls are left alone -> link the "
                       "program and its libraries with one MPI library");
    patient.mpi = find_mpi(libraries[0]).value_or(MpiFound{libraries[0], {}, {}, {}});
    return answers_of_mpi(patient.mpi);
}

Answers ask_allocator(Patient& patient) {
    if (!patient.has_fit_program()) return {};
    std::vector<std::string> others = definers(patient.files, "malloc"), sanitizers;
    std::ranges::copy_if(others, std::back_inserter(sanitizers), is_sanitizer);
    if (!sanitizers.empty())
        return problem(
            {joined(sanitizers), sanitizers[0], library_file()},
            "{}, a sanitizer's runtime, has to come before libcoco -> instead of coco run: LD_PRELOAD={}:{}");
    std::erase_if(others, [](const std::string& file) {
        const bool is_of_libc = !names_in(file, {"gnu_get_libc_version"}).defined.empty();
        return is_of_libc || is_libcoco(file) || name_of_file(file).starts_with("ld-");
    });
    if (others.empty()) return ok("the C library's malloc, in whose place libcoco's comes");
    return note({joined(others)},
                "{} serves malloc: the program's buffers are private, and copied or read through the kernel "
                "-> link the program without it; libcoco brings an allocator");
}

Answers ask_devices(Patient& patient) {
    if (!patient.has_fit_program()) return {};
    std::vector<std::string> runtimes = patient.files;
    std::erase_if(runtimes, [](const std::string& file) {
        const std::string name = name_of_file(file);
        return os::runtime_of(name) == os::Runtime::none && !name.starts_with("libcudart.so");
    });
    if (runtimes.empty()) return ok("the program is linked with no runtime of a device (GPU)");
    return note(
        {joined(runtimes)},
        "{}: collectives on memory of a device are left to the MPI library, and so are those that follow on "
        "the same communicator -> a communicator of its own for collectives on the processor's memory");
}

constexpr OwnCheck kProgramChecks[] = {
    {"program", ask_program},
    {"MPI", ask_mpi},
    {"allocator", ask_allocator},
    {"devices", ask_devices},
};

}  // namespace

Patient::Patient(const std::string& program) : program(program) {
    if (!program.empty()) file = find_program(program);
    if (!file.empty()) binary = find_binary(file, &why_unfit);
    if (!has_fit_program()) return;
    files = all_needed(binary);
    files.insert(files.begin(), binary);
}

OwnChecks program_checks() { return kProgramChecks; }

}  // namespace coco::tools
