/* SPDX-License-Identifier: Apache-2.0 */
/* Random kernels in the oracle and on a CUDA device: runs a case on both, and shrinks those that differ. */
#ifndef DIFFERENTIAL_H
#define DIFFERENTIAL_H

#include "generate.h"

#include <time.h>

enum verdict {
    VERDICT_SAME,
    VERDICT_DIFFERENT,    /* memory differs after the kernel */
    VERDICT_NOT_COMPILED, /* the device's compiler rejects the module */
    VERDICT_NOT_RUN,      /* the launch or a later call fails */
    VERDICT_DIES,         /* the process ends or hangs */
    VERDICT_UNDEFINED,    /* the oracle reports undefined behaviour: a fault of the generator, or of a shrunk kernel */
    VERDICT_NO_DEVICE,
};

struct trial {
    enum verdict verdict;
    char message[512];
};

struct differential_case {
    const char *text;
    const struct generator_launch *launch;
    const struct generator_data *data;
};

/* Runs a case in the oracle, then on device 0 of the CUDA driver, and compares `out` and `acc` bit for bit. */
void differential_try(const struct differential_case *c, struct trial *out);
/* The same in a child process; the calling process must not have called CUDA. */
void differential_try_apart(const struct differential_case *c, struct trial *out);
/* Limits the time of such a process, in seconds of processor time; the limit of wall-clock time is several times that. A process that
 * exceeds a limit is ended by SIGPROF or SIGALRM. */
void differential_set_patience(unsigned seconds);
/* Start that limit for the calling process, or remove it. */
void differential_start_clock(void);
void differential_stop_clock(void);
/* Without a device: compares the oracle with itself, with its threads in another order. */
void differential_try_orders(const struct differential_case *c, struct trial *out);
typedef void differential_function(const struct differential_case *c, struct trial *out);

const char *differential_verdict_name(enum verdict verdict);

struct differential_effort {
    unsigned attempts; /* maximum number of attempts */
    time_t deadline;   /* no attempt begins after that; 0: none */
};
/* Makes a failing program as small as possible while `attempt` gives the same verdict. */
void differential_shrink(struct program *program, enum verdict verdict, differential_function *attempt,
                         const struct differential_effort *effort);

/* Files of cases: PTX with the launch and the seed of the data in their first lines. */
bool differential_write(const char *path, const struct program *program, const struct trial *trial);
/* Reads such a file; the caller frees *text. */
bool differential_read(const char *path, char **text, struct generator_launch *launch, struct generator_data *data);

#endif
