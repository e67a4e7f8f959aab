/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and checks the parameters of graph nodes, type by type. */
#include "node_params.h"

#include "core/array/copy_request.h"
#include "core/backing/address_uses.h"
#include "core/base/log.h"
#include "core/code/function.h"
#include "core/command/memory_operations.h"
#include "core/command/semaphore_calls.h"
#include "core/launch/launch.h"
#include "core/pool/kept_block.h"
#include "core/pool/memory_pool.h"
#include "core/library/function_lookup.h"
#include "core/stream/event.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "graph"

/* ---- kernels ---- */

/* Lets params->given refer to the copied arguments. */
static void point_to_arguments(struct ct_node_params *params)
{
    params->given.kernel.kernelParams = params->arguments.pointers;
    params->given.kernel.extra = NULL;
}

static CUresult allocate_arguments(size_t size_bytes, size_t count, struct ct_kernel_arguments *out)
{
    unsigned char *bytes = calloc(1, size_bytes ? size_bytes : 1);
    void **pointers = calloc(count ? count : 1, sizeof *pointers);

    if (!bytes || !pointers) {
        free(bytes);
        free(pointers);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes of kernel parameters", size_bytes);
    }
    *out = (struct ct_kernel_arguments){bytes, size_bytes, pointers, count};
    return CUDA_SUCCESS;
}

static CUresult copy_arguments(const struct ct_function *function, const CUDA_KERNEL_NODE_PARAMS_v3 *given, struct ct_kernel_arguments *out)
{
    const struct ptx2spv_kernel_decl *decl = function->decl;
    struct ct_kernel_arguments arguments;
    CUresult r = allocate_arguments(decl->param_bytes, decl->n_params, &arguments);

    if (r != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < decl->n_params; i++)
        arguments.pointers[i] = arguments.bytes + decl->params[i].offset;
    r = ct_launch_pack_params(function, given->kernelParams, given->extra, arguments.bytes);
    if (r == CUDA_SUCCESS) {
        *out = arguments;
    } else {
        free(arguments.bytes);
        free(arguments.pointers);
    }
    return r;
}

static bool is_function(CUfunction handle)
{
    struct ct_object *object = ct_object_find_or_null(CT_OBJECT_FUNCTION, handle);

    ct_object_release(object);
    return object != NULL;
}

CUresult ct_node_function(const CUDA_KERNEL_NODE_PARAMS_v3 *given, struct ct_function **out)
{
    const CUfunction handle = given->func ? given->func : (CUfunction)given->kern;
    struct ct_context *context;
    CUresult r;

    if (!handle)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "a kernel node without a function");
    if (is_function(handle)) /* which has a context; a CUkernel has one function in each */
        return ct_function_lookup(handle, NULL, out);
    r = ct_context_lookup_or_current(given->ctx, &context);
    if (r == CUDA_ERROR_INVALID_CONTEXT)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a kernel node without a context, while none is current");
    if (r != CUDA_SUCCESS)
        return r;
    r = ct_function_lookup(handle, context, out);
    ct_context_release(context);
    return r;
}

static struct ct_node_attribute *find_attribute_or_null(const struct ct_node_params *params, CUlaunchAttributeID id)
{
    struct ct_node_attribute *attribute = params->attributes;

    while (attribute && attribute->attribute.id != id)
        attribute = attribute->next;
    return attribute;
}

struct ct_launch_shape ct_node_shape(const struct ct_node_params *params)
{
    const CUDA_KERNEL_NODE_PARAMS_v3 *given = &params->given.kernel;
    const struct ct_node_attribute *cluster = find_attribute_or_null(params, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    struct ct_launch_shape shape = {
        .grid = {given->gridDimX, given->gridDimY, given->gridDimZ},
        .block = {given->blockDimX, given->blockDimY, given->blockDimZ},
        .dynamic_shared_bytes = given->sharedMemBytes,
        .cooperative = ct_node_params_cooperate(params),
    };

    if (cluster)
        ct_launch_attributes_cluster(&cluster->attribute, 1, shape.cluster);
    return shape;
}

static CUresult check_kernel(struct ct_node_params *params)
{
    const CUDA_KERNEL_NODE_PARAMS_v3 *given = &params->given.kernel;
    const struct ct_launch_shape shape = ct_node_shape(params);
    struct ct_function *function;
    CUresult r = ct_node_function(given, &function);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_launch_check_shape(function, &shape)) == CUDA_SUCCESS &&
        (r = copy_arguments(function, given, &params->arguments)) == CUDA_SUCCESS)
        point_to_arguments(params);
    ct_function_release(function);
    return r;
}

