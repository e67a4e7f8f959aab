/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle smi`: what libnvidia-ml.so.1 knows, by its own code. Its options are the most used ones of nvidia-smi. */
#include "verbs.h"

#include "library_folder.h"

#include "nvml/nvml_abi.h"
#include "nvml/state.h"

#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES = 128, MAX_PROCESSES = 4096 };

struct smi_device {
    nvmlDevice_t handle;
    nvmlMemory_t memory; /* read once, since that may take a while */
    bool has_memory;
};

/* ---- values: each function writes one without its unit, and returns false where it is not known ---- */

typedef bool show_value(const struct smi_device *device, char *out);

static bool write_number(char *out, unsigned long long number)
{
    snprintf(out, VALUE_BYTES, "%llu", number);
    return true;
}

static bool write_mib(const struct smi_device *device, char *out, unsigned long long bytes)
{
    return device->has_memory && write_number(out, bytes >> 20);
}

static bool show_index(const struct smi_device *device, char *out)
{
    unsigned index;

    return nvmlDeviceGetIndex(device->handle, &index) == NVML_SUCCESS && write_number(out, index);
}

static bool show_name(const struct smi_device *device, char *out)
{
    return nvmlDeviceGetName(device->handle, out, VALUE_BYTES) == NVML_SUCCESS;
}

static bool show_uuid(const struct smi_device *device, char *out)
{
    return nvmlDeviceGetUUID(device->handle, out, VALUE_BYTES) == NVML_SUCCESS;
}

static bool show_bus_id(const struct smi_device *device, char *out)
{
    nvmlPciInfo_t pci;

    if (nvmlDeviceGetPciInfo_v3(device->handle, &pci) != NVML_SUCCESS)
        return false;
    snprintf(out, VALUE_BYTES, "%s", pci.busId);
    return true;
}

static bool show_driver_version(const struct smi_device *device, char *out)
{
    (void)device;
    return nvmlSystemGetDriverVersion(out, VALUE_BYTES) == NVML_SUCCESS;
}

static bool show_capability(const struct smi_device *device, char *out)
{
    int major, minor;

    if (nvmlDeviceGetCudaComputeCapability(device->handle, &major, &minor) != NVML_SUCCESS)
        return false;
    snprintf(out, VALUE_BYTES, "%d.%d", major, minor);
    return true;
}

static bool show_memory_total(const struct smi_device *device, char *out)
{
    return write_mib(device, out, device->memory.total);
}

static bool show_memory_used(const struct smi_device *device, char *out)
{
    return write_mib(device, out, device->memory.used);
}

static bool show_memory_free(const struct smi_device *device, char *out)
{
    return write_mib(device, out, device->memory.free);
}

static bool show_utilization(const struct smi_device *device, char *out)
{
    nvmlUtilization_t rates;

    return nvmlDeviceGetUtilizationRates(device->handle, &rates) == NVML_SUCCESS && write_number(out, rates.gpu);
}

static bool show_temperature(const struct smi_device *device, char *out)
{
    unsigned celsius;

    return nvmlDeviceGetTemperature(device->handle, NVML_TEMPERATURE_GPU, &celsius) == NVML_SUCCESS && write_number(out, celsius);
}

static bool show_power(const struct smi_device *device, char *out)
{
    unsigned milliwatts;

    if (nvmlDeviceGetPowerUsage(device->handle, &milliwatts) != NVML_SUCCESS)
        return false;
    snprintf(out, VALUE_BYTES, "%.2f", milliwatts / 1000.0);
    return true;
}

static bool show_count(const struct smi_device *device, char *out)
{
    unsigned count;

    (void)device;
    return nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS && write_number(out, count);
}

struct field {
    const char *name, *unit;
    show_value *show;
};

static const struct field fields[] = {
#define FIELD(name, unit, function) {name, unit, show_##function},
#include "smi_fields.def"
};
#define FIELD_COUNT (sizeof fields / sizeof *fields)

static void print_value(const struct field *field, const struct smi_device *device, bool has_units)
{
    char text[VALUE_BYTES];

    if (!field->show(device, text))
        printf("[N/A]");
    else
        printf("%s%s%s", text, has_units && *field->unit ? " " : "", has_units ? field->unit : "");
}

/* ---- forms of output ---- */

struct smi_format {
    bool has_header, has_units;
};

static void print_list(const struct smi_device *devices, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char index[VALUE_BYTES] = "?", name[VALUE_BYTES] = "?", uuid[VALUE_BYTES] = "?";

        show_index(&devices[i], index);
        show_name(&devices[i], name);
        show_uuid(&devices[i], uuid);
        printf("GPU %s: %s (UUID: %s)\n", index, name, uuid);
    }
}

/* Texts with commas are in quotation marks, as CSV has it. */
static void print_cell(const struct field *field, const struct smi_device *device, bool has_units)
{
    char text[VALUE_BYTES];
    const bool is_quoted = field->show(device, text) && strchr(text, ',');

    printf("%s", is_quoted ? "\"" : "");
    print_value(field, device, has_units);
    printf("%s", is_quoted ? "\"" : "");
}

static void print_csv(const struct field *const *columns, unsigned n_columns, struct smi_format format, const struct smi_device *devices,
                      unsigned count)
{
    for (unsigned c = 0; format.has_header && c < n_columns; c++)
        printf("%s%s%s%s%s", c ? ", " : "", columns[c]->name, *columns[c]->unit ? " [" : "", columns[c]->unit,
               *columns[c]->unit ? "]" : "");
    if (format.has_header)
        printf("\n");
    for (unsigned i = 0; i < count; i++)
        for (unsigned c = 0; c < n_columns; c++) {
            print_cell(columns[c], &devices[i], format.has_units);
            printf("%s", c + 1 < n_columns ? ", " : "\n");
        }
}

static void print_all(const struct smi_device *devices, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned f = 0; f < FIELD_COUNT; f++) {
            printf(f ? "  %-16s " : "%-18s ", fields[f].name);
            print_value(&fields[f], &devices[i], true);
            printf("\n");
        }
}

/* NVML cannot tell on which devices a process works, so each is listed once. */
static void print_processes(const struct smi_device *device)
{
    nvmlProcessInfo_t *processes = malloc(MAX_PROCESSES * sizeof *processes);
    unsigned count = MAX_PROCESSES;
    nvmlReturn_t r = NVML_ERROR_MEMORY;
    char name[VALUE_BYTES];

    if (processes)
        r = nvmlDeviceGetComputeRunningProcesses_v3(device->handle, &count, processes);
    if (r != NVML_SUCCESS)
        printf("processes: %s\n", nvmlErrorString(r));
    else if (!count)
        printf("no processes\n");
    else
        printf("%-10s process\n", "pid");
    for (unsigned i = 0; r == NVML_SUCCESS && i < count; i++)
        if (nvmlSystemGetProcessName(processes[i].pid, name, sizeof name) == NVML_SUCCESS)
            printf("%-10u %s\n", processes[i].pid, name);
    free(processes);
}

static void print_summary(const struct smi_device *devices, unsigned count)
{
    static const struct field columns[] = {
        {"memory used", "MiB", show_memory_used}, {"of", "MiB", show_memory_total}, {"busy", "%", show_utilization},
        {"temperature", "C", show_temperature},   {"power", "W", show_power},
    };
    char version[VALUE_BYTES];
    int cuda = 0;

    nvmlSystemGetDriverVersion(version, sizeof version);
    nvmlSystemGetCudaDriverVersion_v2(&cuda);
    printf("Cuttle %s, CUDA %d.%d\n\n", version, cuda / 1000, cuda % 1000 / 10);
    for (unsigned i = 0; i < count; i++) {
        print_list(&devices[i], 1);
        for (unsigned c = 0; c < sizeof columns / sizeof *columns; c++) {
            printf("%s%s ", c ? ", " : "  ", columns[c].name);
            print_value(&columns[c], &devices[i], true);
        }
        printf("\n");
    }
    printf("\n");
    print_processes(&devices[0]);
}

/* ---- arguments ---- */

/* Calls `take` for each word of a list with commas; the first status that is not negative ends that. */
static int for_words(const char *list, int (*take)(void *to, const char *word), void *to)
{
    char *copy = strdup(list), *rest = copy, *word;
    int status = copy ? -1 : EXIT_FAILURE;

    while (status < 0 && (word = strsep(&rest, ",")))
        status = take(to, word);
    free(copy);
    return status;
}

struct smi_request {
    const struct tool_arguments *arguments;
    const struct field *columns[64];
    unsigned n_columns;
    struct smi_format format;
    bool is_csv;
    struct smi_device devices[NVML_MAX_DEVICES];
    unsigned n_devices;
};

static int take_column(void *to, const char *word)
{
    struct smi_request *request = to;

    for (unsigned i = 0; i < FIELD_COUNT; i++)
        if (!strcmp(fields[i].name, word)) {
            if (request->n_columns == sizeof request->columns / sizeof *request->columns)
                return tool_wrong_usage(request->arguments, "too many fields at ", word);
            request->columns[request->n_columns++] = &fields[i];
            return -1;
        }
    return tool_wrong_usage(request->arguments, "unknown field ", word);
}

static int take_format(void *to, const char *word)
{
    struct smi_request *request = to;

    if (!strcmp(word, "csv"))
        request->is_csv = true;
    else if (!strcmp(word, "noheader"))
        request->format.has_header = false;
    else if (!strcmp(word, "nounits"))
        request->format.has_units = false;
    else
        return tool_wrong_usage(request->arguments, "unknown format ", word);
    return -1;
}

static int add_device(struct smi_request *request, nvmlDevice_t handle)
{
    struct smi_device *device = &request->devices[request->n_devices];

    if (request->n_devices == NVML_MAX_DEVICES)
        return tool_wrong_usage(request->arguments, "too many devices", "");
    device->handle = handle;
    request->n_devices++;
    return -1;
}

/* A number, a UUID, or a PCI address. */
static int take_device(void *to, const char *word)
{
    struct smi_request *request = to;
    nvmlDevice_t handle;
    char *end;
    const unsigned long index = strtoul(word, &end, 10);
    nvmlReturn_t r = NVML_ERROR_NOT_FOUND;

    if (*word >= '0' && *word <= '9' && !*end)
        r = index < NVML_MAX_DEVICES ? nvmlDeviceGetHandleByIndex_v2((unsigned)index, &handle) : NVML_ERROR_NOT_FOUND;
    else if (strchr(word, ':'))
        r = nvmlDeviceGetHandleByPciBusId_v2(word, &handle);
    else
        r = nvmlDeviceGetHandleByUUID(word, &handle);
    return r == NVML_SUCCESS ? add_device(request, handle) : tool_wrong_usage(request->arguments, "no such device: ", word);
}

/* Negative: the arguments are right. */
static int check_arguments(struct smi_request *request)
{
    const char *const *values = request->arguments->values;
    const char *query = values[CUTTLE_SMI_QUERY], *format = values[CUTTLE_SMI_FORMAT];
    int status = -1;

    if (!!values[CUTTLE_SMI_LIST] + !!values[CUTTLE_SMI_ALL] + !!query > 1)
        return tool_wrong_usage(request->arguments, "-L, -q and --query-gpu exclude each other", "");
    if (!query != !format)
        return tool_wrong_usage(request->arguments, "--query-gpu and --format need each other", "");
    if (query)
        status = for_words(query, take_column, request);
    if (status < 0 && format)
        status = for_words(format, take_format, request);
    if (status < 0 && format && !request->is_csv)
        status = tool_wrong_usage(request->arguments, "the format must contain csv: ", format);
    return status;
}

static int choose_devices(struct smi_request *request)
{
    const char *chosen = request->arguments->values[CUTTLE_SMI_DEVICE];
    unsigned count = 0;
    nvmlDevice_t handle;
    int status = -1;

    if (chosen)
        return for_words(chosen, take_device, request);
    nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; status < 0 && i < count; i++)
        if (nvmlDeviceGetHandleByIndex_v2(i, &handle) == NVML_SUCCESS)
            status = add_device(request, handle);
    return status;
}

static int print(struct smi_request *request)
{
    const char *const *values = request->arguments->values;

    if (!request->n_devices) {
        fprintf(stderr, "cuttle smi: no device found\n");
        return EXIT_FAILURE;
    }
    for (unsigned i = 0; i < request->n_devices && !values[CUTTLE_SMI_LIST]; i++)
        request->devices[i].has_memory = nvmlDeviceGetMemoryInfo(request->devices[i].handle, &request->devices[i].memory) == NVML_SUCCESS;
    if (values[CUTTLE_SMI_LIST])
        print_list(request->devices, request->n_devices);
    else if (values[CUTTLE_SMI_ALL])
        print_all(request->devices, request->n_devices);
    else if (request->n_columns)
        print_csv(request->columns, request->n_columns, request->format, request->devices, request->n_devices);
    else
        print_summary(request->devices, request->n_devices);
    return EXIT_SUCCESS;
}

int verb_smi(const struct tool_arguments *arguments)
{
    struct smi_request request = {.arguments = arguments, .format = {.has_header = true, .has_units = true}};
    char folder[PATH_MAX];
    nvmlReturn_t r;
    int status = check_arguments(&request);

    if (status >= 0)
        return status;
    if (!tool_library_folder(folder))
        return EXIT_FAILURE;
    nvml_use_folder(folder);
    r = nvmlInit_v2();
    if (r != NVML_SUCCESS) {
        fprintf(stderr, "cuttle smi: %s\n", nvmlErrorString(r));
        return EXIT_FAILURE;
    }
    status = choose_devices(&request);
    if (status < 0)
        status = print(&request);
    nvmlShutdown();
    return status;
}
