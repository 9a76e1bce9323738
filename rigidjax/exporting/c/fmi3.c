/* The Functional Mock-up Interface 3.0, for co-simulation and model exchange. */
#include "fmi_common.h"

struct instance {
    rj_model model;
    void *environment;
    void (*log)(void *, status, text, text);
};

static void report(const instance *c, status status, text message) {
    if (c->log) c->log(c->environment, status, "logStatusError", message);
}

static instance *create(text token, void *environment, void (*log)(void *, status, text, text)) {
    instance *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->environment = environment;
    c->log = log;
    text problem = why_not(token);
    if (problem) {
        report(c, ERROR, problem);
        free(c);
        return NULL;
    }
    rj_init(&c->model, 0.0);
    return c;
}

API text fmi3GetVersion(void) { return "3.0"; }

API status fmi3SetDebugLogging(instance *c, bool on, size_t n, const text categories[]) {
    (void)c, (void)on, (void)n, (void)categories;
    return OK;
}

API instance *fmi3InstantiateModelExchange(text name, text token, text resources, bool visible,
                                           bool logging, void *environment,
                                           void (*log)(void *, status, text, text)) {
    (void)name, (void)resources, (void)visible, (void)logging;
    return create(token, environment, log);
}

API instance *fmi3InstantiateCoSimulation(text name, text token, text resources, bool visible,
                                          bool logging, bool event_mode, bool early_return,
                                          const reference intermediate[], size_t num_intermediate,
                                          void *environment, void (*log)(void *, status, text, text),
                                          void *intermediate_update) {
    (void)name, (void)resources, (void)visible, (void)logging, (void)event_mode;
    (void)early_return, (void)intermediate, (void)num_intermediate, (void)intermediate_update;
    return create(token, environment, log);
}

API instance *fmi3InstantiateScheduledExecution(text name, text token, text resources, bool visible,
                                                bool logging, void *environment,
                                                void (*log)(void *, status, text, text),
                                                void *clock, void *lock, void *unlock) {
    (void)name, (void)token, (void)resources, (void)visible, (void)logging;
    (void)clock, (void)lock, (void)unlock;
    if (log) log(environment, ERROR, "logStatusError", "Scheduled execution is not supported.");
    return NULL;
}

API void fmi3FreeInstance(instance *c) { free(c); }

API status fmi3EnterInitializationMode(instance *c, bool has_tolerance, double tolerance,
                                       double start, bool has_stop, double stop) {
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    set_time(&c->model, start);
    return OK;
}

API status fmi3ExitInitializationMode(instance *c) {
    c->model.state.is_initializing = 0;
    return OK;
}

#define WITHOUT_EFFECT(NAME)         \
    API status fmi3##NAME(instance *c) { \
        (void)c;                     \
        return OK;                   \
    }
WITHOUT_EFFECT(EnterEventMode)
WITHOUT_EFFECT(Terminate)
WITHOUT_EFFECT(EnterConfigurationMode)
WITHOUT_EFFECT(ExitConfigurationMode)
WITHOUT_EFFECT(EvaluateDiscreteStates)
WITHOUT_EFFECT(EnterContinuousTimeMode)
WITHOUT_EFFECT(EnterStepMode)

API status fmi3Reset(instance *c) {
    rj_init(&c->model, 0.0);
    return OK;
}

API status fmi3GetFloat64(instance *c, const reference r[], size_t n, double values[], size_t m) {
    return n == m ? get_values(c, &c->model, r, n, values)
                  : fail(c, ERROR, "All variables are scalars.");
}

API status fmi3SetFloat64(instance *c, const reference r[], size_t n, const double values[],
                          size_t m) {
    return n == m ? set_values(c, &c->model, r, n, values)
                  : fail(c, ERROR, "All variables are scalars.");
}

#define WITHOUT_VARIABLES(TYPE, KIND)                                                             \
    API status fmi3Get##KIND(instance *c, const reference r[], size_t n, TYPE values[],           \
                             size_t m) {                                                          \
        (void)r, (void)values, (void)m;                                                           \
        return n ? fail(c, ERROR, "The model has variables of type Float64 alone.") : OK;         \
    }                                                                                             \
    API status fmi3Set##KIND(instance *c, const reference r[], size_t n, const TYPE values[],     \
                             size_t m) {                                                          \
        (void)r, (void)values, (void)m;                                                           \
        return n ? fail(c, ERROR, "The model has variables of type Float64 alone.") : OK;         \
    }
