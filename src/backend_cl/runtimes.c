/* SPDX-License-Identifier: Apache-2.0 */
/* How the loaders (ocl-icd 2.3, Khronos') find runtimes: OCL_ICD_VENDORS, or OPENCL_VENDOR_PATH, names a folder of .icd files, a single such
 * file, or a library; without them the folder is /etc/OpenCL/vendors. The first line of a file is the library. To leave one out, they get a
 * folder with the others. */
#include "runtimes.h"

#include "core/base/config.h"
#include "core/base/disk_cache.h"
#include "core/base/log.h"
#include "core/base/resource_limits.h"
#include "core/base/surroundings.h"
#include "core/base/trial.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CT_CHANNEL "opencl"
#define DEFAULT_FOLDER "/etc/OpenCL/vendors"
#define PATH_BYTES 512
#define MAX_RUNTIMES 32   /* further ones are loaded without a trial */
#define PATIENCE_MS 30000 /* for a runtime to start */
#define TRIAL_VERSION 1u  /* part of the key: incremented when more is asked of runtimes at start */

const char *const ct_cl_loader_variables[] = {"OPENCL_VENDOR_PATH", "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_LAYERS", NULL};

struct runtime {
    char library[PATH_BYTES]; /* the name by which the OpenCL loader finds it */
    bool crashes;
};

static struct {
    bool is_tried;
    unsigned count, n_crashing;
    struct runtime runtimes[MAX_RUNTIMES];
    char folder[64]; /* empty: there is none */
} state;

/* ---- which there are ---- */

static void add_library(const char *library)
{
    for (unsigned i = 0; i < state.count; i++)
        if (!strcmp(state.runtimes[i].library, library))
            return;
    if (*library && state.count < MAX_RUNTIMES)
        snprintf(state.runtimes[state.count++].library, PATH_BYTES, "%s", library);
}

static void add_file(const char *path)
{
    char line[PATH_BYTES] = "";
    FILE *file = fopen(path, "re");

    if (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        add_library(line);
    }
    if (file)
        fclose(file);
}

static bool ends_in_icd(const char *name)
{
    const size_t length = strlen(name);

    return length > 4 && !strcmp(name + length - 4, ".icd");
}

static void add_folder(DIR *listing, const char *folder)
{
    const struct dirent *entry;
    char path[PATH_BYTES];

    while ((entry = readdir(listing))) {
        if (ends_in_icd(entry->d_name) && snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < PATH_BYTES)
            add_file(path);
    }
    closedir(listing);
}

static void add_place(const char *place)
{
    DIR *listing = opendir(place);

    if (listing)
        add_folder(listing, place);
    else if (ends_in_icd(place))
        add_file(place);
    else
        add_library(place);
}

static void list_runtimes(void)
{
    const char *path = getenv("OPENCL_VENDOR_PATH"), *vendors = getenv("OCL_ICD_VENDORS");

    if (path && *path)
        add_place(path);
    if (vendors && *vendors)
        add_place(vendors);
    if (!(path && *path) && !(vendors && *vendors))
        add_place(DEFAULT_FOLDER);
}

/* ---- what a trial's result depends on ---- */

/* The file of a library that is named without a path: where the dynamic linker finds it first, of the folders that matter here. */
static bool find_library(const char *library, struct stat *out)
{
    const char *paths = getenv("LD_LIBRARY_PATH");
    char folders[4 * PATH_BYTES], path[2 * PATH_BYTES], *rest = folders;
    Dl_info libc = {0};
    size_t length;

    if (strchr(library, '/'))
        return stat(library, out) == 0;
    if (dladdr((void *)(uintptr_t)&abs, &libc) == 0 || !libc.dli_fname || !strrchr(libc.dli_fname, '/'))
        libc.dli_fname = "/usr/lib/";
    length = (size_t)(strrchr(libc.dli_fname, '/') - libc.dli_fname);
    snprintf(folders, sizeof folders, "%s:%.*s:/usr/lib64:/usr/lib:/usr/local/lib", paths ? paths : "", (int)length, libc.dli_fname);
    for (char *folder; (folder = strsep(&rest, ":"));) {
        snprintf(path, sizeof path, "%s/%s", folder, library);
        if (*folder && stat(path, out) == 0)
            return true;
    }
    return false;
}

/* The library and its date, and what else has been seen to decide whether a runtime starts: the process's surroundings, and /sys. */
static struct ct_disk_key key_of(const struct runtime *runtime)
{
    struct stat library = {0};
    const bool is_found = find_library(runtime->library, &library);
    const uint64_t facts[] = {TRIAL_VERSION,
                              is_found,
                              (uint64_t)library.st_dev,
                              library.st_ino,
                              (uint64_t)library.st_size,
                              (uint64_t)library.st_mtim.tv_sec,
                              (uint64_t)library.st_mtim.tv_nsec,
                              access("/sys/devices/system/cpu", R_OK) == 0};
    const struct ct_hash surroundings = ct_surroundings();
    const struct ct_bytes parts[] = {
        {facts, sizeof facts}, {&surroundings, sizeof surroundings}, {runtime->library, strlen(runtime->library)}};

