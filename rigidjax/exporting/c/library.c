/* The functions of the C library, whose header is generated from `library.h.in`. */
#include <string.h>

#include "core.h"

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

API size_t RJ_NAME(size)(void) { return sizeof(rj_model); }

API rj_model *RJ_NAME(init)(void *memory, double t) {
    if (!rj_processor_fits()) return NULL;
    rj_init(memory, t);
    return memory;
}

API double RJ_NAME(time)(const rj_model *m) { return m->state.known[RJ_T]; }

API double *RJ_NAME(states)(rj_model *m) { return m->state.known + RJ_X; }

API double *RJ_NAME(inputs)(rj_model *m) { return m->state.known + RJ_U; }

API double *RJ_NAME(parameters)(rj_model *m) { return m->state.known + RJ_P; }

API int RJ_NAME(step)(rj_model *m, double h) {
    double t = m->state.known[RJ_T];
    return rj_step(m, t, t + h);
}

API const char *RJ_NAME(message)(int status) { return rj_message(status); }

API void RJ_NAME(rates)(rj_model *m, double *rates) { rj_rates(m, rates); }

API void RJ_NAME(outputs)(rj_model *m, double *outputs) { rj_outputs(m, outputs); }

API void RJ_NAME(jacobian)(rj_model *m, double *A, double *B, double *C, double *D) {
    double in[RJ_KNOWN] = {0}, out[RJ_COMPUTED + 1];
    for (int j = 0; j < RJ_NX + RJ_NU; j++) {
        double *of_rates = j < RJ_NX ? A + j : B + (j - RJ_NX);
        double *of_outputs = j < RJ_NX ? C + j : D + (j - RJ_NX);
        int stride = j < RJ_NX ? RJ_NX : RJ_NU;
        in[RJ_X + j] = 1.0;
        rj_tangent(m, in, out);
        in[RJ_X + j] = 0.0;
        for (int i = 0; i < RJ_NX; i++) of_rates[i * stride] = out[RJ_DX + i];
        for (int i = 0; i < RJ_NY; i++) of_outputs[i * stride] = out[RJ_Y + i];
    }
}

API void RJ_NAME(tangent)(rj_model *m, const double *dx, const double *du, const double *dp,
                          double *rates, double *outputs) {
    double in[RJ_KNOWN] = {0}, out[RJ_COMPUTED + 1];
    if (dx) memcpy(in + RJ_X, dx, RJ_NX * sizeof *dx);
    if (du) memcpy(in + RJ_U, du, RJ_NU * sizeof *du);
    if (dp) memcpy(in + RJ_P, dp, RJ_NP * sizeof *dp);
    rj_tangent(m, in, out);
    if (rates) memcpy(rates, out + RJ_DX, RJ_NX * sizeof *rates);
    if (outputs) memcpy(outputs, out + RJ_Y, RJ_NY * sizeof *outputs);
}

API void RJ_NAME(adjoint)(rj_model *m, const double *rates, const double *outputs, double *dx,
                          double *du, double *dp) {
    double in[RJ_COMPUTED + 1] = {0}, out[RJ_KNOWN];
    if (rates) memcpy(in + RJ_DX, rates, RJ_NX * sizeof *rates);
    if (outputs) memcpy(in + RJ_Y, outputs, RJ_NY * sizeof *outputs);
    rj_adjoint(m, in, out);
    if (dx) memcpy(dx, out + RJ_X, RJ_NX * sizeof *dx);
    if (du) memcpy(du, out + RJ_U, RJ_NU * sizeof *du);
    if (dp) memcpy(dp, out + RJ_P, RJ_NP * sizeof *dp);
}
