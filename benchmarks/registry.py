"""The list of benchmarks, in the order of the table."""

from collections.abc import Callable, Iterator

from benchmarks import (
    backward_peak,
    chain,
    cheap_gradient,
    compile_growth,
    compiled,
    compiled_calls,
    control_flow,
    data_loading,
    digits,
    graphs,
    halves,
    implicit,
    imports,
    indexed_loop,
    initial_values,
    jacobians,
    jets,
    memory,
    op_table,
    optimizer_steps,
    single_ops,
    sparse_derivatives,
    training,
    transform,
    untracked,
)
from benchmarks.harness import Settings
from benchmarks.result import NotRun, Row

Benchmark = Callable[[Settings], Iterator[Row | NotRun]]

BENCHMARKS: dict[str, Benchmark] = {
    "chain": chain.run,
    "untracked": untracked.run,
    "small-ops": single_ops.run_small,
    "transform": transform.run,
    "indexed-loop": indexed_loop.run,
    "cheap-gradient": cheap_gradient.run,
    "backward-peak": backward_peak.run,
    "digits": digits.run,
    "op-table": op_table.run,
    "convolutions": op_table.run_convolutions,
    "import": imports.run,
    "compiled-chain": compiled.run_chain,
    "compiled-small": compiled.run_small,
    "compiled-calls": compiled_calls.run,
    "compiled-rows": compiled.run_row_wise,
    "compiled-training": compiled.run_training,
    "compile-time": compiled.run_compile_time,
    "compile-growth": compile_growth.run,
    "control-flow": control_flow.run,
    "jacobians": jacobians.run,
    "jets": jets.run,
    "graphs": graphs.run,
    "halves": halves.run,
    "implicit": implicit.run,
    "initial-values": initial_values.run,
    "memory": memory.run,
    "optimizer-steps": optimizer_steps.run,
    "data-loading": data_loading.run,
    "sparse-derivatives": sparse_derivatives.run,
    "training": training.run,
}