WITHOUT_VARIABLES(float, Float32)
WITHOUT_VARIABLES(int8_t, Int8)
WITHOUT_VARIABLES(uint8_t, UInt8)
WITHOUT_VARIABLES(int16_t, Int16)
WITHOUT_VARIABLES(uint16_t, UInt16)
WITHOUT_VARIABLES(int32_t, Int32)
WITHOUT_VARIABLES(uint32_t, UInt32)
WITHOUT_VARIABLES(int64_t, Int64)
WITHOUT_VARIABLES(uint64_t, UInt64)
WITHOUT_VARIABLES(bool, Boolean)
WITHOUT_VARIABLES(text, String)

typedef const unsigned char *binary;

API status fmi3GetBinary(instance *c, const reference r[], size_t n, size_t sizes[],
                         binary values[], size_t m) {
    (void)r, (void)sizes, (void)values, (void)m;
    return n ? fail(c, ERROR, "The model has variables of type Float64 alone.") : OK;
}

API status fmi3SetBinary(instance *c, const reference r[], size_t n, const size_t sizes[],
                         const binary values[], size_t m) {
    (void)r, (void)sizes, (void)values, (void)m;
    return n ? fail(c, ERROR, "The model has variables of type Float64 alone.") : OK;
}

API status fmi3GetClock(instance *c, const reference r[], size_t n, bool values[]) {
    (void)r, (void)values;
    return n ? fail(c, ERROR, "The model has no clocks.") : OK;
}

API status fmi3SetClock(instance *c, const reference r[], size_t n, const bool values[]) {
    (void)r, (void)values;
    return n ? fail(c, ERROR, "The model has no clocks.") : OK;
}

/* All properties of clocks; the model has none. */
#define WITHOUT_CLOCKS(NAME, ...)                                     \
    API status fmi3##NAME(instance *c, const reference r[], size_t n, __VA_ARGS__) { \
        (void)r;                                                      \
        return n ? fail(c, ERROR, "The model has no clocks.") : OK;   \
    }
WITHOUT_CLOCKS(GetIntervalDecimal, double *a, int *b)
WITHOUT_CLOCKS(GetIntervalFraction, uint64_t *a, uint64_t *b, int *d)
WITHOUT_CLOCKS(GetShiftDecimal, double *a)
WITHOUT_CLOCKS(GetShiftFraction, uint64_t *a, uint64_t *b)
WITHOUT_CLOCKS(SetIntervalDecimal, const double *a)
WITHOUT_CLOCKS(SetIntervalFraction, const uint64_t *a, const uint64_t *b)
WITHOUT_CLOCKS(SetShiftDecimal, const double *a)
WITHOUT_CLOCKS(SetShiftFraction, const uint64_t *a, const uint64_t *b)

API status fmi3ActivateModelPartition(instance *c, reference clock, double time) {
    (void)clock, (void)time;
    return fail(c, ERROR, "Scheduled execution is not supported.");
}

API status fmi3GetNumberOfVariableDependencies(instance *c, reference r, size_t *n) {
    (void)r, (void)n;
    return fail(c, ERROR, "Every computed variable depends on all known ones.");
}

API status fmi3GetVariableDependencies(instance *c, reference r, size_t elements[],
                                       reference independents[], size_t of[], int kinds[],
                                       size_t n) {
    (void)r, (void)elements, (void)independents, (void)of, (void)kinds, (void)n;
    return fail(c, ERROR, "Every computed variable depends on all known ones.");
}

API status fmi3GetFMUState(instance *c, void **saved) { return save(c, &c->model, saved); }

API status fmi3SetFMUState(instance *c, void *saved) {
    restore(&c->model, saved);
    return OK;
}

API status fmi3FreeFMUState(instance *c, void **saved) {
    (void)c;
    free(*saved);
    *saved = NULL;
    return OK;
}

API status fmi3SerializedFMUStateSize(instance *c, void *saved, size_t *size) {
    (void)c, (void)saved;
    *size = sizeof(rj_state);
    return OK;
}

