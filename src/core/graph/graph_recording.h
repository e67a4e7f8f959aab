/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that can be recorded: kernels, and copies and fills within the device. */
#ifndef CT_CORE_GRAPH_RECORDING_H
#define CT_CORE_GRAPH_RECORDING_H

#include "core/copy/memory_kernels.h"
#include "core/launch/launch.h"
#include "node_params.h"

enum ct_recorded_kind { CT_RECORDED_NOTHING, CT_RECORDED_KERNEL, CT_RECORDED_COPY, CT_RECORDED_FILL };

struct ct_recorded_node {
    enum ct_recorded_kind kind;     /* NOTHING: it has to be enqueued */
    struct ct_function *function;   /* of a KERNEL; retained */
    bool uses_slots;                /* the KERNEL's shared memory is in recorded_slots.h */
    struct ct_memory_launch memory; /* of a COPY or FILL */
};

/* Finds out how the node can be recorded for streams of the stream's context. Compiles its kernel. */
void ct_recorded_node_init(struct ct_recorded_node *out, const struct ct_node_params *params, struct ct_stream *stream);
void ct_recorded_node_finish(struct ct_recorded_node *recorded);
CUresult ct_recorded_node_record(const struct ct_recorded_node *recorded, const struct ct_node_params *params,
                                 struct ct_recording *recording, const struct ct_stream *stream);
/* Whether the memory of a COPY or FILL is still what was recorded. Announces its use (core/backing/address_uses.h). */
bool ct_recorded_node_is_valid(const struct ct_recorded_node *recorded, const struct ct_node_params *params, struct ct_stream *stream);

#endif
