# SPDX-License-Identifier: BSD-3-Clause
"""The sections of the page, by the kinds of its files. Loads what draws plots, which takes half a second."""
import bench_file
import bench_plots
import compare_plots
import stats_file
import stats_plots
import tune_file
import tune_plots

OF_KIND = {stats_file.Stats: stats_plots.section, tune_file.Tune: tune_plots.section, bench_file.Bench: bench_plots.section}


def sections(reports):
    """reports: (heading, what was read) of each file."""
    runs = [(name, report) for name, report in reports if isinstance(report, stats_file.Stats)]
    # The first run is what the others are held against.
    compared = [compare_plots.section((runs[0][0], name), (runs[0][1], report)) for name, report in runs[1:]]
    return compared + [OF_KIND[type(report)](name, report) for name, report in reports]
