// SPDX-License-Identifier: BSD-3-Clause
//
// Seeded differential test: thousands of random calls of all six collectives, interleaved, on communicators
// that come and go, against the MPI library's own functions. Usage: random_test [SEED [CALLS]].
#include "random_player.h"

int main(int argc, char** argv) { return test::play_all<test::RandomPlayer>(argc, argv, "random", 2000); }
