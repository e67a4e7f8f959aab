/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan backend when the driver fails: each call that a function makes fails once; the function returns CUDA's code for the failure,
 * nothing leaks, and the next attempt succeeds. Calls are made to fail in the device's own function table. Leaks of host memory are found
 * by AddressSanitizer, leaks of Vulkan objects by counted_objects.h and, where it is installed, by the validation layer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend_vk_kernels.h"
#include "counted_objects.h"
#include "backend_vk/memory.h"
#include "core/backing/address_space.h"
#include "core/device/backend.h"
#include "core/device/device_fault.h"

#include <spirv-tools/libspirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_ENOUGH UINT64_C(60000000000)

static const struct ct_backend *const vk = &ct_backend_vk;

/* A driver function that accepts any arguments and fails. */
static VkResult fail_out_of_memory(void)
{
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static VkResult fail_lost(void)
{
    return VK_ERROR_DEVICE_LOST;
}

static VkDeviceAddress wrong_address(void)
{
    return UINT64_C(0xdead0000);
}

struct fixture {
    struct ct_backend_device *device;
    struct VolkDeviceTable good;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    assert_int_equal(vk->device_open(0, &f->device), CUDA_SUCCESS);
    f->good = f->device->vk;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    f->device->vk = f->good;
    vk->device_close(f->device);
    free(f);
    return counted_objects_leaked() || ct_vk_validation_messages() ? -1 : 0;
}

/* ---- creation ---- */

static CUresult make_memory(struct ct_backend_device *device)
{
    const struct ct_memory_request request = {.size_bytes = 4096, .align = 256, .kind = CT_MEMORY_HOST};
    struct ct_memory *memory;
    CUresult r = vk->memory->create(device, &request, &memory);

    if (r == CUDA_SUCCESS)
        vk->memory->destroy(memory);
    return r;
}

static struct ct_kernel_image *kernel_or_null(struct ct_backend_device *device, CUresult *out)
{
    spv_context context = spvContextCreate(SPV_ENV_VULKAN_1_3);
    struct ct_kernel_image *image = NULL;
    spv_binary binary = NULL;

    assert_int_equal(spvTextToBinary(context, kernel_step, strlen(kernel_step), &binary, NULL), SPV_SUCCESS);
    *out = vk->kernels->create(
        device, "step", &(struct ptx2spv_kernel){binary->code, binary->wordCount, {.param_bytes = sizeof(struct kernel_params)}}, &image);
    spvBinaryDestroy(binary);
    spvContextDestroy(context);
    return image;
}

static CUresult make_kernel(struct ct_backend_device *device)
{
    CUresult r;

    vk->kernels->destroy(kernel_or_null(device, &r));
    return r;
}

static CUresult make_queue(struct ct_backend_device *device)
{
    struct ct_queue *queue;
    CUresult r = vk->queues->create(device, &(struct ct_queue_desc){0}, &queue);

    if (r == CUDA_SUCCESS)
        vk->queues->destroy(queue);
    return r;
}

static CUresult make_timeline(struct ct_backend_device *device)
{
    struct ct_timeline *timeline;
    CUresult r = vk->timelines->create(device, &timeline);

    if (r == CUDA_SUCCESS)
        vk->timelines->destroy(timeline);
    return r;
}

static CUresult make_timestamp(struct ct_backend_device *device)
{
    struct ct_timestamp *timestamp;
    CUresult r = vk->timestamps->create(device, &timestamp);

    if (r == CUDA_SUCCESS)
        vk->timestamps->destroy(timestamp);
    return r;
}

static CUresult make_image(struct ct_backend_device *device)
{
    const struct ct_image_request request = {.format = CU_AD_FORMAT_FLOAT,
                                             .channels = 1,
                                             .texel_bytes = 4,
                                             .block_side = 1,
                                             .shape = CT_IMAGE_2D,
                                             .width = 16,
                                             .height = 16,
                                             .depth = 1,
                                             .layers = 1,
                                             .levels = 1};
    struct ct_texel_image *image;
    CUresult r = vk->images->create(device, &request, &image);

    if (r == CUDA_SUCCESS)
        vk->images->destroy(image);
    return r;
}

/* One command on a new queue; this includes the creation of its command buffer and, for launches, of the pipeline. */
static CUresult run_once(struct ct_backend_device *device, struct ct_kernel_image *kernel)
{
    const struct kernel_params params = {0, 0, 0}; /* no thread is inside */
    const struct ct_launch launch = {.kernel = kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = &params};
    struct ct_queue *queue;
    CUresult r;

    assert_int_equal(vk->queues->create(device, &(struct ct_queue_desc){0}, &queue), CUDA_SUCCESS);
    if ((r = vk->queues->launch(queue, &launch)) == CUDA_SUCCESS)
        r = vk->queues->await(queue, vk->queues->point(queue), LONG_ENOUGH, device->info->kind != CT_DEVICE_CPU);
    vk->queues->destroy(queue);
    return r;
}

static void make_one_of_each(struct ct_backend_device *device)
{
    CUresult r;
    struct ct_kernel_image *kernel = kernel_or_null(device, &r);

    assert_int_equal(r, CUDA_SUCCESS);
    assert_int_equal(run_once(device, kernel), CUDA_SUCCESS);
    vk->kernels->destroy(kernel);
    assert_int_equal(make_memory(device), CUDA_SUCCESS);
    assert_int_equal(make_image(device), CUDA_SUCCESS);
    assert_int_equal(make_timeline(device), CUDA_SUCCESS);
    assert_int_equal(make_timestamp(device), CUDA_SUCCESS);
}

#define FAILS(call, with) {#call, offsetof(struct VolkDeviceTable, call), (PFN_vkVoidFunction)(with)}

struct failure {
    const char *call;
    size_t offset;
    PFN_vkVoidFunction with;
};

static void inject(struct fixture *f, const struct failure *failure)
{
    memcpy((char *)&f->device->vk + failure->offset, &failure->with, sizeof failure->with);
}

static void test_making_things(void **state)
{
    struct fixture *f = *state;
    static const struct {
        CUresult (*make)(struct ct_backend_device *device);
        struct failure failure;
        CUresult want;
    } rows[] = {
        {make_memory, FAILS(vkCreateBuffer, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_memory, FAILS(vkAllocateMemory, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_memory, FAILS(vkBindBufferMemory, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_memory, FAILS(vkMapMemory, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_image, FAILS(vkCreateImage, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_image, FAILS(vkAllocateMemory, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_image, FAILS(vkBindImageMemory, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_image, FAILS(vkCreateSemaphore, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY}, /* of the queue that initializes its layout */
        {make_kernel, FAILS(vkCreateShaderModule, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_kernel, FAILS(vkCreatePipelineLayout, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_queue, FAILS(vkCreateSemaphore, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_timeline, FAILS(vkCreateSemaphore, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
        {make_timestamp, FAILS(vkCreateQueryPool, fail_out_of_memory), CUDA_ERROR_OUT_OF_MEMORY},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUresult got;

        inject(f, &rows[i].failure);
        got = rows[i].make(f->device);
        f->device->vk = f->good;
        if (got != rows[i].want)
            fail_msg("%s: %d", rows[i].failure.call, (int)got);
        assert_int_equal(rows[i].make(f->device), CUDA_SUCCESS);
    }
}

/* An omitted destruction is noticed, for each kind of object: otherwise no test here could find a leak. */
static void test_leaks_are_noticed(void **state)
{
    static const char *const rows[] = {"vkDestroyBuffer",         "vkFreeMemory",      "vkDestroyImage",         "vkDestroyShaderModule",
                                       "vkDestroyPipelineLayout", "vkDestroyPipeline", "vkDestroyPipelineCache", "vkDestroyCommandPool",
                                       "vkDestroySemaphore",      "vkDestroyQueryPool"};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ct_backend_device *device;

        assert_int_equal(vk->device_open(0, &device), CUDA_SUCCESS);
        assert_true(counted_objects_omit(rows[i]));
        make_one_of_each(device);
        vk->device_close(device);
        counted_objects_omit(NULL);
        if (!counted_objects_leaked())
            fail_msg("no check noticed that %s was omitted", rows[i]);
    }
}

/* An address other than the requested one is an error, where addresses can be requested. */
static void test_address_not_granted(void **state)
{
    struct fixture *f = *state;
    const struct failure failure = FAILS(vkGetBufferDeviceAddress, wrong_address);
    const struct ct_memory_request request = {
        .size_bytes = 1 << 21, .align = 1 << 21, .kind = CT_MEMORY_DEVICE, .want_address = UINT64_C(0x110000000000)};
    const struct ct_device_info *info = f->device->info;
    bool chosen = info->address_rule == CT_ADDRESS_CHOSEN || info->address_rule == CT_ADDRESS_CHOSEN_MASK;
    struct ct_memory *memory = NULL;

    inject(f, &failure);
    assert_int_equal(vk->memory->create(f->device, &request, &memory), chosen ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_NOT_SUPPORTED);
    assert_null(memory);
}

static VkResult fail_init(void)
{
    return VK_ERROR_INITIALIZATION_FAILED;
}

/* The error of NVIDIA's driver when the process has no file descriptor left. */
static void test_no_descriptor_left(void **state)
{
    struct fixture *f = *state;
    const struct failure failure = FAILS(vkGetMemoryFdKHR, fail_init);
    int fd = 7;

    inject(f, &failure);
    assert_int_equal(ct_vk_get_fd(f->device, VK_NULL_HANDLE, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, &fd), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(fd, 7);
}

/* ---- faults of the device ---- */

/* A driver with two accesses, of which one is known up to a page, and an instruction. */
static VkResult tell_fault(VkDevice device, VkDeviceFaultCountsEXT *counts, VkDeviceFaultInfoEXT *info)
{
    static const VkDeviceFaultAddressInfoEXT addresses[] = {
        {VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT, UINT64_C(0x7000000123), 4096},
        {VK_DEVICE_FAULT_ADDRESS_TYPE_INSTRUCTION_POINTER_FAULT_EXT, UINT64_C(0x1234), 1},
        {VK_DEVICE_FAULT_ADDRESS_TYPE_READ_INVALID_EXT, UINT64_C(0x7000002004), 1},
    };

    (void)device;
    assert_true(counts->addressInfoCount >= 3);
    counts->addressInfoCount = 3;
    memcpy(info->pAddressInfos, addresses, sizeof addresses);
    snprintf(info->description, sizeof info->description, "something happened");
    return VK_SUCCESS;
}

static VkResult tell_nothing(VkDevice device, VkDeviceFaultCountsEXT *counts, VkDeviceFaultInfoEXT *info)
{
    (void)device;
    (void)info;
    counts->addressInfoCount = 0;
    return VK_SUCCESS;
}

static void test_faults(void **state)
{
    struct fixture *f = *state;
    struct ct_device_fault fault;

    f->device->vk.vkGetDeviceFaultInfoEXT = tell_fault;
    assert_false(vk->device_fault(f->device, &fault)); /* it is not lost: the driver must not be asked */
    ct_vk_device_lose(f->device, CUDA_ERROR_LAUNCH_FAILED);
    assert_true(vk->device_fault(f->device, &fault));
    assert_string_equal(fault.description, "something happened");
    assert_int_equal(fault.n_addresses, 2);
    assert_int_equal(fault.addresses[0].access, CT_FAULT_WRITE);
    assert_true(fault.addresses[0].first == UINT64_C(0x7000000000) && fault.addresses[0].last == UINT64_C(0x7000000fff));
    assert_int_equal(fault.addresses[1].access, CT_FAULT_READ);
    assert_true(fault.addresses[1].first == UINT64_C(0x7000002004) && fault.addresses[1].last == fault.addresses[1].first);
    f->device->vk.vkGetDeviceFaultInfoEXT = tell_nothing;
    assert_false(vk->device_fault(f->device, &fault));
    f->device->vk.vkGetDeviceFaultInfoEXT = NULL;
    assert_false(vk->device_fault(f->device, &fault));
    atomic_store(&f->device->lost, CUDA_SUCCESS);
}

static void describes(enum ct_fault_access access, uint64_t first, uint64_t last, const char *wanted)
{
    static struct ct_device_info info;
    char text[320];

    ct_device_fault_describe(&info, &(struct ct_fault_address){access, first, last}, text, sizeof text);
    assert_string_equal(text, wanted);
}

static void test_faults_name_allocations(void **state)
{
    const struct ct_range range = {.start = UINT64_C(0x7000000000), .size_bytes = 256, .kind = CT_RANGE_DEVICE};
    struct ct_range removed;

    (void)state;
    describes(CT_FAULT_READ, 0x10, 0x10, "a read from address 0x10, where no allocation is near");
    assert_int_equal(ct_address_insert(&range), CUDA_SUCCESS);
    describes(CT_FAULT_WRITE, UINT64_C(0x7000000103), UINT64_C(0x7000000103),
              "a write to address 0x7000000103, 4 bytes behind an allocation of 256 bytes at 0x7000000000");
    describes(CT_FAULT_READ, UINT64_C(0x6fffffe000), UINT64_C(0x6fffffefff),
              "a read from address 0x6fffffe000 to 0x6fffffefff, 4097 bytes before an allocation of 256 bytes at 0x7000000000");
    describes(CT_FAULT_ACCESS, UINT64_C(0x7000000000), UINT64_C(0x7000000fff),
              "an access to address 0x7000000000 to 0x7000000fff, at an allocation of 256 bytes at 0x7000000000");
    describes(CT_FAULT_EXECUTION, UINT64_C(0x7000000008), UINT64_C(0x7000000008),
              "an execution at address 0x7000000008, byte 8 of an allocation of 256 bytes at 0x7000000000");
    describes(CT_FAULT_WRITE, UINT64_C(0x9000000000), UINT64_C(0x9000000000),
              "a write to address 0x9000000000, where no allocation is near");
    describes(CT_FAULT_WRITE, UINT64_MAX, UINT64_MAX, "a write to address 0xffffffffffffffff, where no allocation is near");
    assert_int_equal(ct_address_remove(range.start, CT_RANGE_DEVICE, &removed), CUDA_SUCCESS);
}

/* ---- memory properties of drivers ---- */

#define VISIBLE (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
#define CACHED VK_MEMORY_PROPERTY_HOST_CACHED_BIT
#define LOCAL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define NO_TYPE 99u

static uint32_t asked_for;

static void any_type_will_do(VkDevice device, VkBuffer buffer, VkMemoryRequirements *out)
{
    (void)device;
    (void)buffer;
    *out = (VkMemoryRequirements){.size = 65536, .alignment = 256, .memoryTypeBits = UINT32_MAX};
}

static VkResult note_the_type(VkDevice device, const VkMemoryAllocateInfo *info, const VkAllocationCallbacks *callbacks,
                              VkDeviceMemory *out)
{
    (void)device;
    (void)callbacks;
    (void)out;
    asked_for = info->memoryTypeIndex;
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

/* The memory type that is chosen for this kind of memory on a device with these types. */
static uint32_t type_of(struct fixture *f, enum ct_memory_kind kind, const VkMemoryPropertyFlags types[3])
{
    static const struct failure rows[] = {FAILS(vkGetBufferMemoryRequirements, any_type_will_do), FAILS(vkAllocateMemory, note_the_type)};
    const struct ct_memory_request request = {.size_bytes = 65536, .align = 256, .kind = kind};
    const struct ct_vk_physical *real = f->device->physical;
    struct ct_vk_physical physical = *real;
    struct ct_memory *memory;
    CUresult r;

    physical.memory.memoryTypeCount = 3;
    for (uint32_t i = 0; i < 3; i++)
        physical.memory.memoryTypes[i] = (VkMemoryType){.propertyFlags = types[i], .heapIndex = 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        inject(f, &rows[i]);
    asked_for = NO_TYPE;
    f->device->physical = &physical;
    r = vk->memory->create(f->device, &request, &memory);
    f->device->physical = real;
    f->device->vk = f->good;
    assert_int_equal(r, CUDA_ERROR_OUT_OF_MEMORY);
    return asked_for;
}

/* Write-combined memory has a type that the host does not cache, if there is one, in any position; other host memory is cached. */
static void test_types_of_host_memory(void **state)
{
    static const struct {
        VkMemoryPropertyFlags types[3];
        uint32_t combined, plain;
    } rows[] = {
        {{LOCAL, VISIBLE | CACHED, VISIBLE}, 2, 1},
        {{VISIBLE, LOCAL, VISIBLE | CACHED}, 0, 2},
        {{LOCAL, VISIBLE | CACHED, LOCAL | VISIBLE}, 1, 1},
        {{LOCAL, LOCAL | VISIBLE, VISIBLE}, 2, 2},
        {{LOCAL, LOCAL | VISIBLE | CACHED, LOCAL | VISIBLE}, 2, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(type_of(*state, CT_MEMORY_HOST_WC, rows[i].types), rows[i].combined);
        assert_int_equal(type_of(*state, CT_MEMORY_HOST, rows[i].types), rows[i].plain);
    }
}

static VkPhysicalDeviceMemoryBudgetPropertiesEXT told;

static void tell_a_budget(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2 *out)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = out->pNext;

    (void)device;
    assert_int_equal(budget->sType, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
    memcpy(budget->heapBudget, told.heapBudget, sizeof told.heapBudget);
    memcpy(budget->heapUsage, told.heapUsage, sizeof told.heapUsage);
}

/* The free memory is the rest that VK_EXT_memory_budget reports, queried in every call. */
static void test_free_memory_follows_the_budget(void **state)
{
    struct fixture *f = *state;
    const PFN_vkGetPhysicalDeviceMemoryProperties2 real = vkGetPhysicalDeviceMemoryProperties2;
    const uint32_t heap = f->device->physical->local_heap;
    const uint64_t total = f->device->physical->memory.memoryHeaps[heap].size;
    const struct {
        uint64_t budget, usage, free;
    } rows[] = {{total, 0, total},
                {total / 2, 1000, total / 2 - 1000},
                {total / 2, total / 2, 0},
                {1000, 2000, 0}, /* other processes use our share */
                {2 * total, 1000, total - 1000}};

    if (!f->device->physical->has[CT_VK_EXT_MEMORY_BUDGET])
        skip();
    vkGetPhysicalDeviceMemoryProperties2 = tell_a_budget;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t free_bytes = 7, total_bytes = 7;

        told.heapBudget[heap] = rows[i].budget;
        told.heapUsage[heap] = rows[i].usage;
        assert_int_equal(vk->memory->info(f->device, &free_bytes, &total_bytes), CUDA_SUCCESS);
        assert_int_equal(free_bytes, rows[i].free);
        assert_int_equal(total_bytes, total);
    }
    vkGetPhysicalDeviceMemoryProperties2 = real;
}

/* Recording fails before it has any effect: the queue is unchanged. The rows are in the order of the calls, since a success leaves a
 * command behind. */
static void test_recording(void **state)
{
    struct fixture *f = *state;
    static const struct failure rows[] = {
        FAILS(vkCreateComputePipelines, fail_out_of_memory),
        FAILS(vkCreateCommandPool, fail_out_of_memory),
        FAILS(vkAllocateCommandBuffers, fail_out_of_memory),
        FAILS(vkBeginCommandBuffer, fail_out_of_memory),
    };
    CUresult r;
    struct ct_kernel_image *kernel = kernel_or_null(f->device, &r);

    assert_int_equal(r, CUDA_SUCCESS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        inject(f, &rows[i]);
        r = run_once(f->device, kernel);
        f->device->vk = f->good;
        if (r != CUDA_ERROR_OUT_OF_MEMORY)
            fail_msg("%s: %d", rows[i].call, (int)r);
    }
    assert_int_equal(run_once(f->device, kernel), CUDA_SUCCESS);
    vk->kernels->destroy(kernel);
}

/* A lost device: the call that detects it and every later one return the error, waits return, all objects can be destroyed. */
static void lose_device(struct fixture *f, const struct failure *failure)
{
    struct ct_queue *queue, *other;
    struct ct_timeline *timeline;
    CUresult r;
    uint64_t done;
    struct ct_kernel_image *kernel = kernel_or_null(f->device, &r);

    assert_int_equal(vk->timelines->create(f->device, &timeline), CUDA_SUCCESS);
    assert_int_equal(vk->queues->create(f->device, &(struct ct_queue_desc){0}, &queue), CUDA_SUCCESS);
    assert_int_equal(vk->queues->create(f->device, &(struct ct_queue_desc){0}, &other), CUDA_SUCCESS);
    assert_int_equal(vk->queues->wait(other, timeline, 1), CUDA_SUCCESS); /* collects commands that will never be executed */
    inject(f, failure);
    assert_int_not_equal(run_once(f->device, kernel), CUDA_SUCCESS);
    f->device->vk = f->good;
    assert_int_equal(run_once(f->device, kernel), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(vk->queues->completed(queue, &done), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(vk->queues->await(other, 1, LONG_ENOUGH, false), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(vk->queues->flush(other), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(vk->timelines->await(timeline, 1, LONG_ENOUGH), CUDA_ERROR_LAUNCH_FAILED);
    vk->queues->destroy(other);
    vk->queues->destroy(queue);
    vk->timelines->destroy(timeline);
    vk->kernels->destroy(kernel);
}

static void test_lost_at_submission(void **state)
{
    lose_device(*state, &(struct failure)FAILS(vkQueueSubmit2, fail_lost));
}

static void test_lost_at_query(void **state)
{
    lose_device(*state, &(struct failure)FAILS(vkGetSemaphoreCounterValue, fail_lost));
}

/* Reading the value does not tell, as with Mesa's drivers: it is reached, but a wait says that the device is lost. Threads spin on GPUs only. */
static void test_lost_at_wait(void **state)
{
    struct fixture *f = *state;
    const struct ct_device_info *real = f->device->info;
    struct ct_device_info gpu = *real;

    gpu.kind = CT_DEVICE_DISCRETE;
    f->device->info = &gpu;
    lose_device(f, &(struct failure)FAILS(vkWaitSemaphores, fail_lost));
    f->device->info = real;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_making_things, setup, teardown),
        cmocka_unit_test(test_leaks_are_noticed),
        cmocka_unit_test_setup_teardown(test_address_not_granted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_descriptor_left, setup, teardown),
        cmocka_unit_test_setup_teardown(test_faults, setup, teardown),
        cmocka_unit_test(test_faults_name_allocations),
        cmocka_unit_test_setup_teardown(test_types_of_host_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_free_memory_follows_the_budget, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recording, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_at_submission, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_at_query, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_at_wait, setup, teardown),
    };
    const struct ct_device_info *infos;
    unsigned count;

    if (vk->enumerate(&infos, &count) != CUDA_SUCCESS || !count) {
        printf("no Vulkan device\n");
        return 77;
    }
    counted_objects_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
