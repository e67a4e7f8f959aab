/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on their way to the driver that is traced. */
#ifndef CT_INTERPOSE_FORWARD_H
#define CT_INTERPOSE_FORWARD_H

#include "entry_points.h"

#include "tools/trace/signature.h"

enum forward_symbol {
#define SYMBOL(symbol, name, version, flavour, params, args) FORWARD_##symbol,
#include "entry_points.def"
};

struct device_work;

/* An argument where the wrapper has it. */
struct forward_value {
    void *address;
    size_t size_bytes;
};

/* What is known of a symbol; made at its first call, and kept. */
struct forward_plan {
    struct signature signature;
    const char *base_name;            /* without versions and variants */
    bool is_per_thread;               /* its default stream is that of the calling thread */
    int kernel_parameter;             /* index of the parameter that is the kernel to launch; -1: it launches none */
    const struct device_work *work;   /* NULL: it makes no device work */
    bool ends_kernels, ends_contexts; /* handles of kernels and of contexts may end in it */
    bool waits;                       /* work is complete after it */
};

/* A call that is being made; in the wrapper's frame. */
struct forward_call {
    enum forward_symbol symbol;
    const struct forward_value *values; /* as many as the symbol has parameters */
    const struct forward_plan *plan;
    uint64_t correlation, begin_ns;
};

/* The driver's function. If the driver has none: one that returns NOT_SUPPORTED whatever its arguments are. */
ct_function forward_driver(enum forward_symbol symbol);
/* The same with its type, for calls of our own. */
#define DRIVER(symbol) ((__typeof__(&(symbol)))forward_driver(FORWARD_##symbol))

/* The integer of this name: a parameter, or a member of a struct to which a parameter points. False: there is none. */
bool forward_number(const struct forward_call *call, const char *name, uint64_t *out);
/* The argument of this name, which the symbol must have, as an integer. */
uint64_t forward_argument(const struct forward_call *call, const char *name);

#endif