static CUresult duplicate_arguments(const struct ct_kernel_arguments *from, struct ct_kernel_arguments *out)
{
    CUresult r = allocate_arguments(from->size_bytes, from->count, out);

    if (r != CUDA_SUCCESS)
        return r;
    memcpy(out->bytes, from->bytes, from->size_bytes);
    for (size_t i = 0; i < from->count; i++)
        out->pointers[i] = out->bytes + ((unsigned char *)from->pointers[i] - from->bytes);
    return CUDA_SUCCESS;
}

/* ---- attributes of kernels ---- */

/* Which attributes of launches kernel nodes have: those that NVIDIA's driver 580 reads back. */
static bool is_node_attribute(CUlaunchAttributeID id)
{
    static const CUlaunchAttributeID ids[] = {
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        CU_LAUNCH_ATTRIBUTE_PRIORITY,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
        CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    };

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static CUresult check_attribute(const CUlaunchAttribute *attribute)
{
    return is_node_attribute(attribute->id) ? ct_launch_check_attributes(attribute, 1)
                                            : ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel nodes have no attribute %d", (int)attribute->id);
}

CUresult ct_node_params_set_attribute(struct ct_node_params *params, const CUlaunchAttribute *value)
{
    struct ct_node_attribute *attribute = find_attribute_or_null(params, value->id);
    CUresult r = check_attribute(value);

    if (r != CUDA_SUCCESS)
        return r;
    if (!attribute) {
        if (!(attribute = calloc(1, sizeof *attribute)))
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an attribute of a node");
        attribute->next = params->attributes;
        params->attributes = attribute;
    }
    attribute->attribute = *value;
    return CUDA_SUCCESS;
}

CUresult ct_node_params_get_attribute(const struct ct_node_params *params, CUlaunchAttributeID id, CUlaunchAttributeValue *out)
{
    const struct ct_node_attribute *attribute = find_attribute_or_null(params, id);
    const CUlaunchAttribute none = {.id = id};
    CUresult r = attribute ? CUDA_SUCCESS : check_attribute(&none);

    if (r == CUDA_SUCCESS)
        *out = attribute ? attribute->attribute.value : none.value;
    return r;
}

static void free_attributes(struct ct_node_params *params)
{
    while (params->attributes) {
        struct ct_node_attribute *attribute = params->attributes;

        params->attributes = attribute->next;
        free(attribute);
    }
}

CUresult ct_node_params_copy_attributes(struct ct_node_params *out, const struct ct_node_params *params)
{
    struct ct_node_params copy = {.attributes = NULL};
    CUresult r = CUDA_SUCCESS;

    for (const struct ct_node_attribute *a = params->attributes; a && r == CUDA_SUCCESS; a = a->next)
        r = ct_node_params_set_attribute(&copy, &a->attribute);
    if (r != CUDA_SUCCESS) {
        free_attributes(&copy);
        return r;
    }
    free_attributes(out);
    out->attributes = copy.attributes;
    return CUDA_SUCCESS;
}

bool ct_node_params_cooperate(const struct ct_node_params *params)
{
    const struct ct_node_attribute *attribute = find_attribute_or_null(params, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);

    return attribute && attribute->attribute.value.cooperative;
}

/* ---- memory ---- */

/* Memory that graphs allocate need not be allocated yet. */
static bool uses_memory_of_graphs(const struct ct_copy_request *request)
{
    return (!request->src.array && ct_kept_blocks_contain(request->src.device)) ||
           (!request->dst.array && ct_kept_blocks_contain(request->dst.device));
}

/* Reports what is wrong with a copy now; the memory is looked up again when the node is executed. */
static CUresult check_memcpy(struct ct_node_params *params)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_copy_located located = {0};
    struct ct_copy_request request;
    CUresult r = ct_copy_request_init(&params->given.memcpy.copyParams, &request);

    if (r == CUDA_SUCCESS && ct_copy_request_is_empty(&request))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a copy node without bytes");
    if (r == CUDA_SUCCESS && !uses_memory_of_graphs(&request))
        r = ct_copy_request_locate(&request, &located);
    ct_address_uses_end(uses);
    ct_copy_located_finish(&located);
    return r;
}

