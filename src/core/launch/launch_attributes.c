/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of launches (Driver API, Data types used by CUDA driver: CUlaunchAttributeID): each is implemented,
 * may be ignored, or is rejected with an error that names it. */
#include "core/stream/event.h"
#include "launch.h"
#include "core/base/log.h"

#include <string.h>

#define CT_CHANNEL "launch"

/* How an attribute of a launch is handled. */
enum attribute_meaning {
    MEANS_INVALID,     /* unknown, or not an attribute of launches */
    MEANS_NOTHING,     /* a hint, or a permission that need not be used */
    MEANS_CLUSTER,     /* ct_launch_attributes_cluster */
    MEANS_COOPERATIVE, /* cooperative.c */
    MEANS_UPDATABLE,   /* only the value 0 is accepted: the attribute is for graph nodes */
    MEANS_EVENT,       /* recorded after the kernel, the latest time that the manual allows */
};

static const struct {
    const char *name;
    enum attribute_meaning meaning;
} attributes_known[] = {
#define ATTRIBUTE(name, meaning) [CU_LAUNCH_ATTRIBUTE_##name] = {#name, MEANS_##meaning}
    ATTRIBUTE(IGNORE, NOTHING),
    ATTRIBUTE(ACCESS_POLICY_WINDOW, NOTHING),
    ATTRIBUTE(COOPERATIVE, COOPERATIVE),
    ATTRIBUTE(SYNCHRONIZATION_POLICY, INVALID),
    ATTRIBUTE(CLUSTER_DIMENSION, CLUSTER),
    ATTRIBUTE(CLUSTER_SCHEDULING_POLICY_PREFERENCE, NOTHING),
    ATTRIBUTE(PROGRAMMATIC_STREAM_SERIALIZATION, NOTHING), /* an earlier kernel may, but need not, still run */
    ATTRIBUTE(PROGRAMMATIC_EVENT, EVENT),
    ATTRIBUTE(PRIORITY, NOTHING),
    ATTRIBUTE(MEM_SYNC_DOMAIN_MAP, NOTHING),
    ATTRIBUTE(MEM_SYNC_DOMAIN, NOTHING),
    ATTRIBUTE(PREFERRED_CLUSTER_DIMENSION, NOTHING),
    ATTRIBUTE(LAUNCH_COMPLETION_EVENT, EVENT),
    ATTRIBUTE(DEVICE_UPDATABLE_KERNEL_NODE, UPDATABLE),
    ATTRIBUTE(PREFERRED_SHARED_MEMORY_CARVEOUT, NOTHING),
    ATTRIBUTE(NVLINK_UTIL_CENTRIC_SCHEDULING, NOTHING),
#undef ATTRIBUTE
};
#define CT_N_ATTRIBUTES (sizeof attributes_known / sizeof *attributes_known)

static enum attribute_meaning meaning_of(const CUlaunchAttribute *attribute)
{
    unsigned id = (unsigned)attribute->id;

    return id < CT_N_ATTRIBUTES && attributes_known[id].name ? attributes_known[id].meaning : MEANS_INVALID;
}

/* The event of an attribute of kind EVENT, looked up. */
static CUresult event_of(const CUlaunchAttribute *attribute, struct ct_event **out)
{
    const bool programmatic = attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    CUresult r =
        ct_event_lookup(programmatic ? attribute->value.programmaticEvent.event : attribute->value.launchCompletionEvent.event, out);

    if (r == CUDA_SUCCESS && ct_event_is_timed(*out)) {
        ct_event_release(*out);
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "an event in a launch attribute must not have timing (CU_EVENT_DISABLE_TIMING)");
    }
    return r;
}

static CUresult check_event(const CUlaunchAttribute *attribute)
{
    struct ct_event *event;
    CUresult r = event_of(attribute, &event);

    if (r == CUDA_SUCCESS)
        ct_event_release(event);
    return r;
}

