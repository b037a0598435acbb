// SPDX-License-Identifier: BSD-3-Clause
// A library with much static data, to be opened and closed.
char large_data[6 << 20];