API status fmi3SerializeFMUState(instance *c, void *saved, uint8_t bytes[], size_t size) {
    if (size < sizeof(rj_state)) return fail(c, ERROR, "The buffer for the state is too small.");
    memcpy(bytes, saved, sizeof(rj_state));
    return OK;
}

API status fmi3DeserializeFMUState(instance *c, const uint8_t bytes[], size_t size, void **saved) {
    return deserialize(c, bytes, size, saved);
}

API status fmi3GetDirectionalDerivative(instance *c, const reference unknown[], size_t num_unknown,
                                        const reference known[], size_t num_known,
                                        const double seed[], size_t num_seed, double sensitivity[],
                                        size_t num_sensitivity) {
    if (num_seed != num_known || num_sensitivity != num_unknown)
        return fail(c, ERROR, "All variables are scalars.");
    return directional(c, &c->model, unknown, num_unknown, known, num_known, seed, sensitivity);
}

API status fmi3GetAdjointDerivative(instance *c, const reference unknown[], size_t num_unknown,
                                    const reference known[], size_t num_known, const double seed[],
                                    size_t num_seed, double sensitivity[], size_t num_sensitivity) {
    double in[RJ_COMPUTED + 1] = {0}, out[RJ_KNOWN];
    if (num_seed != num_unknown || num_sensitivity != num_known)
        return fail(c, ERROR, "All variables are scalars.");
    status checked = check_derivative(c, unknown, num_unknown, known, num_known);
    if (checked != OK) return checked;
    for (size_t i = 0; i < num_unknown; i++) in[unknown[i] - RJ_KNOWN] += seed[i];
    rj_adjoint(&c->model, in, out);
    for (size_t i = 0; i < num_known; i++) sensitivity[i] = out[known[i]];
    return OK;
}

API status fmi3UpdateDiscreteStates(instance *c, bool *needs_iteration, bool *terminate,
                                    bool *nominals_changed, bool *states_changed,
                                    bool *has_next_event, double *next_event) {
    (void)c;
    *needs_iteration = *terminate = *nominals_changed = *states_changed = *has_next_event = false;
    *next_event = 0.0;
    return OK;
}

/* Model exchange. */

API status fmi3CompletedIntegratorStep(instance *c, bool final, bool *event, bool *terminate) {
    (void)c, (void)final;
    *event = *terminate = false;
    return OK;
}

API status fmi3SetTime(instance *c, double time) {
    set_time(&c->model, time);
    return OK;
}

API status fmi3SetContinuousStates(instance *c, const double x[], size_t n) {
    return set_states(c, &c->model, x, n);
}

API status fmi3GetContinuousStates(instance *c, double x[], size_t n) {
    return get_states(c, &c->model, x, n);
}

API status fmi3GetNominalsOfContinuousStates(instance *c, double x[], size_t n) {
    (void)c;
    get_nominals(x, n);
    return OK;
}

API status fmi3GetContinuousStateDerivatives(instance *c, double rates[], size_t n) {
    return get_rates(c, &c->model, rates, n);
}

API status fmi3GetEventIndicators(instance *c, double indicators[], size_t n) {
    (void)indicators;
    return n ? fail(c, ERROR, "The model has no event indicators.") : OK;
}

API status fmi3GetNumberOfEventIndicators(instance *c, size_t *n) {
    (void)c;
    *n = 0;
    return OK;
}

API status fmi3GetNumberOfContinuousStates(instance *c, size_t *n) {
    (void)c;
    *n = RJ_NX;
    return OK;
}

/* Co-simulation. */

API status fmi3GetOutputDerivatives(instance *c, const reference r[], size_t n,
                                    const int32_t orders[], double values[], size_t m) {
    (void)r, (void)orders, (void)values, (void)m;
    return n ? fail(c, ERROR, "Outputs have no derivatives.") : OK;
}

API status fmi3DoStep(instance *c, double time, double size, bool final, bool *event,
                      bool *terminate, bool *early_return, double *last_time) {
    (void)final;
    status done = do_step(c, &c->model, time, size);
    *event = *terminate = *early_return = false;
    *last_time = c->model.state.known[RJ_T];
    return done;
}
