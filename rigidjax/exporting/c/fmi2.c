/* The Functional Mock-up Interface 2.0, for co-simulation and model exchange. */
#include "fmi_common.h"

typedef int boolean;

typedef struct {
    void (*logger)(void *, text, status, text, text, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*step_finished)(void *, status);
    void *environment;
} callbacks;

typedef struct {
    boolean needs_iteration, terminate, nominals_changed, states_changed, has_next_event;
    double next_event;
} event_info;

enum { DO_STEP_STATUS, PENDING_STATUS, LAST_SUCCESSFUL_TIME, TERMINATED };

struct instance {
    rj_model model;
    callbacks callbacks;
    char name[];
};

static void report(const instance *c, status status, text message) {
    const callbacks *f = &c->callbacks;
    if (f->logger) f->logger(f->environment, c->name, status, "logStatusError", "%s", message);
}

API text fmi2GetTypesPlatform(void) { return "default"; }

API text fmi2GetVersion(void) { return "2.0"; }

API status fmi2SetDebugLogging(instance *c, boolean on, size_t n, const text categories[]) {
    (void)c, (void)on, (void)n, (void)categories;
    return OK;
}

API instance *fmi2Instantiate(text name, int type, text token, text location,
                              const callbacks *callbacks, boolean visible, boolean logging) {
    (void)type, (void)location, (void)visible, (void)logging;
    instance *c = calloc(1, sizeof *c + strlen(name) + 1);
    if (!c) return NULL;
    c->callbacks = *callbacks;
    strcpy(c->name, name);
    text problem = why_not(token);
    if (problem) {
        report(c, ERROR, problem);
        free(c);
        return NULL;
    }
    rj_init(&c->model, 0.0);
    return c;
}

API void fmi2FreeInstance(instance *c) { free(c); }

API status fmi2SetupExperiment(instance *c, boolean has_tolerance, double tolerance, double start,
                               boolean has_stop, double stop) {
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    set_time(&c->model, start);
    return OK;
}

API status fmi2EnterInitializationMode(instance *c) {
    (void)c;
    return OK;
}

API status fmi2ExitInitializationMode(instance *c) {
    c->model.state.is_initializing = 0;
    return OK;
}

API status fmi2Terminate(instance *c) {
    (void)c;
    return OK;
}

API status fmi2Reset(instance *c) {
    rj_init(&c->model, 0.0);
    return OK;
}

API status fmi2GetReal(instance *c, const reference r[], size_t n, double values[]) {
    return get_values(c, &c->model, r, n, values);
}

API status fmi2SetReal(instance *c, const reference r[], size_t n, const double values[]) {
    return set_values(c, &c->model, r, n, values);
}

#define WITHOUT_VARIABLES(TYPE, KIND)                                                             \
    API status fmi2Get##KIND(instance *c, const reference r[], size_t n, TYPE values[]) {         \
        (void)r, (void)values;                                                                    \
        return n ? fail(c, ERROR, "The model has real variables alone.") : OK;                    \
    }                                                                                             \
    API status fmi2Set##KIND(instance *c, const reference r[], size_t n, const TYPE values[]) {   \
        (void)r, (void)values;                                                                    \
        return n ? fail(c, ERROR, "The model has real variables alone.") : OK;                    \
    }
WITHOUT_VARIABLES(int, Integer)
WITHOUT_VARIABLES(boolean, Boolean)
WITHOUT_VARIABLES(text, String)

API status fmi2GetFMUstate(instance *c, void **saved) { return save(c, &c->model, saved); }

API status fmi2SetFMUstate(instance *c, void *saved) {
    restore(&c->model, saved);
    return OK;
}

API status fmi2FreeFMUstate(instance *c, void **saved) {
    (void)c;
    free(*saved);
    *saved = NULL;
    return OK;
}

API status fmi2SerializedFMUstateSize(instance *c, void *saved, size_t *size) {
    (void)c, (void)saved;
    *size = sizeof(rj_state);
    return OK;
}