static CUresult check_attribute(const CUlaunchAttribute *attribute)
{
    const CUlaunchAttributeValue *value = &attribute->value;
    bool fits = false;

    switch (meaning_of(attribute)) {
    case MEANS_INVALID:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%u is not a launch attribute", (unsigned)attribute->id);
    case MEANS_NOTHING:
    case MEANS_CLUSTER: /* the kernel and the grid decide what is possible */
    case MEANS_COOPERATIVE:
        return CUDA_SUCCESS;
    case MEANS_UPDATABLE:
        fits = !value->deviceUpdatableKernelNode.deviceUpdatable;
        break;
    case MEANS_EVENT:
        return check_event(attribute);
    }
    return fits ? CUDA_SUCCESS
                : ct_fail(CUDA_ERROR_NOT_SUPPORTED, "launch attribute %s is not supported", attributes_known[attribute->id].name);
}

CUresult ct_launch_check_attributes(const CUlaunchAttribute *attributes, unsigned count)
{
    CUresult r = CUDA_SUCCESS;

    if (count && !attributes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%u launch attributes, but the list is NULL", count);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = check_attribute(&attributes[i]);
    return r;
}

bool ct_launch_attributes_cooperate(const CUlaunchAttribute *attributes, unsigned count)
{
    bool cooperative = false;

    for (unsigned i = 0; i < count; i++)
        if (meaning_of(&attributes[i]) == MEANS_COOPERATIVE)
            cooperative = attributes[i].value.cooperative != 0;
    return cooperative;
}

void ct_launch_attributes_cluster(const CUlaunchAttribute *attributes, unsigned count, unsigned out[3])
{
    memset(out, 0, 3 * sizeof *out);
    for (unsigned i = 0; i < count; i++)
        if (meaning_of(&attributes[i]) == MEANS_CLUSTER) {
            out[0] = attributes[i].value.clusterDim.x;
            out[1] = attributes[i].value.clusterDim.y;
            out[2] = attributes[i].value.clusterDim.z;
        }
}

CUresult ct_launch_check_cluster(const struct ct_function *function, const unsigned given[3], unsigned out[3])
{
    const bool is_given = given[0] || given[1] || given[2];
    unsigned most = atomic_load_explicit(&function->larger_clusters, memory_order_relaxed) ? CT_CLUSTER_MOST : CT_CLUSTER_PORTABLE;
    unsigned required[3];
    uint64_t blocks = 1;

    if (function->decl->max_cluster && function->decl->max_cluster < most)
        most = function->decl->max_cluster;
    ct_function_required_cluster(function, required);
    if (!is_given && !required[0] && function->decl->explicit_cluster)
        return ct_fail(CUDA_ERROR_INVALID_CLUSTER_SIZE, "kernel %s requires a cluster size (.explicitcluster)", function->decl->name);
    for (int i = 0; i < 3; i++) {
        const unsigned wanted = is_given ? given[i] : required[0] ? required[i] : 1;

        if (!wanted || (required[0] && wanted != required[i]))
            return ct_fail(CUDA_ERROR_INVALID_CLUSTER_SIZE, "kernel %s: clusters of %u x %u x %u blocks, while it requires %u x %u x %u",
                           function->decl->name, given[0], given[1], given[2], required[0], required[1], required[2]);
        out[i] = wanted;
        blocks = blocks > most || wanted > most ? most + 1 : blocks * wanted;
    }
    return blocks <= most ? CUDA_SUCCESS
                          : ct_fail(CUDA_ERROR_INVALID_CLUSTER_SIZE, "kernel %s: clusters of %u x %u x %u blocks; at most %u blocks",
                                    function->decl->name, out[0], out[1], out[2], most);
}

CUresult ct_launch_attribute_event(const CUlaunchAttribute *attribute, struct ct_event **out_or_null)
{
    *out_or_null = NULL;
    return meaning_of(attribute) == MEANS_EVENT ? event_of(attribute, out_or_null) : CUDA_SUCCESS;
}