    return ct_disk_key_make(CT_DISK_OPENCL, parts, sizeof parts / sizeof *parts);
}

/* ---- folders for the loader ---- */

static void remove_folder(const char *folder)
{
    char path[PATH_BYTES];

    for (unsigned i = 0; i < state.count; i++) {
        snprintf(path, sizeof path, "%s/%u.icd", folder, i);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static bool write_file(const char *folder, unsigned index)
{
    char path[PATH_BYTES];
    FILE *file;
    bool is_written;

    snprintf(path, sizeof path, "%s/%u.icd", folder, index);
    if (strlen(state.runtimes[index].library) + 1 > ct_limit_of_files() || !(file = fopen(path, "we")))
        return false;
    is_written = fprintf(file, "%s\n", state.runtimes[index].library) > 0;
    return fclose(file) == 0 && is_written;
}

/* A folder with one runtime, or with all that do not crash (`only` is negative). */
static bool make_folder(char folder[64], int only)
{
    bool is_complete = true;

    snprintf(folder, 64, "/tmp/cuttle-opencl-XXXXXX");
    if (!mkdtemp(folder))
        return false;
    for (unsigned i = 0; i < state.count; i++)
        if (only < 0 ? !state.runtimes[i].crashes : (unsigned)only == i)
            is_complete &= write_file(folder, i);
    if (!is_complete)
        remove_folder(folder);
    return is_complete;
}

/* ---- trials ---- */

struct trial {
    char folder[64];
    void (*start)(void *user);
};

/* In the child. */
static void start_one(void *user)
{
    const struct trial *trial = user;

    for (const char *const *name = ct_cl_loader_variables; *name; name++)
        unsetenv(*name);
    setenv("OCL_ICD_VENDORS", trial->folder, 1);
    trial->start(NULL);
}

/* What could not be tried counts as good, as it did before there were trials, and is tried again. */
static bool crashes(unsigned index, void (*start)(void *user))
{
    struct trial trial = {.start = start};
    enum ct_trial_outcome outcome;
    const struct ct_disk_key key = key_of(&state.runtimes[index]);
    uint32_t crashed;

    if (ct_disk_cache_load_number(&key, &crashed))
        return crashed;
    if (!make_folder(trial.folder, (int)index))
        return false;
    outcome = ct_trial_run(start_one, &trial, PATIENCE_MS);
    remove_folder(trial.folder);
    if (outcome != CT_TRIAL_UNKNOWN)
        ct_disk_cache_store_number(&key, outcome == CT_TRIAL_DIED);
    ct_log(CT_LOG_INFO, "%s was tried in a child process: outcome %d", state.runtimes[index].library, (int)outcome);
    return outcome == CT_TRIAL_DIED;
}

static void warn(const struct runtime *runtime)
{
    char path[CT_DISK_CACHE_PATH_BYTES];
    const struct ct_disk_key key = key_of(runtime);
    const bool is_cached = ct_disk_cache_path(&key, path);

    ct_log(CT_LOG_WARN, "the OpenCL runtime %s is left out: it crashes when it starts%s%s%s", runtime->library,
           is_cached ? " (it is tried again when it changes, or when " : "", is_cached ? path : "", is_cached ? " is removed)" : "");
}

/* The loaders read these variables even in set-user-id programs, and would load the user's libraries there. */
static const char *insecure_variable_or_null(void)
{
    for (const char *const *name = ct_cl_loader_variables; *name; name++)
        if (getenv(*name) && !secure_getenv(*name))
            return *name;
    return NULL;
}

void ct_cl_runtimes_try(void (*start)(void *user))
{
    if (state.is_tried || !ct_config()->probe || insecure_variable_or_null())
        return;
    state.is_tried = true;
    list_runtimes();
    for (unsigned i = 0; i < state.count; i++) {
        state.runtimes[i].crashes = crashes(i, start);
        state.n_crashing += state.runtimes[i].crashes;
        if (state.runtimes[i].crashes)
            warn(&state.runtimes[i]);
    }
}

/* ---- the choice ---- */

enum ct_cl_choice ct_cl_runtimes_choose(const char **out_folder, const char **out_reason)
{
    const char *insecure = insecure_variable_or_null();

    if (insecure) {
        *out_reason = "a variable of the OpenCL loader is set, which programs with other rights than their user's must not follow";
        return CT_CL_NONE;
    }
    if (!state.n_crashing)
        return CT_CL_ALL;
    if (state.n_crashing < state.count && make_folder(state.folder, -1)) {
        *out_folder = state.folder;
        return CT_CL_SOME;
    }
    *state.folder = 0;
    *out_reason = state.n_crashing < state.count ? "there is no folder for a list of the runtimes that do not crash"
                                                 : "all OpenCL runtimes crash when they start";
    return CT_CL_NONE;
}

void ct_cl_runtimes_remove_folder(void)
{
    if (*state.folder)
        remove_folder(state.folder);
    *state.folder = 0;
}
