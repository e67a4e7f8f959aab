/* SPDX-License-Identifier: Apache-2.0 */
/* opens NAME [COMMAND..]: opens a library as the static CUDA runtime does, and calls cuInit. Or, with a command: runs it in a child process, and
 * takes over its status. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_child(char **command)
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        execvp(command[0], command);
        _exit(126);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    void *library;
    int (*init)(unsigned);

    if (argc > 2)
        return run_child(argv + 1);
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    init = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;
    if (!init) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    printf("cuInit returns %d\n", init(0));
    return 0;
}
