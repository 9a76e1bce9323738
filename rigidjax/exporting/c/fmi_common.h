/* What both versions of the Functional Mock-up Interface share. Each defines `report`. */
#ifndef RJ_FMI_COMMON_H
#define RJ_FMI_COMMON_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } status;
typedef unsigned reference;
typedef const char *text;

typedef struct instance instance;

static void report(const instance *c, status status, text message);

static status fail(const instance *c, status status, text message) {
    report(c, status, message);
    return status;
}

/* Return why a model cannot be instantiated, or `NULL`. */
static text why_not(text token) {
    if (!token || strcmp(token, RJ_TOKEN)) return "The token is not that of this FMU.";
    if (!rj_processor_fits()) return "The processor lacks AVX2, FMA or BMI instructions.";
    return NULL;
}

/* `DISCARD` asks the importing program for a shorter step, from values that are finite. */
static status check_finite(const instance *c, const double values[], size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return fail(c, DISCARD, "A rate or an output is not finite.");
    return OK;
}

static status get_values(const instance *c, rj_model *m, const reference r[], size_t n,
                         double values[]) {
    status found = OK;
    for (size_t i = 0; i < n; i++) {
        if (r[i] >= RJ_VARIABLES) return fail(c, ERROR, "There is no such variable.");
        bool is_known = r[i] < RJ_KNOWN;
        values[i] = is_known ? m->state.known[r[i]] : rj_computed(m, r[i] - RJ_KNOWN);
        if (!is_known && found == OK) found = check_finite(c, values + i, 1);
    }
    return found;
}

static status set_values(const instance *c, rj_model *m, const reference r[], size_t n,
                         const double values[]) {
    for (size_t i = 0; i < n; i++) {
        bool is_state = r[i] >= RJ_X && r[i] < RJ_X + RJ_NX;
        if (r[i] == RJ_T || r[i] >= RJ_KNOWN || (is_state && !m->state.is_initializing))
            return fail(c, ERROR, "The variable cannot be set here.");
    }
    for (size_t i = 0; i < n; i++) m->state.known[r[i]] = values[i];
    rj_changed(m);
    return OK;
}

/* Check the references of a derivative: computed variables by known ones. */
static status check_derivative(const instance *c, const reference unknown[], size_t num_unknown,
                               const reference known[], size_t num_known) {
    for (size_t i = 0; i < num_known; i++)
        if (known[i] == RJ_T || known[i] >= RJ_KNOWN)
            return fail(c, ERROR, "Derivatives are by states, inputs and parameters.");
    for (size_t i = 0; i < num_unknown; i++)
        if (unknown[i] < RJ_KNOWN || unknown[i] >= RJ_VARIABLES)
            return fail(c, ERROR, "Derivatives are those of outputs and of rates of states.");
    return OK;
}

static status directional(const instance *c, rj_model *m, const reference unknown[],
                          size_t num_unknown, const reference known[], size_t num_known,
                          const double seed[], double sensitivity[]) {
    double in[RJ_KNOWN] = {0}, out[RJ_COMPUTED + 1];
    status checked = check_derivative(c, unknown, num_unknown, known, num_known);
    if (checked != OK) return checked;
    for (size_t i = 0; i < num_known; i++) in[known[i]] += seed[i];
    rj_tangent(m, in, out);
    for (size_t i = 0; i < num_unknown; i++) sensitivity[i] = out[unknown[i] - RJ_KNOWN];
    return OK;
}

static status save(const instance *c, const rj_model *m, void **saved) {
    if (!*saved) *saved = malloc(sizeof(rj_state));
    if (!*saved) return fail(c, ERROR, "There is not enough memory.");
    memcpy(*saved, &m->state, sizeof(rj_state));
    return OK;
}

static void restore(rj_model *m, const void *saved) {
    memcpy(&m->state, saved, sizeof(rj_state));
    rj_changed(m);
}

static status deserialize(const instance *c, const void *bytes, size_t size, void **saved) {
    if (size != sizeof(rj_state)) return fail(c, ERROR, "The bytes are no state of this model.");
    if (!*saved) *saved = malloc(size);
    if (!*saved) return fail(c, ERROR, "There is not enough memory.");
    memcpy(*saved, bytes, size);
    return OK;
}

static void set_time(rj_model *m, double time) {
    m->state.known[RJ_T] = time;
    rj_changed(m);
}

static status set_states(const instance *c, rj_model *m, const double x[], size_t n) {
    if (n != RJ_NX) return fail(c, ERROR, "The number of states is wrong.");
    memcpy(m->state.known + RJ_X, x, n * sizeof *x);
    rj_changed(m);
    return OK;
}

static status get_states(const instance *c, const rj_model *m, double x[], size_t n) {
    if (n != RJ_NX) return fail(c, ERROR, "The number of states is wrong.");
    memcpy(x, m->state.known + RJ_X, n * sizeof *x);
    return OK;
}

static status get_rates(const instance *c, rj_model *m, double rates[], size_t n) {
    if (n != RJ_NX) return fail(c, ERROR, "The number of states is wrong.");
    for (size_t i = 0; i < n; i++) rates[i] = rj_computed(m, RJ_DX + i);
    return check_finite(c, rates, n);
}

static void get_nominals(double x[], size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = 1.0;
}

static status do_step(const instance *c, rj_model *m, double time, double size) {
    int result = rj_step(m, time, time + size);
    return result ? fail(c, DISCARD, rj_message(result)) : OK;
}

#endif
