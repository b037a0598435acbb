// SPDX-License-Identifier: BSD-3-Clause
#include "exec/kernel_read.h"

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "blocks/copy_block.h"

namespace coco::exec {

using blocks::Block;

namespace {

// Whether the kernel would have many short runs to copy to.
bool is_fine(const Block& to) {
    return to.layout.words != nullptr && blocks::Cursor(to.at, to.layout, 0).stretch().bytes < 512;
}

bool read_by_way_of_copy(channel::Channel& channel, std::int32_t peer, const std::byte* from, Block to,
                         std::uint64_t bytes, std::vector<std::byte>& room) {
    constexpr std::size_t kCopied = 64 * 1024;
    room.resize(kCopied);
    for (std::uint64_t done = 0; done < bytes; done += kCopied) {
        const std::uint64_t some = std::min<std::uint64_t>(kCopied, bytes - done);
        const iovec copied{room.data(), some};
        if (!channel.read_private(peer, from + done, {&copied, 1})) return false;
        blocks::copy_data({to.at, to.layout, done}, {room.data()}, some);
    }
    return true;
}

bool read_in_runs(channel::Channel& channel, std::int32_t peer, const std::byte* from, Block to,
                  std::uint64_t bytes) {
    constexpr std::size_t kRuns = 64;
    iovec runs[kRuns];
    std::size_t count = 0;
    std::uint64_t gathered = 0;
    bool good = true;
    auto read = [&] {
        good = channel.read_private(peer, from, {runs, count});
        from += gathered;
        count = gathered = 0;
    };
    blocks::for_each_run(to.at, to.layout, 0, bytes, [&](std::byte* at, std::uint64_t run_bytes) {
        runs[count++] = {at, run_bytes};
        gathered += run_bytes;
        if (count == kRuns) read();
        return good;
    });
    if (good && count != 0) read();
    return good;
}

}  // namespace

// Pages of this process's own that the program has closed its signal handler opens, if they are touched here.
bool read_through_kernel(channel::Channel& channel, std::int32_t peer, const std::byte* from, Block to,
                         std::uint64_t bytes, std::vector<std::byte>& room) {
    COCO_CHECK_DEAR(bytes <= to.bytes, "what is read fits into its room");
    if (is_fine(to)) return read_by_way_of_copy(channel, peer, from, to, bytes, room);
    return read_in_runs(channel, peer, from, to, bytes) ||
           (errno == EFAULT && read_by_way_of_copy(channel, peer, from, to, bytes, room));
}

}  // namespace coco::exec