struct ct_fill_request ct_node_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *given)
{
    return (struct ct_fill_request){
        .address = given->dst,
        .pitch = given->pitch,
        .width = given->width,
        .height = given->height,
        .element_bytes = given->elementSize,
        .value = given->value,
        .mode = CT_COPY_ASYNC,
    };
}

static CUresult check_memset(struct ct_node_params *params)
{
    const CUDA_MEMSET_NODE_PARAMS_v2 *given = &params->given.memset;
    const struct ct_fill_request request = ct_node_fill(given);
    const unsigned uses = ct_address_uses_begin();
    struct ct_fill fill;
    CUresult r;

    if (given->elementSize != 1 && given->elementSize != 2 && given->elementSize != 4)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "elements of %u bytes in a memset node", given->elementSize);
    else if (!given->width || !given->height)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a memset node without elements");
    else
        r = ct_kept_blocks_contain(given->dst) ? CUDA_SUCCESS : ct_fill_init(&fill, &request);
    ct_address_uses_end(uses);
    return r;
}

/* ---- other types ---- */

static CUresult check_host(struct ct_node_params *params)
{
    return params->given.host.fn ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "a host node without a function");
}

static CUresult check_event(CUevent handle)
{
    struct ct_event *event;
    CUresult r = handle ? ct_event_lookup(handle, &event) : ct_fail(CUDA_ERROR_INVALID_VALUE, "an event node without an event");

    if (r == CUDA_SUCCESS)
        ct_event_release(event);
    return r;
}

static CUresult check_event_wait(struct ct_node_params *params)
{
    return check_event(params->given.eventWait.event);
}

static CUresult check_event_record(struct ct_node_params *params)
{
    return check_event(params->given.eventRecord.event);
}

/* ---- the contexts of nodes in bodies ---- */

static CUresult check_kernel_context(const CUDA_KERNEL_NODE_PARAMS_v3 *given, const struct ct_context *context)
{
    struct ct_function *function;
    CUresult r = ct_node_function(given, &function);

    if (r != CUDA_SUCCESS)
        return r;
    if (function->module->context != context)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a kernel in the body of a conditional node belongs to another context than the condition");
    ct_function_release(function);
    return r;
}

static bool is_pageable(const struct ct_place *place, const struct ct_copy_side *side)
{
    return !side->array && !place->memory;
}

static CUresult check_copied_memory(const CUDA_MEMCPY3D *copy)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_copy_located located = {0};
    struct ct_copy_request request;
    CUresult r = ct_copy_request_init(copy, &request);

    if (r == CUDA_SUCCESS && !uses_memory_of_graphs(&request) && (r = ct_copy_request_locate(&request, &located)) == CUDA_SUCCESS &&
        (is_pageable(&located.copy.dst, &request.dst) || is_pageable(&located.copy.src, &request.src)))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a copy of pageable memory in the body of a conditional node");
    ct_address_uses_end(uses);
    ct_copy_located_finish(&located);
    return r;
}

CUresult ct_node_params_check_context(const struct ct_node_params *params, const struct ct_context *context)
{
    switch (params->given.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return check_kernel_context(&params->given.kernel, context);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return check_copied_memory(&params->given.memcpy.copyParams);
    default:
        return CUDA_SUCCESS;
    }
}

/* ---- arrays ---- */

static CUresult copy_array(const void *elements, size_t size_bytes, struct ct_node_array *out)
{
    void *copy = malloc(size_bytes ? size_bytes : 1);

    if (!copy)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes of parameters of a node", size_bytes);
    if (size_bytes)
        memcpy(copy, elements, size_bytes);
    *out = (struct ct_node_array){copy, size_bytes};
    return CUDA_SUCCESS;
}

static void free_arrays(struct ct_node_params *params)
{
    for (unsigned i = 0; i < CT_NODE_ARRAYS; i++)
        free(params->arrays[i].elements);
}

/* Lets params->given refer to the copied arrays. */
static void point_to_arrays(struct ct_node_params *params)
{
    void *first = params->arrays[0].elements, *second = params->arrays[1].elements;

    switch (params->given.type) {
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        params->given.extSemSignal.extSemArray = first;
        params->given.extSemSignal.paramsArray = second;
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        params->given.extSemWait.extSemArray = first;
        params->given.extSemWait.paramsArray = second;
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        params->given.memOp.paramArray = first;
        break;
    default:
        break;
    }
}

