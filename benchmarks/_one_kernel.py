"""Options of XLA, for programs to set before JAX is imported."""

# Loops on the CPU as one kernel each, see docs/systems.md.
ONE_KERNEL = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=10000000"
ONE_CORE = "--xla_cpu_multi_thread_eigen=false"
