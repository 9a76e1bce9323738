/* The arm of `arm.py` in C, held by springs and dampers for 1 s, with the time of a step.
 *
 *     python examples/export/arm.py
 *     cc -O2 -I. examples/export/arm.c x86_64-linux/libarm.a -o arm
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "arm.h"

int main(void) {
    arm *model = arm_init(malloc(arm_size()), 0.0);
    if (!model) return 1;
    arm_parameters(model)[0] = 1.5; /* kg */
    double *states = arm_states(model), *torque = arm_inputs(model);
    clock_t start = clock();
    for (int n = 0; n < 1000; n++) {
        for (int k = 0; k < 2; k++) torque[k] = -20.0 * states[k] - 2.0 * states[2 + k];
        int status = arm_step(model, 1e-3);
        if (status) {
            fprintf(stderr, "%s\n", arm_message(status));
            return 1;
        }
    }
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    double angles[ARM_NUM_OUTPUTS];
    arm_outputs(model, angles);
    printf("%.15g %.15g\n", angles[0], angles[1]);
    fprintf(stderr, "%.2f microseconds per step\n", 1e3 * seconds);
    free(model);
    return 0;
}