API status fmi2SerializeFMUstate(instance *c, void *saved, char bytes[], size_t size) {
    if (size < sizeof(rj_state)) return fail(c, ERROR, "The buffer for the state is too small.");
    memcpy(bytes, saved, sizeof(rj_state));
    return OK;
}

API status fmi2DeSerializeFMUstate(instance *c, const char bytes[], size_t size, void **saved) {
    return deserialize(c, bytes, size, saved);
}

API status fmi2GetDirectionalDerivative(instance *c, const reference unknown[], size_t num_unknown,
                                        const reference known[], size_t num_known,
                                        const double seed[], double sensitivity[]) {
    return directional(c, &c->model, unknown, num_unknown, known, num_known, seed, sensitivity);
}

/* Model exchange. */

API status fmi2EnterEventMode(instance *c) {
    (void)c;
    return OK;
}

API status fmi2NewDiscreteStates(instance *c, event_info *info) {
    (void)c;
    memset(info, 0, sizeof *info);
    return OK;
}

API status fmi2EnterContinuousTimeMode(instance *c) {
    (void)c;
    return OK;
}

API status fmi2CompletedIntegratorStep(instance *c, boolean final, boolean *event,
                                       boolean *terminate) {
    (void)c, (void)final;
    *event = *terminate = 0;
    return OK;
}

API status fmi2SetTime(instance *c, double time) {
    set_time(&c->model, time);
    return OK;
}

API status fmi2SetContinuousStates(instance *c, const double x[], size_t n) {
    return set_states(c, &c->model, x, n);
}

API status fmi2GetContinuousStates(instance *c, double x[], size_t n) {
    return get_states(c, &c->model, x, n);
}

API status fmi2GetNominalsOfContinuousStates(instance *c, double x[], size_t n) {
    (void)c;
    get_nominals(x, n);
    return OK;
}

API status fmi2GetDerivatives(instance *c, double rates[], size_t n) {
    return get_rates(c, &c->model, rates, n);
}

API status fmi2GetEventIndicators(instance *c, double indicators[], size_t n) {
    (void)indicators;
    return n ? fail(c, ERROR, "The model has no event indicators.") : OK;
}

/* Co-simulation. */

API status fmi2DoStep(instance *c, double time, double size, boolean final) {
    (void)final;
    return do_step(c, &c->model, time, size);
}

API status fmi2CancelStep(instance *c) { return fail(c, ERROR, "Steps are not asynchronous."); }

API status fmi2SetRealInputDerivatives(instance *c, const reference r[], size_t n,
                                       const int order[], const double values[]) {
    (void)r, (void)order, (void)values;
    return n ? fail(c, ERROR, "Inputs are constant within a step.") : OK;
}

API status fmi2GetRealOutputDerivatives(instance *c, const reference r[], size_t n,
                                        const int order[], double values[]) {
    (void)r, (void)order, (void)values;
    return n ? fail(c, ERROR, "Outputs have no derivatives.") : OK;
}

API status fmi2GetStatus(instance *c, int kind, status *value) {
    (void)kind, (void)value;
    return fail(c, DISCARD, "Steps are not asynchronous.");
}

API status fmi2GetRealStatus(instance *c, int kind, double *value) {
    if (kind != LAST_SUCCESSFUL_TIME) return DISCARD;
    *value = c->model.state.known[RJ_T];
    return OK;
}

API status fmi2GetIntegerStatus(instance *c, int kind, int *value) {
    (void)c, (void)kind, (void)value;
    return DISCARD;
}

API status fmi2GetBooleanStatus(instance *c, int kind, boolean *value) {
    (void)c;
    if (kind != TERMINATED) return DISCARD;
    *value = 0;
    return OK;
}

API status fmi2GetStringStatus(instance *c, int kind, text *value) {
    (void)c, (void)kind, (void)value;
    return DISCARD;
}
