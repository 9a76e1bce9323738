"""An option of XLA, for programs to set before JAX is imported."""

ONE_CORE = "--xla_cpu_multi_thread_eigen=false"
