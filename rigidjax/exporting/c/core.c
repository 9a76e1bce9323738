/* Calls of the kernels of a model. No function of this file allocates memory. */
#include "core.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Whether the processor has the instructions of the kernels: AVX2, FMA, BMI on x86-64. */
bool rj_processor_fits(void) {
#if defined(__x86_64__)
    const unsigned fma_osxsave_avx = 1u << 12 | 1u << 27 | 1u << 28;
    const unsigned bmi_avx2_bmi2 = 1u << 3 | 1u << 5 | 1u << 8;
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & fma_osxsave_avx) != fma_osxsave_avx) return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6) return false; /* the operating system does not save vector registers */
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bmi_avx2_bmi2) == bmi_avx2_bmi2;
#else
    return true;
#endif
}

static void call(rj_kernel *kernel, rj_model *model, const void **arguments, void **results) {
    uintptr_t start = ((uintptr_t)model->workspace + 63) & ~(uintptr_t)63;
    kernel(arguments, results, (void *)start, 0, 1);
}

void rj_init(rj_model *model, double t) {
    static const double start[RJ_KNOWN] = {RJ_START};
    memset(&model->state, 0, sizeof model->state);
    memcpy(model->state.known, start, sizeof start);
    model->state.known[RJ_T] = t;
    model->state.is_initializing = 1;
    rj_changed(model);
}

void rj_rates(rj_model *model, double *rates) {
    const double *k = model->state.known;
    const void *arguments[] = {k + RJ_T, k + RJ_X, k + RJ_U, k + RJ_P};
    call(RJ_KERNEL(rates), model, arguments, (void *[]){rates});
}

void rj_outputs(rj_model *model, double *outputs) {
    const double *k = model->state.known;
    const void *arguments[] = {k + RJ_T, k + RJ_X, k + RJ_U, k + RJ_P};
    call(RJ_KERNEL(outputs), model, arguments, (void *[]){outputs});
}

double rj_computed(rj_model *model, unsigned index) {
    if (index < RJ_Y && !model->has_rates) {
        rj_rates(model, model->computed + RJ_DX);
        model->has_rates = true;
    } else if (index >= RJ_Y && !model->has_outputs) {
        rj_outputs(model, model->computed + RJ_Y);
        model->has_outputs = true;
    }
    return model->computed[index];
}

void rj_changed(rj_model *model) { model->has_rates = model->has_outputs = false; }

void rj_tangent(rj_model *model, const double *known, double *computed) {
    const double *k = model->state.known, *d = known;
    const void *arguments[] = {k + RJ_T, k + RJ_X, k + RJ_U, k + RJ_P, d + RJ_X, d + RJ_U, d + RJ_P};
    call(RJ_KERNEL(tangent), model, arguments, (void *[]){computed + RJ_DX, computed + RJ_Y});
}

void rj_adjoint(rj_model *model, const double *computed, double *known) {
    const double *k = model->state.known, *c = computed;
    const void *arguments[] = {k + RJ_T, k + RJ_X, k + RJ_U, k + RJ_P, c + RJ_DX, c + RJ_Y};
    known[RJ_T] = 0.0;
    call(RJ_KERNEL(adjoint), model, arguments,
         (void *[]){known + RJ_X, known + RJ_U, known + RJ_P});
}

#if RJ_HAS_MEMORY
static void begin(rj_model *model, double t1) {
    rj_state *s = &model->state;
    const double *k = s->known;
    const void *arguments[] = {k + RJ_T, &t1, k + RJ_X, k + RJ_U, k + RJ_P};
    void *results[] = {RJ_MEMORY_OF(s->memory)};
    call(RJ_KERNEL(begin), model, arguments, results);
    s->has_begun = 1;
}
#endif

/* Make a step of the kernel to `t1`. States and memory are unchanged if the step fails. */
static int step(rj_model *model, double t1) {
    rj_state *s = &model->state;
    double x[RJ_NX + 1], *k = s->known;
    int32_t status = 0;
#if RJ_HAS_MEMORY
    double memory[RJ_MEMORY + 1];
    double reset = memcmp(k + RJ_X, s->last + RJ_X, sizeof s->last - sizeof *k) != 0;
    if (!s->has_begun) begin(model, t1);
#else
    double reset = 0.0;
#endif
    const void *arguments[] = {k + RJ_T, &t1,      &reset,
                               k + RJ_X, k + RJ_U, k + RJ_P RJ_AND_MEMORY_OF(s->memory)};
    void *results[] = {x, &status RJ_AND_MEMORY_OF(memory)};
    call(RJ_KERNEL(step), model, arguments, results);
    if (status) return status;
    memcpy(k + RJ_X, x, RJ_NX * sizeof *x);
    k[RJ_T] = t1;
#if RJ_HAS_MEMORY
    memcpy(s->memory, memory, sizeof memory);
    memcpy(s->last, k, sizeof s->last);
#endif
    rj_changed(model);
    return 0;
}

int rj_step(rj_model *model, double t0, double t1) {
    double h = t1 - t0;
    int64_t count = 1;
    int status = 0;
    if (!(h > 0.0 && h <= RJ_LONGEST_STEP)) return RJ_BAD_STEP;
#ifdef RJ_FIXED_STEP
    /* As few steps of equal length as possible; round-off of `h` must not add one. */
    count = (int64_t)(h / RJ_FIXED_STEP * (1.0 - 1e-9)) + 1;
#endif
    model->before = model->state;
    model->state.known[RJ_T] = t0;
    for (int64_t n = 1; n <= count && !status; n++)
        status = step(model, n < count ? t0 + h * ((double)n / (double)count) : t1);
    /* The steps before the one that fails have changed the state, and so has `begin`. */
    if (status) model->state = model->before;
    return status;
}

const char *rj_message(int status) {
    static const struct {
        int status;
        const char *text;
    } messages[] = {RJ_MESSAGES};
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (messages[i].status == status) return messages[i].text;
    return "The step failed.";
}
