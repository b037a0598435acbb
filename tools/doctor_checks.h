// SPDX-License-Identifier: BSD-3-Clause
//
// The checks of `coco doctor` that a process makes alone: each adds a finding to the list, or a few. Called by doctor.cc.
// Thread safety: none; they start child processes. Fails: what cannot be found out is no finding, or one that says so.
#pragma once
#include <string>

#include "tools/doctor_findings.h"
#include "tools/mpi_found.h"

namespace coco::tools {

// doctor_program.cc. Returns: the MPI library that the program uses, or else the one that fits the launcher; its file is empty
// where that is unknown.
MpiFound check_mpi(const std::string& program, Findings& findings);
void check_program(const std::string& program, Findings& findings);
// Which malloc serves the program, and who else defines names that libcoco defines.
void check_allocators(const std::string& program, Findings& findings);

// Whether the program may have memory of devices.
void check_devices(const std::string& program, Findings& findings);

// doctor_preload.cc. Whether libcoco.so is there, of this version, and taken by the loader.
void check_library(Findings& findings);
void check_other_preloads(Findings& findings);
// What the process that check_library() starts prints: for the hidden option of the command.
void tell_what_is_preloaded();

// doctor_settings.cc
void check_settings(Findings& findings);
void check_learned_rules(Findings& findings);

// doctor_memory.cc
void check_shared_memory(Findings& findings);
void check_limits(const std::string& program, Findings& findings);
void check_huge_pages(Findings& findings);

// doctor_machine.cc
void check_kernel(Findings& findings);
void check_cpus(Findings& findings);
void check_domains(Findings& findings);
void check_memory_of_group(Findings& findings);
void check_container(Findings& findings);
bool has_call_filter();  // whether seccomp filters this process's system calls

}  // namespace coco::tools
