/* A model in memory, on which the C library and the FMI interfaces are built. */
#ifndef RJ_CORE_H
#define RJ_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "model.h" /* generated: counts, start values, names of the kernels */

/* Names that differ between models, so that a program can contain several static libraries. */
#define rj_processor_fits RJ_CORE(processor_fits)
#define rj_init RJ_CORE(init)
#define rj_step RJ_CORE(step)
#define rj_rates RJ_CORE(rates)
#define rj_outputs RJ_CORE(outputs)
#define rj_computed RJ_CORE(computed)
#define rj_changed RJ_CORE(changed)
#define rj_tangent RJ_CORE(tangent)
#define rj_adjoint RJ_CORE(adjoint)
#define rj_message RJ_CORE(message)

/* Value references: time, states, inputs, parameters, then the computed rates and outputs. */
enum {
    RJ_T = 0,
    RJ_X = 1,
    RJ_U = RJ_X + RJ_NX,
    RJ_P = RJ_U + RJ_NU,
    RJ_KNOWN = RJ_P + RJ_NP,
    RJ_DX = 0,
    RJ_Y = RJ_NX,
    RJ_COMPUTED = RJ_NX + RJ_NY,
    RJ_VARIABLES = RJ_KNOWN + RJ_COMPUTED
};

/* Everything that determines the future of a model; it is saved and restored as a whole. */
typedef struct {
    double known[RJ_KNOWN];
    double last[RJ_KNOWN]; /* known values at the end of the last step */
    int32_t has_begun;     /* whether `memory` belongs to `last` */
    int32_t is_initializing;
    double memory[RJ_MEMORY + 1]; /* state of the solver and of its step-size control */
} rj_state;

typedef struct {
    double workspace[RJ_WORKSPACE + 8];
    rj_state state, before; /* `before` the step in progress; too large for small stacks */
    double computed[RJ_COMPUTED + 1];
    bool has_rates, has_outputs; /* whether `computed` belongs to `state` */
} rj_model;

/* Error of `rj_step` beside those of the kernel: a step that is not positive, or too long. */
#define RJ_BAD_STEP (-1)

bool rj_processor_fits(void);
void rj_init(rj_model *model, double t);
int rj_step(rj_model *model, double t0, double t1); /* `state` is unchanged on failure */
void rj_rates(rj_model *model, double *rates);
void rj_outputs(rj_model *model, double *outputs);
double rj_computed(rj_model *model, unsigned index); /* a rate or an output, computed once */
void rj_changed(rj_model *model); /* after a change of `state` */
void rj_tangent(rj_model *model, const double *known, double *computed);
void rj_adjoint(rj_model *model, const double *computed, double *known);
const char *rj_message(int status);

#endif
