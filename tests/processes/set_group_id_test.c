/* SPDX-License-Identifier: Apache-2.0 */
/* A program that has more rights than its user (set-user-id, set-group-id, file capabilities) writes no file where the user's environment
 * says. The test runs copies of its own program: one plain, one that is set-group-id. Skipped where the latter cannot be made: the user is
 * in one group only, or the file system ignores the mode. */
#include "../api/api_kernels.h"
#include "../api/loaded_module.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_SECURE = 0, SECURE = 1, BROKEN = 2 }; /* exit statuses of the copies */

static char folder[] = "/tmp/set_group_id_XXXXXX";

static void path_of(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", folder, name);
}

static int copy_program(const char *path)
{
    char bytes[1 << 16];
    ssize_t n = 0;
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

    while (from >= 0 && to >= 0 && (n = read(from, bytes, sizeof bytes)) > 0)
        if (write(to, bytes, (size_t)n) != n)
            return -1;
    return from < 0 || to < 0 || n < 0 || close(from) != 0 || close(to) != 0 ? -1 : 0;
}

/* A group other than the process's own that files may be given to. */
static bool find_group(gid_t *out)
{
    gid_t groups[64];
    int n = getgroups(64, groups);

    if (geteuid() == 0) {
        *out = getgid() + 1;
        return true;
    }
    for (int i = 0; i < n; i++)
        if (groups[i] != getgid()) {
            *out = groups[i];
            return true;
        }
    return false;
}

/* What the copies do: all that reads the variables, with a kernel whose texts would be written. */
static int use_cuda(void)
{
    void *state;

    if (load_module(&state, PTX_HEADER PTX_NOTHING, 4096) != 0 ||
        cuLaunchKernel(get("nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) != CUDA_SUCCESS || cuCtxSynchronize() != CUDA_SUCCESS ||
        unload_module(&state) != 0)
        return BROKEN;
    return getauxval(AT_SECURE) ? SECURE : NOT_SECURE;
}

static int run_copy(const char *path)
{
    static const char *const names[] = {"CUTTLE_LOG_FILE", "CUTTLE_PTX_DIR", "CUTTLE_SPIRV_DIR", "XDG_CACHE_HOME", "HOME"};
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        char value[128];

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            path_of(names[i], value, sizeof value);
            if (i > 0)
                mkdir(value, 0700);
            setenv(names[i], value, 1);
        }
        setenv("CUTTLE_LOG", "debug", 1);
        unsetenv("CUDA_CACHE_DISABLE");
        execl(path, path, "use", (char *)NULL);
        _exit(BROKEN);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The number of files in the place that a variable names; removes them. */
static int files_at(const char *name)
{
    char path[128], inner[512];
    const struct dirent *entry;
    DIR *listing;
    int count = 0;

    path_of(name, path, sizeof path);
    if (unlink(path) == 0)
        return 1;
    listing = opendir(path);
    while (listing && (entry = readdir(listing))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%s", name, entry->d_name);
        count += files_at(inner);
    }
    if (listing)
        closedir(listing);
    rmdir(path);
    return count;
}

static void the_variables_work_without_other_rights(void **state)
{
    char path[128];

    (void)state;
    path_of("plain", path, sizeof path);
    assert_int_equal(copy_program(path), 0);
    assert_int_equal(run_copy(path), NOT_SECURE);
    assert_int_equal(files_at("CUTTLE_LOG_FILE"), 1);
    assert_int_equal(files_at("CUTTLE_PTX_DIR"), 1);
    assert_int_not_equal(files_at("CUTTLE_SPIRV_DIR"), 0);
    assert_int_not_equal(files_at("XDG_CACHE_HOME"), 0);
    files_at("HOME");
    unlink(path);
}

static void no_file_is_written_with_other_rights(void **state)
{
    char path[128];
    gid_t group;
    int outcome;

    (void)state;
    path_of("set_group_id", path, sizeof path);
    assert_int_equal(copy_program(path), 0);
    if (!find_group(&group) || chown(path, (uid_t)-1, group) != 0 || chmod(path, 02710) != 0) {
        unlink(path);
        skip();
    }
    outcome = run_copy(path);
    unlink(path);
    assert_int_equal(files_at("CUTTLE_LOG_FILE"), outcome == SECURE ? 0 : 1);
    if (outcome == NOT_SECURE) /* mounted with nosuid, or no_new_privs */
        skip();
    assert_int_equal(outcome, SECURE);
    assert_int_equal(files_at("CUTTLE_PTX_DIR"), 0);
    assert_int_equal(files_at("CUTTLE_SPIRV_DIR"), 0);
    assert_int_equal(files_at("XDG_CACHE_HOME"), 0);
    assert_int_equal(files_at("HOME"), 0);
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"CUTTLE_PTX_DIR", "CUTTLE_SPIRV_DIR", "XDG_CACHE_HOME", "HOME", "CUTTLE_LOG_FILE"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        files_at(names[i]);
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_variables_work_without_other_rights),
        cmocka_unit_test(no_file_is_written_with_other_rights),
    };

    if (argc > 1 && !strcmp(argv[1], "use"))
        return use_cuda();
    if (!on_cuttle())
        return 77; /* the variables are ours */
    if (!mkdtemp(folder))
        return 1;
    return cmocka_run_group_tests_name("set_group_id", tests, NULL, remove_folder);
}
