/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of graph nodes. A node copies the CUgraphNodeParams of the application with everything to which they point.
 *
 * Functions, events, arrays and memory are stored by their handles and addresses and looked up when the node is executed, so a graph does not
 * keep them alive, as in CUDA. */
#ifndef CT_CORE_NODE_PARAMS_H
#define CT_CORE_NODE_PARAMS_H

#include "core/base/object.h"
#include "core/copy/memset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parameters of a kernel as one block, and a pointer to each, as applications get them. */
struct ct_kernel_arguments {
    unsigned char *bytes;
    size_t size_bytes;
    void **pointers;
    size_t count;
};

/* An array that was copied. */
struct ct_node_array {
    void *elements;
    size_t size_bytes;
};
#define CT_NODE_ARRAYS 2

/* Attributes that were set, as a list. */
struct ct_node_attribute {
    struct ct_node_attribute *next;
    CUlaunchAttribute attribute;
};

struct ct_function;
struct ct_context;
struct ct_launch_shape;

struct ct_node_params {
    CUgraphNodeParams given; /* pointers in it refer to the members below */
    struct ct_kernel_arguments arguments;
    struct ct_node_array arrays[CT_NODE_ARRAYS]; /* those of semaphores, or of memory operations */
    struct ct_node_attribute *attributes;        /* of a kernel; NULL: none was set */
    struct ct_object *child;                     /* the graph of a GRAPH node, which owns it: ct_node_child_or_null (graph.h) */
    struct ct_object *branches;                  /* of a CONDITIONAL node: ct_node_branches_or_null (graph.h); a reference */
    struct ct_object *allocation;                /* of a MEM_ALLOC or MEM_FREE node (graph_memory.h); a reference */
};

/* Copies the parameters of a node of any supported type, without the child graph or memory, and validates what does not depend on the node's context. INVALID_VALUE: they are
 * invalid; NOT_SUPPORTED: nodes of this type; INVALID_HANDLE: a function or an event that does not exist; OUT_OF_MEMORY. */
CUresult ct_node_params_init(struct ct_node_params *out, const CUgraphNodeParams *params);
/* Copies everything but the child graph. After a failure *out is valid for ct_node_params_finish, too. */
CUresult ct_node_params_copy(struct ct_node_params *out, const struct ct_node_params *params);
/* Exchanges the parameters of a node and new ones of the same type, which have no attributes; the node keeps its attributes. */
void ct_node_params_replace(struct ct_node_params *params, struct ct_node_params *by);
/* Whether two nodes do the same. Only for kernels, copies and memsets: false for all other types. */
bool ct_node_params_equal(const struct ct_node_params *a, const struct ct_node_params *b);
void ct_node_params_finish(struct ct_node_params *params); /* the caller does not hold the lock of graphs */

/* Attributes of kernels (cuGraphKernelNodeSetAttribute). INVALID_VALUE: it is not an attribute of kernels, or has an invalid value; NOT_SUPPORTED:
 * one that would change the behaviour of the launch. */
CUresult ct_node_params_set_attribute(struct ct_node_params *params, const CUlaunchAttribute *attribute);
/* Attributes that were not set are 0. */
CUresult ct_node_params_get_attribute(const struct ct_node_params *params, CUlaunchAttributeID id, CUlaunchAttributeValue *out);
/* Replaces the attributes of `out` by copies. */
CUresult ct_node_params_copy_attributes(struct ct_node_params *out, const struct ct_node_params *params);
bool ct_node_params_cooperate(const struct ct_node_params *params);

/* The shape of a kernel node's launch. */
struct ct_launch_shape ct_node_shape(const struct ct_node_params *params);
/* The function of a kernel node, given as a CUfunction or a CUkernel, retained. INVALID_HANDLE: it does not exist; INVALID_VALUE: no context is
 * given or current. */
CUresult ct_node_function(const CUDA_KERNEL_NODE_PARAMS_v3 *kernel, struct ct_function **out);

/* Whether a node may be in a body whose condition belongs to the context. INVALID_VALUE: the kernel belongs to another one, or the memory of a
 * copy to none, since it is pageable host memory. */
CUresult ct_node_params_check_context(const struct ct_node_params *params, const struct ct_context *context);

/* What a MEMSET node fills. */
struct ct_fill_request ct_node_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *memset);

/* "KERNEL", "MEMCPY" ...; never NULL. */
const char *ct_node_type_name(CUgraphNodeType type);

#endif
