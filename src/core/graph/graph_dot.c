/* SPDX-License-Identifier: Apache-2.0 */
/* Prints graphs in the DOT language (Driver API: cuGraphDebugDotPrint). */
#include "graph.h"

#include "core/base/log.h"
#include "core/launch/launch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CT_CHANNEL "graph"
#define VERBOSE CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE

struct printer {
    FILE *file;
    unsigned flags;
};

static bool shows(const struct printer *printer, unsigned flag)
{
    return (printer->flags & (flag | VERBOSE)) != 0;
}

static void print_kernel(const struct printer *p, const CUgraphNodeParams *params)
{
    const CUDA_KERNEL_NODE_PARAMS_v3 *k = &params->kernel;

    fprintf(p->file, "\\ngrid %u x %u x %u, block %u x %u x %u, shared %u", k->gridDimX, k->gridDimY, k->gridDimZ, k->blockDimX,
            k->blockDimY, k->blockDimZ, k->sharedMemBytes);
}

static void print_memcpy(const struct printer *p, const CUgraphNodeParams *params)
{
    const CUDA_MEMCPY3D *c = &params->memcpy.copyParams;

    fprintf(p->file, "\\nfrom memory type %d to %d, %zu x %zu x %zu bytes", (int)c->srcMemoryType, (int)c->dstMemoryType, c->WidthInBytes,
            c->Height, c->Depth);
}

static void print_memset(const struct printer *p, const CUgraphNodeParams *params)
{
    const CUDA_MEMSET_NODE_PARAMS_v2 *m = &params->memset;

    fprintf(p->file, "\\ndst 0x%llx, pitch %zu, value %u, %zu x %zu elements of %u bytes", (unsigned long long)m->dst, m->pitch, m->value,
            m->width, m->height, m->elementSize);
}

static void print_host(const struct printer *p, const CUgraphNodeParams *params)
{
    fprintf(p->file, "\\nfunction %p, data %p", (void *)(uintptr_t)params->host.fn, params->host.userData);
}

static void print_event(const struct printer *p, const CUgraphNodeParams *params)
{
    fprintf(p->file, "\\nevent %p",
            (void *)(params->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? params->eventWait.event : params->eventRecord.event));
}

static void print_condition(const struct printer *p, const CUgraphNodeParams *params)
{
    fprintf(p->file, "\\ncondition 0x%llx", (unsigned long long)params->conditional.handle);
}

static const struct {
    CUgraphNodeType type;
    unsigned flag;
    void (*print)(const struct printer *p, const CUgraphNodeParams *params);
} details[] = {
    {CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS, print_kernel},
    {CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS, print_memcpy},
    {CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS, print_memset},
    {CU_GRAPH_NODE_TYPE_HOST, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS, print_host},
    {CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS, print_event},
    {CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS, print_event},
    {CU_GRAPH_NODE_TYPE_CONDITIONAL, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS, print_condition},
};

/* As NVIDIA's driver, shows the type and the bodies with any flags. */
static void print_branches(const struct printer *p, const struct ct_branches *branches)
{
    static const char *const types[] = {"IF", "WHILE", "SWITCH"};

    fprintf(p->file, "\\n%s", types[branches->type]);
    for (unsigned i = 0; i < branches->count; i++)
        fprintf(p->file, "\\nbody %u: graph_%llu", i, (unsigned long long)branches->graphs[i]->id);
}

/* The name, with any flags, too. */
static void print_kernel_name(const struct printer *p, const CUDA_KERNEL_NODE_PARAMS_v3 *kernel)
{
    struct ct_object *object;

    fprintf(p->file, "\\n%s", ct_launch_kernel_name(kernel->func ? kernel->func : (CUfunction)kernel->kern, &object));
    ct_object_release(object);
}

static void print_node(const struct printer *p, const struct ct_graph_node *node)
{
    const CUgraphNodeParams *params = &node->params.given;

    fprintf(p->file, "    node_%llu [label=\"%llu %s", (unsigned long long)node->id, (unsigned long long)node->index,
            ct_node_type_name(params->type));
    if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
        print_kernel_name(p, &params->kernel);
    if (shows(p, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
        fprintf(p->file, "\\nhandle %p", node->object.handle);
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (details[i].type == params->type && shows(p, details[i].flag))
            details[i].print(p, params);
    if (node->params.branches)
        print_branches(p, ct_node_branches_or_null(node));
    fprintf(p->file, "\"];\n");
}

static void print_edges(const struct printer *p, const struct ct_graph_node *node)
{
    for (size_t i = 0; i < node->dependents.count; i++)
        fprintf(p->file, "    node_%llu -> node_%llu;\n", (unsigned long long)node->id,
                (unsigned long long)node->dependents.list[i].node->id);
}

/* Child graphs and bodies follow the graph that contains them. */
static void print_graph(const struct printer *p, const struct ct_graph *graph)
{
    fprintf(p->file, "  subgraph cluster_%llu {\n    label=\"graph_%llu\";\n", (unsigned long long)graph->id,
            (unsigned long long)graph->id);
    for (size_t i = 0; i < graph->count; i++)
        print_node(p, graph->nodes[i]);
    for (size_t i = 0; i < graph->count; i++)
        print_edges(p, graph->nodes[i]);
    fprintf(p->file, "  }\n");
    for (size_t i = 0; i < graph->count; i++)
        for (size_t k = 0; k < ct_node_graph_count(&graph->nodes[i]->params); k++)
            print_graph(p, ct_node_graph(&graph->nodes[i]->params, k));
}

CUresult ct_graph_write_dot(struct ct_graph *graph, const char *path, unsigned flags)
{
    struct printer printer = {.file = fopen(path, "we"), .flags = flags};
    bool failed;

    if (!printer.file)
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "%s cannot be written: %s", path, strerror(errno));
    fprintf(printer.file, "digraph dot {\n");
    ct_graphs_lock();
    print_graph(&printer, graph);
    ct_graphs_unlock();
    fprintf(printer.file, "}\n");
    failed = ferror(printer.file) != 0;
    if (fclose(printer.file) != 0 || failed)
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "%s cannot be written", path);
    return CUDA_SUCCESS;
}