/* Replaces the arrays by copies of others. After a failure some may be copied. */
static CUresult copy_arrays(struct ct_node_params *params, const struct ct_node_array *arrays)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < CT_NODE_ARRAYS; i++)
        params->arrays[i] = (struct ct_node_array){0};
    for (unsigned i = 0; i < CT_NODE_ARRAYS && r == CUDA_SUCCESS; i++)
        if (arrays[i].elements)
            r = copy_array(arrays[i].elements, arrays[i].size_bytes, &params->arrays[i]);
    if (r == CUDA_SUCCESS)
        point_to_arrays(params);
    return r;
}

static CUresult keep_arrays(struct ct_node_params *params, const struct ct_node_array arrays[CT_NODE_ARRAYS])
{
    CUresult r = copy_arrays(params, arrays);

    if (r != CUDA_SUCCESS)
        free_arrays(params);
    return r;
}

static CUresult check_signals(struct ct_node_params *params)
{
    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 *p = &params->given.extSemSignal;
    const size_t n = p->numExtSems;
    CUresult r = ct_semaphore_signals_check(&(struct ct_semaphore_signals){p->extSemArray, p->paramsArray, p->numExtSems});

    return r == CUDA_SUCCESS ? keep_arrays(params, (struct ct_node_array[]){{p->extSemArray, n * sizeof *p->extSemArray},
                                                                            {(void *)p->paramsArray, n * sizeof *p->paramsArray}})
                             : r;
}

static CUresult check_waits(struct ct_node_params *params)
{
    const CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 *p = &params->given.extSemWait;
    const size_t n = p->numExtSems;
    CUresult r = ct_semaphore_waits_check(&(struct ct_semaphore_waits){p->extSemArray, p->paramsArray, p->numExtSems});

    return r == CUDA_SUCCESS ? keep_arrays(params, (struct ct_node_array[]){{p->extSemArray, n * sizeof *p->extSemArray},
                                                                            {(void *)p->paramsArray, n * sizeof *p->paramsArray}})
                             : r;
}

static CUresult check_operations(struct ct_node_params *params)
{
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p = &params->given.memOp;
    const unsigned uses = ct_address_uses_begin();
    CUresult r = ct_memory_operations_check(&(struct ct_memory_operations){p->paramArray, p->count, p->flags, 2});

    ct_address_uses_end(uses);
    return r == CUDA_SUCCESS ? keep_arrays(params, (struct ct_node_array[]){{p->paramArray, p->count * sizeof *p->paramArray}, {0}}) : r;
}

/* Which memory NVIDIA's driver allocates in graphs: not on the host, and none that is shared. */
static CUresult check_memory_properties(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p)
{
    struct ct_device *device;

    if (p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "graphs cannot allocate memory of type %d", (int)p->poolProps.allocType);
    if (p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "graphs allocate device memory only");
    if (p->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "memory of graphs cannot be shared with other processes");
    return ct_memory_pool_device(p->poolProps.location.id, &device);
}

/* Memory is accessible to its device; access of another one is as for pools (ct_memory_pool_set_access). */
static CUresult check_alloc(struct ct_node_params *params)
{
    const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p = &params->given.alloc;
    CUresult r = check_memory_properties(p);

    if (r == CUDA_SUCCESS && !p->bytesize)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a node that allocates 0 bytes");
    for (size_t i = 0; i < p->accessDescCount && r == CUDA_SUCCESS; i++)
        if (p->accessDescs[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || p->accessDescs[i].location.id != p->poolProps.location.id)
            r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "access of other devices to the memory of graphs is not supported");
    params->given.alloc.accessDescs = NULL;
    params->given.alloc.accessDescCount = 0;
    return r;
}

static bool has_valid_size(const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
    switch (p->type) {
    case CU_GRAPH_COND_TYPE_IF:
        return p->size == 1 || p->size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
        return p->size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return p->size > 0;
    default:
        return false;
    }
}

