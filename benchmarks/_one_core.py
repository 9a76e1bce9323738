"""An option of XLA that has to be set before JAX is imported."""

ONE_CORE = "--xla_cpu_multi_thread_eigen=false"
