/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan instance and the list of usable devices: created once, and kept until the process ends.
 * The loader is opened at run time (volk); a machine without it has no Vulkan devices. */
#include "vk.h"

#include "core/base/config.h"
#include "core/device/driver_environment.h"
#include "core/base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#define CT_CHANNEL "vulkan"
#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"

static struct {
    pthread_once_t once;
    struct ct_vk_instance instance;
    atomic_uint validation_messages; /* relaxed: a count */
} state = {.once = PTHREAD_ONCE_INIT};

/* Messages of the validation layer that are expected. Tests fail on all others (third_party/TestOutput.cmake).
 * 03332: NVIDIA's driver and ANV give imported host memory a chosen device address, which makes host pointers valid in kernels; the
 * specification does not allow the combination yet.
 * 03333: the same for memory imported from a file descriptor; for drivers that do not grant it a sparse buffer is used.
 * 03259: the layer (1.3.239) treats a queue's signal as pending although vkWaitSemaphores has returned its value. timeline.c itself refuses
 * what the rule forbids: a host signal before the counter has reached the values that submitted batches signal.
 * state-timeout: on a busy machine the layer's own state is updated too late; its message says that this is most likely its fault.
 * Image layouts, only for images with imported memory: the layer assumes that a new image has no contents, but this one has the layout in
 * which the other API released it. */
#define IMPORTED_IMAGE "image on imported memory"
static const struct expected_message {
    const char *id, *names; /* names: text that the message must contain, or NULL */
} expected_messages[] = {
    {"VUID-VkMemoryAllocateInfo-pNext-03332", NULL},
    {"VUID-VkMemoryAllocateInfo-opaqueCaptureAddress-03333", NULL},
    {"VUID-VkSemaphoreSignalInfo-value-03259", NULL},
    {"UNASSIGNED-VkSemaphore-state-timeout", NULL},
    {"UNASSIGNED-CoreValidation-DrawState-InvalidImageLayout", IMPORTED_IMAGE},
    {"VUID-vkCmdDraw-None-09600", IMPORTED_IMAGE}, /* the same in newer layers */
};

static bool is_expected(const char *id, const char *message)
{
    for (size_t i = 0; id && i < sizeof expected_messages / sizeof *expected_messages; i++) {
        const struct expected_message *expected = &expected_messages[i];

        if (!strcmp(id, expected->id) && (!expected->names || strstr(message, expected->names)))
            return true;
    }
    return false;
}

void ct_vk_name_imported_image(VkDevice device, VkImage image)
{
    const VkDebugUtilsObjectNameInfoEXT name = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                                .objectType = VK_OBJECT_TYPE_IMAGE,
                                                .objectHandle = (uint64_t)image,
                                                .pObjectName = IMPORTED_IMAGE};

    if (state.instance.validating)
        (void)ct_vk_result(vkSetDebugUtilsObjectNameEXT(device, &name), "vkSetDebugUtilsObjectNameEXT");
}

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
    const char *kind = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT ? "error" : "warning";

    (void)types;
    (void)user;
    if (is_expected(data->pMessageIdName, data->pMessage))
        ct_log(CT_LOG_DEBUG, "expected validation message: %s", data->pMessage);
    else
        ct_log(CT_LOG_ERROR, "validation %s %u: %s", kind,
               atomic_fetch_add_explicit(&state.validation_messages, 1, memory_order_relaxed) + 1, data->pMessage);
    return VK_FALSE;
}

/* Returns the validation layer's version, or 0 if it is not installed. */
static uint32_t find_validation_layer(void)
{
    VkLayerProperties *layers;
    uint32_t count = 0, version = 0;

    if (vkEnumerateInstanceLayerProperties(&count, NULL) != VK_SUCCESS || !(layers = calloc(count + 1, sizeof *layers)))
        return 0;
    if (vkEnumerateInstanceLayerProperties(&count, layers) >= VK_SUCCESS) {
        for (uint32_t i = 0; i < count; i++)
            if (!strcmp(layers[i].layerName, VALIDATION_LAYER))
                version = layers[i].specVersion;
    }
    free(layers);
    return version;
}

static void watch_validation(VkInstance handle)
{
    const VkDebugUtilsMessengerCreateInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = on_message,
    };
    VkDebugUtilsMessengerEXT messenger; /* lives as long as the instance */

    (void)ct_vk_result(vkCreateDebugUtilsMessengerEXT(handle, &info, NULL, &messenger), "vkCreateDebugUtilsMessengerEXT");
    ct_log(CT_LOG_INFO, "validation is on");
