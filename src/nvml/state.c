/* SPDX-License-Identifier: Apache-2.0 */
/* The helper runs under the mutex: threads that initialize the library at the same time wait for one helper, and so does a fork. */
#include "state.h"

#include "helper_run.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct nvmlDevice_st {
    struct nvml_facts facts;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;                                 /* nvmlInit without nvmlShutdown */
static struct nvmlDevice_st devices[NVML_MAX_DEVICES]; /* handles point to these */
static unsigned n_devices;
static char given_folder[PATH_MAX]; /* of nvml_use_folder; empty: the library's own */

/* ---- forks: a child gets a mutex that no other thread holds ---- */

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(lock, unlock, unlock);
}

/* ---- files beside the library ---- */

void nvml_use_folder(const char *folder)
{
    snprintf(given_folder, sizeof given_folder, "%s", folder);
}

static bool find_folder(char out[PATH_MAX])
{
    Dl_info info;
    char *slash;

    if (*given_folder)
        return realpath(given_folder, out) != NULL;
    if (!dladdr((void *)find_folder, &info) || !info.dli_fname || !realpath(info.dli_fname, out))
        return false;
    slash = strrchr(out, '/');
    *slash = 0;
    return true;
}

bool nvml_beside(const char *name, char out[PATH_MAX])
{
    char folder[PATH_MAX];

    return find_folder(folder) && snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

/* ---- start and end ---- */

static nvmlReturn_t read_devices(void)
{
    static struct nvml_facts found[NVML_MAX_DEVICES];
    char path[PATH_MAX], *text = malloc(NVML_HELPER_TEXT_BYTES);
    nvmlReturn_t r = NVML_SUCCESS;

    if (!text)
        return NVML_ERROR_MEMORY;
    if (!nvml_beside(NVML_HELPER, path))
        r = NVML_ERROR_DRIVER_NOT_LOADED;
    if (r == NVML_SUCCESS)
        r = nvml_helper_run(path, NULL, NULL, NVML_HELPER_TIMEOUT_MS, text, NVML_HELPER_TEXT_BYTES);
    if (r == NVML_SUCCESS && !nvml_facts_read(text, found, &n_devices))
        r = NVML_ERROR_DRIVER_NOT_LOADED;
    free(text);
    for (unsigned i = 0; r == NVML_SUCCESS && i < n_devices; i++)
        devices[i].facts = found[i];
    return r;
}

nvmlReturn_t nvml_retain(void)
{
    nvmlReturn_t r = NVML_SUCCESS;

    lock();
    if (!users)
        r = read_devices();
    if (r == NVML_SUCCESS)
        users++;
    unlock();
    return r;
}

nvmlReturn_t nvml_release(void)
{
    nvmlReturn_t r = NVML_ERROR_UNINITIALIZED;

    lock();
    if (users) {
        users--;
        r = NVML_SUCCESS;
    }
    unlock();
    return r;
}

/* ---- look-ups ---- */

static nvmlReturn_t check_locked(bool are_arguments_valid)
{
    return !users ? NVML_ERROR_UNINITIALIZED : are_arguments_valid ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvml_check(bool are_arguments_valid)
{
    nvmlReturn_t r;

    lock();
    r = check_locked(are_arguments_valid);
    unlock();
    return r;
}

nvmlReturn_t nvml_look_up(nvmlDevice_t device, bool are_arguments_valid, struct nvml_facts *out, unsigned *out_index)
{
    nvmlReturn_t r;
    unsigned index = 0;

    lock();
    r = check_locked(are_arguments_valid);
    while (r == NVML_SUCCESS && index < n_devices && device != &devices[index])
        index++;
    if (r == NVML_SUCCESS && index == n_devices)
        r = NVML_ERROR_INVALID_ARGUMENT;
    if (r == NVML_SUCCESS)
        *out = devices[index].facts;
    if (r == NVML_SUCCESS && out_index)
        *out_index = index;
    unlock();
    return r;
}

nvmlReturn_t nvml_find(bool (*matches)(const struct nvml_facts *facts, const void *what), const void *what, nvmlDevice_t *out)
{
    nvmlReturn_t r;
    unsigned index = 0;

    lock();
    r = check_locked(out != NULL);
    while (r == NVML_SUCCESS && index < n_devices && !matches(&devices[index].facts, what))
        index++;
    if (r == NVML_SUCCESS && index == n_devices)
        r = NVML_ERROR_NOT_FOUND;
    if (r == NVML_SUCCESS)
        *out = &devices[index];
    unlock();
    return r;
}

nvmlReturn_t nvml_count(unsigned *out)
{
    nvmlReturn_t r;

    lock();
    r = check_locked(out != NULL);
    if (r == NVML_SUCCESS)
        *out = n_devices;
    unlock();
    return r;
}

nvmlReturn_t nvml_by_index(unsigned index, nvmlDevice_t *out)
{
    nvmlReturn_t r;

    lock();
    r = check_locked(out && index < n_devices);
    if (r == NVML_SUCCESS)
        *out = &devices[index];
    unlock();
    return r;
}
