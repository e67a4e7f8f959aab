/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of launches (Driver API, Data types used by CUDA driver: CUlaunchAttributeID): each is implemented,
 * may be ignored, or is rejected with an error that names it. */
#include "core/stream/event.h"
#include "launch.h"
#include "core/base/log.h"

#define CT_CHANNEL "launch"

/* How an attribute of a launch is handled. */
enum attribute_meaning {
    MEANS_INVALID,     /* unknown, or not an attribute of launches */
    MEANS_NOTHING,     /* a hint, or a permission that need not be used */
    MEANS_ONE_CLUSTER, /* dimensions: only clusters of one block are accepted */
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
    ATTRIBUTE(CLUSTER_DIMENSION, ONE_CLUSTER),
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
    case MEANS_COOPERATIVE:
        return CUDA_SUCCESS;
    case MEANS_ONE_CLUSTER:
        fits = value->clusterDim.x <= 1 && value->clusterDim.y <= 1 && value->clusterDim.z <= 1;
        break;
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

CUresult ct_launch_attribute_event(const CUlaunchAttribute *attribute, struct ct_event **out_or_null)
{
    *out_or_null = NULL;
    return meaning_of(attribute) == MEANS_EVENT ? event_of(attribute, out_or_null) : CUDA_SUCCESS;
}