#ifdef __SANITIZE_ADDRESS__
    /* The layer frees its tables at exit. Only they contain the driver's handles, since the layer gives the application numbers instead, so
     * LeakSanitizer has to check before that: exit handlers run in reverse order, and the layer is already loaded. */
    (void)atexit(__lsan_do_leak_check);
#endif
}

static bool create_instance(struct ct_vk_instance *instance)
{
    const char *const layer = VALIDATION_LAYER, *const extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pEngineName = "Cuttle", .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};

    if (ct_config()->validate) {
        instance->layer_spec_version = find_validation_layer();
        instance->validating = instance->layer_spec_version != 0;
        if (!instance->validating)
            ct_log(CT_LOG_WARN, "CUTTLE_VALIDATE: %s is not installed", VALIDATION_LAYER);
    }
    if (instance->validating) {
        info.enabledLayerCount = info.enabledExtensionCount = 1;
        info.ppEnabledLayerNames = &layer;
        info.ppEnabledExtensionNames = &extension;
    }
    ct_log_forget_failure();
    if (ct_vk_result(vkCreateInstance(&info, NULL, &instance->handle), "vkCreateInstance") != CUDA_SUCCESS)
        return false;
    volkLoadInstanceOnly(instance->handle);
    if (instance->validating)
        watch_validation(instance->handle);
    return true;
}

static void add_device(struct ct_vk_instance *instance, VkPhysicalDevice handle)
{
    unsigned at = instance->n_devices;
    VkPhysicalDeviceProperties properties;
    const char *reason;

    vkGetPhysicalDeviceProperties(handle, &properties);
    if (ct_vk_device_examine(instance, handle, &instance->physical[at], &instance->infos[at], &reason)) {
        ct_log(CT_LOG_INFO, "device %u: %s, %s", at, instance->infos[at].name, instance->infos[at].driver);
        instance->n_devices++;
    } else {
        ct_absence_note(&instance->absence, "%s is not used: it lacks %s", properties.deviceName, reason);
    }
}

static void find_devices(struct ct_vk_instance *instance)
{
    VkPhysicalDevice *handles = NULL;
    uint32_t count = 0;

    if (ct_vk_result(vkEnumeratePhysicalDevices(instance->handle, &count, NULL), "vkEnumeratePhysicalDevices") != CUDA_SUCCESS || !count)
        return;
    handles = calloc(count, sizeof *handles);
    instance->physical = calloc(count, sizeof *instance->physical);
    instance->infos = calloc(count, sizeof *instance->infos);
    if (handles && instance->physical && instance->infos && vkEnumeratePhysicalDevices(instance->handle, &count, handles) >= VK_SUCCESS) {
        for (uint32_t i = 0; i < count; i++)
            add_device(instance, handles[i]);
    }
    free(handles);
}

/* The loader is there, and finds no driver that works. */
static void explain_absence(struct ct_vk_instance *instance)
{
    static const char *const variables[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"};

    if (!instance->handle)
        ct_absence_add(&instance->absence, "the Vulkan loader finds no driver that works (%s; VK_LOADER_DEBUG=all shows its search)",
                       ct_log_last_failure());
    else if (!*instance->absence.text)
        ct_absence_add(&instance->absence, "the Vulkan drivers have no device");
    ct_absence_add_variables(&instance->absence, variables, sizeof variables / sizeof *variables);
}

static void start(void)
{
    struct ct_vk_instance *instance = &state.instance;

    if (volkInitialize() != VK_SUCCESS) {
        ct_absence_note(&instance->absence, "there is no Vulkan loader (libvulkan.so.1)");
        return;
    }
    if (volkGetInstanceVersion() < VK_API_VERSION_1_3) {
        ct_absence_note(&instance->absence, "the Vulkan loader is older than 1.3");
        return;
    }
    ct_driver_environment_enter();
    if (create_instance(instance))
        find_devices(instance);
    ct_driver_environment_leave();
    if (!instance->n_devices)
        explain_absence(instance);
}

const struct ct_vk_instance *ct_vk_instance_get(void)
{
    pthread_once(&state.once, start);
    return &state.instance;
}

unsigned ct_vk_validation_messages(void)
{
    return atomic_load_explicit(&state.validation_messages, memory_order_relaxed);
}
