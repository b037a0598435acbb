# SPDX-License-Identifier: BSD-3-Clause
# Python's ways to make processes, on a preloaded heap.
import multiprocessing
import os
import subprocess


def square(x):
    return [x * x] * 1000


if __name__ == "__main__":
    data = bytearray(b"p" * 10_000_000)
    ran = subprocess.run(["echo", "told"], capture_output=True, text=True, preexec_fn=lambda: None)
    assert ran.stdout == "told\n", ran
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(square, range(50)) == [square(x) for x in range(50)]
    child = os.fork()
    if child == 0:
        data[:] = b"c" * len(data)
        os._exit(0 if data.count(b"c") == len(data) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert data.count(b"p") == len(data)
