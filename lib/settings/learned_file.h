// SPDX-License-Identifier: BSD-3-Clause
//
// The file in which jobs leave what they have learned to the jobs after them (policy/learned.h): FILE of
// COCO_LEARN=FILE, or one for each key in $XDG_CACHE_HOME/coco, else ~/.cache/coco. Called by dispatch on
// rank 0 of a job and by the command. Process safety: a file is replaced whole, so that a reader sees an old
// one or a new one, whoever writes; of two jobs that end in the same moment one may lose what it has learned.
// Fails: says why in one line, which may be told or not; never throws.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "policy/learned.h"

namespace coco::settings {

// What the node's processors are, and what machine COCO_TOPOLOGY invents of them, in words.
std::string machine();
// The key of jobs with such an MPI library (mpi/library.h) that begin with these rules, on this machine.
policy::LearnedKey key_for(const std::string& mpi, std::span<const policy::Rule> rules);
// The folder of the cache; empty: there is no home for one.
std::string learned_folder();
// Where the rules of this key are. file: of COCO_LEARN; empty: in the cache. Returns: empty: there is no home
// for a cache.
std::string learned_path(const std::string& file, const policy::LearnedKey& key);

// Reads the rules of a file that hold for the key. Returns: none if there is no file, if its rules hold for
// others, or if it cannot be trusted or read; the last leaves a line in `trouble`.
std::vector<policy::Rule> read_learned(const std::string& path, const policy::LearnedKey& key,
                                       std::string& trouble);
// Why a file of learned rules, of whatever key, cannot be used, in one line; empty if it can, or if there is
// none.
std::string trouble_of_learned(const std::string& path);
// The files of the cache.
std::vector<std::string> learned_files();
// What is in this file or, if it is empty, in every file of the cache that can be read.
std::vector<policy::Learned> all_learned(const std::string& file);
// Replaces the file, and makes its folder if that is missing. Returns: false: nothing was written, for the
// reason in `trouble`.
bool write_learned(const std::string& path, const policy::Learned& learned, std::string& trouble);

}  // namespace coco::settings