/* The handle is looked up in the graph (ct_graph_branches_attach). */
static CUresult check_conditional(struct ct_node_params *params)
{
    CUDA_CONDITIONAL_NODE_PARAMS *p = &params->given.conditional;
    struct ct_context *context;
    CUresult r;

    if (!has_valid_size(p))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a conditional node of type %d with %u bodies", (int)p->type, p->size);
    if (!p->ctx)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "a conditional node without a context");
    if ((r = ct_context_lookup(p->ctx, &context)) == CUDA_SUCCESS)
        ct_context_release(context);
    p->phGraph_out = NULL;
    return r;
}

static CUresult check_nothing(struct ct_node_params *params)
{
    (void)params;
    return CUDA_SUCCESS;
}

/* ---- all types ---- */

static const struct {
    const char *name;
    CUresult (*check)(struct ct_node_params *params);
} types[] = {
#define NODE(type, member, check, execute) [CU_GRAPH_NODE_TYPE_##type] = {#type, check},
#include "node_types.def"
};
#define N_TYPES (sizeof types / sizeof *types)

const char *ct_node_type_name(CUgraphNodeType type)
{
    return (size_t)type < N_TYPES && types[type].name ? types[type].name : "UNKNOWN";
}

CUresult ct_node_params_init(struct ct_node_params *out, const CUgraphNodeParams *given)
{
    struct ct_node_params params = {.given = *given};
    CUresult r;

    if ((unsigned)given->type > CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "graph nodes have no type %d", (int)given->type);
    if ((size_t)given->type >= N_TYPES || !types[given->type].check)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "graph nodes of type %d are not supported", (int)given->type);
    r = types[given->type].check(&params);
    if (r == CUDA_SUCCESS)
        *out = params;
    return r;
}

CUresult ct_node_params_copy(struct ct_node_params *out, const struct ct_node_params *params)
{
    CUresult r;

    *out = *params;
    out->arguments = (struct ct_kernel_arguments){0};
    out->child = NULL;
    out->branches = NULL;
    out->attributes = NULL;
    if (out->allocation)
        ct_object_retain(out->allocation);
    for (unsigned i = 0; i < CT_NODE_ARRAYS; i++)
        out->arrays[i] = (struct ct_node_array){0};
    r = ct_node_params_copy_attributes(out, params);
    if (r == CUDA_SUCCESS && params->arguments.bytes && (r = duplicate_arguments(&params->arguments, &out->arguments)) == CUDA_SUCCESS)
        point_to_arguments(out);
    if (r == CUDA_SUCCESS)
        r = copy_arrays(out, params->arrays);
    return r;
}

void ct_node_params_replace(struct ct_node_params *params, struct ct_node_params *by)
{
    const struct ct_node_params before = *params;

    *params = *by;
    *by = before;
    params->attributes = before.attributes;
    by->attributes = NULL;
}

static bool is_same_kernel(const struct ct_node_params *a, const struct ct_node_params *b)
{
    const CUDA_KERNEL_NODE_PARAMS_v3 *x = &a->given.kernel, *y = &b->given.kernel;

    return x->func == y->func && x->kern == y->kern && x->ctx == y->ctx && x->gridDimX == y->gridDimX && x->gridDimY == y->gridDimY &&
           x->gridDimZ == y->gridDimZ && x->blockDimX == y->blockDimX && x->blockDimY == y->blockDimY && x->blockDimZ == y->blockDimZ &&
           x->sharedMemBytes == y->sharedMemBytes && a->arguments.size_bytes == b->arguments.size_bytes &&
           (!a->arguments.size_bytes || !memcmp(a->arguments.bytes, b->arguments.bytes, a->arguments.size_bytes)) &&
           ct_node_params_cooperate(a) == ct_node_params_cooperate(b);
}

bool ct_node_params_equal(const struct ct_node_params *a, const struct ct_node_params *b)
{
    switch (a->given.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return is_same_kernel(a, b);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return !memcmp(&a->given.memcpy.copyParams, &b->given.memcpy.copyParams, sizeof a->given.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return !memcmp(&a->given.memset, &b->given.memset, sizeof a->given.memset);
    default:
        return false;
    }
}

void ct_node_params_finish(struct ct_node_params *params)
{
    free(params->arguments.bytes);
    free(params->arguments.pointers);
    free_attributes(params);
    free_arrays(params);
    ct_object_release(params->allocation);
    ct_object_release(params->branches);
    if (params->child) {
        if (params->child->handle)
            (void)ct_object_unpublish(params->child);
        ct_object_release(params->child);
    }
    *params = (struct ct_node_params){0};
}
